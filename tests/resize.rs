//! Resize to the nearest pixel, compared with its definition in fractions: planner, checker and kernels, for all small
//! sizes.

#![expect(clippy::expect_used, reason = "a panic is how a test fails")]

use csdfc_input::app::{Partition, RowsChoice};
use csdfc_network::operators::{RowAccess, row_access};
use csdfc_network::{Network, NetworkOutput};
use csdfc_plan::operator::{Coordinates, Operator, Ratio, Resize, ResizeMode, Rounding, Scale};
use csdfc_plan::plan::StorageModel;
use csdfc_plan::shape::Shape;
use csdfc_runtime::ParameterError;
use csdfc_runtime::run::{Data, Runner, Value};
use csdfc_tests::{generate, plan};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

const COORDINATES: [Coordinates; 4] = [
    Coordinates::HalfPixel,
    Coordinates::Asymmetric,
    Coordinates::AlignCorners,
    Coordinates::PytorchHalfPixel,
];
const ROUNDINGS: [Rounding; 4] =
    [Rounding::RoundPreferFloor, Rounding::RoundPreferCeil, Rounding::Floor, Rounding::Ceil];

/// A number as numerator and denominator, which is above zero.
#[derive(Debug, Clone, Copy)]
struct Fraction(i128, i128);

impl Fraction {
    fn whole(number: usize) -> Self {
        Fraction(number as i128, 1)
    }

    fn plus(self, other: Fraction) -> Self {
        Fraction(self.0 * other.1 + other.0 * self.1, self.1 * other.1)
    }

    fn times(self, other: Fraction) -> Self {
        Fraction(self.0 * other.0, self.1 * other.1)
    }

    /// Divided by a number above zero.
    fn by(self, other: Fraction) -> Self {
        Fraction(self.0 * other.1, self.1 * other.0)
    }

    fn is_at_most(self, other: Fraction) -> bool {
        self.0 * other.1 <= other.0 * self.1
    }
}

/// The input coordinate, among `size`, of output coordinate `y` of `made`, by ONNX's definition.
fn source(coordinates: Coordinates, y: usize, size: usize, made: usize) -> Fraction {
    let half = Fraction(1, 2);
    let scale = Fraction(made as i128, size as i128);
    let centre = || Fraction::whole(y).plus(half).by(scale).plus(Fraction(-1, 2));
    match coordinates {
        Coordinates::PytorchHalfPixel | Coordinates::AlignCorners if made == 1 => Fraction(0, 1),
        Coordinates::HalfPixel | Coordinates::PytorchHalfPixel => centre(),
        Coordinates::AlignCorners => {
            Fraction::whole(y).times(Fraction::whole(size - 1)).by(Fraction::whole(made - 1))
        }
        Coordinates::Asymmetric => Fraction::whole(y).by(scale),
        _ => unreachable!("only these are compared"),
    }
}

/// The whole number that a coordinate is rounded to, kept inside.
fn pixel(source: Fraction, rounding: Rounding, size: usize) -> usize {
    let floor = source.0.div_euclid(source.1);
    let part = source.plus(Fraction(-floor, 1));
    let up = match rounding {
        Rounding::RoundPreferFloor => !part.is_at_most(Fraction(1, 2)),
        Rounding::RoundPreferCeil => Fraction(1, 2).is_at_most(part),
        Rounding::Floor => false,
        Rounding::Ceil => part.0 != 0,
    };
    (floor + i128::from(up)).clamp(0, size as i128 - 1) as usize
}

/// A network that resizes an image of height and width `size` in these ways.
fn network(size: [usize; 2], ways: Vec<Resize>) -> Network {
    let mut network = Network::default();
    let x = generate::input(&mut network, Shape::image(1, size[0], size[1]));
    for way in ways {
        let shape = Shape::image(1, way.size[0], way.size[1]);
        let made = generate::add(&mut network, Operator::Resize(way), vec![x.clone()], shape);
        network.outputs.push(NetworkOutput::new(format!("y{}", made.layer.0), made));
    }
    network
}

/// The image whose pixels are their own numbers.
fn numbered(size: [usize; 2]) -> Value {
    let data = (0..size[0] * size[1]).map(|number| number as f32).collect();
    Value { dims: vec![1, 1, size[0], size[1]], data: Data::F32(data) }
}

