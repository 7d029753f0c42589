// The plans that the search saw: what memory each takes and how fast it is, by CNN.

function frontSection(plans, given) {
  const front = given ?? plans[0].front;
  const names = [...new Set(front.points.flatMap(([, fps]) => Object.keys(fps)))];
  if (front.points.length < 2 || !names.length) return null;
  const charts = names.map(name => frontOf(name, front, plans));
  const columns = [
    { title: "Plan", text: row => row.number, value: row => row.number },
    { title: "Total, bytes", text: row => grouped(row.memory), value: row => row.memory },
    ...names.map(name => ({ title: `Frames per second${names.length > 1 ? ` of ${name}` : ""}`, text: row => row.fps[name] === undefined ? "–" : fixed(row.fps[name], 1), value: row => row.fps[name] ?? 0 })),
  ];
  const rows = () => front.points.map(([memory, fps], i) => ({ number: i + 1, memory, fps }));
  const section = html("section", { id: "front", "aria-label": "Front" }, html("h2", null, "Memory and speed"),
    html("p", { class: "note" }, `The ${front.points.length} best plans that the search saw of ${front.application} on device ${front.device}: none of them is worse than another in both memory and frame rates. ` +
      (plans.length > 1 ? "Rings mark the plans of this page." : "A ring marks the plan of this page.")),
    html("div", { class: "charts" }, charts.map(({ box }) => box)),
    tableBehind("The front as a table", columns, rows));
  return { section, draw: () => charts.forEach(({ draw }) => draw()) };
}

function frontOf(name, front, plans) {
  const points = front.points.filter(([, fps]) => fps[name] !== undefined).map(([memory, fps]) => [memory, fps[name]]).sort((a, b) => a[0] - b[0]);
  const chosen = plans.map((plan, i) => {
    const cnn = plan.cnns.find(cnn => cnn.name === name);
    return cnn ? { at: [plan.memory.total, cnn.fps], title: plans.length > 1 ? "AB"[i] : "this plan" } : null;
  }).filter(Boolean);
  const label = `${name}: frames per second over total memory, ${points.length} plans` + chosen.map(({ at, title }) => `; ${title} takes ${bytes(at[0])} at ${fixed(at[1], 1)} fps`).join("");
  const picture = svg("svg", { class: "front", role: "img", "aria-label": label });
  const box = html("figure", null, html("figcaption", null, name), picture);
  function draw() {
    const width = Math.max(320, box.clientWidth), height = isPaper() ? 220 : 300;
    const plot = { left: MARGIN.left, right: width - 20, top: MARGIN.top, bottom: height - MARGIN.bottom };
    picture.replaceChildren();
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const all = [...points, ...chosen.map(({ at }) => at)], limit = plans[0].constraints.memory;
    const reach = (values, from) => {
      const [low, high] = [Math.min(...values), Math.max(...values)], room = (high - low || high || 1) * 0.08;
      return [Math.max(from, low - room), high + room];
    };
    const [x0, x1] = reach(all.map(at => at[0]), 0), [y0, y1] = reach(all.map(at => at[1]), 0);
    const x = value => plot.left + (value - x0) / (x1 - x0) * (plot.right - plot.left);
    const y = value => plot.bottom - (value - y0) / (y1 - y0) * (plot.bottom - plot.top);
    picture.append(
      axis({ of: "bytes" }, { low: x0, high: x1, place: x, along: plot.right - plot.left, across: [plot.top, plot.bottom], title: "total memory" }),
      axis({ of: "count", vertical: true }, { low: y0, high: y1, place: y, along: plot.bottom - plot.top, across: [plot.left, plot.right], title: "frames per second" }));
    if (limit && limit > x0 && limit < x1) picture.append(svg("line", { class: "level bound", x1: x(limit), x2: x(limit), y1: plot.top, y2: plot.bottom }),
      svg("text", { class: "level-text", x: x(limit) - 4, y: plot.top + 12, "text-anchor": "end" }, `limit ${bytes(limit)}`));
    const steps = points.map(([memory, fps], i) => i ? `H${x(memory)}V${y(fps)}` : `M${x(memory)} ${y(fps)}`).join("");
    picture.append(svg("path", { class: "front-line", d: steps }));
    points.forEach(([memory, fps]) => picture.append(svg("circle", { class: "point", cx: x(memory), cy: y(fps), r: 3.5 }, svg("title", null, `${exact(memory)}, ${fixed(fps, 1)} fps`))));
    chosen.forEach(({ at, title }) => {
      const right = x(at[0]) > (plot.left + plot.right) / 2;
      picture.append(svg("circle", { class: "chosen", cx: x(at[0]), cy: y(at[1]), r: 8 }),
        svg("text", { class: "chosen-text", x: x(at[0]) + (right ? -13 : 13), y: y(at[1]) + (y(at[1]) < plot.top + 24 ? 16 : -8), "text-anchor": right ? "end" : "start" }, title));
    });
  }
  return { box, draw };
}
