// Pictures over one axis: the map of each memory, the bytes in use, and the processors. What zooms one zooms all.

const MARGIN = { left: 92, right: 14, top: 26, bottom: 40 };
let timelines = 0;

// Counts firings in place of time, where they follow each other. `null` where some run at the same time.
function firingAxis(plan) {
  const { start, end } = plan.firings;
  const order = start.map((_, i) => i).sort((a, b) => start[a] - start[b] || end[a] - end[b]);
  for (let i = 1; i < order.length; i++) if (start[order[i]] + 1 < end[order[i - 1]]) return null;
  const begins = order.map(i => start[i]), ends = order.map(i => end[i]);
  const to = ns => {
    let [low, high] = [0, begins.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (begins[middle] <= ns) low = middle; else high = middle - 1;
    }
    if (low < 0 || !begins.length) return 0;
    return low + Math.min(1, Math.max(0, share(ns - begins[low], ends[low] - begins[low])));
  };
  return { to, end: begins.length };
}

function timelineSection(plan, title) {
  const number = timelines++, blocks = blocksOf(plan), lanes = lanesOf(plan), firings = firingAxis(plan);
  const isTimed = plan.basis !== null;
  let byFirings = !isTimed && firings !== null;
  const warp = ns => byFirings ? firings.to(ns) : ns;
  const ends = () => ({ t0: 0, t1: byFirings ? firings.end : Math.max(plan.ns, 1) });
  let view = ends(), selected = null, queued = false;

  const shown = facts();
  const figure = (name, label) => {
    const picture = svg("svg", { class: name, role: "group", "aria-label": label });
    return { picture, box: html("figure", { class: "track" }, html("figcaption", null, label), picture) };
  };
  const maps = mapsOf(plan, blocks).map(map => ({ ...map, ...figure("map", map.title), from: map.low, to: map.high }));
  const usage = figure("usage-track", "Bytes in use over time");
  const gantt = figure("gantt", lanes.length > 1 ? "Processors over time" : "Processor over time");
  usage.picture.setAttribute("role", "img");
  usage.picture.before(html("p", { class: "note" }, levelsNote(plan)));

  function draw() {
    queued = false;
    const width = Math.max(320, usage.box.clientWidth), plot = { left: MARGIN.left, right: width - MARGIN.right };
    const x = ns => plot.left + (warp(ns) - view.t0) / (view.t1 - view.t0) * (plot.right - plot.left);
    const place = t => plot.left + (t - view.t0) / (view.t1 - view.t0) * (plot.right - plot.left);
    const begin = (picture, height, name) => {
      picture.replaceChildren();
      picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
      const own = { ...plot, top: MARGIN.top, bottom: height - MARGIN.bottom, clip: `clip-${number}-${name}` };
      picture.append(svg("defs", null, svg("clipPath", { id: own.clip },
        svg("rect", { x: own.left, y: own.top - 6, width: own.right - own.left, height: own.bottom - own.top + 6 }))));
      picture.append(axis({ of: byFirings ? "count" : "time" }, { low: view.t0, high: view.t1, place, along: own.right - own.left,
        across: [own.top, own.bottom], title: byFirings ? "firings" : "time" }));
      return own;
    };

    const peak = peakOfUsage(plan);
    maps.forEach((map, i) => {
      // Whoever walks through the blocks with keys stays where they are.
      const focused = map.picture.contains(document.activeElement) ? document.activeElement.getAttribute("data-block") : null;
      const own = begin(map.picture, Math.max(230, (isPaper() ? 340 : 430) / maps.length), `map-${i}`);
      const y = address => own.bottom - (address - map.from) / (map.to - map.from) * (own.bottom - own.top);
      map.picture.append(axis({ of: "bytes", vertical: true }, { low: map.from - map.low, high: map.to - map.low, place: address => y(map.low + address),
        along: own.bottom - own.top, across: [own.left, own.right], title: "address" }));
      const drawn = drawMap(map.picture, plan, map.blocks, { ...view, x, y }, own, selected);
      const choose = at => select(map, map.blocks[at]);
      walkable(drawn.group, drawn.marks, choose, zoomKey);
      drawn.marks.forEach((mark, at) => mark.addEventListener("click", () => choose(at)));
      drawn.group.append(svg("line", { class: "peak-line", x1: x(peak.ns), x2: x(peak.ns), y1: own.top, y2: own.bottom }));
      map.plot = own;
      if (focused !== null) map.picture.querySelector(`[data-block="${focused}"]`).focus({ preventScroll: true });
    });

    const scale = { ...view, x };
    drawUsage(usage.picture, plan, scale, begin(usage.picture, 190, "usage"));
    const lower = begin(gantt.picture, MARGIN.top + lanes.length * LANE + MARGIN.bottom, "gantt");
    const bars = drawLanes(gantt.picture, plan, lanes, scale, lower);
    const showBar = i => { showFacts(shown, barFacts(plan, bars.shown[i])); };
    walkable(bars.group, bars.marks, showBar, zoomKey);
    bars.marks.forEach((mark, i) => mark.addEventListener("click", () => showBar(i)));
    [...maps, gantt].forEach(({ picture }) => seek(picture));
  }
  const later = () => { if (!queued) queued = true, requestAnimationFrame(draw); };

  function select(map, block) {
    selected = block;
    showFacts(shown, blockFacts(plan, selected));
    draw();
    map.picture.querySelector(`[data-block="${block.index}"]`).focus({ preventScroll: true });
  }

  const clamp = (low, high, least, most) => {
    const size = Math.min(high - low, most - least);
    const from = Math.max(least, Math.min(low, most - size));
    return [from, from + size];
  };
  function zoom(factor, middle = (view.t0 + view.t1) / 2) {
    const all = ends(), size = Math.max((view.t1 - view.t0) * factor, (all.t1 - all.t0) / 1e5);
    const from = middle - (middle - view.t0) * size / (view.t1 - view.t0);
    [view.t0, view.t1] = clamp(from, from + size, all.t0, all.t1);
    later();
  }
  function move(by) {
    const all = ends(), step = (view.t1 - view.t0) * by;
    [view.t0, view.t1] = clamp(view.t0 + step, view.t1 + step, all.t0, all.t1);
    later();
  }
  const reset = () => {
    view = ends();
    for (const map of maps) [map.from, map.to] = [map.low, map.high];
    later();
  };
  function zoomKey(key) {
    const actions = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": reset, Escape: reset, "<": () => move(-0.25), ">": () => move(0.25) };
    actions[key]?.();
    return key in actions;
  }

  // A rectangle that is dragged over a map is zoomed into.
  const toPicture = (event, { picture }) => {
    const box = picture.getBoundingClientRect(), width = picture.viewBox.baseVal.width;
    return [(event.clientX - box.left) * width / box.width, (event.clientY - box.top) * width / box.width];
  };
  let drag = null;
  for (const map of maps) map.picture.addEventListener("pointerdown", event => {
    if (event.button === 0) drag = { map, from: toPicture(event, map), mark: null };
  });
  window.addEventListener("pointermove", event => {
    if (!drag) return;
    const [from, to] = [drag.from, toPicture(event, drag.map)];
    if (!drag.mark && Math.hypot(to[0] - from[0], to[1] - from[1]) > 6) drag.map.picture.append(drag.mark = svg("rect", { class: "rubber" }));
    for (const [name, value] of Object.entries({ x: Math.min(from[0], to[0]), y: Math.min(from[1], to[1]), width: Math.abs(to[0] - from[0]), height: Math.abs(to[1] - from[1]) }))
      drag.mark?.setAttribute(name, value);
  });
  window.addEventListener("pointerup", event => {
    const ended = drag;
    drag = null;
    if (!ended?.mark) return;
    ended.mark.remove();
    const { map, from } = ended, to = toPicture(event, map), { plot } = map;
    const at = px => view.t0 + (Math.min(plot.right, Math.max(plot.left, px)) - plot.left) / (plot.right - plot.left) * (view.t1 - view.t0);
    const address = py => map.from + (plot.bottom - Math.min(plot.bottom, Math.max(plot.top, py))) / (plot.bottom - plot.top) * (map.to - map.from);
    const times = [at(from[0]), at(to[0])].sort((a, b) => a - b), addresses = [address(from[1]), address(to[1])].sort((a, b) => a - b);
    if (times[1] > times[0] && Math.abs(to[0] - from[0]) > 6) [view.t0, view.t1] = times;
    if (addresses[1] > addresses[0] && Math.abs(to[1] - from[1]) > 6) [map.from, map.to] = addresses;
    later();
  });
  for (const { picture } of maps) picture.addEventListener("dblclick", reset);
  for (const track of [...maps, usage, gantt]) track.picture.addEventListener("wheel", event => {
    if (!event.ctrlKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
    event.preventDefault();
    if (!event.ctrlKey) return move(event.deltaX / 800);
    const { plot } = maps[0], px = toPicture(event, track)[0];
    zoom(event.deltaY > 0 ? 1.25 : 0.8, view.t0 + (px - plot.left) / (plot.right - plot.left) * (view.t1 - view.t0));
  }, { passive: false });

  const button = (text, label, click) => html("button", { type: "button", "aria-label": label, title: label, click }, text);
  const controls = html("div", { class: "controls", role: "toolbar", "aria-label": `View of ${title}` },
    button("+", "Zoom in", () => zoom(0.5)), button("−", "Zoom out", () => zoom(2)),
    button("◀", "Earlier", () => move(-0.25)), button("▶", "Later", () => move(0.25)), button("Show all", "Show all", reset));
  if (firings && isTimed) {
    const choice = html("select", { "aria-label": "Axis", change: event => { byFirings = event.target.value === "firings"; reset(); } },
      html("option", { value: "time" }, "over time"), html("option", { value: "firings" }, "over firings"));
    controls.append(choice);
  }
  const kinds = new Set(plan.places.map(place => placeKind(place)[1]));
  showFacts(shown, [["Details", "Select a block or a bar."]]);
  const layers = plan.cnns.flatMap(cnn => cnn.layers);
  const section = html("section", { class: "timeline", id: `timeline-${number}`, "aria-label": title },
    html("h2", null, title),
    html("p", { class: "note" }, timelineNote(plan)),
    html("div", { class: "bar-of-controls" }, controls, legend(PLACE_KINDS.filter(([, style]) => kinds.has(style)).map(([, style, text]) => [style, text]))),
    maps.map(({ box }) => box), shown, usage.box, gantt.box, kindLegend(layers),
    html("p", { class: "keys" }, "Drag over the map to zoom into a rectangle, double-click to see all; hold Ctrl and turn the wheel to zoom in time. " +
      "Keys: arrows walk through blocks, Enter shows one, + and − zoom, < and > move, 0 shows all."),
    tableBehind("Blocks as a table", blockColumns(plan), () => blocks),
    tableBehind("Bytes in use as a table", usageColumns, () => usageRows(plan)),
    tableBehind("Firings as a table", barColumns(plan), () => barRows(lanes)));
  return { section, draw };
}

function timelineNote(plan) {
  const bases = { measured: "Times of layers are measured", interpolated: "Times of layers are measured or lie between measured ones", modelled: "Times of layers are modelled" };
  const notes = [plan.basis ? `${bases[plan.basis]}, on device ${plan.device}.` : "The plan states no times: each firing counts the same."];
  if (plan.firings.frame.some(frame => frame > 0)) notes.push("The stages of a pipeline run at the same time: the picture shows the first frames, in two shades, and the last of them come at the plan's rate.");
  for (const cnn of plan.cnns.filter(cnn => cnn.hop)) {
    const rows = cnn.hop === 1 ? "1 row" : `${grouped(cnn.hop)} rows`;
    notes.push(`${cnn.name} is a stream: the picture shows one hop, of ${rows} of the input, in steady state. All hops after the first ones are alike, and the rows that they keep stay where they are.`);
  }
  if (plan.cnns.length > 1) notes.push("CNNs that exclude each other are drawn one after another.");
  notes.push("A tensor has the name of the layer that writes it. Of a tensor that is stored whole, only rows in use are drawn: those that are begun and that some reader still needs.");
  if (plan.thinned) notes.push("There are too many firings to draw one by one, so each column stands for several.");
  return notes.join(" ");
}
