// The tracks below the memory map: bytes in use, and processors. They share its axis of time.

// Bytes in use over time, with the bound and the peak.
function drawUsage(picture, plan, view, plot) {
  const { x } = view, high = Math.max(plan.memory.arena, plan.memory.bound, 1) * 1.06;
  const y = bytes => plot.bottom - bytes / high * (plot.bottom - plot.top);
  picture.append(axis({ of: "bytes", vertical: true }, { low: 0, high, place: y, along: plot.bottom - plot.top, across: [plot.left, plot.right], title: "in use" }));
  let line = "", last = 0;
  for (let i = 0; i < plan.usage.length; i += 2) {
    const [ns, bytes] = [x(plan.usage[i]).toFixed(2), y(plan.usage[i + 1]).toFixed(2)];
    line += i ? `H${ns}V${bytes}` : `M${ns} ${y(0)}V${bytes}`;
    last = plan.usage[i];
  }
  line += `H${x(plan.ns).toFixed(2)}V${y(0)}Z`;
  const clipped = svg("g", { "clip-path": `url(#${plot.clip})` }, svg("path", { class: "usage", d: line }));
  const peak = peakOfUsage(plan);
  clipped.append(svg("line", { class: "peak-line", x1: x(peak.ns), x2: x(peak.ns), y1: plot.top, y2: plot.bottom }));
  clipped.append(svg("circle", { class: "peak", cx: x(peak.ns), cy: y(peak.bytes), r: 4 }));
  picture.append(clipped);
  const level = (bytes, style) => picture.append(
    svg("line", { class: `level ${style}`, x1: plot.left, x2: plot.right, y1: y(bytes), y2: y(bytes) }));
  const { arena, bound } = plan.memory;
  if (arena > bound) level(arena, "arena");
  level(bound, "bound");
}

// What the lines over the bytes in use are. Partitions that run at the same time may peak at any time, so the arena has room
// for all their peaks together, which the curve of a few frames need not reach.
function levelsNote(plan) {
  const { arena, bound } = plan.memory, most = peakOfUsage(plan).bytes;
  const peak = most === bound ? `the peak, ${bytes(bound)}` : `${bytes(bound)}, the peaks of all partitions that run at the same time together`;
  return `Red line: ${peak}. ` + (arena > bound ? `Dashed line: the arena, ${bytes(arena)}.` : "The arena is no larger.") +
    (most === bound ? "" : ` In these frames they do not peak together: the curve reaches ${bytes(most)}.`);
}

// The time at which most bytes are in use, and how many.
function peakOfUsage(plan) {
  let peak = { ns: 0, bytes: 0 };
  for (let i = 0; i < plan.usage.length; i += 2)
    if (plan.usage[i + 1] > peak.bytes) peak = { ns: plan.usage[i], bytes: plan.usage[i + 1] };
  return peak;
}

const usageColumns = [
  { title: "From", text: row => time(row[0]), value: row => row[0] },
  { title: "Bytes in use", text: row => grouped(row[1]), value: row => row[1] },
];
const usageRows = plan => {
  const rows = [];
  for (let i = 0; i < plan.usage.length; i += 2) rows.push([plan.usage[i], plan.usage[i + 1]]);
  return rows;
};

// The lanes of processors: a partition each, and the store that weights are read from.
function lanesOf(plan) {
  const { firings, loads } = plan;
  const lanes = plan.partitions.map((partition, p) => ({
    name: plan.partitions.length > 1 ? partition.name : partition.processor, note: plan.partitions.length > 1 ? `on ${partition.processor}` : "",
    bars: [], partition: p,
  }));
  for (let i = 0; i < firings.layer.length; i++) {
    const p = firings.partition[i], cnn = plan.partitions[p].cnn;
    lanes[p].bars.push({ cnn, layer: firings.layer[i], frame: firings.frame[i], firing: firings.firing[i], count: 1, from: firings.start[i], to: firings.end[i] });
  }
  if (loads.layer.length) {
    const bars = loads.layer.map((layer, i) => ({ cnn: loads.cnn[i], layer, frame: loads.frame[i], firing: loads.tile[i], count: 1,
      from: loads.start[i], to: loads.end[i], bytes: loads.bytes[i] }));
    lanes.push({ name: "store", note: "reads weights", bars, isStore: true });
  }
  lanes.forEach(lane => lane.bars.sort((a, b) => a.from - b.from));
  return lanes;
}

