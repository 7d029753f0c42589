"""What the installed package does, beside the command."""

import ast
import doctest
import importlib.metadata
import inspect
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
import xml.etree.ElementTree
from pathlib import Path

import numpy as np

import csdfc

try:
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper
except ImportError:
    onnx = None

ROOT = Path(__file__).resolve().parents[3]


def command(*arguments, folder):
    """The command that the package installed."""
    program = Path(sys.executable).with_name("csdfc")
    return subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=False)


def random(*shape, seed=1):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


class InFolder(unittest.TestCase):
    """A test with a folder of its own, and models in it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def builtin(self, name):
        """A built-in network as an ONNX file."""
        model = self.folder / f"{name}.onnx"
        written = command("inspect", f"builtin:{name}", "--onnx", model, folder=self.folder)
        self.assertEqual(written.returncode, 0, written.stderr)
        return model

    def refused(self, error, *words):
        """A context whose error says all of this."""
        case = self

        class Refused:
            def __enter__(self):
                return self

            def __exit__(self, kind, value, _trace):
                case.assertIsNotNone(kind, f"no {error.__name__} was raised")
                if issubclass(kind, error):
                    self.exception = value
                    for word in words:
                        case.assertIn(word, str(value))
                    return True
                return False

        return Refused()


class Plans(InFolder):
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
        model = self.builtin("lenet5")
        (self.folder / "plans").mkdir()
        csdfc.plan(model, mem=100_000_000).save(self.folder / "plans" / "plan.json")
        checked = command("check", "plans/plan.json", folder=self.folder)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertIn("every layer matches its model", checked.stdout)

    def test_what_cannot_be_met_names_the_peak(self):
        with self.assertRaises(csdfc.Unmet) as raised:
            csdfc.plan("builtin:lenet5", mem="5kB", fps=1)
        least = csdfc.plan("builtin:lenet5", mem="min", weights="streamed")
        self.assertEqual(raised.exception.nearest.total, least.total)
        self.assertGreater(len(raised.exception.remedies), 2)
        for remedy in raised.exception.remedies:
            plan = csdfc.plan("builtin:lenet5", **({"mem": "5kB", "fps": 1} | remedy.options))
            self.assertEqual((plan.total, plan.fps, remedy.met), (remedy.total, remedy.fps, False), remedy)
        self.assertIn("memory peaks", str(raised.exception))

    def test_what_is_wrong_is_an_error(self):
        for arguments in [{"model": "no.onnx"}, {"model": "builtin:lenet5", "mem": "much"},
                          {"model": "builtin:lenet5", "fps": 0.0}, {"model": "builtin:lenet5", "device": "pc2"}]:
            with self.assertRaises(csdfc.Error):
                csdfc.plan(**arguments)
        with self.assertRaises(TypeError):
            csdfc.plan(7)

    def test_what_the_command_would_warn_of_is_a_warning(self):
        with self.assertWarnsRegex(csdfc.CsdfcWarning, "^5 workers share each firing, but device generic has 4 cores$"):
            plan = csdfc.plan("builtin:lenet5", threads=5)
        with self.assertWarnsRegex(csdfc.CsdfcWarning, "^the plan's frame rates are modelled, by device generic") as warned:
            plan.emit(self.folder / "crate")
        self.assertEqual(Path(warned.filename).name, Path(__file__).name)
        with self.assertRaises(csdfc.Unmet) as raised:
            csdfc.plan("builtin:lenet5", mem="5kB")
        with self.assertWarnsRegex(csdfc.CsdfcWarning, "a limit that it was asked to keep: memory ≤ 5.00 kB"):
            raised.exception.nearest.emit(self.folder / "nearest")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            csdfc.plan("builtin:lenet5", mem="min")
            with self.assertRaises(csdfc.CsdfcWarning):
                csdfc.plan("builtin:lenet5", threads=5)

    def test_the_licences_come_along(self):
        names = {file.name for file in importlib.metadata.files("csdfc")}
        self.assertLessEqual({"LICENSE-MIT", "LICENSE-APACHE"}, names)

    def test_the_command_ends_as_it_should(self):
        self.assertEqual(command("--version", folder=self.folder).stdout.split(), ["csdfc", csdfc.__version__])
        self.assertEqual(command("check", "no.json", folder=self.folder).returncode, 1)


class Options(InFolder):
    """Each option means what it means on the command line."""

    def both(self, *arguments, model="builtin:lenet5", **options):
        """The plan of these options, which is also that of the command with these arguments."""
        plan = csdfc.plan(model, **options)
        done = command("plan", model, *arguments, "-o", "plan.json", folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        theirs = json.loads((self.folder / "plan.json").read_text())
        self.assertEqual(json.loads(plan.to_json()), theirs)
        return theirs

    def test_memory_in_bytes_and_with_a_unit(self):
        self.assertEqual(self.both("--mem", "300000", mem=300_000)["constraints"]["memory"], 300_000)
        self.assertEqual(self.both("--mem", "300kB", mem="300kB")["constraints"]["memory"], 300_000)

    def test_flash_and_memories(self):
        plan = self.both("--ram", "6kB@dtcm,64kB@sram", "--flash", "1MB", ram="6kB@dtcm,64kB@sram", flash="1MB")
        self.assertEqual([region["name"] for region in plan["regions"]], ["dtcm", "sram"])

    def test_frames_per_second_of_all_and_of_one(self):
        self.assertEqual(self.both("--fps", "20", fps=20)["constraints"]["fps"], {"lenet5": 20.0})
        self.assertEqual(self.both("--fps", "lenet5=20.5", fps={"lenet5": 20.5})["constraints"]["fps"], {"lenet5": 20.5})

    def test_latency_as_text_and_in_seconds(self):
        for latency in ["40ms", 0.04, {"lenet5": 0.04}, {"lenet5": "40ms"}]:
            plan = self.both("--latency", "40ms", latency=latency)
            self.assertEqual(plan["constraints"]["latency_ns"], {"lenet5": 40_000_000})

    def test_precisions(self):
        for precision in ["fp32", "half", "mixed"]:
            self.both("--precision", precision, precision=precision)

    def test_precision_auto_with_an_allowance(self):
        self.both("--precision", "auto", "--max-error", "0.1", "--random", "1", "--mem", "160kB",
                  precision="auto", max_error=0.1, random=1, mem="160kB")

    def test_frames_to_calibrate_with(self):
        for name in ["a", "b"]:
            np.save(self.folder / f"{name}.npy", random(1, 1, 32, 32))
        files = [self.folder / "a.npy", self.folder / "b.npy"]
        self.both("--precision", "auto", "--calibrate", *files, "--mem", "160kB", precision="auto", calibrate=files,
                  mem="160kB", max_error=0.01)

    def test_weights_that_are_streamed(self):
        plan = self.both("--weights", "streamed", weights="streamed")
        self.assertGreater(plan["store"]["bytes"], 0)

    def test_rows_of_layers(self):
        rows = {"conv1": 2, "conv2": 1}
        names = [layer.name for layer in csdfc.plan("builtin:lenet5").layers if layer.operator == "conv"][:2]
        rows = dict(zip(names, rows.values()))
        self.both("--rows", ",".join(f"{name}={count}" for name, count in rows.items()), rows=rows)
        self.both("--rows", "all", rows="all")

    def test_storage_method_and_seed(self):
        self.both("--storage", "edges", storage="edges")
        self.both("--seed", "7", "--prefer", "memory", seed=7, prefer="memory")

    def test_budgets(self):
        self.both("--budget", "50", budget=50)
        csdfc.plan("builtin:lenet5", budget="200ms")
        with self.refused(TypeError, "budget=5.0", "unit"):
            csdfc.plan("builtin:lenet5", budget=5.0)

    def test_strategies_left_out(self):
        self.both("--without", "evolution,joint", without=["evolution", "joint"])
        self.both("--without", "chains", without="chains")

    def test_devices_and_threads(self):
        plan = self.both("--device", "jetson-tx2", "--threads", "2", device="jetson-tx2", threads=2)
        self.assertEqual((plan["device"]["name"], plan["threads"]), ("jetson-tx2", 2))

    def test_primitives(self):
        self.both("--primitives", "fixed", "--max-primitive-error", "0.001", primitives="fixed", max_primitive_error=0.001)

    def test_layers_are_kept_apart(self):
        model = self.builtin("resnet8")
        fused, apart = csdfc.plan(model), csdfc.plan(model, no_fuse=True)
        self.assertLess(len(fused.layers), len(apart.layers))
        self.assertEqual(json.loads(csdfc.plan(model, no_fuse=False).to_json()), json.loads(fused.to_json()))

    def test_bytes_of_images(self):
        plan = csdfc.plan("builtin:resnet8", input="u8:hwc:rgb,mean=127.5,scale=0.0078125")
        self.assertEqual(plan.inputs, {"input": ((32, 32, 3), "uint8")})
        planes = csdfc.plan("builtin:resnet8", input={"input": "u8:chw"})
        self.assertEqual(planes.inputs, {"input": ((3, 32, 32), "uint8")})

    def test_several_models_take_turns(self):
        plan = csdfc.plan(["builtin:lenet5", "builtin:resnet8"])
        self.assertEqual(list(plan.fps), ["lenet5", "resnet8"])
        self.assertEqual(set(plan.inputs), {"lenet5/input", "resnet8/input"})

    def test_a_front_and_the_plan_that_is_picked(self):
        whole = csdfc.plan("builtin:resnet8", pareto=True)
        self.assertGreater(len(whole.front), 1)
        totals = [point.total for point in whole.front]
        self.assertEqual(totals, sorted(totals, reverse=True))
        whole.save(self.folder / "front.json")
        picked = csdfc.plan("builtin:resnet8", from_front=self.folder / "front.json", pick=2)
        self.assertEqual(picked.total, totals[1])

    def test_nothing_given_is_nothing_asked(self):
        self.assertEqual(csdfc.plan("builtin:lenet5", mem=None, fps=None).to_json(), csdfc.plan("builtin:lenet5").to_json())

    def test_options_that_do_not_exist(self):
        for function, arguments in [(csdfc.plan, ["builtin:lenet5"]), (csdfc.quantize, ["builtin:lenet5", "a.onnx"]),
                                    (csdfc.profile, ["builtin:lenet5"])]:
            with self.refused(TypeError, function.__name__, "memory"):
                function(*arguments, memory="1MB")

    def test_values_of_other_types(self):
        for options in [{"mem": True}, {"mem": [1]}, {"fps": object()}, {"no_fuse": "yes"}, {"shape": {"x": [None]}}]:
            with self.refused(TypeError, next(iter(options))):
                csdfc.plan("builtin:lenet5", **options)

    def test_values_that_the_command_refuses(self):
        for options in [{"precision": "int4"}, {"fps": -1}, {"latency": 0.0}, {"latency": float("nan")}, {"pick": 1},
                        {"threads": -1}, {"weights": "there"}, {"device": "no-such-device"}, {"mem": -5}, {"budget": "-5s"}, {"input": "u8:yuv"}, {"input": {"other": "u8"}}]:
            with self.refused(csdfc.Error):
                csdfc.plan("builtin:lenet5", **options)

    def test_options_that_contradict_each_other(self):
        with self.refused(csdfc.Error, "cannot be used with"):
            csdfc.plan("builtin:lenet5", mem="1MB", ram="6kB@dtcm")

    def test_every_option_of_the_signature_is_taken(self):
        for function, arguments in [(csdfc.plan, ["builtin:lenet5"]), (csdfc.quantize, ["builtin:lenet5", "a.onnx"]),
                                    (csdfc.profile, ["builtin:lenet5"])]:
            for name, parameter in inspect.signature(function).parameters.items():
                if parameter.kind is parameter.KEYWORD_ONLY:
                    # A value of another type is noticed only if the option is known.
                    with self.refused(TypeError, f"{name} does not take"):
                        function(*arguments, **{name: object()})

    def test_a_model_may_look_like_an_option(self):
        with self.refused(csdfc.Error, "--mem"):
            csdfc.plan("--mem")


class Saved(InFolder):
    def test_a_plan_is_loaded_as_it_was_saved(self):
        plan = csdfc.plan(self.builtin("lenet5"), mem="min")
        for file in ["plan.json", "plan.ron"]:
            plan.save(self.folder / file)
            loaded = csdfc.Plan.load(self.folder / file)
            self.assertEqual((loaded.total, loaded.arena, repr(loaded)), (plan.total, plan.arena, repr(plan)))
            loaded.check()

    def test_a_loaded_plan_finds_its_model_from_another_folder(self):
        (self.folder / "deep").mkdir()
        csdfc.plan(self.builtin("lenet5")).save(self.folder / "deep" / "plan.json")
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.folder / "deep")
        plan = csdfc.Plan.load("plan.json")
        os.chdir(here)
        self.assertEqual(len(plan.run(random(1, 1, 32, 32))), 1)

    def test_what_is_no_plan_is_refused(self):
        with self.refused(csdfc.Error, "no.json"):
            csdfc.Plan.load(self.folder / "no.json")
        (self.folder / "other.json").write_text("{}")
        with self.refused(csdfc.Error, "other.json", "csdfc plan -o"):
            csdfc.Plan.load(self.folder / "other.json")

    def test_a_plan_cannot_be_saved_where_there_is_no_folder(self):
        with self.refused(csdfc.Error, "cannot write"):
            csdfc.plan("builtin:lenet5").save(self.folder / "no" / "plan.json")

    def test_a_plan_that_was_tampered_with_is_refused(self):
        plan = csdfc.plan("builtin:resnet8", mem="min")
        data = json.loads(plan.to_json())
        data["memory"]["arena"] -= 64
        (self.folder / "plan.json").write_text(json.dumps(data))
        tampered = csdfc.Plan.load(self.folder / "plan.json")
        with self.refused(csdfc.Error, "refused"):
            tampered.check()
        for what in [tampered.memory_map, tampered._repr_html_, lambda: tampered.run(random(1, 3, 32, 32))]:
            with self.refused(csdfc.Error):
                what()

    def test_a_plan_of_another_model_is_refused(self):
        model = self.builtin("lenet5")
        plan = csdfc.plan(model)
        model.write_bytes(self.builtin("resnet8").read_bytes())
        with self.refused(csdfc.Error, "lenet5.onnx"):
            plan.check()

    def test_the_page_is_that_of_the_command(self):
        csdfc.plan("builtin:lenet5").save(self.folder / "plan.json")
        csdfc.Plan.load(self.folder / "plan.json").report(self.folder / "ours.html")
        self.assertEqual(command("report", "plan.json", "-o", "theirs.html", folder=self.folder).returncode, 0)
        self.assertEqual((self.folder / "ours.html").read_text(), (self.folder / "theirs.html").read_text())

    def test_the_crate_is_that_of_the_command(self):
        plan = csdfc.plan("builtin:lenet5")
        plan.save(self.folder / "plan.json")
        plan.emit(self.folder / "ours", crate_name="digits")
        done = command("emit", "plan.json", "-o", "theirs", "--crate-name", "digits", folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        files = lambda folder: {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        self.assertEqual(files(self.folder / "ours"), files(self.folder / "theirs"))

    def test_a_crate_does_not_replace_what_others_wrote(self):
        (self.folder / "crate").mkdir()
        (self.folder / "crate" / "Cargo.toml").write_text("mine")
        with self.refused(csdfc.Error, "not as csdfc wrote it"):
            csdfc.plan("builtin:lenet5").emit(self.folder / "crate")
        self.assertEqual((self.folder / "crate" / "Cargo.toml").read_text(), "mine")


class Looks(InFolder):
    def test_layers_have_shapes_and_firings(self):
        plan = csdfc.plan("builtin:resnet8", mem="min")
        data = json.loads(plan.to_json())
        theirs = [layer for layer in data["cnns"][0]["layers"] if layer["op"] != "input"]
        self.assertEqual([layer.name for layer in plan.layers], [layer["name"] for layer in theirs])
        for layer, their in zip(plan.layers, theirs):
            self.assertEqual((layer.operator, layer.primitive, layer.cnn), (their["op"], their["primitive"], "resnet8"))
            self.assertEqual((layer.firings, layer.rows_per_firing), (their["firings"], their["rows_per_firing"]))
            self.assertIsInstance(layer.shape, tuple)
            self.assertGreater(layer.seconds, 0)
        self.assertEqual(plan.layers[0].shape, (1, 16, 32, 32))
        self.assertIn(plan.layers[0].name, repr(plan.layers[0]))

    def test_no_two_places_in_use_at_once_overlap(self):
        plan = csdfc.plan("builtin:lenet5", rows="none", storage="edges")
        places = plan.memory_map()
        self.assertGreater(len(places), 3)
        for i, place in enumerate(places):
            self.assertLessEqual(place.offsets[0] + place.bytes, plan.arena)
            for other in places[:i]:
                together = any(a < d and c < b for a, b in place.lives for c, d in other.lives)
                apart = (place.offsets[0] + place.bytes <= other.offsets[0]
                         or other.offsets[0] + other.bytes <= place.offsets[0])
                self.assertTrue(apart or not together, (place, other))

    def test_the_map_is_a_picture_with_a_block_for_each_life(self):
        plan = csdfc.plan("builtin:resnet8", mem="min")
        picture = xml.etree.ElementTree.fromstring(plan._repr_html_())
        titles = [element.text for element in picture.iter() if element.tag.endswith("title")]
        self.assertEqual(len(titles), sum(len(place.lives) for place in plan.memory_map()))
        for place in plan.memory_map():
            self.assertTrue(any(title.startswith(f"{place.name}: {place.kind}") for title in titles), place)

    def test_the_front_is_that_of_the_file(self):
        plan = csdfc.plan("builtin:resnet8", pareto=True)
        theirs = json.loads(plan.to_json())["pareto"]
        self.assertEqual([(point.total, point.fps) for point in plan.front],
                         [(point["memory"], point["fps"]) for point in theirs])
        self.assertIn("fps", repr(plan.front[0]))

    def test_a_board_holds_code_and_stack(self):
        plan = csdfc.plan("builtin:lenet5", device="stm32f4", ram="sram")
        board = plan.board
        self.assertEqual(board.target, "thumbv7em-none-eabihf")
        self.assertGreaterEqual(board.parameters, plan.parameters)
        self.assertTrue(0 < board.small_code < board.code and 0 < board.stack < 10_000)
        self.assertEqual(board.not_counted, [])
        self.assertIn(str(board.code), repr(board))
        self.assertIsNone(csdfc.plan("builtin:lenet5").board)

    def test_plans_do_not_change(self):
        plan = csdfc.plan("builtin:lenet5")
        for what, name in [(plan, "total"), (plan.layers[0], "name"), (plan.memory_map()[0], "bytes")]:
            with self.assertRaises(AttributeError):
                setattr(what, name, 0)


class Runs(InFolder):
    @classmethod
    def setUpClass(cls):
        cls.plan = csdfc.plan("builtin:resnet8", mem="min")

    def test_outputs_are_those_of_the_command(self):
        image = random(1, 3, 32, 32)
        np.save(self.folder / "image.npy", image)
        self.plan.save(self.folder / "plan.json")
        done = command("run", "plan.json", "--input", "image.npy", "--output", "out", folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        [(name, output)] = self.plan.run(image).items()
        np.testing.assert_array_equal(output, np.load(self.folder / "out" / f"{name}.npy"))

    def test_an_input_by_name_or_alone(self):
        image = random(1, 3, 32, 32)
        for inputs in [image, {"input": image}]:
            [output] = self.plan.run(inputs).values()
            self.assertEqual((output.shape, output.dtype), ((1, 10), np.float32))

    def test_arrays_need_not_lie_side_by_side(self):
        image = random(1, 32, 32, 3)
        [strided] = self.plan.run(image.transpose(0, 3, 1, 2)).values()
        [copied] = self.plan.run(np.ascontiguousarray(image.transpose(0, 3, 1, 2))).values()
        np.testing.assert_array_equal(strided, copied)
        wide = random(1, 3, 32, 64)
        [strided] = self.plan.run(wide[..., ::2]).values()
        [copied] = self.plan.run(wide[..., ::2].copy()).values()
        np.testing.assert_array_equal(strided, copied)

    def test_read_only_arrays_are_taken_and_stay(self):
        image = random(1, 3, 32, 32)
        before = image.copy()
        image.flags.writeable = False
        self.plan.run(image)
        np.testing.assert_array_equal(image, before)

    def test_outputs_belong_to_the_caller(self):
        [first] = self.plan.run(random(1, 3, 32, 32)).values()
        kept = first.copy()
        [second] = self.plan.run(random(1, 3, 32, 32, seed=2)).values()
        np.testing.assert_array_equal(first, kept)
        self.assertFalse(np.array_equal(first, second))
        first[:] = 0

    def test_halves_are_widened(self):
        image = random(1, 3, 32, 32).astype(np.float16)
        np.testing.assert_array_equal(*[next(iter(self.plan.run(x).values())) for x in [image, image.astype(np.float32)]])

    def test_channels_last_are_named(self):
        with self.refused(csdfc.Error, "input input", "[1, 32, 32, 3]", "[1, 3, 32, 32]", "NHWC"):
            self.plan.run(random(1, 32, 32, 3))

    def test_another_shape_names_both(self):
        for shape in [(3, 32, 32), (1, 3, 31, 32), (2, 3, 32, 32), (0,), ()]:
            with self.refused(csdfc.Error, "input input", str(list(shape)), "[1, 3, 32, 32]"):
                self.plan.run(random(*shape))

    def test_another_element_type_says_what_to_do(self):
        for kind in ["float64", "int32", "complex64", "bool", "uint16"]:
            with self.refused(csdfc.Error, "input input", kind, 'x.astype("float32")'):
                self.plan.run(np.zeros((1, 3, 32, 32), kind))
        with self.refused(csdfc.Error, "input input", "uint8", "float32"):
            self.plan.run(np.zeros((1, 3, 32, 32), "uint8"))

    def test_what_is_no_array_is_refused(self):
        for inputs in [None, "image", [1.0, 2.0], [object()], 7]:
            with self.refused(csdfc.Error, "input input"):
                self.plan.run(inputs)

    def test_names_of_inputs(self):
        with self.refused(csdfc.Error, "has no input `image`", "input"):
            self.plan.run({"image": random(1, 3, 32, 32)})
        with self.refused(csdfc.Error, "input input", "is not given", "float32", "[1, 3, 32, 32]"):
            self.plan.run({})

    def test_the_cnn_of_several(self):
        plan = csdfc.plan(["builtin:lenet5", "builtin:resnet8"])
        with self.refused(csdfc.Error, "cnn=", "lenet5, resnet8"):
            plan.run(random(1, 3, 32, 32))
        with self.refused(csdfc.Error, "no CNN `resnet9`", "resnet8"):
            plan.run(random(1, 3, 32, 32), cnn="resnet9")
        image = random(1, 3, 32, 32)
        [ours], [alone] = plan.run(image, cnn="resnet8").values(), self.plan.run(image).values()
        for given in [{"resnet8/input": image}, image.tolist()]:
            [again] = plan.run(given, cnn="resnet8").values()
            np.testing.assert_array_equal(again, ours)
        np.testing.assert_allclose(ours, alone, rtol=1e-4, atol=1e-5)

    def test_all_plans_compute_the_same(self):
        image = random(1, 3, 32, 32)
        [expected] = csdfc.plan("builtin:resnet8", rows="none").run(image).values()
        for options in [{"mem": "min"}, {"rows": "all"}, {"storage": "edges"}, {"weights": "streamed"}]:
            [output] = csdfc.plan("builtin:resnet8", **options).run(image).values()
            np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)

    def test_bytes_of_images_are_what_floats_would_be(self):
        pixels = np.random.default_rng(3).integers(0, 256, (32, 32, 3), np.uint8)
        floats = ((pixels.astype(np.float32) - 127.5) * 0.0078125).transpose(2, 0, 1)[None]
        [expected] = self.plan.run(np.ascontiguousarray(floats)).values()
        plan = csdfc.plan("builtin:resnet8", mem="min", input="u8:hwc:rgb,mean=127.5,scale=0.0078125")
        for given in [pixels, pixels[None]]:
            [output] = plan.run(given).values()
            np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)
        with self.refused(csdfc.Error, "float32", "uint8"):
            plan.run(pixels.astype(np.float32))

    def test_threads_run_the_same_plan(self):
        images = [random(1, 3, 32, 32, seed=seed) for seed in range(6)]
        expected = [next(iter(self.plan.run(image).values())) for image in images]
        found = [None] * len(images)

        def run(number):
            found[number] = next(iter(self.plan.run(images[number]).values()))

        threads = [threading.Thread(target=run, args=(number,)) for number in range(len(images))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for ours, theirs in zip(found, expected):
            np.testing.assert_array_equal(ours, theirs)

    def test_python_goes_on_while_frames_run(self):
        counted, ends = [0], threading.Event()

        def count():
            while not ends.is_set():
                counted[0] += 1
                time.sleep(0.0005)

        thread = threading.Thread(target=count)
        thread.start()
        plan = csdfc.plan("builtin:mobilenet_v1")
        before = counted[0]
        plan.run(random(1, 3, 224, 224))
        after = counted[0]
        ends.set()
        thread.join()
        self.assertGreater(after, before)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_a_forked_process_runs_too(self):
        image = random(1, 3, 32, 32)
        [expected] = self.plan.run(image).values()
        script = ("import os, sys, numpy, csdfc\n"
                  "plan = csdfc.plan('builtin:lenet5'); x = numpy.zeros((1, 1, 32, 32), 'float32'); plan.run(x)\n"
                  "child = os.fork()\n"
                  "if child == 0:\n    plan.run(x); os._exit(7)\n"
                  "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))")
        done = subprocess.run([sys.executable, "-c", script], timeout=120, check=False)
        self.assertEqual(done.returncode, 7)

    def test_a_model_that_is_gone_is_named(self):
        model = self.builtin("lenet5")
        plan = csdfc.plan(model)
        model.unlink()
        for _ in range(2):
            with self.refused(csdfc.Error, "lenet5.onnx"):
                plan.run(random(1, 1, 32, 32))


@unittest.skipIf(onnx is None, "onnx and onnxruntime are not installed")
class BesideOnnxRuntime(InFolder):
    """Outputs of `Plan.run` are those of ONNX Runtime."""

    def beside(self, model, inputs, tolerance=1e-4, **options):
        options_of_session = onnxruntime.SessionOptions()
        # On processors without VNNI, what it fuses of 8-bit integers saturates: other numbers than the model's.
        options_of_session.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(str(model), options_of_session, providers=["CPUExecutionProvider"])
        theirs = dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs)))
        ours = csdfc.plan(model, **options).run(inputs)
        self.assertEqual(set(ours), set(theirs))
        for name, expected in theirs.items():
            self.assertEqual((ours[name].shape, ours[name].dtype), (expected.shape, expected.dtype))
            largest = max(float(np.abs(expected).max()), 1e-30)
            self.assertLessEqual(float(np.abs(ours[name].astype(np.float64) - expected).max()) / largest, tolerance)

    def made(self, nodes, inputs, outputs, weights=(), opset=17):
        """A model of these nodes. Inputs and outputs are names and shapes."""
        value = lambda name, shape, kind=TensorProto.FLOAT: helper.make_tensor_value_info(name, kind, shape)
        weights = [onnx.numpy_helper.from_array(array, name) for name, array in dict(weights).items()]
        graph = helper.make_graph(nodes, "g", [value(*given) for given in inputs], [value(*given) for given in outputs], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        file = self.folder / "made.onnx"
        onnx.save(model, file)
        return file

    def test_a_classifier(self):
        self.beside(self.builtin("lenet5"), {"input": random(1, 1, 32, 32)})

    def test_a_residual_network(self):
        self.beside(self.builtin("resnet8"), {"input": random(1, 3, 32, 32)}, mem="min")

    def test_in_halves(self):
        self.beside(self.builtin("resnet8"), {"input": random(1, 3, 32, 32)}, tolerance=2e-2, precision="half")

    def test_weights_that_are_streamed(self):
        self.beside(self.builtin("resnet8"), {"input": random(1, 3, 32, 32)}, weights="streamed")

    def test_several_inputs_and_outputs(self):
        nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Relu", ["sum"], ["positive"]),
                 helper.make_node("Mul", ["a", "positive"], ["product"])]
        shape = [1, 4, 6, 5]
        model = self.made(nodes, [("a", shape), ("b", shape)], [("positive", shape), ("product", shape)])
        self.beside(model, {"a": random(*shape), "b": random(*shape, seed=2)})

    def test_an_open_batch_and_open_sizes(self):
        nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])]
        model = self.made(nodes, [("x", ["n", 3, "height", "width"])], [("y", ["n", 4, "height", "width"])],
                          {"w": random(4, 3, 3, 3)})
        image = random(1, 3, 9, 7)
        for shape in [[1, 3, 9, 7], {"x": [1, 3, 9, 7]}, {"height": 9, "width": 7}, "1,3,9,7"]:
            self.beside(model, {"x": image}, shape=shape)
        with self.refused(csdfc.Error, "x"):
            csdfc.plan(model)

    def test_a_scalar_that_becomes_a_constant(self):
        nodes = [helper.make_node("Mul", ["x", "gain"], ["y"])]
        model = self.made(nodes, [("x", [1, 2, 3, 4]), ("gain", [])], [("y", [1, 2, 3, 4])])
        image = random(1, 2, 3, 4)
        [output] = csdfc.plan(model, value={"gain": 2.5}).run(image).values()
        np.testing.assert_allclose(output, 2.5 * image, rtol=1e-6)

    def test_indices(self):
        nodes = [helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=1)]
        model = self.made(nodes, [("x", [1, 5, 4, 3])], [("y", [1, 1, 4, 3], TensorProto.INT64)])
        self.beside(model, {"x": random(1, 5, 4, 3)})

    def test_a_state_goes_on_from_frame_to_frame(self):
        nodes = [helper.make_node("Add", ["x", "h_in"], ["h_out"]), helper.make_node("Relu", ["h_out"], ["y"])]
        shape = [1, 2, 3, 4]
        model = self.made(nodes, [("x", shape), ("h_in", shape)], [("y", shape), ("h_out", shape)])
        plan = csdfc.plan(model, state={"h_out": "h_in"})
        frames = [random(*shape, seed=seed) for seed in range(3)]
        for _ in range(2):
            kept = np.zeros(shape, np.float32)
            for frame in frames:
                kept = kept + frame
                np.testing.assert_allclose(plan.run(frame)["y"], np.maximum(kept, 0), rtol=1e-6)
            plan.reset()

    def test_hops_of_a_stream(self):
        nodes = [helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 1])]
        model = self.made(nodes, [("x", [1, 2, 12, 5])], [("y", [1, 3, 10, 5])], {"w": random(3, 2, 3, 1)})
        sound = random(1, 2, 12, 5)
        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        [expected] = session.run(None, {"x": sound})
        plan = csdfc.plan(model, stream={"x": 2}, hop=4)
        self.assertEqual(plan.inputs, {"x": ((1, 2, 4, 5), "float32")})
        for _ in range(2):
            hops = [plan.run(sound[:, :, at : at + 4])["y"] for at in range(0, 12, 4)]
            np.testing.assert_allclose(np.concatenate(hops, axis=2), expected, rtol=1e-4, atol=1e-5)
            plan.reset()

    def test_a_quantized_model(self):
        model = self.builtin("resnet8")
        np.save(self.folder / "frame.npy", random(1, 3, 32, 32))
        quantized = csdfc.quantize(model, self.folder / "int8.onnx", calibrate=self.folder / "frame.npy")
        self.assertEqual((quantized.path, quantized.frames), (self.folder / "int8.onnx", 1))
        self.beside(quantized.path, {"input": random(1, 3, 32, 32)})
        self.assertEqual(set(quantized.outputs), {"output"})
        self.assertLess(quantized.outputs["output"], 0.2)
        self.assertGreater(len(quantized.layers), 5)


class Quantizes(InFolder):
    def test_the_model_is_that_of_the_command(self):
        csdfc.quantize("builtin:lenet5", self.folder / "ours.onnx", random=2, ranges="mse", seed=3)
        done = command("quantize", "builtin:lenet5", "-o", "theirs.onnx", "--random", "2", "--ranges", "mse", "--seed", "3",
                       folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "ours.onnx").read_bytes(), (self.folder / "theirs.onnx").read_bytes())

    def test_frames_are_needed_and_must_fit(self):
        with self.refused(csdfc.Error, "--calibrate"):
            csdfc.quantize("builtin:lenet5", self.folder / "a.onnx")
        np.save(self.folder / "frame.npy", random(1, 3, 32, 32))
        with self.refused(csdfc.Error):
            csdfc.quantize("builtin:lenet5", self.folder / "a.onnx", calibrate=[self.folder / "frame.npy"])
        self.assertFalse((self.folder / "a.onnx").exists())


class Profiles(InFolder):
    def test_this_machine_is_measured(self):
        file = self.folder / "here.ron"
        found = csdfc.profile("builtin:lenet5", device_out=file, rounds=1)
        self.assertEqual((found, type(found)), (file, type(pathlib.Path())))
        plan = csdfc.plan("builtin:lenet5", device=file)
        self.assertEqual(json.loads(plan.to_json())["device"]["name"], "here")

    def test_an_option_that_is_wrong(self):
        with self.refused(csdfc.Error, "--rounds"):
            csdfc.profile("builtin:lenet5", device_out=self.folder / "here.ron", rounds=0)


@unittest.skipUnless(hasattr(signal, "setitimer"), "no timers")
class Interrupts(InFolder):
    def interrupted(self, work, after=0.7):
        """How long work goes on after Ctrl-C, and what it raises."""
        def press():
            nonlocal pressed
            pressed = time.monotonic()
            os.kill(os.getpid(), signal.SIGINT)

        pressed = None
        timer = threading.Timer(after, press)
        timer.start()
        try:
            with self.assertRaises(KeyboardInterrupt) as raised:
                work()
            ended = time.monotonic()
        finally:
            timer.cancel()
        self.assertIsNotNone(pressed)
        return ended - pressed, raised.exception

    def test_planning_ends_with_the_best_plan_so_far(self):
        took, error = self.interrupted(lambda: csdfc.plan("builtin:mobilenet_v2", mem="min", budget="60s"))
        self.assertLess(took, 1.0)
        if error.plan is not None:
            self.assertIn("mobilenet_v2", repr(error.plan))
        self.assertEqual(csdfc.plan("builtin:lenet5", mem="min").application, "lenet5")

    def test_choosing_precisions_ends(self):
        took, _ = self.interrupted(lambda: csdfc.plan("builtin:mobilenet_v2", precision="auto", mem="9MB", budget="60s"))
        self.assertLess(took, 1.0)

    def test_quantizing_ends_and_writes_nothing(self):
        file = self.folder / "a.onnx"
        took, _ = self.interrupted(lambda: csdfc.quantize("builtin:mobilenet_v2", file, random=50))
        self.assertLess(took, 1.0)
        self.assertFalse(file.exists())

    def test_a_handler_of_the_caller_is_called(self):
        class Asked(Exception):
            pass

        def handler(_number, _frame):
            raise Asked

        before = signal.signal(signal.SIGALRM, handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with self.assertRaises(Asked):
            csdfc.plan("builtin:mobilenet_v2", mem="min", budget="60s")


class Stubs(unittest.TestCase):
    """The stub names what the module has. `tests/wheel` also compares their signatures."""

    @classmethod
    def setUpClass(cls):
        cls.tree = ast.parse((ROOT / "compiler/python/csdfc.pyi").read_text())

    def test_the_module_has_the_names_of_the_stub(self):
        defined = {node.name for node in self.tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        named = {name for name in dir(csdfc) if not name.startswith("_")} - {"csdfc"}
        self.assertEqual(named, defined)

    def test_classes_have_the_names_of_the_stub(self):
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and not issubclass(getattr(csdfc, node.name), Exception):
                defined = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
                has = {name for name in vars(getattr(csdfc, node.name)) if not name.startswith("__")}
                self.assertEqual(has, defined, node.name)

    def test_functions_take_the_arguments_of_the_stub(self):
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef):
                defined = [argument.arg for argument in node.args.args + node.args.kwonlyargs]
                self.assertEqual(list(inspect.signature(getattr(csdfc, node.name)).parameters), defined, node.name)

    def test_everything_in_the_stub_has_a_text(self):
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
                self.assertTrue(ast.get_docstring(node), node.name)

    def test_help_shows_the_texts_of_the_stub(self):
        self.assertEqual(inspect.getdoc(csdfc), ast.get_docstring(self.tree))
        for node in self.tree.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                found = getattr(csdfc, node.name)
                self.assertEqual(inspect.cleandoc(found.__doc__), ast.get_docstring(node), node.name)
                for item in node.body:
                    if isinstance(item, ast.FunctionDef) and not item.name.startswith("_"):
                        text = getattr(found, item.name).__doc__
                        self.assertEqual(inspect.cleandoc(text), ast.get_docstring(item), f"{node.name}.{item.name}")

    def test_nothing_public_lacks_a_text(self):
        public = [getattr(csdfc, name) for name in dir(csdfc) if not name.startswith("_") and name != "csdfc"]
        self.assertGreater(len(public), 10)
        for item in public:
            self.assertTrue(item.__doc__, item)
            for name in vars(item) if isinstance(item, type) else []:
                if not name.startswith("_"):
                    self.assertTrue(getattr(item, name).__doc__, f"{item.__name__}.{name}")


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
        tests.addTests(doctest.DocFileSuite(str(ROOT / text), module_relative=False, setUp=in_folder, tearDown=back))
    return tests


def in_folder(example):
    """The files that a text writes lie in a folder of its own."""
    example.globs["_here"], example.globs["_folder"] = os.getcwd(), tempfile.TemporaryDirectory()
    os.chdir(example.globs["_folder"].name)


def back(example):
    os.chdir(example.globs["_here"])
    example.globs["_folder"].cleanup()


if __name__ == "__main__":
    unittest.main()
