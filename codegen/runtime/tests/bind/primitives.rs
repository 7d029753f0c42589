//! Every primitive of a convolution against its definition, but those by transformed tiles, which are less exact.
//!
//! Each runs in at least [`SCENARIOS`] random scenarios: rows in any division, rings that hold what a firing reads and
//! nothing else, a workspace of exactly the stated bytes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use csdfc_kernels::Isa;
use csdfc_kernels::kernel::Context;
use csdfc_kernels::span::SpanMut;
use csdfc_kernels::workers::Workers;
use csdfc_plan::format::{Element, Format, Layout};
use csdfc_plan::operator::{Conv, Function, Operator, Pre};
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::{Operand, Primitive, Site, Slots, Source, Target, bind};
use csdfc_runtime::bytes::{Bytes, LINE};
use csdfc_runtime::weights;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// Scenarios of each primitive.
const SCENARIOS: usize = 200;

/// Elements before and after the memory, which nothing may touch.
const GUARD: usize = 16;

/// A convolution, its operand and parameters, and the expected output.
struct Scenario {
    conv: Conv,
    operator: Operator,
    input: Shape,
    output: Shape,
    /// `[C, H, W]`.
    image: Vec<f32>,
    parameters: Vec<Vec<f32>>,
    /// `[M, H', W']`: sums, and what their terms are in size.
    sums: Vec<[f64; 2]>,
}

/// The activations that scenarios have, by their definitions.
fn activated(function: Option<&Function>, x: f32) -> f32 {
    match function {
        None => x,
        Some(Function::Relu) => x.max(0.0),
        Some(&Function::Clip { min, max }) => x.max(min.unwrap_or(x)).min(max.unwrap_or(f32::INFINITY)),
        Some(Function::LeakyRelu { alpha }) => {
            if x < 0.0 {
                alpha * x
            } else {
                x
            }
        }
        other => panic!("{other:?}"),
    }
}

fn floats(random: &mut ChaCha8Rng, count: usize) -> Vec<f32> {
    (0..count).map(|_| random.random_range(-1.0..1.0)).collect()
}

/// Room for this many floats, all NaN.
fn not_a_number(floats: usize) -> Bytes {
    let mut bytes = Bytes::zeros(4 * floats).unwrap();
    bytes.fill(0xff);
    bytes
}

impl Scenario {
    fn draw(random: &mut ChaCha8Rng) -> Self {
        let up_to = |random: &mut ChaCha8Rng, most: usize| match random.random_range(0..4) {
            0 => 1,
            1 => random.random_range(1..=most),
            _ => random.random_range(1..=9),
        };
        let (channels, filters) = (up_to(random, 20), up_to(random, 40));
        let is_pointwise = random.random_range(0..4) == 0;
        let mut kernel = [(); 2].map(|()| random.random_range(1..6usize));
        let (mut stride, mut dilation) = ([1usize; 2], [1usize; 2]);
        if random.random_range(0..2) == 0 {
            stride = stride.map(|_| random.random_range(1..5));
        }
        if random.random_range(0..3) == 0 {
            dilation = dilation.map(|_| random.random_range(1..4));
        }
        if random.random_range(0..3) == 0 {
            kernel = [[3, 3], [5, 5], [3, 1]][random.random_range(0..3)];
        }
        let mut reach = [0, 1].map(|axis| (kernel[axis] - 1) * dilation[axis] + 1);
        let mut pads = [0, 1, 0, 1].map(|axis: usize| random.random_range(0..=reach[axis]));
        if is_pointwise {
            (kernel, stride, reach, pads) = ([1, 1], [1, 1], [1, 1], [0; 4]);
        }
        let size = [0, 1].map(|axis| {
            let least = reach[axis].saturating_sub(pads[axis] + pads[axis + 2]).max(1);
            least + random.random_range(0..[9, 20][axis])
        });
        let activation = [
            None,
            Some(Function::Relu),
            Some(Function::Clip { min: Some(-0.5), max: Some(0.75) }),
            Some(Function::LeakyRelu { alpha: 0.1 }),
        ];
        let activation = activation[random.random_range(0..4)].clone();
        let bias = random.random_range(0..2) == 0;
        let (groups, pre, residual) = (1, None, false);
        let conv = Conv { filters, kernel, stride, dilation, pads, groups, bias, pre, residual, activation };
        Scenario::new(random, conv, channels, size)
    }

