#!/usr/bin/env python3
"""The report's page in a browser: draws pages of several plans in headless Chromium, and looks at them from inside.

`check.js` clicks, presses keys and counts, in windows as wide as those of a large screen, a tablet and a phone. Then axe-core
looks for faults that keep people out, and the page is printed. Screenshots, light and dark, are kept under target/browser.

usage: run.py --csdfc PATH [--chromium PATH]
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tarfile

from browser import Browser

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT = ROOT / "target" / "browser"
APPS = ROOT / "apps"

# What is planned: a name, an application or model, options.
PLANS = [
    ("mobilenet_v2", APPS / "mobilenet_v2.ron", ["--mem", "min"]),
    ("densenet121", "builtin:densenet121", ["--mem", "min"]),
    ("streamed", "builtin:mobilenet_v2", ["--weights", "streamed"]),
    ("pipeline", APPS / "pipelines" / "mobilenet_v2.ron", []),
    ("adaptive_classifier", APPS / "adaptive_classifier.ron", []),
    ("memories", "builtin:mobilenet_v2", ["--device", "stm32h7", "--ram", "dtcm,sram,8MB@psram:12.5ns"]),
    ("three_cnns", APPS / "three_cnns.ron", ["--latency", "resnet50=10s"]),
    ("doorbell", APPS / "doorbell.ron", ["--mem", "min"]),
]

# Longest time until a page is drawn, in milliseconds. It is generous: a loaded machine is no failure.
LONGEST_MS = 10_000

WIDTHS = [1280, 768, 400]

# The version of axe-core that is fetched from the npm registry, and the impacts of faults that fail.
AXE, SERIOUS = "axe-core@4.14.1", ["serious", "critical"]

# The most pages of paper that a report may take. One of 329 layers takes eight.
MOST_PAGES = 12


def axe():
    """The script of axe-core, or none where it cannot be had."""
    try:
        packed = subprocess.run(["npm", "pack", "--silent", AXE], cwd=KEPT, capture_output=True, text=True, timeout=120, check=True)
        with tarfile.open(KEPT / packed.stdout.split()[-1]) as archive:
            return archive.extractfile("package/axe.min.js").read().decode()
    except (OSError, subprocess.SubprocessError) as error:
        print(f"skipped: faults that keep people out, for there is no {AXE}: {error}")
        return None


def places(plan):
    """Rings, workspaces and blocks of weights of a plan: each is a block of the map for every frame that it is drawn in."""
    layers = [layer for cnn in plan["cnns"] for layer in cnn["layers"]]
    edges = {(edge["cnn"], edge["tensor"], edge["consumer"]) for buffer in plan.get("buffers", []) for edge in buffer["holds"]}
    rings = sum("offset" in tensor for tensor in plan["tensors"])
    workspaces = sum(layer["workspace"]["bytes"] > 0 for layer in layers)
    return len(edges) + rings + workspaces + sum(len(layer.get("streamed", {"blocks": []})["blocks"]) for layer in layers)


def look(browser, script, name):
    """Checks a page from inside in each width, prints it, and keeps pictures. Returns what was found in the last of them."""
    page = KEPT / f"{name}.html"
    check = (ROOT / "tests" / "browser" / "check.js").read_text(encoding="utf-8")
    # Colours are the same in every width.
    for width, dark in [(WIDTHS[0], True), *((width, False) for width in WIDTHS)]:
        browser.open(page, width, dark=dark)
        browser.screenshot(KEPT / f"{name}-{width}-{'dark' if dark else 'light'}.png")
        faults = []
        if script:
            browser.evaluate(script)
            faults = browser.evaluate("axe.run().then(({ violations }) => violations.map(({ id, impact, help, nodes }) => "
                                      "({ id, impact, help, first: nodes[0].html.slice(0, 200) })))")
        wrong = [f"{fault['id']}: {fault['help']}: {fault['first']}" for fault in faults if fault["impact"] in SERIOUS]
        if not dark:
            found = browser.evaluate(check)
            wrong += found["problems"]
        if wrong + browser.said:
            sys.exit(f"{name}, {width} wide: " + "\n  ".join([*browser.said, *wrong][:10]))
    browser.open(page, WIDTHS[0])
    found["facts"]["pages"] = browser.print(KEPT / f"{name}.pdf")
    return found["facts"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csdfc", required=True, type=pathlib.Path)
    parser.add_argument("--chromium", default="chromium")
    args = parser.parse_args()
    csdfc = args.csdfc.resolve()
    KEPT.mkdir(parents=True, exist_ok=True)

    def run(*words):
        subprocess.run([str(csdfc), *map(str, words)], check=True, cwd=KEPT, stdout=subprocess.DEVNULL)

    script = axe()
    with Browser(args.chromium) as browser:
        for name, app, options in PLANS:
            run("plan", app, "-q", "-o", f"{name}.json", *options)
            run("report", f"{name}.json", "-o", f"{name}.html")
            facts = look(browser, script, name)
            plan = json.loads((KEPT / f"{name}.json").read_text(encoding="utf-8"))
            [blocks] = facts["blocks"]
            at_once = any(len(element) > 1 for element in plan["parallel"])
            if blocks != places(plan) and not (at_once and blocks > places(plan)):
                sys.exit(f"{name}: {blocks} blocks are drawn of {places(plan)} places")
            if facts["drawnMs"] > LONGEST_MS:
                sys.exit(f"{name}: it took {facts['drawnMs']} ms to draw the page")
            if facts["pages"] > MOST_PAGES:
                sys.exit(f"{name}: {facts['pages']} pages of paper")
            firings = sum(layer["firings"] for cnn in plan["cnns"] for layer in cnn["layers"])
            size = (KEPT / f"{name}.html").stat().st_size
            print(f"{name}: {firings} firings, {blocks} blocks, {facts['clicked']} clicked; {size / 1e3:.0f} kB, "
                  f"drawn in {facts['drawnMs']} ms, {facts['pages']} pages of paper")
        # Two plans on one page, and a front.
        run("plan", APPS / "mobilenet_v2.ron", "-q", "-o", "large.json", "--rows", "none")
        run("report", "large.json", "mobilenet_v2.json", "--front", "mobilenet_v2.json", "-o", "comparison.html")
        look(browser, script, "comparison")
    print(f"screenshots are in {KEPT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