// Bars as they can be told apart: firings of a layer that follow each other become one where they are narrow.
function joined(bars, x, plot) {
  const out = [];
  for (const bar of bars) {
    const [left, right] = [x(bar.from), x(bar.to)];
    if (right < plot.left - 1 || left > plot.right + 1) continue;
    const last = out[out.length - 1];
    if (last && left - last.right < 0.6) {
      const same = last.bar.layer === bar.layer && last.bar.cnn === bar.cnn && last.bar.frame === bar.frame;
      if (same && right - left < 4) { last.right = Math.max(last.right, right); last.count++; last.to = bar.to; continue; }
      if (right - last.left < 1) { last.right = Math.max(last.right, right); last.to = bar.to; last.mixed = !same || last.mixed; continue; }
    }
    out.push({ bar, left, right, count: 1, to: bar.to, mixed: false });
  }
  return out;
}

const LANE = 30;

function drawLanes(picture, plan, lanes, view, plot) {
  const { x } = view, marks = [], shown = [];
  const group = svg("g", { "clip-path": `url(#${plot.clip})`, role: "group", "aria-label": "firings" });
  lanes.forEach((lane, row) => {
    const top = plot.top + row * LANE + 4;
    picture.append(svg("text", { class: "lane", x: plot.left - 8, y: top + (lane.note ? 9 : 15), "text-anchor": "end" }, clip(lane.name, 12)));
    if (lane.note) picture.append(svg("text", { class: "lane note", x: plot.left - 8, y: top + 21, "text-anchor": "end" }, clip(lane.note, 14)));
    picture.append(svg("rect", { class: "lane-room", x: plot.left, y: top, width: plot.right - plot.left, height: LANE - 8 }));
    for (const { bar, left, right, count, to, mixed } of joined(lane.bars, x, plot)) {
      const layer = plan.cnns[bar.cnn].layers[bar.layer], name = nameOf(plan, bar.cnn, bar.layer);
      const what = mixed ? "several layers" : lane.isStore ? `weights of ${name}, ${bytes(bar.bytes)}`
        : count > 1 ? `${name}, ${count} firings` : layer.firings > 1 ? `${name}, firing ${bar.firing + 1} of ${layer.firings}` : name;
      const label = `${what}: ${time(bar.from)} to ${time(to)}`;
      const mark = svg("rect", {
        x: left, y: top, width: Math.max(0.5, right - left - (right - left > 3 ? 0.6 : 0)), height: LANE - 8,
        class: `bar ${lane.isStore ? "weights" : `op${kindOf(layer.op)}`} frame${bar.frame % 2}`, role: "button", "aria-label": label,
        "data-find": mixed ? "" : findable(plan, bar.cnn, bar.layer),
      }, svg("title", null, label));
      marks.push(mark);
      shown.push({ lane, bar, count, to, mixed });
      group.append(mark);
      if (right - left > 44) {
        const [from, till] = [Math.max(left, plot.left), Math.min(right, plot.right)];
        if (till - from > 44) group.append(svg("text", { class: "bar-text", "aria-hidden": "true", x: (from + till) / 2, y: top + 15, "text-anchor": "middle", "data-find": mark.dataset.find },
          clip(layer.name, Math.floor((till - from - 6) / 6.2))));
      }
    }
  });
  picture.append(group);
  return { group, marks, shown };
}

function barFacts(plan, { lane, bar, count, to, mixed }) {
  if (mixed) return [["Firings", "several layers: zoom in to tell them apart"], ["Time", `${time(bar.from)} to ${time(to)}`]];
  const layer = plan.cnns[bar.cnn].layers[bar.layer];
  return [
    [lane.isStore ? "Weights of" : "Layer", nameOf(plan, bar.cnn, bar.layer)],
    ["Operator", layer.op],
    ["Primitive", lane.isStore ? "" : layer.primitive],
    ["Bytes", lane.isStore ? exact(bar.bytes) : ""],
    [lane.isStore ? "Weight tile" : "Firing", lane.isStore ? bar.firing + 1 : count > 1 ? `${count} of ${layer.firings}, ${layer.rows} rows each` : `${bar.firing + 1} of ${layer.firings}, ${layer.rows} rows`],
    ["Frame", plan.firings.frame.some(frame => frame > 0) ? bar.frame + 1 : ""],
    ["Time", `${time(bar.from)} to ${time(to)}, ${time(to - bar.from)}`],
  ];
}

const barColumns = plan => [
  { title: "Layer", find: ({ bar }) => findable(plan, bar.cnn, bar.layer), text: ({ bar }) => nameOf(plan, bar.cnn, bar.layer) },
  { title: "On", text: ({ lane }) => lane.name },
  { title: "Frame", text: ({ bar }) => bar.frame + 1, value: ({ bar }) => bar.frame },
  { title: "Firing", text: ({ bar }) => bar.firing + 1, value: ({ bar }) => bar.firing },
  { title: "Start", text: ({ bar }) => time(bar.from), value: ({ bar }) => bar.from },
  { title: "Duration", text: ({ bar }) => time(bar.to - bar.from), value: ({ bar }) => bar.to - bar.from },
];
const barRows = lanes => lanes.flatMap(lane => lane.bars.map(bar => ({ lane, bar })));
