#!/usr/bin/env python3
"""The report's page in a browser: draws pages of several plans in headless Chromium, and looks at them from inside.

A page is copied with two scripts: one that notes errors, and `check.js`, which clicks, presses keys and counts. What that
finds is read from the document that Chromium prints. Screenshots, light and dark, are kept under target/browser.

usage: run.py --csdfc PATH [--chromium PATH]
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

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
    ("three_cnns", APPS / "three_cnns.ron", []),
    ("doorbell", APPS / "doorbell.ron", ["--mem", "min"]),
]

# Longest time until a page is drawn, in milliseconds. It is generous: a loaded machine is no failure.
LONGEST_MS = 10_000

NOTE_ERRORS = """<script>
window.foundErrors = [];
window.addEventListener("error", event => window.foundErrors.push(String(event.message)));
window.addEventListener("unhandledrejection", event => window.foundErrors.push(String(event.reason)));
window.addEventListener("securitypolicyviolation", event => window.foundErrors.push("policy: " + event.violatedDirective));
for (const level of ["error", "warn"]) console[level] = (...words) => window.foundErrors.push(words.join(" "));
</script>"""


def chromium(program, page, *options, size=(1320, 2400)):
    command = [program, "--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--enable-logging=stderr",
               f"--window-size={size[0]},{size[1]}", "--virtual-time-budget=20000", *options]
    if os.geteuid() == 0:
        command.append("--no-sandbox")
    done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=180)
    # What a page writes on its console, and what the browser refuses, are lines of the log.
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    if done.returncode != 0 or said:
        sys.exit(f"{page.name}: Chromium ended with {done.returncode}\n" + "\n".join(said or done.stderr.splitlines()[-5:]))
    return done.stdout


def places(plan):
    """Rings, workspaces and blocks of weights of a plan: each is a block of the map for every frame that it is drawn in."""
    layers = [layer for cnn in plan["cnns"] for layer in cnn["layers"]]
    edges = {(edge["cnn"], edge["tensor"], edge["consumer"]) for buffer in plan.get("buffers", []) for edge in buffer["holds"]}
    rings = sum("offset" in tensor for tensor in plan["tensors"])
    workspaces = sum(layer["workspace"]["bytes"] > 0 for layer in layers)
    return len(edges) + rings + workspaces + sum(len(layer.get("streamed", {"blocks": []})["blocks"]) for layer in layers)


def look(program, name, page, size=(1320, 2400)):
    """Checks a page from inside, and keeps pictures of it. Returns what was found."""
    text = page.read_text(encoding="utf-8")
    checked = page.with_suffix(".checked.html")
    script = (ROOT / "tests" / "browser" / "check.js").read_text(encoding="utf-8")
    text = text.replace("<style>", NOTE_ERRORS + "<style>", 1)
    head, tail = text.rsplit("</body>", 1)
    checked.write_text(f"{head}<script>{script}</script></body>{tail}", encoding="utf-8")
    document = chromium(program, checked, "--dump-dom", size=size)
    checked.unlink()
    match = re.search(r'<script type="application/json" id="found">(.*?)</script>', document, re.S)
    if not match:
        sys.exit(f"{name}: the check has not ended")
    found = json.loads(match.group(1))
    wrong = found["errors"] + found["problems"]
    if wrong:
        sys.exit(f"{name}: " + "\n  ".join(wrong[:10]))
    chromium(program, page, f"--screenshot={KEPT / (name + '-light.png')}", size=size)
    chromium(program, page, f"--screenshot={KEPT / (name + '-dark.png')}", "--blink-settings=preferredColorScheme=0", size=size)
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

    for name, app, options in PLANS:
        run("plan", app, "-q", "-o", f"{name}.json", *options)
        run("report", f"{name}.json", "-o", f"{name}.html")
        facts = look(args.chromium, name, KEPT / f"{name}.html")
        plan = json.loads((KEPT / f"{name}.json").read_text(encoding="utf-8"))
        [blocks] = facts["blocks"]
        at_once = any(len(element) > 1 for element in plan["parallel"])
        if blocks != places(plan) and not (at_once and blocks > places(plan)):
            sys.exit(f"{name}: {blocks} blocks are drawn of {places(plan)} places")
        if facts["drawnMs"] > LONGEST_MS:
            sys.exit(f"{name}: it took {facts['drawnMs']} ms to draw the page")
        firings = sum(layer["firings"] for cnn in plan["cnns"] for layer in cnn["layers"])
        size = (KEPT / f"{name}.html").stat().st_size
        print(f"{name}: {firings} firings, {blocks} blocks, {facts['clicked']} clicked; {size / 1e3:.0f} kB, "
              f"drawn in {facts['drawnMs']} ms, shown after {facts['shownMs']} ms")
    # Two plans on one page, a front, and a narrow window.
    run("plan", APPS / "mobilenet_v2.ron", "-q", "-o", "large.json", "--rows", "none")
    run("report", "large.json", "mobilenet_v2.json", "--front", "mobilenet_v2.json", "-o", "comparison.html")
    look(args.chromium, "comparison", KEPT / "comparison.html")
    run("report", "mobilenet_v2.json", "-o", "narrow.html")
    look(args.chromium, "narrow", KEPT / "narrow.html", size=(700, 2400))
    print(f"screenshots are in {KEPT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