    fn new(random: &mut ChaCha8Rng, conv: Conv, channels: usize, size: [usize; 2]) -> Self {
        let Conv { filters, kernel, stride, dilation, pads, bias, .. } = conv;
        let made = [0, 1].map(|axis| {
            let reach = (kernel[axis] - 1) * dilation[axis] + 1;
            (size[axis] + pads[axis] + pads[axis + 2] - reach) / stride[axis] + 1
        });
        let image = floats(random, channels * size[0] * size[1]);
        let weights = floats(random, filters * channels * kernel[0] * kernel[1]);
        let biases = if bias { floats(random, filters) } else { vec![] };
        let mut sums = Vec::new();
        for (m, y, x) in indices([filters, made[0], made[1]]) {
            let start = biases.get(m).map_or(0.0, |bias| f64::from(*bias));
            let mut sum = [start, start.abs()];
            for (c, ky, kx) in indices([channels, kernel[0], kernel[1]]) {
                let row = (y * stride[0] + ky * dilation[0]).wrapping_sub(pads[0]);
                let column = (x * stride[1] + kx * dilation[1]).wrapping_sub(pads[1]);
                if row < size[0] && column < size[1] {
                    let weight = weights[((m * channels + c) * kernel[0] + ky) * kernel[1] + kx];
                    let term = f64::from(image[(c * size[0] + row) * size[1] + column]) * f64::from(weight);
                    sum = [sum[0] + term, sum[1] + term.abs()];
                }
            }
            sums.push(sum);
        }
        let mut parameters = vec![weights];
        parameters.extend(bias.then_some(biases));
        Scenario {
            operator: Operator::Conv(conv.clone()),
            conv,
            input: Shape::image(channels, size[0], size[1]),
            output: Shape::image(filters, made[0], made[1]),
            image,
            parameters,
            sums,
        }
    }
}

fn indices([a, b, c]: [usize; 3]) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..a).flat_map(move |i| (0..b).flat_map(move |j| (0..c).map(move |k| (i, j, k))))
}

/// Rows of a tensor in this layout, as it lies.
fn rows_of(image: &[f32], shape: &Shape, layout: Layout) -> Vec<Vec<f32>> {
    let [_, c, h, w] = shape.dims[..] else { panic!("no image") };
    let at = |c: usize, y: usize, x: usize| image[(c * h + y) * w + x];
    match layout {
        Layout::Chw => vec![image.to_vec()],
        Layout::Hcw => (0..h).map(|y| indices([1, c, w]).map(|(_, c, x)| at(c, y, x)).collect()).collect(),
        Layout::Hwc => (0..h).map(|y| indices([1, w, c]).map(|(_, x, c)| at(c, y, x)).collect()).collect(),
    }
}

/// A primitive with a scenario among rings of these rows.
struct Bench<'a> {
    primitive: Primitive,
    scenario: &'a Scenario,
    /// Rows of the operand as they lie.
    input: Vec<Vec<f32>>,
    isa: Isa,
    workers: RefCell<Workers>,
}

impl<'a> Bench<'a> {
    fn new(primitive: Primitive, scenario: &'a Scenario, isa: Isa) -> Self {
        let input = rows_of(&scenario.image, &scenario.input, primitive.layouts()[0]);
        Bench { primitive, scenario, input, isa, workers: RefCell::default() }
    }

    /// Elements of the workspace, of all workers together.
    fn workspace_len(&self) -> usize {
        let Scenario { operator, input, output, .. } = self.scenario;
        let bytes = self.primitive.workspace_bytes(operator, &[input], output);
        (bytes / 4) as usize * self.workers.borrow().count()
    }

    /// Rows of the operand that rows `y` of the output's tensor are made from.
    fn read(&self, y: &std::ops::Range<usize>) -> std::ops::Range<usize> {
        let (conv, rows) = (&self.scenario.conv, self.input.len());
        if self.primitive.layouts().contains(&Layout::Chw) {
            return 0..rows;
        }
        let reach = (conv.kernel[0] - 1) * conv.dilation[0] + 1;
        let start = (y.start * conv.stride[0]).saturating_sub(conv.pads[0]).min(rows);
        let end = ((y.end - 1) * conv.stride[0] + reach).saturating_sub(conv.pads[0]).min(rows);
        start..end.max(start)
    }

