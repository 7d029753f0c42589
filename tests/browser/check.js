// Looks at a drawn page from inside, as a person with a mouse or with keys alone would, and leaves what it finds in the
// document. It runs in a copy of the page, behind the page's own script.

(() => {
  const found = { errors: window.foundErrors, problems: [], facts: {} };
  const expect = (holds, what) => { if (!holds) found.problems.push(what); };
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const sections = () => all("section.timeline");
  const key = (target, name) => target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  const plans = JSON.parse(document.getElementById("data").textContent).plans;
  // Waits until the page is laid out. A browser without a screen may draw no pictures to wait for.
  const settled = then => setTimeout(() => { document.body.getBoundingClientRect(); then(); }, 50);

  const look = () => {
    found.facts.shownMs = Math.round(performance.now());
    found.facts.drawnMs = Number(document.documentElement.dataset.drawnMs);
    const maps = sections();
    expect(maps.length === plans.length, `${maps.length} maps of ${plans.length} plans`);
    found.facts.blocks = maps.map(section => all(".map .block", section).length);
    maps.forEach((section, i) => {
      expect(found.facts.blocks[i] === plans[i].lives.length, `${found.facts.blocks[i]} blocks of ${plans[i].lives.length} lives`);
      mouse(section);
      keys(section);
      tables(section);
    });
    names();
    sorting();
    overlaps();
  };
  settled(() => {
    const zoomed = sections();
    try { look(); } catch (error) { found.errors.push(`${error.message} ${error.stack}`); }
    const before = zoomed.map(section => section.querySelector(".axis").textContent), [first] = zoomed;
    first.querySelector(".map .block").focus();
    key(document.activeElement, "+");
    settled(() => {
      expect(first.querySelector(".axis").textContent !== before[0], "+ zooms in");
      expect(document.activeElement === first.querySelector(".map .block"), "the focus stays on the block that is zoomed into");
      const result = document.createElement("script");
      result.type = "application/json";
      result.id = "found";
      result.textContent = JSON.stringify(found).replaceAll("<", "\\u003c");
      document.body.append(result);
    });
  });

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

  function keys(section) {
    const blocks = () => all(".map .block", section), stops = () => blocks().filter(block => block.tabIndex === 0);
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
    const rows = all("tbody tr", details).length, blocks = all(".map .block", section).length;
    expect(rows === blocks, `${rows} rows of ${blocks} blocks`);
    details.open = false;
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
