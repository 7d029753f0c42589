// The memory map: a block for each life of a ring, a workspace or a block of weights, over the addresses that are in use.

const PLACE_KINDS = [
  ["whole tensor", "whole", "tensor, its rows in use"],
  ["ring of rows", "wraps", "ring of some rows"],
  ["ring between stages", "cut", "ring between stages"],
  ["ring kept from hop to hop", "state", "state: rows kept from hop to hop"],
  ["workspace", "workspace", "workspace"],
  ["block of weights", "weights", "block of streamed weights"],
];
const placeKind = place => PLACE_KINDS.find(([name]) => name === place.kind) ?? PLACE_KINDS[0];
const isRing = place => !["workspace", "weights"].includes(placeKind(place)[1]);

// A tensor has the name of the layer that writes it: models call their tensors otherwise than their layers, and one name is
// enough to find it everywhere on the page.
function placeName(plan, place) {
  if (!isRing(place)) return plan.cnns.length > 1 ? place.name : place.name.replace(`${plan.cnns[0].name}/`, "");
  const name = nameOf(plan, place.cnn, place.layer);
  return plan.storage_model === "edges" ? `${name} → ${place.readers.map(reader => nameOf(plan, place.cnn, reader)).join(", ")}` : name;
}

// The lives of a plan as blocks, by when they begin.
function blocksOf(plan) {
  const blocks = plan.lives.map(life => {
    const place = plan.places[life.place], steps = [];
    for (let i = 0; i < life.steps.length; i += 3) steps.push([life.steps[i], life.steps[i + 1], life.steps[i + 2]]);
    const first = Math.min(...place.offsets);
    return {
      life, place, steps, from: steps[0][0], to: steps[steps.length - 1][0],
      low: first, high: Math.max(...place.offsets) + place.rows * place.row_bytes,
      bytes: place.rows * place.row_bytes * place.offsets.length,
    };
  });
  return blocks.sort((a, b) => a.from - b.from || a.low - b.low).map((block, index) => ({ ...block, index }));
}

// The outline of what is in use of a block: along the upper edge and back along the lower one.
function outline(block, x, y) {
  const { place, steps } = block;
  let path = "";
  for (const offset of place.offsets) {
    let upper = [], lower = [];
    const close = () => {
      if (upper.length) path += `M${upper.join("L")}L${lower.reverse().join("L")}Z`;
      upper = [], lower = [];
    };
    for (let i = 0; i + 1 < steps.length; i++) {
      const [from, low, high] = steps[i], to = steps[i + 1][0];
      if (high <= low) { close(); continue; }
      const [left, right] = [x(from).toFixed(2), x(to).toFixed(2)];
      const top = y(offset + high * place.row_bytes).toFixed(2), bottom = y(offset + low * place.row_bytes).toFixed(2);
      upper.push(`${left} ${top}`, `${right} ${top}`);
      lower.push(`${left} ${bottom}`, `${right} ${bottom}`);
    }
    close();
  }
  return path;
}

// The memory in which an address lies, of a board with several.
const regionOf = (plan, address) => plan.regions.find(({ offset, bytes }) => offset <= address && address < offset + bytes);
const addressIn = (plan, address) => {
  const region = regionOf(plan, address);
  return region ? `${region.name} ${grouped(address - region.offset)}` : grouped(address);
};

// The maps of a plan, one for each memory: the addresses that it shows, and the blocks among them.
function mapsOf(plan, blocks) {
  const memories = plan.regions.filter(({ bytes }) => bytes > 0);
  if (!memories.length) return [{ title: "Memory map: addresses over time", low: 0, high: Math.max(plan.memory.arena, 1), blocks }];
  return memories.map(({ name, offset, bytes }) => ({
    title: `Memory map of ${name}: addresses over time`, low: offset, high: offset + bytes,
    blocks: blocks.filter(({ place }) => place.offsets.some(at => offset <= at && at < offset + bytes)),
  }));
}

// Where a name fits into a block: around the middle of its life, as far as the middle row stays in use.
function labelPlace(block, x, y, plot) {
  const { place, steps } = block, offset = place.offsets[0];
  const middle = (Math.max(block.from, plot.t0) + Math.min(block.to, plot.t1)) / 2;
  let at = steps.findIndex((step, i) => i + 1 < steps.length && steps[i + 1][0] >= middle);
  if (at < 0) return null;
  const [, low, high] = steps[at];
  const top = Math.max(plot.top, y(offset + high * place.row_bytes)), bottom = Math.min(plot.bottom, y(offset + low * place.row_bytes));
  if (bottom - top < 13) return null;
  const line = (top + bottom) / 2;
  const holds = ([, low, high]) => y(offset + high * place.row_bytes) <= line - 6 && y(offset + low * place.row_bytes) >= line + 6;
  let [first, last] = [at, at];
  while (first > 0 && holds(steps[first - 1])) first--;
  while (last + 2 < steps.length && holds(steps[last + 1])) last++;
  const [left, right] = [Math.max(plot.left, x(steps[first][0])), Math.min(plot.right, x(steps[last + 1][0]))];
  return right - left < 34 ? null : { x: (left + right) / 2, y: line + 4, letters: Math.floor((right - left - 6) / 6.2) };
}

