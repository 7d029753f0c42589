// The layers as a table to sort, and their parameters as a map of tiles.

const layersOf = plan => plan.cnns.flatMap((cnn, c) => cnn.layers.map((layer, l) => ({ ...layer, cnn: c, index: l, title: nameOf(plan, c, l) })));

function layerSection(plan) {
  const layers = layersOf(plan), frame = layers.reduce((sum, layer) => sum + (layer.ns ?? 0), 0);
  const several = plan.partitions.length > 1, isTimed = plan.basis !== null, segmented = layers.some(layer => layer.segment);
  const columns = [
    { title: "Layer", find: layer => findable(plan, layer.cnn, layer.index), text: layer => layer.title },
    { title: "Operator", short: true, text: layer => layer.op },
    { title: "Primitive", short: true, text: layer => layer.op === "input" ? "–" : layer.primitive },
    several ? { title: "Partition", short: true, text: layer => plan.partitions[layer.partition].name } : null,
    segmented ? { title: "Segment", text: layer => layer.segment ?? "–", value: layer => layer.segment ?? 0 } : null,
    isTimed ? { title: "Time", text: layer => time(layer.ns ?? 0), value: layer => layer.ns ?? 0 } : null,
    isTimed ? { title: "Share of time", text: layer => percent(share(layer.ns ?? 0, frame)), value: layer => layer.ns ?? 0, bar: layer => share(layer.ns ?? 0, frame) } : null,
    new Set(layers.filter(layer => layer.basis).map(layer => layer.basis)).size > 1 ? { title: "Basis", text: layer => layer.basis ?? "–" } : null,
    { title: "Rows a firing", text: layer => layer.rows, value: layer => layer.rows },
    { title: "Firings", text: layer => grouped(layer.firings), value: layer => layer.firings },
    { title: "Ring, bytes", text: layer => layer.ring ? grouped(layer.ring) : "–", value: layer => layer.ring },
    layers.some(layer => layer.workspace) ? { title: "Workspace", text: layer => layer.workspace ? grouped(layer.workspace) : "–", value: layer => layer.workspace } : null,
    layers.some(layer => layer.blocks) ? { title: "Blocks of weights", text: layer => layer.blocks ? grouped(layer.blocks) : "–", value: layer => layer.blocks } : null,
    { title: "Parameters, bytes", text: layer => layer.parameters ? grouped(layer.parameters) : "–", value: layer => layer.parameters, bar: layer => share(layer.parameters, plan.memory.parameters) },
  ].filter(Boolean);
  return html("section", { id: "layers", "aria-label": "Layers" }, html("h2", null, "Layers"),
    html("p", { class: "keys" }, "Select the title of a column to sort by it."),
    table(`${layers.length} layers`, columns, layers, true));
}

// Tiles of areas in proportion, as square as they can be (Bruls, Huizing and van Wijk 2000), within [x, y, width, height].
function tiles(items, [x, y, width, height]) {
  const all = items.reduce((sum, item) => sum + item.size, 0), placed = [];
  const scale = share(width * height, all);
  let rest = items.map(item => ({ item, area: item.size * scale }));
  const worst = (row, side) => {
    const sum = row.reduce((sum, { area }) => sum + area, 0);
    return Math.max(...row.map(({ area }) => Math.max(side * side * area / (sum * sum), sum * sum / (side * side * area))));
  };
  while (rest.length) {
    const side = Math.min(width, height);
    let count = 1;
    while (count < rest.length && worst(rest.slice(0, count + 1), side) <= worst(rest.slice(0, count), side)) count++;
    const row = rest.slice(0, count), depth = side > 0 ? row.reduce((sum, { area }) => sum + area, 0) / side : 0;
    let along = 0;
    for (const { item, area } of row) {
      const length = depth > 0 ? area / depth : 0;
      placed.push(width >= height ? { item, x, y: y + along, width: depth, height: length } : { item, x: x + along, y, width: length, height: depth });
      along += length;
    }
    if (width >= height) x += depth, width -= depth; else y += depth, height -= depth;
    rest = rest.slice(count);
  }
  return placed;
}