    /// The rows of the output as they lie, made `rows` at a time with a workspace of `workspace_len` elements.
    fn make(&self, random: &mut ChaCha8Rng, rows: usize, workspace_len: usize) -> Vec<f32> {
        let [reads, writes] = self.primitive.layouts();
        let Scenario { operator, input, output, parameters, .. } = self.scenario;
        let format = Format { layout: writes, element: Element::F32 };
        let (height, row) = (format.rows(output), format.row_elements(output));
        let mut made = Vec::new();
        for start in (0..height).step_by(rows) {
            let y = start..height.min(start + rows);
            let read = self.read(&y);
            let rings = [read.len().max(1), y.len()].map(|rows| rows + random.random_range(0..2));
            // A tensor of one row has a ring of one.
            let rings = [
                if reads == Layout::Chw { 1 } else { rings[0] },
                if writes == Layout::Chw { 1 } else { rings[1] },
            ];
            let first = rings.map(|rows| random.random_range(0..rows));
            let width = self.input[0].len();
            let mut ring = not_a_number(rings[0] * width);
            let slots: &mut [f32] = SpanMut::of_bytes(&mut ring).all();
            for y in read {
                slots[(first[0] + y) % rings[0] * width..][..width].copy_from_slice(&self.input[y]);
            }
            let operand =
                Operand { own: input, seen: input, layout: reads, quantization: None, ring_rows: rings[0] };
            let (inputs, elements) = (vec![operand], self.primitive.elements());
            let site = Site {
                operator,
                inputs,
                output,
                layout: writes,
                elements,
                quantization: None,
                ring_rows: rings[1],
            };
            let call = bind(self.primitive, &site).unwrap();
            let last = call.constants.last().unwrap().range.end;
            let elements = parameters.iter().map(|parameter| parameter.len() as u64).sum();
            let stored = self.primitive.stored_bytes(operator, &[input], elements);
            assert_eq!(stored, last.next_multiple_of(LINE) as u64, "{:?}", self.primitive);
            let mut weights = not_a_number(last / 4);
            weights::pack(&call, &|index| Ok(parameters[index].as_slice().into()), &mut weights).unwrap();
            let (mut target, mut workspace) =
                (not_a_number(rings[1] * row + 2 * GUARD), vec![f32::NAN; workspace_len + 2 * GUARD]);
            let mut workers = self.workers.borrow_mut();
            let mut context = Context {
                isa: self.isa,
                workers: Some(&mut workers),
                workspace: &mut workspace[GUARD..][..workspace_len],
            };
            let source = Source { data: &ring, slots: Slots::Ring(first[0]) };
            let bytes = 4 * GUARD..4 * (GUARD + rings[1] * row);
            let to = Target { data: &mut target[bytes], slots: Slots::Ring(first[1]) };
            call.fire(&mut context, y.clone(), &[source], &weights, to);
            let target: &[f32] = SpanMut::of_bytes(&mut target).all();
            for (memory, what) in [(target, "output"), (&workspace, "workspace")] {
                let guards = memory[..GUARD].iter().chain(&memory[memory.len() - GUARD..]);
                assert!(guards.into_iter().all(|x| x.is_nan()), "{:?} leaves its {what}", self.primitive);
            }
            let mut others = vec![true; rings[1]];
            for y in y {
                let slot = (first[1] + y) % rings[1];
                others[slot] = false;
                made.extend_from_slice(&target[GUARD + slot * row..][..row]);
            }
            for slot in (0..rings[1]).filter(|slot| others[*slot]) {
                let left = &target[GUARD + slot * row..][..row];
                assert!(left.iter().all(|x| x.is_nan()), "{:?} writes other rows", self.primitive);
            }
        }
        made
    }

