// Looks at a drawn page from inside, as a person with a mouse or with keys alone would. Its value is a promise of what it
// finds.

(() => {
  const found = { problems: [], facts: {} };
  const expect = (holds, what) => { if (!holds) found.problems.push(what); };
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const sections = () => all("section.timeline");
  const key = (target, name) => target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  const plans = JSON.parse(document.getElementById("data").textContent).plans;
  // Waits until the page is laid out. A browser without a screen may draw no pictures to wait for.
  const settled = () => new Promise(then => setTimeout(() => { document.body.getBoundingClientRect(); then(); }, 50));
  // Waits until this holds, at most ten seconds, and expects it. On a busy machine a picture takes longer than usual.
  const becomes = async (holds, what) => {
    for (let waited = 0; waited < 10_000 && !holds(); waited += 50) await settled();
    expect(holds(), what);
  };

  const look = () => {
    found.facts.drawnMs = Number(document.documentElement.dataset.drawnMs);
    const maps = sections();
    expect(maps.length === plans.length, `${maps.length} maps of ${plans.length} plans`);
    // A block whose copies lie in several memories is in several maps.
    found.facts.blocks = maps.map(section => new Set(all(".map .block", section).map(block => block.dataset.block)).size);
    maps.forEach((section, i) => {
      expect(found.facts.blocks[i] === plans[i].lives.length, `${found.facts.blocks[i]} blocks of ${plans[i].lives.length} lives`);
      expect(all(".map", section).length === Math.max(1, plans[i].regions.filter(region => region.bytes > 0).length), "a map for each memory");
      tiles(plans[i], i);
      peak(section, i);
      mouse(section);
      all(".map", section).forEach(map => keys(section, map));
      tables(section);
    });
    names();
    sorting();
    overlaps();
    scrolls();
  };
  const zooms = async () => {
    const zoomed = sections(), axes = () => zoomed.map(section => section.querySelector(".axis").textContent);
    const before = axes(), [first] = zoomed;
    first.querySelector(".map .block").focus();
    key(document.activeElement, "+");
    await becomes(() => axes()[0] !== before[0], "+ zooms in");
    expect(document.activeElement === first.querySelector(".map .block"), "the focus stays on the block that is zoomed into");
    key(document.activeElement, "0");
    await becomes(() => axes()[0] === before[0], "0 shows all");
  };
  return (async () => {
    await settled();
    look();
    await zooms();
    await search();
    return found;
  })();

  // A click on what lies at the middle of a block names that block. Blocks that others hide in part, or steps, may have
  // another in their middle.
  function mouse(section) {
    section.querySelector(".map").scrollIntoView({ behavior: "instant", block: "center" });
    // A click draws the map anew.
    const count = all(".map .block", section).length;
    let clicked = 0;
    for (let i = 0; i < count && clicked < 5; i++) {
      const block = all(".map .block", section)[i], box = block.getBoundingClientRect();
      if (box.width < 8 || box.height < 8) continue;
      const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
      if (at !== block) continue;
      const name = block.getAttribute("aria-label").split(", ")[0];
      at.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      const said = section.querySelector(".facts").textContent;
      expect(said.includes(name), `a click on ${name} says ${said}`);
      expect(all(".map .selected", section).length === 1, "one block is marked");
      clicked++;
    }
    expect(clicked > 0, "no block can be clicked");
    found.facts.clicked = (found.facts.clicked ?? 0) + clicked;
  }

  function keys(section, map) {
    const blocks = () => all(".block", map), stops = () => blocks().filter(block => block.tabIndex === 0);
    expect(stops().length === 1, `${stops().length} blocks in the order of tabs`);
    stops()[0].focus();
    key(document.activeElement, "Home");
    expect(document.activeElement === blocks()[0], "Home goes to the first block");
    if (blocks().length > 1) {
      key(document.activeElement, "ArrowRight");
      expect(document.activeElement === blocks()[1], "an arrow goes to the next block");
    }
    const name = document.activeElement.getAttribute("aria-label").split(", ")[0];
    key(document.activeElement, "Enter");
    const said = section.querySelector(".facts").textContent;
    expect(said.includes(name), `Enter on ${name} says ${said}`);
    expect(document.activeElement?.getAttribute("aria-label")?.startsWith(name), "the focus stays on the block");
    expect(stops().length === 1, "one block stays in the order of tabs");
    expect(section.querySelector(".facts").getAttribute("aria-live") === "polite", "details are spoken");
  }

  // The table behind the map has a row for each block.
  function tables(section) {
    const details = section.querySelector("details");
    details.open = true;
    details.dispatchEvent(new Event("toggle"));
    const rows = all("tbody tr", details).length, blocks = found.facts.blocks[sections().indexOf(section)];
    expect(rows === blocks, `${rows} rows of ${blocks} blocks`);
    details.open = false;
  }

  // A limit is on the tile of what it limits, in red if it is not met.
  function tiles(plan, i) {
    const tiles = all("dl.cards")[i];
    for (const cnn of plan.cnns.filter(cnn => plan.constraints.latency_ns?.[cnn.name] !== undefined)) {
      const tile = all(".card", tiles).find(tile => tile.querySelector("dt").textContent === (plan.cnns.length > 1 ? cnn.name : "Speed"));
      const isMet = cnn.latency_ns <= plan.constraints.latency_ns[cnn.name];
      expect(tile.textContent.includes(`${isMet ? "within" : "beyond"} the limit of`), `no limit of latency on the tile of ${cnn.name}: ${tile.textContent}`);
      expect(tile.querySelectorAll(".unmet").length === (isMet ? 0 : 1), "limits that are not met are red");
    }
  }

  // The peak is one figure, in its section and over the curve. A curve that does not reach it says so in both places.
  function peak(section, i) {
    const said = all("section[id^=peak]")[i].querySelector("p").textContent, note = section.querySelector("figure .note").textContent;
    const [figure] = said.match(/[\d.]+ [kMG]?B|\d+ bytes?/);
    expect(note.includes(figure), `the peak is ${figure}, but over the curve: ${note}`);
    const [curve] = note.match(/curve reaches .*[^.]/) ?? [];
    expect(said.includes(curve ?? ""), `${curve}, but: ${said}`);
  }

  // Everything that can be reached has a role and a name.
  function names() {
    for (const mark of all("svg")) expect(mark.getAttribute("role") && mark.getAttribute("aria-label"), `a picture without a name: ${mark.className.baseVal}`);
    for (const mark of all("svg [tabindex]")) expect(mark.getAttribute("role") && mark.getAttribute("aria-label"), "a mark without a name");
    for (const section of all("section")) expect(section.getAttribute("aria-label"), "a section without a name");
  }

  function sorting() {
    const section = document.getElementById("layers");
    if (!section) return;
    const head = all("thead th", section).find(head => head.textContent.startsWith("Parameters"));
    head.querySelector("button").click();
    expect(head.getAttribute("aria-sort") === "descending", "a click sorts");
    const layers = plans[0].cnns.flatMap(cnn => cnn.layers), most = Math.max(...layers.map(layer => layer.parameters));
    const first = all("tbody th", section)[0].textContent.split("/").pop();
    expect(layers.some(layer => layer.parameters === most && (layer.name.endsWith(first))), `${first} is first by parameters`);
  }

  // A slash goes to the search field. What is typed there leaves the layers of that name, and all others are faint or hidden.
  async function search() {
    const field = document.querySelector("input[type=search]");
    document.activeElement.blur();
    key(document.body, "/");
    expect(document.activeElement === field, "/ goes to the search field");
    const [plan] = plans, layers = plan.cnns.flatMap(cnn => cnn.layers.map(layer => [cnn, layer]));
    const [place] = plan.places, { output } = plan.cnns[place.cnn].layers[place.layer], text = output.slice(1).toUpperCase();
    const is = (name, from) => name.toLowerCase().includes(from.toLowerCase());
    const named = ([cnn, { name, output }]) => is(`${plan.cnns.length > 1 ? `${cnn.name}/` : ""}${name} ${output}`, text);
    field.value = text;
    field.dispatchEvent(new Event("input"));
    const shown = selector => all(selector).filter(mark => getComputedStyle(mark).display !== "none" && Number(getComputedStyle(mark).opacity) === 1);
    const count = layers.filter(named).length;
    expect(count > 0 && count < layers.length, `${count} layers have "${text}" in their names`);
    if (plans.length === 1) {
      expect(shown("#layers tbody tr").length === count, `${shown("#layers tbody tr").length} rows of ${count} layers that are found`);
      expect(shown("#network .layer").length === count, "the network shows the layers that are found");
    }
    const blocks = all(".map .block").length, found = shown(".map .block").length;
    expect(found > 0 && found < blocks || blocks === 1, `${found} of ${blocks} blocks are found`);
    expect(is(document.querySelector(".search [role=status]").textContent, " of "), "the number of layers is spoken");
    // What is drawn anew is searched, too.
    key(document.querySelector(".map .block"), "+");
    await settled();
    expect(shown(".map .block").length === found, "a map that is zoomed keeps what is found");
    key(field, "Escape");
    expect(field.value === "" && all(".missed").length === 0, "Escape ends the search");
  }

  // A box with more in it than it shows says so at that edge, until the end is reached.
  function scrolls() {
    for (const box of all(".scroll").filter(box => box.checkVisibility())) {
      const frame = box.parentNode, name = box.getAttribute("aria-label");
      const says = (edge, part, more) => expect(frame.classList.contains(edge) === more && (getComputedStyle(frame, part).content !== "none") === more,
        `${name}: ${more ? "no" : "an"} arrow at ${edge}`);
      says("more-right", "::after", box.scrollWidth > box.clientWidth + 1);
      says("more-below", "::before", box.scrollHeight > box.clientHeight + 1);
      box.scrollTo({ left: box.scrollWidth, top: box.scrollHeight, behavior: "instant" });
      box.dispatchEvent(new Event("scroll"));
      says("more-right", "::after", false);
      says("more-below", "::before", false);
      box.scrollTo({ left: 0, top: 0, behavior: "instant" });
    }
    // On a phone, no table needs to be scrolled sideways: its rows are cards, with the titles of their columns in them.
    if (innerWidth > 640) return;
    for (const table of all("table").filter(table => table.checkVisibility())) {
      const box = table.closest(".scroll"), cell = table.querySelector("td");
      expect(box.scrollWidth <= box.clientWidth + 1, `${box.getAttribute("aria-label")} is wider than a phone`);
      if (cell) expect(getComputedStyle(cell, "::before").content === JSON.stringify(cell.dataset.title), "a card says what its values are");
    }
  }

  // No two labels of an axis lie on each other.
  function overlaps() {
    for (const axis of all(".axis")) {
      const boxes = all("text:not(.unit)", axis).map(text => text.getBoundingClientRect());
      for (let i = 1; i < boxes.length; i++) {
        const [a, b] = [boxes[i - 1], boxes[i]];
        expect(a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 4 || b.bottom <= a.top + 4, "labels of an axis overlap");
      }
    }
    expect(document.documentElement.scrollWidth <= document.documentElement.clientWidth + 1, "the page is wider than its window");
  }
})();
