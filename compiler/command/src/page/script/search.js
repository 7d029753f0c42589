// The search for layers and tensors. What does not match is left out of tables, and faint in pictures.

let sought = "";

// What a mark or a row is found by: the names of a layer and of the tensor that it writes.
const findable = (plan, cnn, layer) => `${nameOf(plan, cnn, layer)} ${plan.cnns[cnn].layers[layer].output}`.toLowerCase();

// Marks and rows come anew with each drawing, so whatever draws them calls this at its end.
function seek(drawn) {
  for (const mark of drawn.querySelectorAll("[data-find]")) mark.classList.toggle("missed", !mark.dataset.find.includes(sought));
}

function searchField(plans) {
  const layers = plans.flatMap(plan => plan.cnns.flatMap((cnn, c) => cnn.layers.map((_, l) => findable(plan, c, l))));
  const said = html("span", { role: "status" });
  const find = text => {
    sought = text.trim().toLowerCase();
    seek(document);
    for (const picture of document.querySelectorAll("svg.network")) picture.parentNode.scrollTop = (picture.querySelector(".layer:not(.missed)")?.getBBox().y ?? 0) - ROW;
    const count = layers.filter(layer => layer.includes(sought)).length;
    said.textContent = sought === "" ? "" : count === 0 ? "no layer or tensor has this name" : `${grouped(count)} of ${grouped(layers.length)} layers`;
  };
  const field = html("input", {
    type: "search", placeholder: "Find a layer or tensor: /", "aria-label": "Find a layer or tensor", "aria-keyshortcuts": "/", spellcheck: "false",
    input: () => find(field.value),
    keydown: event => {
      if (event.key === "Enter") (document.getElementById("layers") ?? document.querySelector("section.timeline")).scrollIntoView();
      if (event.key !== "Escape") return;
      field.value = "";
      find("");
      field.blur();
    },
  });
  document.addEventListener("keydown", event => {
    if (event.key !== "/" || event.ctrlKey || event.altKey || event.metaKey || event.target.matches?.("input, select")) return;
    event.preventDefault();
    field.focus();
    field.select();
  });
  return html("div", { class: "search", role: "search" }, field, said);
}