function parameterSection(plan) {
  const layers = layersOf(plan).filter(layer => layer.parameters > 0);
  if (!layers.length) return null;
  const picture = svg("svg", { class: "treemap", role: "group", "aria-label": "Parameters by layer" }), shown = facts();
  showFacts(shown, [["Details", "Select a tile."]]);
  const box = html("figure", null, picture);
  const all = layers.reduce((sum, layer) => sum + layer.parameters, 0);
  const bySize = (a, b) => b.size - a.size;
  const groups = plan.cnns.map((cnn, c) => ({ cnn, layers: layers.filter(layer => layer.cnn === c).map(layer => ({ layer, size: layer.parameters })).sort(bySize) }))
    .map(group => ({ ...group, size: group.layers.reduce((sum, { size }) => sum + size, 0) })).filter(group => group.size).sort(bySize);
  function draw() {
    const width = Math.max(320, box.clientWidth), height = 340, marks = [], tilesShown = [];
    picture.replaceChildren();
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const group = svg("g", { role: "group", "aria-label": "tiles" });
    for (const outer of tiles(groups, [0, 0, width, height])) {
      const head = groups.length > 1 && outer.height > 40 ? 18 : 0;
      if (head && outer.width > 80) group.append(svg("text", { class: "tile-head", "aria-hidden": "true", x: outer.x + 4, y: outer.y + 13 },
        clip(`${outer.item.cnn.name}, ${bytes(outer.item.size)}`, Math.floor(outer.width / 6.6))));
      for (const { item: { layer }, ...at } of tiles(outer.item.layers, [outer.x + 1, outer.y + head, Math.max(0, outer.width - 2), Math.max(0, outer.height - head - 2)])) {
        const label = `${layer.title}, ${layer.op}: ${grouped(layer.parameters)} bytes of parameters, ${percent(share(layer.parameters, all))}`;
        const mark = svg("rect", { x: at.x, y: at.y, width: Math.max(0.5, at.width - 1), height: Math.max(0.5, at.height - 1),
          class: `tile op${kindOf(layer.op)}`, role: "button", "aria-label": label, "data-find": findable(plan, layer.cnn, layer.index) }, svg("title", null, label));
        marks.push(mark);
        tilesShown.push(layer);
        group.append(mark);
        if (at.width > 46 && at.height > 18) {
          group.append(svg("text", { class: "bar-text", "aria-hidden": "true", "data-find": mark.dataset.find, x: at.x + 5, y: at.y + 14 }, clip(layer.name, Math.floor((at.width - 8) / 6.2))));
          if (at.height > 34) group.append(svg("text", { class: "bar-text small", "aria-hidden": "true", "data-find": mark.dataset.find, x: at.x + 5, y: at.y + 28 }, clip(bytes(layer.parameters), Math.floor((at.width - 8) / 5.6))));
        }
      }
    }
    picture.append(group);
    seek(picture);
    const show = i => showFacts(shown, [["Layer", tilesShown[i].title], ["Operator", tilesShown[i].op], ["Primitive", tilesShown[i].primitive],
      ["Parameters", exact(tilesShown[i].parameters)], ["Share", percent(share(tilesShown[i].parameters, all))]]);
    walkable(group, marks, show);
    marks.forEach((mark, i) => mark.addEventListener("click", () => show(i)));
  }
  const columns = [
    { title: "Layer", find: layer => findable(plan, layer.cnn, layer.index), text: layer => layer.title }, { title: "Operator", short: true, text: layer => layer.op },
    { title: "Parameters, bytes", text: layer => grouped(layer.parameters), value: layer => layer.parameters },
    { title: "Share", text: layer => percent(share(layer.parameters, all)), value: layer => layer.parameters },
  ];
  const { memory } = plan;
  const kept = memory.parameters_resident === null || memory.parameters_resident === undefined
    ? `The chosen primitives keep ${exact(memory.parameters_stored)} of them in memory.`
    : `The chosen primitives keep ${exact(memory.parameters_stored)} of them: ${exact(memory.parameters_resident)} in memory, the others in the store.`;
  const section = html("section", { id: "parameters", "aria-label": "Parameters" }, html("h2", null, "Parameters"),
    html("p", { class: "note" }, `${exact(all)} of weights and biases; an area is in proportion to a layer's share. ${kept}`),
    box, kindLegend(layers), shown, tableBehind("Parameters as a table", columns, () => layers));
  return { section, draw };
}
