"""A trained classifier that csdfc quantizes answers as it did with floats, and as often as one that ONNX Runtime quantizes.

The classifier says of an image of a text line whether it is upright or turned by half a circle. The lines are rendered: half of
them are words, half random letters and digits, of which some look nearly the same when they are turned.
"""

import re
import shutil
import string

import numpy as np
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantType, quantize_static
from PIL import Image, ImageDraw, ImageFilter, ImageFont

import models
import quantized
from csdfc import Failed
from written import call

CLASSIFIER = "ocr_cls"
# Lines that are classified, half of them turned, and others to calibrate with.
LINES, CALIBRATION = 1000, 64
# The least share of lines that have the class that they have with floats.
AGREEMENT = 0.98
# The least share that floats classify rightly: what is rendered must be what the classifier was trained for.
RIGHT = 0.9
HEIGHT, WIDTH = 48, 192
WORDS = """the of and to in is for that on with as are this by from be at not have or which one all were can more time when
their about out people only new some other would first after state between school however through system because number
during
water general without public street market invoice total amount order date station hospital university""".split()


class Lines(CalibrationDataReader):
    """Frames for ONNX Runtime."""

    def __init__(self, name, lines):
        self.frames = iter([{name: line} for line in lines])

    def get_next(self):
        return next(self.frames, None)


def run(tool, summary, folder, only, seed):
    file = folder / f"{CLASSIFIER}.onnx"
    if not re.search(only, CLASSIFIER):
        return
    if not file.exists():
        print(f"skipped: agreement of a quantized classifier: there is no {file}")
        return
    summary.check("trained", CLASSIFIER, lambda: [f"{CLASSIFIER}: {agreement(tool, file, seed)}"])


def agreement(tool, file, seed):
    """How many lines have the class that they have with floats, in words."""
    lines = [line(seed, 0, number) for number in range(LINES)]
    calibration = [line(seed, 1, number) for number in range(CALIBRATION)]
    floats = scores(models.start(file), lines)
    right = kept(floats, np.eye(2)[np.arange(LINES) % 2])
    if right < RIGHT:
        raise Failed(f"with floats only {right:.1%} of the lines are classified rightly")
    own = by_csdfc(tool, file, lines, calibration)
    others = by_runtime(tool, file, lines, calibration)
    said = [f"{who} {kept(found, floats):.1%} (error {error(found, floats):.1e})"
            for who, found in {"csdfc": own, **others}.items()]
    said = f"the share of {LINES} lines that keep their class, by quantizer: {'; '.join(said)}; {right:.1%} are right with floats"
    best = max(kept(found, floats) for found in others.values())
    least = min(error(found, floats) for found in others.values())
    if kept(own, floats) < max(AGREEMENT, best) or error(own, floats) > least:
        raise Failed(said)
    return said


def by_csdfc(tool, file, lines, calibration):
    """The scores of lines where csdfc quantizes and runs."""
    made, plan, folder = tool.work / "trained.onnx", tool.work / "trained.json", tool.work / "trained"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for number, frame in enumerate(calibration):
        np.save(folder / f"{number:03}.npy", frame)
    call(tool, "quantize", file, "-o", made, "--scheme", "int8", "--ranges", "percentile", "--calibrate", folder)
    tool.plan(made, ["--rows", "none"], plan)
    session = models.start(made)
    feed, output = session.get_inputs()[0].name, session.get_outputs()[0].name
    return np.concatenate([tool.run(plan, {feed: frame}, [output], folder)[0] for frame in lines])


def by_runtime(tool, file, lines, calibration):
    """The scores of lines where ONNX Runtime quantizes and runs, by the way in which it does so."""
    source, made = quantized.prepared(tool, file), tool.work / "trained.runtime.onnx"
    feed = models.start(source).get_inputs()[0].name
    found = {}
    for method in (CalibrationMethod.MinMax, CalibrationMethod.Percentile):
        # Weights of 7 bits: with 8, its sums saturate on processors without instructions for them.
        for reduce_range in (False, True):
            quantize_static(str(source), str(made), Lines(feed, calibration), activation_type=QuantType.QUInt8,
                            weight_type=QuantType.QInt8, per_channel=True, reduce_range=reduce_range,
                            calibrate_method=method)
            name = f"ONNX Runtime, {method.name}, {7 if reduce_range else 8} bits"
            found[name] = scores(models.start(made), lines)
    return found


def scores(session, lines):
    feed = session.get_inputs()[0].name
    return np.concatenate([session.run(None, {feed: frame})[0] for frame in lines])


def kept(one, other):
    """The share of lines with the same class."""
    return float(np.mean(one.argmax(1) == other.argmax(1)))


def error(found, floats):
    """The root of the mean square of what changed, as a share of that of the scores."""
    return float(np.sqrt(np.square(found - floats).sum() / np.square(floats).sum()))


def line(seed, stream, number):
    """A text line as the classifier takes it: from -1 to 1, as high as the image, zeros to its right. Every other is turned."""
    random = np.random.default_rng([seed, stream, number])
    part = word if number // 2 % 2 else letters
    text = " ".join(part(random) for _ in range(random.integers(2, 5)))
    # The font is Pillow's own, laid out without a library that may be missing.
    font = ImageFont.load_default(float(random.integers(22, 40)))
    font = font.font_variant(layout_engine=ImageFont.Layout.BASIC)
    left, top, right, bottom = font.getbbox(text)
    margins = random.integers(1, 8, 4)
    background = random.integers(0, 256, 3)
    color = (background + random.integers(90, 167, 3)) % 256
    size = (int(right - left + margins[0] + margins[1]), int(bottom - top + margins[2] + margins[3]))
    image = Image.new("RGB", size, tuple(map(int, background)))
    place = (int(margins[0] - left), int(margins[2] - top))
    ImageDraw.Draw(image).text(place, text, font=font, fill=tuple(map(int, color)))
    if number % 2:
        image = image.rotate(180)
    image = image.filter(ImageFilter.GaussianBlur(float(random.uniform(0, 1))))
    width = min(WIDTH, round(HEIGHT * image.width / image.height))
    pixels = np.asarray(image.resize((width, HEIGHT), Image.Resampling.BILINEAR), np.float32)
    pixels = np.clip(pixels + random.normal(0, random.uniform(0, 8), pixels.shape), 0, 255)
    frame = np.zeros((1, 3, HEIGHT, WIDTH), np.float32)
    # Blue comes first.
    frame[0, :, :, :width] = (pixels / 127.5 - 1).transpose(2, 0, 1)[::-1]
    return frame


def word(random):
    if random.random() < 0.2:
        return str(random.integers(10, 100_000))
    chosen = WORDS[random.integers(len(WORDS))]
    return [chosen, chosen, chosen.capitalize(), chosen.upper()][random.integers(4)]


def letters(random):
    return "".join(random.choice(list(string.ascii_letters + string.digits), random.integers(1, 9)))