    /// Checks that the output is near the definition's.
    fn compare(&self, made: &[f32]) {
        let Scenario { conv, output, sums, .. } = self.scenario;
        let column = |part: usize| sums.iter().map(|sum| sum[part] as f32).collect::<Vec<f32>>();
        let lie = |image: &[f32]| rows_of(image, output, self.primitive.layouts()[1]).concat();
        let (want, size) = (lie(&column(0)), lie(&column(1)));
        assert_eq!(made.len(), want.len());
        // Transforms spread the errors of the largest sums.
        let is_transformed = self.primitive.name().starts_with("fft");
        let largest = if is_transformed { size.iter().fold(0.0, |a: f32, b| a.max(*b)) } else { 0.0 };
        for ((got, want), size) in made.iter().zip(&want).zip(&size) {
            let size = size.max(largest);
            let want = activated(conv.activation.as_ref(), *want);
            let error = f64::from((got - want).abs());
            assert!(
                error <= TOLERANCE * f64::from(size),
                "{:?} by {}: {got}, not {want}, of terms of {size}, in {conv:?} of {}",
                self.primitive,
                self.isa.name(),
                self.scenario.input
            );
        }
    }
}

/// Primitives of 32-bit floats. Those of 16 bits share their kernels, whose own tests compare the two.
fn of_floats() -> impl Iterator<Item = Primitive> {
    Primitive::all()
        .filter(|primitive| primitive.elements() == [Element::F32; 2] && primitive.scaled_weight().is_none())
}

/// How near to its definition a primitive computes, relative to the sum of the sizes of all products.
const TOLERANCE: f64 = 1e-5;

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn every_primitive_computes_its_definition() {
    let mut random = ChaCha8Rng::seed_from_u64(15);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut drawn = 0;
    while drawn < SCENARIOS || counts.values().any(|count| *count < SCENARIOS) {
        drawn += 1;
        assert!(drawn < 40 * SCENARIOS, "{counts:?}");
        let scenario = Scenario::draw(&mut random);
        let Scenario { operator, input, output, .. } = &scenario;
        for primitive in of_floats().filter(|primitive| primitive.computes(operator, &[input])) {
            if primitive.name().starts_with("winograd") {
                continue;
            }
            let count = counts.entry(primitive.name()).or_default();
            *count += 1;
            if *count > SCENARIOS {
                continue;
            }
            let isa = if drawn % 2 == 0 { Isa::detect() } else { Isa::PORTABLE };
            let bench = Bench::new(primitive, &scenario, isa);
            let len = bench.workspace_len();
            let format = Format { layout: primitive.layouts()[1], element: Element::F32 };
            let rows = format.rows(output);
            let whole = bench.make(&mut random, rows, len);
            bench.compare(&whole);
            for part in [1, 2, 3, rows] {
                if part < rows {
                    let parts = bench.make(&mut random, part, len);
                    assert_eq!(bits(&parts), bits(&whole), "{primitive:?} by {part} rows of {operator:?}");
                }
            }
            if len > 0 && *count <= 3 {
                let short = AssertUnwindSafe(|| bench.make(&mut random, rows, len - 1));
                assert!(catch_unwind(short).is_err(), "{primitive:?} in less than its workspace");
            }
        }
    }
}

/// Workers share what a firing makes, each with a workspace of its own.
#[test]
fn workers_change_no_byte() {
    let mut random = ChaCha8Rng::seed_from_u64(16);
    for (channels, filters, kernel, size) in
        [(8, 13, [3, 3], [41, 26]), (5, 18, [1, 1], [23, 37]), (90, 70, [3, 3], [3, 9])]
    {
        let (stride, dilation, pads, groups) = ([1, 1], [1, 1], [kernel[0] / 2; 4], 1);
        let (bias, pre, residual, activation) = (true, None, false, Some(Function::Relu));
        let conv = Conv { filters, kernel, stride, dilation, pads, groups, bias, pre, residual, activation };
        let scenario = Scenario::new(&mut random, conv, channels, size);
        let Scenario { operator, input, .. } = &scenario;
        for primitive in of_floats().filter(|primitive| primitive.computes(operator, &[input])) {
            let bench = Bench::new(primitive, &scenario, Isa::detect());
            let layout = primitive.layouts()[1];
            let rows = Format { layout, element: Element::F32 }.rows(&scenario.output);
            let alone = bench.make(&mut random, rows, bench.workspace_len());
            for count in 2..4 {
                bench.workers.replace(Workers::new(count));
                let shared = bench.make(&mut random, rows, bench.workspace_len());
                assert_eq!(bits(&shared), bits(&alone), "{primitive:?} by {count} workers");
            }
        }
    }
}

