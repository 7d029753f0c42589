"""What came of every case."""

import json
import re
from collections import defaultdict

from csdfc import Failed, Refused

PASSED, FAILED, REFUSED, UNCLAIMED = "passed", "failed", "refused", "not claimed"


class Summary:
    """Results by part and name. A refusal fails too unless `refused.json` lists the case, and so does a part of which
    fewer cases pass than its floor."""

    def __init__(self, known, update, floors):
        self.file = known
        self.known = set(sum(json.loads(known.read_text()).values(), [])) if known.exists() else set()
        self.update = update
        self.floors = floors
        self.results = []
        self.counts = {}

    def count(self, what, counts):
        """Numbers by name, for a table of their own."""
        self.counts[what] = dict(sorted(counts.items()))

    def add(self, part, name, state, why="", notes=()):
        # Of networks that are drawn, `drawn.py` knows what may be refused.
        if state == REFUSED and part != "drawn" and not self.update and name not in self.known:
            state, why = FAILED, f"refused, and not listed in refused.json: {why}"
        self.results.append({"part": part, "name": name, "state": state, "why": why, "notes": list(notes)})

    def check(self, part, name, check):
        """Adds what becomes of a check, which returns notes, or none."""
        try:
            self.add(part, name, PASSED, notes=check() or [])
        except Refused as why:
            self.add(part, name, REFUSED, str(why))
        except Failed as why:
            self.add(part, name, FAILED, str(why))

    def data(self):
        if self.update:
            refused = self._grouped([r for r in self.results if r["state"] == REFUSED])
            self.file.write_text(json.dumps({why: names for why, names in refused}, indent=1, ensure_ascii=False) + "\n")
        return {"results": self.results, "unexpected_passes": self._unexpected(), "counts": self.counts}

    def is_good(self):
        ran = any(r["state"] == PASSED for r in self.results)
        return ran and not self.failures()

    def markdown(self):
        lines = ["# Conformance", "", "| part | cases | claimed | run | passed | failed | refused | not claimed |",
                 "| --- | --- | --- | --- | --- | --- | --- | --- |"]
        parts = list(dict.fromkeys(r["part"] for r in self.results))
        for part in parts:
            states = [r["state"] for r in self.results if r["part"] == part]
            count = {state: states.count(state) for state in (PASSED, FAILED, REFUSED, UNCLAIMED)}
            claimed = len(states) - count[UNCLAIMED]
            row = [part, len(states), claimed, claimed - count[REFUSED], *count.values()]
            lines.append("| " + " | ".join(map(str, row)) + " |")
        lines += ["", *self._below()] if self._below() else []
        for what, counts in self.counts.items():
            lines += ["", f"## {what}", "", ", ".join(f"{name} {count}" for name, count in counts.items())]
        for state in (FAILED, REFUSED, UNCLAIMED):
            chosen = [r for r in self.results if r["state"] == state]
            if not chosen:
                continue
            lines += ["", f"## {state.capitalize()}", ""]
            for why, names in self._grouped(chosen):
                lines.append(f"- {why} ({len(names)}): {', '.join(names)}")
        notes = defaultdict(list)
        for r in self.results:
            for note in r["notes"]:
                notes[note].append(r["name"])
        if notes:
            lines += ["", "## Run in another form", ""]
            lines += [f"- {note} ({len(names)}): {', '.join(names)}" for note, names in sorted(notes.items())]
        if self._unexpected():
            lines += ["", f"No longer refused, though in refused.json: {', '.join(self._unexpected())}"]
        return "\n".join(lines) + "\n"

    def failures(self):
        """What keeps this from being good, a line each."""
        failed = [r for r in self.results if r["state"] == FAILED]
        return [*self._below(), *(f"failed: {r['part']}, {r['name']}: {r['why']}" for r in failed)]

    def _below(self):
        """The parts of which too few cases pass, in words."""
        passed = [r["part"] for r in self.results if r["state"] == PASSED]
        return [f"Too few cases of {part} pass: {passed.count(part)}, not {floor} or more."
                for part, floor in self.floors.items() if passed.count(part) < floor]

    def _unexpected(self):
        return sorted(r["name"] for r in self.results if r["state"] == PASSED and r["name"] in self.known)

    @staticmethod
    def _grouped(results):
        """Names by reason, whatever the numbers and tensor names in it."""
        groups = defaultdict(list)
        for r in results:
            why = re.sub(r"\b(node|input|output|tensor) .+?( \(\w+\))?: ", r"\1 …\2: ", r["why"], count=1)
            why = re.sub(r"(operand \d+, its \w+) \([^)]*\) ?", r"\1", why)
            if r["state"] != FAILED:
                why = re.sub(r"\[[^\]]*\]|-?\d+(\.\d+)?(e[-+]?\d+)?", "N", why)
            groups[why].append(r["name"])
        return sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
