// The page: its head, its sections, and what draws them again when its width changes.

function cards(plan) {
  const { memory, constraints } = plan;
  const card = (title, value, ...notes) => html("div", { class: "card" }, html("dt", null, title), html("dd", null, html("strong", null, value), notes.map(note => note && html("span", null, note))));
  // What was asked for, in red if the plan does not meet it.
  const asked = (limit, isMet, text) => limit === null || limit === undefined ? null : html("em", { class: isMet ? null : "unmet" }, text(limit));
  const within = (value, limit, text) => asked(limit, value <= limit, limit => `${value <= limit ? "within" : "beyond"} the limit of ${text(limit)}`);
  const parameters = memory.parameters_resident ?? memory.parameters_stored;
  const bound = memory.proven ? "smallest for this schedule (proven)" : plan.certificate.claimed === memory.arena ? "smallest for this schedule (by exhaustive search)" : `this schedule needs at least ${bytes(memory.bound)} (proven)`;
  const limit = plan.regions.length ? "each memory has its limit" : within(memory.total, constraints.memory, bytes) ?? "no limit was asked for";
  return html("dl", { class: "cards", "aria-label": "Figures" },
    card("Total memory", bytes(memory.total), `${grouped(memory.total)} bytes`, limit),
    card("Arena", bytes(memory.arena), bound, `${bytes(memory.naive)} without reuse`),
    plan.regions.map(region => card(`Memory ${region.name}`, bytes(region.bytes), region.stack && `and ${bytes(region.stack)} of stack`, within(region.bytes + (region.stack ?? 0), region.limit, bytes))),
    card(plan.regions.length ? "Parameters in flash" : "Parameters in memory", bytes(parameters), plan.store ? `${bytes(plan.store)} more in the store` : "weights and biases as kernels keep them", within(memory.parameters_stored, constraints.flash, limit => `${bytes(limit)}, without the code`)),
    plan.cnns.map(cnn => {
      const floor = constraints.fps?.[cnn.name];
      return card(plan.cnns.length > 1 ? cnn.name : "Speed", `${fixed(cnn.fps ?? 0, 1)} fps`, asked(floor, cnn.fps >= floor, floor => `${cnn.fps >= floor ? "at least" : "below"} the ${floor} fps asked for`),
        `latency ${time(cnn.latency_ns)}`, within(cnn.latency_ns, constraints.latency_ns?.[cnn.name], time),
        cnn.batch ? `of one frame: a call takes ${cnn.batch}, one after another` : null);
    }));
}

const about = plan => `${plan.cnns.map(cnn => cnn.name === plan.application ? cnn.model : `${cnn.name} (${cnn.model})`).join(", ")} · storage model ${plan.storage_model} · ` +
  `device ${plan.device} (${plan.device_basis}) · ${plan.threads === 1 ? "1 worker" : `${plan.threads} workers`} · csdfc ${plan.csdfc}`;

function comparison([a, b]) {
  const rows = [];
  const figure = (title, of, text) => {
    const [x, y] = [of(a), of(b)];
    if (x === null || x === undefined || y === null || y === undefined) return;
    const difference = y - x;
    rows.push({ title, a: text(x), b: text(y), difference: difference === 0 ? "–" : `${difference > 0 ? "+" : "−"}${text(Math.abs(difference))}`,
      share: x === 0 || difference === 0 ? "–" : `${difference > 0 ? "+" : "−"}${percent(Math.abs(difference) / x)}` });
  };
  const count = number => grouped(number);
  figure("Total memory, bytes", plan => plan.memory.total, count);
  figure("Arena, bytes", plan => plan.memory.arena, count);
  figure("Bound, bytes", plan => plan.memory.bound, count);
  figure("Without reuse, bytes", plan => plan.memory.naive, count);
  figure("Workspace, bytes", plan => plan.memory.workspace, count);
  figure("Parameters in memory, bytes", plan => plan.memory.parameters_resident ?? plan.memory.parameters_stored, count);
  figure("Store, bytes", plan => plan.store ?? 0, count);
  for (const name of [...new Set([...a.cnns, ...b.cnns].map(cnn => cnn.name))]) {
    const of = plan => plan.cnns.find(cnn => cnn.name === name);
    const title = text => a.cnns.length > 1 || b.cnns.length > 1 ? `${text} of ${name}` : text;
    figure(title("Frames per second"), plan => of(plan)?.fps, fps => fixed(fps, 2));
    figure(title("Latency"), plan => of(plan)?.latency_ns, time);
    figure(title("Firings a frame"), plan => of(plan)?.layers.reduce((sum, layer) => sum + layer.firings, 0), count);
    figure(title("Layers by parts"), plan => of(plan)?.layers.filter(layer => layer.firings > 1).length, count);
  }
  const columns = [{ title: "Figure", text: row => row.title }, { title: `A: ${a.application}`, text: row => row.a, value: row => row.a }, { title: `B: ${b.application}`, text: row => row.b, value: row => row.b },
    { title: "B beside A", text: row => row.difference, value: row => row.difference }, { title: "Share", text: row => row.share, value: row => row.share }];
  return html("section", { id: "comparison", "aria-label": "Comparison" }, html("h2", null, "Comparison"), table("Figures of both plans", columns, rows, false));
}

function page() {
  const started = performance.now(), { plans, front } = data, [plan] = plans, pair = plans.length > 1;
  const isSame = pair && plan.application === plans[1].application;
  const title = isSame ? `${plan.application}: two plans` : pair ? `${plan.application} beside ${plans[1].application}` : plan.application;
  document.title = `${title} – csdfc report`;
  const heads = plans.map((plan, i) => html("div", null, pair ? html("h2", null, `${"AB"[i]}: ${plan.application}`) : null, html("p", { class: "about" }, about(plan)), cards(plan)));
  const lines = plans.map((plan, i) => timelineSection(plan, pair ? `Memory of ${"AB"[i]}` : "Memory over time"));
  const parts = pair
    ? [comparison(plans), ...lines.flatMap((line, i) => [line, peakSection(plans[i], "AB"[i])]), frontSection(plans, front)]
    : [...lines, peakSection(plan), frontSection(plans, front), layerSection(plan), parameterSection(plan), networkSection(plan)];
  const present = parts.filter(Boolean).map(part => part.section ? part : { section: part, draw: () => {} });
  const links = present.map(({ section }) => html("a", { href: `#${section.id}` }, section.querySelector("h2").textContent));
  document.getElementById("page").replaceChildren(
    html("header", null, html("h1", null, title), heads),
    html("nav", { "aria-label": "Sections" }, links, searchField(plans)),
    ...present.map(({ section }) => section),
    html("footer", null, `csdfc ${plan.csdfc}. Sizes are in bytes; 1 MB is 1 000 000 bytes.`));
  const draw = () => present.forEach(({ draw }) => draw());
  draw();
  // What the address names was not there when the page was loaded.
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  // On paper, pictures are drawn for its width.
  for (const [event, on] of [["beforeprint", true], ["afterprint", false]])
    window.addEventListener(event, () => {
      document.documentElement.classList.toggle("paper", on);
      draw();
    });
  let width = window.innerWidth, timer = null;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(timer);
    timer = setTimeout(draw, 120);
  });
  document.documentElement.dataset.drawnMs = Math.round(performance.now() - started);
}

page();