/// The families generic over layouts.
const FAMILIES: [&str; 10] =
    ["direct", "im2col", "im2row", "kn2row", "kn2col", "mec", "fft1d", "fft2d", "winograd", "pointwise"];

/// All members of all families; `im2row-strip-hwc-hwc` is a primitive of its own.
fn members() -> impl Iterator<Item = Primitive> {
    let family = |name: &'static str| name.split('-').next().filter(|_| name != "im2row-strip-hwc-hwc");
    Primitive::all()
        .filter(move |primitive| family(primitive.name()).is_some_and(|of| FAMILIES.contains(&of)))
}

/// Convolutions that families generic over layouts do not compute, and convolutions that only some of them compute.
#[test]
fn other_scenarios_are_refused() {
    let image = Shape::image(6, 9, 8);
    let (kernel, stride, dilation, pads) = ([3, 3], [1, 1], [1, 1], [1; 4]);
    let (filters, groups, bias, pre, residual, activation) = (6, 1, true, None, false, None);
    let plain = Conv { filters, kernel, stride, dilation, pads, groups, bias, pre, residual, activation };
    let slopes = Some(Function::PRelu { slope: vec![1] });
    let computes = |conv: &Conv, inputs: &[&Shape]| -> Vec<&str> {
        let operator = Operator::Conv(conv.clone());
        members().filter(|member| member.computes(&operator, inputs)).map(Primitive::name).collect()
    };
    let all = computes(&plain, &[&image]);
    for other in [
        Conv { groups: 2, ..plain.clone() },
        Conv { pre: Some(Pre { activation: Some(Function::Relu), ..Pre::default() }), ..plain.clone() },
        Conv { activation: slopes, ..plain.clone() },
    ] {
        assert_eq!(computes(&other, &[&image]), [""; 0], "{other:?}");
    }
    assert_eq!(computes(&Conv { residual: true, ..plain.clone() }, &[&image; 2]), [""; 0]);
    assert_eq!(computes(&plain, &[&image; 2]), [""; 0]);
    assert_eq!(computes(&plain, &[&Shape::new([6, 9, 8])]), [""; 0]);
    // A kernel that does not fit into the image.
    assert_eq!(computes(&Conv { kernel: [12, 3], ..plain.clone() }, &[&image]), [""; 0]);
    let families = |names: &[&str]| -> Vec<String> {
        let mut families: Vec<String> =
            names.iter().filter_map(|name| Some(name.split_once('-')?.0.to_owned())).collect();
        families.dedup();
        families
    };
    assert_eq!(families(&all), FAMILIES[..9]);
    let strided = computes(&Conv { stride: [2, 1], ..plain.clone() }, &[&image]);
    assert_eq!(families(&strided), ["direct", "im2col", "im2row", "mec", "fft1d", "fft2d"]);
    let dilated = computes(&Conv { dilation: [2, 1], ..plain.clone() }, &[&image]);
    assert_eq!(families(&dilated), ["direct", "im2col", "im2row", "kn2row", "kn2col", "fft1d", "fft2d"]);
    let pointwise = computes(&Conv { kernel: [1, 1], pads: [0; 4], ..plain.clone() }, &[&image]);
    assert_eq!(families(&pointwise).last().unwrap(), FAMILIES[9]);
    let by_tiles = members().filter(|member| member.name().starts_with("winograd")).count();
    assert_eq!((pointwise.len(), by_tiles), (members().count() - 29, 29));
    let wide = computes(&plain, &[&Shape::image(6, 9, 101)]);
    assert_eq!(all.len() - wide.len(), 6, "solution A has no more than 100 columns");
    let large = computes(&Conv { filters: 1000, ..plain.clone() }, &[&image]);
    assert_eq!(all.len() - large.len(), 6, "nor more elements than the lowered matrix");
    // 16 rows of 16 points: f = filters · (1 + 6 · 16 · 18) + 16.
    let spectra = |filters| {
        let names = computes(&Conv { filters, ..plain.clone() }, &[&image]);
        names.into_iter().filter(|name| name.starts_with("fft2d")).count()
    };
    assert_eq!([spectra(2425), spectra(2426)], [6, 0], "spectra of planes are few");
}