function blockLabel(plan, block) {
  const { place } = block;
  return `${placeName(plan, place)}, ${place.kind}, ${grouped(block.bytes)} bytes at ${place.offsets.map(offset => addressIn(plan, offset)).join(" and ")}, ` +
    `from ${time(block.from)} to ${time(block.to)}`;
}

function blockFacts(plan, block) {
  const { place, life } = block, layer = plan.cnns[place.cnn].layers[place.layer];
  const ofRing = value => isRing(place) ? value : "";
  const most = Math.max(...block.steps.map(([, low, high]) => high - low));
  const readers = place.readers.map(reader => nameOf(plan, place.cnn, reader));
  return [
    [isRing(place) ? "Output of" : "Memory", placeName(plan, place)],
    ["Tensor", ofRing(layer.output)],
    ["Kind", place.kind],
    ["Address", place.offsets.map(offset => `${addressIn(plan, offset)} to ${grouped(offset - (regionOf(plan, offset)?.offset ?? 0) + place.rows * place.row_bytes)}`).join(", ")],
    ["Bytes", exact(block.bytes)],
    ["Rows", ofRing(`room for ${grouped(place.rows)} of ${grouped(layer.height)}, ${grouped(place.row_bytes)} bytes each; at most ${grouped(most)} in use`)],
    ["Shape", ofRing(layer.shape.join(" × "))],
    ["Read by", ofRing(readers.join(", ") || "nobody")],
    ["Life", `${time(block.from)} to ${time(block.to)}${plan.firings.frame.some(frame => frame > 0) ? `, frame ${life.frame + 1}` : ""}`],
  ];
}

const blockColumns = plan => [
  { title: "Name", find: ({ place }) => findable(plan, place.cnn, place.layer), text: block => placeName(plan, block.place) },
  { title: "Kind", short: true, text: block => block.place.kind },
  { title: "Tensor", text: block => isRing(block.place) ? plan.cnns[block.place.cnn].layers[block.place.layer].output : "–" },
  { title: "Read by", text: block => block.place.readers.map(reader => nameOf(plan, block.place.cnn, reader)).join(", ") },
  { title: "Address", text: block => block.place.offsets.map(offset => addressIn(plan, offset)).join(", "), value: block => block.low },
  { title: "Bytes", text: block => grouped(block.bytes), value: block => block.bytes },
  { title: "Rows", text: block => grouped(block.place.rows), value: block => block.place.rows },
  { title: "Frame", text: block => block.life.frame + 1, value: block => block.life.frame },
  { title: "From", text: block => time(block.from), value: block => block.from },
  { title: "To", text: block => time(block.to), value: block => block.to },
];

// Draws a map into a picture. Returns its marks, one for each block, in turn.
function drawMap(picture, plan, blocks, view, plot, selected) {
  const { x, y } = view;
  const marks = [], labels = svg("g", { class: "labels", "aria-hidden": "true" });
  const group = svg("g", { "clip-path": `url(#${plot.clip})`, role: "group", "aria-label": "blocks" });
  blocks.forEach(block => {
    const [, style] = placeKind(block.place);
    const mark = svg("path", {
      d: outline(block, x, y), class: `block ${style} shade${block.place.layer % 3}${block === selected ? " selected" : ""}`,
      role: "button", "aria-label": blockLabel(plan, block), "data-block": block.index, "data-find": findable(plan, block.place.cnn, block.place.layer),
    }, svg("title", null, blockLabel(plan, block)));
    marks.push(mark);
    group.append(mark);
    const seen = x(block.to) > plot.left && x(block.from) < plot.right && x(block.to) - x(block.from) > 34;
    const at = seen ? labelPlace(block, x, y, { ...plot, t0: view.t0, t1: view.t1 }) : null;
    const { name } = plan.cnns[block.place.cnn].layers[block.place.layer];
    if (at && at.letters >= Math.min(8, name.length)) labels.append(svg("text", { x: at.x, y: at.y, "text-anchor": "middle", "data-find": mark.dataset.find }, clip(name, at.letters)));
  });
  if (blocks.includes(selected)) {
    for (const offset of selected.place.offsets) {
      const top = y(offset + selected.place.rows * selected.place.row_bytes);
      group.append(svg("rect", { class: "room", x: x(selected.from), y: top,
        width: Math.max(1, x(selected.to) - x(selected.from)), height: Math.max(1, y(offset) - top) }));
    }
  }
  group.append(labels);
  picture.append(group);
  return { group, marks };
}
