// Elements, numbers as text, axes, and the table behind each picture. Text of a plan becomes text nodes and values of
// attributes alone, never markup.

const data = JSON.parse(document.getElementById("data").textContent);

function element(space, tag, attributes, children) {
  const made = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter(child => child !== null && child !== undefined));
  return made;
}
const html = (tag, attributes, ...children) => element(null, tag, attributes, children);
const svg = (tag, attributes, ...children) => element("http://www.w3.org/2000/svg", tag, attributes, children);

const grouped = number => String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
const fixed = (number, digits) => number.toFixed(digits);

// 6.02 MB, or 480 bytes.
function bytes(count) {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]])
    if (count >= size) return `${fixed(count / size, count < 10 * size ? 2 : count < 100 * size ? 1 : 0)} ${unit}`;
  return count === 1 ? "1 byte" : `${count} bytes`;
}
const exact = count => count < 1000 ? bytes(count) : `${bytes(count)} (${grouped(count)} bytes)`;

function time(ns) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]])
    if (ns >= size) return `${fixed(ns / size, ns / size < 10 ? 2 : 1)} ${unit}`;
  return `${Math.round(ns)} ns`;
}

const isPaper = () => document.documentElement.classList.contains("paper");
const share = (part, all) => all > 0 ? part / all : 0;
const percent = fraction => `${fixed(100 * fraction, fraction < 0.1 ? 1 : 0)} %`;
const clip = (text, length) => text.length > length ? `${text.slice(0, Math.max(1, length - 1))}…` : text;

// Round numbers between two ends, about `count` of them.
function ticks(low, high, count) {
  const raw = (high - low) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(step => step >= raw * 0.999) ?? 10 * power;
  const all = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-12); i++) all.push(i * step);
  return { all, step };
}

// The unit in which an axis up to `high` is labelled, and how many decimals tell its ticks apart.
function unitOf(kind, high, step) {
  const units = { bytes: [["MB", 1e6], ["kB", 1e3], ["bytes", 1]], time: [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]] };
  const [name, size] = (units[kind] ?? [["", 1]]).find(([, size]) => high >= size) ?? ["", 1];
  const digits = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9));
  return { name, label: value => digits === 0 ? grouped(value / size) : fixed(value / size, Math.min(digits, 6)) };
}

// A horizontal or vertical axis: lines across the plot, labels, and the unit at its end.
function axis(kind, { low, high, place, along, across, title }) {
  const vertical = kind.vertical;
  const { all, step } = ticks(low, high, Math.max(3, Math.round(along / (vertical ? 44 : 110))));
  const unit = unitOf(kind.of, Math.max(Math.abs(low), Math.abs(high)), step);
  const group = svg("g", { class: "axis", "aria-hidden": "true" });
  for (const value of all) {
    const at = place(value);
    group.append(vertical
      ? svg("line", { x1: across[0], x2: across[1], y1: at, y2: at })
      : svg("line", { x1: at, x2: at, y1: across[0], y2: across[1] }));
    group.append(vertical
      ? svg("text", { x: across[0] - 8, y: at + 4, "text-anchor": "end" }, unit.label(value))
      : svg("text", { x: at, y: across[1] + 16, "text-anchor": "middle" }, unit.label(value)));
  }
  group.append(vertical
    ? svg("text", { class: "unit", x: across[0] - 70, y: place(high) - 10 }, `${title}${unit.name ? `, ${unit.name}` : ""}`)
    : svg("text", { class: "unit", x: place(high), y: across[1] + 32, "text-anchor": "end" },
      `${title}${unit.name ? `, ${unit.name}` : ""}`));
  return group;
}

// A box that scrolls what is too large for it. Arrows at its edges say that there is more to the right, or below.
function scrolling(label, content) {
  const box = html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, content);
  const frame = html("div", { class: "frame" }, box);
  const look = () => {
    frame.classList.toggle("more-right", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
    frame.classList.toggle("more-below", box.scrollTop + box.clientHeight < box.scrollHeight - 1);
  };
  box.addEventListener("scroll", look);
  const sizes = new ResizeObserver(look);
  [box, content].forEach(part => sizes.observe(part));
  return frame;
}

