"""What the installed package does, beside the command."""

import doctest
import importlib.metadata
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import csdfc

ROOT = Path(__file__).resolve().parents[3]


def command(*arguments, folder):
    """The command that the package installed."""
    program = Path(sys.executable).with_name("csdfc")
    return subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=False)


class Plans(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_a_plan_is_the_one_of_the_command(self):
        plan = csdfc.plan("builtin:lenet5", mem="min")
        self.assertEqual(command("plan", "builtin:lenet5", "--mem", "min", "-o", "plan.json", folder=self.folder).returncode, 0)
        theirs = json.loads((self.folder / "plan.json").read_text())
        self.assertEqual(json.loads(plan.to_json()), theirs)
        memory = theirs["memory"]
        self.assertEqual((plan.arena, plan.parameters, plan.total), (memory["arena"], memory["parameters"], memory["total"]))
        self.assertEqual(plan.application, theirs["application"])
        [cnn] = theirs["cnns"]
        self.assertEqual(plan.fps, {cnn["name"]: cnn["fps"]})
        self.assertAlmostEqual(plan.latency[cnn["name"]], cnn["latency_ns"] / 1e9)
        self.assertIn(str(plan.total), repr(plan))

    def test_a_saved_plan_finds_its_model(self):
        model = self.folder / "net.onnx"
        command("inspect", "builtin:lenet5", "--onnx", model, folder=self.folder)
        (self.folder / "plans").mkdir()
        csdfc.plan(model, mem=100_000_000).save(self.folder / "plans" / "plan.json")
        checked = command("check", "plans/plan.json", folder=self.folder)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertIn("every layer matches its model", checked.stdout)

    def test_what_cannot_be_met_names_the_peak(self):
        with self.assertRaises(csdfc.Unmet) as raised:
            csdfc.plan("builtin:lenet5", mem="5kB", fps=1)
        least = csdfc.plan("builtin:lenet5", mem="min")
        self.assertGreaterEqual(raised.exception.nearest.total, least.total)
        self.assertIn("memory peaks", str(raised.exception))

    def test_what_is_wrong_is_an_error(self):
        for arguments in [{"model": "no.onnx"}, {"model": "builtin:lenet5", "mem": "much"},
                          {"model": "builtin:lenet5", "fps": 0.0}, {"model": "builtin:lenet5", "device": "pc2"}]:
            with self.assertRaises(csdfc.Error):
                csdfc.plan(**arguments)
        with self.assertRaises(TypeError):
            csdfc.plan(7)

    def test_the_licences_come_along(self):
        names = {file.name for file in importlib.metadata.files("csdfc")}
        self.assertLessEqual({"LICENSE-MIT", "LICENSE-APACHE"}, names)

    def test_the_command_ends_as_it_should(self):
        self.assertEqual(command("--version", folder=self.folder).stdout.split(), ["csdfc", csdfc.__version__])
        self.assertEqual(command("check", "no.json", folder=self.folder).returncode, 1)


class Packings(unittest.TestCase):
    def test_buffers_in_use_together_lie_apart(self):
        buffers = [(0, 4, 3), (2, 6, 5), (4, 9, 2), (5, 7, 7), (1, 8, 1)]
        packing = csdfc.pack(buffers)
        for i, (lower, upper, size) in enumerate(buffers):
            for j, (other_lower, other_upper, other_size) in enumerate(buffers[:i]):
                if lower < other_upper and other_lower < upper:
                    at, other = packing.offsets[i], packing.offsets[j]
                    self.assertTrue(at + size <= other or other + other_size <= at, (i, j))
        most = max(sum(size for lower, upper, size in buffers if lower <= time < upper) for time in range(9))
        self.assertEqual((packing.bytes, packing.bound, packing.proven), (most, most, True))

    def test_what_is_no_buffer_is_refused(self):
        for buffers in [[(0, 1)], [(0, 1, -1)], ["abc"], 7]:
            with self.assertRaises((TypeError, ValueError, OverflowError)):
                csdfc.pack(buffers)
        for buffers in [[(0, 1, 2**62)], [(0, 1, 1)] * 5001]:
            with self.assertRaises(csdfc.Error):
                csdfc.pack(buffers)

    def test_nothing_takes_nothing(self):
        self.assertEqual(csdfc.pack([]).bytes, 0)


def load_tests(_loader, tests, _pattern):
    """The examples of the texts are tests too."""
    for text in ["compiler/python/README.md", "docs/guide/src/python.md"]:
        tests.addTests(doctest.DocFileSuite(str(ROOT / text), module_relative=False))
    return tests


if __name__ == "__main__":
    unittest.main()
