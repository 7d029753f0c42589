// The layers of each CNN from its first to its last, with what reads what: partitions and segments in colors.

const ROW = 20;

function networkSection(plan) {
  const pictures = plan.cnns.map((cnn, c) => networkOf(plan, c));
  const segmented = plan.cnns.some(cnn => cnn.layers.some(layer => layer.segment));
  const section = html("section", { id: "network", "aria-label": "Network" },
    html("h2", null, plan.cnns.length > 1 ? "Networks" : "Network"),
    html("p", { class: "note" }, "Layers in the order of data, which flows downwards. A line to the next layer is left out; an arc goes to a reader further on. " +
      `The first stripe is the partition${segmented ? ", the second the segment: layers that take turns, row by row" : ""}. A bar shows the share of its rows that a layer makes in a firing.`),
    pictures.map(({ box }) => box));
  return { section, draw: () => pictures.forEach(({ draw }) => draw()) };
}

function networkOf(plan, c) {
  const cnn = plan.cnns[c], shown = facts();
  const picture = svg("svg", { class: "network", role: "group", "aria-label": `Layers of ${cnn.name}` });
  const frame = scrolling(`Network ${cnn.name}`, picture);
  const box = html("figure", null, plan.cnns.length > 1 ? html("figcaption", null, cnn.name) : null, frame, shown);
  const readers = cnn.layers.map(() => []);
  cnn.layers.forEach((layer, l) => layer.inputs.forEach(input => { if (!readers[input].includes(l)) readers[input].push(l); }));
  showFacts(shown, [["Details", "Select a layer."]]);
  const partitions = [...new Set(cnn.layers.map(layer => layer.partition))];
  let selected = null;
  function draw() {
    const width = Math.max(560, frame.clientWidth - 2), height = cnn.layers.length * ROW + 30, top = 24;
    const arcs = 130, name = arcs + 36, marks = [];
    const columns = { op: Math.max(name + 230, width * 0.4), shape: Math.max(name + 340, width * 0.56), parts: Math.max(name + 480, width * 0.76) };
    picture.replaceChildren();
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    picture.setAttribute("style", `height: ${height}px`);
    const middle = l => top + l * ROW + ROW / 2;
    for (const [x, text] of [[name, "layer"], [columns.op, "operator"], [columns.shape, "output"], [columns.parts, "rows a firing"]])
      picture.append(svg("text", { class: "unit", x, y: 14, "aria-hidden": "true" }, text));
    const lines = svg("g", { class: "edges", "aria-hidden": "true" });
    readers.forEach((all, l) => all.filter(reader => reader > l + 1).forEach(reader => {
      const reach = Math.min(arcs - 12, 14 + 9 * Math.sqrt(reader - l) * 1.6);
      const on = selected === l || selected === reader;
      lines.append(svg("path", { class: on ? "on" : null, d: `M${arcs} ${middle(l)}C${arcs - reach} ${middle(l)} ${arcs - reach} ${middle(reader)} ${arcs} ${middle(reader)}` }));
    }));
    picture.append(lines);
    const group = svg("g", { role: "group", "aria-label": "layers" }), texts = svg("g", { class: "texts", "aria-hidden": "true" });
    cnn.layers.forEach((layer, l) => {
      const y = top + l * ROW, parts = layer.firings > 1;
      const label = `${layer.name}, ${layer.op}, output ${layer.shape.join(" by ")}, partition ${plan.partitions[layer.partition].name}` +
        (layer.segment ? `, segment ${layer.segment}` : "") + (parts ? `, ${layer.rows} rows a firing, ${layer.firings} firings` : ", one firing");
      const mark = svg("g", { class: `layer${selected === l ? " selected" : ""}`, role: "button", "aria-label": label, "data-find": findable(plan, c, l) },
        svg("title", null, label),
        svg("rect", { class: "row", x: arcs, y, width: width - arcs, height: ROW }),
        svg("rect", { class: `stripe p${partitions.indexOf(layer.partition) % 6}`, x: arcs + 2, y, width: 8, height: ROW }),
        layer.segment ? svg("rect", { class: `stripe s${layer.segment % 2}`, x: arcs + 13, y, width: 8, height: ROW }) : null);
      texts.append(svg("g", { "data-find": mark.dataset.find },
        svg("circle", { class: `op${kindOf(layer.op)}`, cx: name - 9, cy: y + ROW / 2, r: 4 }),
        svg("text", { x: name, y: y + 14 }, clip(layer.name, Math.floor((columns.op - name - 8) / 6.6))),
        svg("text", { class: "quiet", x: columns.op, y: y + 14 }, clip(layer.op, Math.floor((columns.shape - columns.op - 6) / 6.4))),
        svg("text", { class: "quiet", x: columns.shape, y: y + 14 }, clip(layer.shape.join(" × "), Math.floor((columns.parts - columns.shape - 6) / 6.4))),
        svg("rect", { class: "lane-room", x: columns.parts, y: y + 6, width: 60, height: 8 }),
        svg("rect", { class: parts ? "parts" : "wholly", x: columns.parts, y: y + 6, width: Math.max(1.5, 60 * Math.min(1, share(layer.rows, layer.height))), height: 8 }),
        svg("text", { class: "quiet", x: columns.parts + 68, y: y + 14 }, parts ? `${grouped(layer.rows)} of ${grouped(layer.height)}` : "all")));
      marks.push(mark);
      group.append(mark);
    });
    picture.append(group, texts);
    seek(picture);
    const show = l => {
      selected = l;
      const layer = cnn.layers[l];
      showFacts(shown, [["Layer", layer.name], ["Operator", layer.op], ["Primitive", layer.primitive], ["Reads", layer.inputs.map(input => cnn.layers[input].name).join(", ")],
        ["Tensor", layer.output], ["Read by", readers[l].map(reader => cnn.layers[reader].name).join(", ")], ["Partition", plan.partitions[layer.partition].name],
        ["Segment", layer.segment], ["Firings", `${grouped(layer.firings)}, ${grouped(layer.rows)} rows each`], ["Time", layer.ns === null ? "" : time(layer.ns)]]);
      draw();
      picture.querySelectorAll(".layer")[l].focus({ preventScroll: true });
    };
    walkable(group, marks, show);
    marks.forEach((mark, l) => mark.addEventListener("click", () => show(l)));
  }
  box.append(legend(partitions.length > 1 ? partitions.map((p, i) => [`p${i % 6}`, `partition ${plan.partitions[p].name}, on ${plan.partitions[p].processor}`]) : []));
  box.append(kindLegend(cnn.layers));
  return { box, draw };
}