// A table. A column has a title, and says of a row its text and, to sort by, its value. It may draw a share as a bar. A short
// text stays on one line. The first column says what a row is found by. On a narrow screen, each row is a card with the
// titles in it: so the roles of a table are stated, which browsers forget with another display.
function table(caption, columns, rows, sortable) {
  const body = html("tbody", { role: "rowgroup" }), styleOf = column => column.value ? "number" : column.short ? "short" : "long";
  let sorted = null;
  const fill = () => {
    body.replaceChildren(...rows.map(row => html("tr", { role: "row", "data-find": columns[0].find?.(row) }, columns.map((column, i) => {
      const cell = html(i === 0 ? "th" : "td", { class: styleOf(column), scope: i === 0 ? "row" : null, role: i === 0 ? "rowheader" : "cell",
        "data-title": column.title }, String(column.text(row)));
      if (column.bar) cell.setAttribute("style", `--share: ${(100 * column.bar(row)).toFixed(2)}%`), cell.classList.add("share");
      return cell;
    }))));
    seek(body);
  };
  const sort = (column, head) => {
    const descending = sorted === head ? head.getAttribute("aria-sort") === "ascending" : Boolean(column.value);
    const of = column.value ?? column.text;
    rows = [...rows].sort((a, b) => {
      const [x, y] = [of(a), of(b)];
      const order = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : (x ?? -1) - (y ?? -1);
      return descending ? -order : order;
    });
    sorted?.removeAttribute("aria-sort");
    sorted = head;
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    fill();
  };
  const heads = columns.map(column => {
    const head = html("th", { scope: "col", role: "columnheader", class: styleOf(column) });
    head.append(sortable ? html("button", { type: "button", click: () => sort(column, head) }, column.title) : column.title);
    return head;
  });
  fill();
  return scrolling(caption, html("table", { role: "table" }, html("caption", null, caption),
    html("thead", { role: "rowgroup", class: sortable ? "sortable" : null }, html("tr", { role: "row" }, heads)), body));
}

// What a picture shows, as a table that is made when somebody opens it.
function tableBehind(caption, columns, rows) {
  const details = html("details", { class: "behind" }, html("summary", null, caption));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(table(caption, columns, rows(), true));
  });
  return details;
}

// Lets keys walk through the marks of a picture: one of them is in the order of tabs, the arrows go to its neighbours.
function walkable(group, marks, select, key) {
  let current = 0;
  marks.forEach((mark, i) => mark.setAttribute("tabindex", i === 0 ? 0 : -1));
  const go = to => {
    if (!marks.length) return;
    marks[current].setAttribute("tabindex", -1);
    current = Math.max(0, Math.min(marks.length - 1, to));
    marks[current].setAttribute("tabindex", 0);
    marks[current].focus();
  };
  group.addEventListener("focusin", event => {
    const at = marks.indexOf(event.target);
    if (at < 0) return;
    marks[current].setAttribute("tabindex", -1);
    current = at;
    marks[current].setAttribute("tabindex", 0);
  });
  group.addEventListener("keydown", event => {
    const steps = { ArrowRight: current + 1, ArrowDown: current + 1, ArrowLeft: current - 1, ArrowUp: current - 1, Home: 0, End: marks.length - 1 };
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key in steps) go(steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") select(current);
    else if (!key?.(event.key)) return;
    event.preventDefault();
  });
}

// A list of names and values, spoken when it changes.
const facts = () => html("div", { class: "facts", role: "status", "aria-live": "polite" }, html("dl"));
function showFacts(box, pairs) {
  box.firstChild.replaceChildren(...pairs.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) =>
    html("div", null, html("dt", null, name), html("dd", null, String(value)))));
}

const legend = entries => html("ul", { class: "legend" }, entries.map(([style, text]) =>
  html("li", null, html("span", { class: `key ${style}`, "aria-hidden": "true" }), text)));

// Kinds of operators, in the colors of bars, tiles and rows.
const KINDS = [
  ["convolution", ["conv", "conv_transpose"]],
  ["dense", ["gemm", "mat_mul"]],
  ["pool, reduce", ["pool", "reduce", "arg_max"]],
  ["element-wise", ["element_wise", "binary", "batch_norm", "lrn", "instance_norm", "softmax"]],
  ["moves data", ["concat", "slice", "pad", "resize", "transpose", "depth_to_space", "space_to_depth", "convert"]],
  ["input", ["input"]],
];
const kindOf = op => { const at = KINDS.findIndex(([, ops]) => ops.includes(op)); return at < 0 ? 4 : at; };
const kindLegend = layers => {
  const used = new Set(layers.map(layer => kindOf(layer.op)));
  return legend(KINDS.map(([name], i) => [`op${i}`, name]).filter((_, i) => used.has(i)));
};
// The name of a layer, without its CNN if there is only one.
const nameOf = (plan, cnn, layer) => plan.cnns.length > 1
  ? `${plan.cnns[cnn].name}/${plan.cnns[cnn].layers[layer].name}` : plan.cnns[cnn].layers[layer].name;