/// Plans, checks and runs the ways by rows. Returns the number of pixels of the kernels, and of rows of the planner,
/// that differ from `expected(way, axis, coordinate)`.
fn wrong(
    size: [usize; 2],
    ways: Vec<Resize>,
    expected: impl Fn(&Resize, usize, usize) -> usize,
) -> (usize, usize) {
    let network = network(size, ways.clone());
    let name = "r".to_owned();
    let layers = network.ids().collect();
    let partition = Partition { name: name.clone(), layers, processor: "cpu".into(), schedule: None };
    let cnn = generate::of_network(&name, network, vec![partition]);
    // The checker must accept the plan: then its rates equal the planner's.
    let plan = plan(&generate::of_cnns(vec![cnn], vec![vec![name]], StorageModel::Tensors, RowsChoice::All));
    let none = |_: usize, _: usize, parameter| Err(ParameterError::Missing { parameter });
    let mut runner = Runner::poisoned(&plan, &none).expect("a plan that runs");
    let outputs = runner.infer(0, &[numbered(size)]).expect("outputs");
    let (mut pixels, mut rows) = (0, 0);
    for (way, output) in ways.iter().zip(outputs) {
        let along = |axis: usize| (0..way.size[axis]).map(move |at| (axis, at));
        let [ys, xs] =
            [0, 1].map(|axis| along(axis).map(|(axis, at)| expected(way, axis, at)).collect::<Vec<usize>>());
        let Data::F32(data) = &output.data else { unreachable!("the input is of floats") };
        let all = ys.iter().flat_map(|y| xs.iter().map(move |x| (y * size[1] + x) as f32));
        assert_eq!(data.len(), ys.len() * xs.len());
        pixels += data.iter().zip(all).filter(|(got, want)| **got != *want).count();
        let (x, y) = (Shape::image(1, size[0], size[1]), Shape::image(1, way.size[0], way.size[1]));
        match row_access(&Operator::Resize(way.clone()), &x, std::slice::from_ref(&x), &y, 0) {
            RowAccess::Rows(table) => {
                rows += table.iter().zip(&ys).filter(|(got, want)| **got != (**want..**want + 1)).count();
            }
            other => unreachable!("a resize reads rows, not {other:?}"),
        }
    }
    (pixels, rows)
}

#[test]
fn all_small_sizes_are_exact() {
    const MAX_SIZE: usize = 64;
    let mut cases = 0;
    for size in 1..=MAX_SIZE {
        for coordinates in COORDINATES {
            let way = |made: usize, rounding| {
                // Rows in one order of sizes and columns in the other, so that both see all.
                let made = [made, MAX_SIZE + 1 - made];
                let ratio = |over: usize| Scale::Ratio(Ratio { over: over as u32, under: size as u32 });
                let mode = ResizeMode::Nearest { rounding };
                Resize { mode, coordinates, scales: made.map(ratio), size: made }
            };
            for rounding in ROUNDINGS {
                let ways: Vec<Resize> = (1..=MAX_SIZE).map(|made| way(made, rounding)).collect();
                cases += ways.len();
                let expected = |way: &Resize, axis: usize, at: usize| {
                    pixel(source(coordinates, at, size, way.size[axis]), rounding, size)
                };
                let (pixels, rows) = wrong([size, size], ways, expected);
                assert_eq!((pixels, rows), (0, 0), "of {size}, {coordinates:?}, {rounding:?}");
            }
        }
    }
    assert_eq!(cases, MAX_SIZE * MAX_SIZE * 16);
}

/// Coordinates as the standard's reference implementation computes them from a scale that a model states, and the pixel
/// that it takes: in 64-bit floats, the size of the output not rounded.
fn reference(coordinates: Coordinates, rounding: Rounding, scale: f64, at: usize, size: usize) -> usize {
    let (x, input_width) = (at as f64, size as f64);
    let output_width = scale * input_width;
    let x_ori = match coordinates {
        Coordinates::AlignCorners if output_width == 1.0 => 0.0,
        Coordinates::AlignCorners => x * (input_width - 1.0) / (output_width - 1.0),
        Coordinates::Asymmetric => x / scale,
        Coordinates::PytorchHalfPixel if output_width == 1.0 => -0.5,
        Coordinates::PytorchHalfPixel | Coordinates::HalfPixel => (x + 0.5) / scale - 0.5,
        _ => unreachable!("only these are compared"),
    };
    // A whole coordinate counts as the right one of its two neighbours, and the right one is taken.
    let whole = x_ori == x_ori.floor();
    let ratio = x_ori - x_ori.floor();
    let take_next = !whole
        && match rounding {
            Rounding::RoundPreferFloor => ratio > 0.5,
            Rounding::RoundPreferCeil => ratio >= 0.5,
            Rounding::Floor => false,
            Rounding::Ceil => true,
        };
    (x_ori.floor() + f64::from(u8::from(take_next))).clamp(0.0, input_width - 1.0) as usize
}

#[test]
fn scales_are_taken_as_the_reference_takes_them() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let simple = [0.25, 0.5, 0.6, 0.75, 0.8, 1.2, 1.25, 1.5, 1.7, 2.0, 2.5, 3.0, 4.0, 19.0 / 14.0, 5.0 / 3.0];
    for size in 1..=40usize {
        let made = |scale: f32| (f64::from(scale) * size as f64) as usize;
        let drawn: Vec<f32> = (0..10).map(|_| random.random_range(0.03..4.0)).collect();
        // The floats next to ratios, from which ties are just missed.
        let near = (0..10).map(|_| random.random_range(1..64) as f32 / size as f32);
        let scales: Vec<f32> =
            simple.into_iter().chain(near).chain(drawn).filter(|scale| made(*scale) > 0).collect();
        for coordinates in COORDINATES {
            for rounding in ROUNDINGS {
                let way = |&scale: &f32| Resize {
                    mode: ResizeMode::Nearest { rounding },
                    coordinates,
                    scales: [Scale::Float(scale); 2],
                    size: [made(scale); 2],
                };
                let expected = |way: &Resize, axis: usize, at: usize| match way.scales[axis] {
                    Scale::Float(scale) if scale != 1.0 => {
                        reference(coordinates, rounding, scale.into(), at, size)
                    }
                    _ => at,
                };
                let (pixels, rows) = wrong([size, size], scales.iter().map(way).collect(), expected);
                assert_eq!((pixels, rows), (0, 0), "of {size}, {coordinates:?}, {rounding:?}");
            }
        }
    }
}
