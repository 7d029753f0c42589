//! Kernels of bytes against plain definitions: sums of 64 bits, and roundings of exact products.

mod elements;
mod products;

use core::ops::Range;

use csdfc_kernels::arch::Isa;
use csdfc_kernels::elements::{Elements, ElementsMut};
use csdfc_kernels::kernel::{Context, ElementKernel, RowKernel};
use csdfc_kernels::math::round_half_even;
use csdfc_kernels::quantized::Requantize;
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
use csdfc_kernels::share::share_rows;
use csdfc_kernels::workers::Workers;

use crate::testing::{Random, rounds};

/// The nearest integer, of two equally near ones the even one; by its definition, of a number that is no larger than a sum.
fn nearest_even(x: f64) -> i64 {
    let below = x.floor() as i64;
    match (x - x.floor()).partial_cmp(&0.5) {
        Some(core::cmp::Ordering::Less) => below,
        Some(core::cmp::Ordering::Equal) => below + (below & 1),
        _ => below + 1,
    }
}

/// The element that a number becomes.
fn element(x: f64, how: Requantize) -> u8 {
    // As far as no bound is passed, so that it is an integer.
    let q = nearest_even(x.clamp(-1e6, 1e6)) + i64::from(how.zero_point);
    q.clamp(how.low.into(), how.high.into()) as u8
}

/// The element that a sum becomes. In doubles, both the sum and the product of two floats are exact.
fn requantized(sum: i64, multiplier: f32, how: Requantize) -> u8 {
    let wrapped = sum as i32;
    let product = f64::from(wrapped as f64 as f32) * f64::from(multiplier);
    element(f64::from(product as f32), how)
}

fn bytes(random: &mut Random, count: usize) -> Vec<u8> {
    // All values, or only the outermost.
    let is_extreme = random.within(0, 2) == 0;
    (0..count)
        .map(|_| if is_extreme { *random.pick(&[0, 0, 255, 255, 1, 254, 128]) } else { random.next() as u8 })
        .collect()
}

fn how(random: &mut Random) -> Requantize {
    let [low, high] = *random.pick(&[[0, 255], [0, 255], [128, 255], [3, 250], [7, 7]]);
    Requantize { zero_point: *random.pick(&[0, 3, 127, 128, 255]), low, high }
}

/// An image.
#[derive(Clone)]
struct Image {
    size: [usize; 3],
    data: Vec<u8>,
}

impl Image {
    fn random(random: &mut Random, size: [usize; 3]) -> Self {
        Image { size, data: bytes(random, size.iter().product()) }
    }

    fn at(&self, y: usize, x: usize, c: usize) -> u8 {
        self.data[(y * self.size[1] + x) * self.size[2] + c]
    }

    /// Element by element.
    fn of(size: [usize; 3], f: impl Fn(usize, usize, usize) -> u8) -> Self {
        let [height, width, channels] = size;
        let mut data = vec![];
        for y in 0..height {
            for x in 0..width {
                data.extend((0..channels).map(|c| f(y, x, c)));
            }
        }
        Image { size, data }
    }
}

/// Bytes that a ring holds where none have been written, and elements of other types likewise.
trait Cell: Copy + PartialEq + core::fmt::Debug + Send + Sync + 'static {
    fn any(random: &mut Random) -> Self;
}

impl Cell for u8 {
    fn any(random: &mut Random) -> Self {
        random.next() as u8
    }
}

impl Cell for f32 {
    fn any(_: &mut Random) -> Self {
        f32::NAN
    }
}

/// A ring that holds these rows, and anything else.
fn ring<T: Cell>(
    random: &mut Random,
    tensor: &[T],
    [h, w, c]: [usize; 3],
    rows: &Range<usize>,
) -> (Vec<T>, RowShape) {
    let ring_rows = rows.len().max(1) + random.within(0, 1);
    let mut shape = RowShape::dense(h, w, c, ring_rows);
    shape.first = random.within(0, ring_rows - 1);
    let stride = shape.row_stride();
    let mut data: Vec<T> = (0..ring_rows * stride).map(|_| T::any(random)).collect();
    for y in rows.clone() {
        data[shape.start(y)..][..stride].copy_from_slice(&tensor[y * stride..][..stride]);
    }
    (data, shape)
}

/// A kernel's operands, and what it must make of them.
struct Case<'a, I, O> {
    what: &'a dyn Fn() -> String,
    inputs: &'a [(&'a [I], [usize; 3])],
    constants: &'a [(&'a [I], [usize; 3])],
    output: [usize; 3],
    want: &'a [O],
}

impl<I: Cell, O: Cell> Case<'_, I, O> {
    /// By rows, by every instruction set: some at a time, alone and shared among workers, from rings that hold nothing but
    /// what the rows need.
    fn by_rows<K: RowKernel<O, I> + Sync>(
        &self,
        random: &mut Random,
        kernel: &K,
        need: impl Fn(usize, usize) -> Range<usize>,
    ) {
        let height = self.output[0];
        for isa in Isa::all() {
            for (rows, workers) in [(1, 1), (2, 1), (3, 1), (height, 1), (height, 2)] {
                let mut workers = Workers::new(workers);
                let mut made = vec![];
                for start in (0..height).step_by(rows) {
                    let y = start..height.min(start + rows);
                    let rings = self.inputs.iter().enumerate().map(|(i, (data, size))| {
                        let needs = || y.clone().map(|y| need(i, y)).filter(|rows| !rows.is_empty());
                        let start = needs().map(|rows| rows.start).min().unwrap_or(0);
                        let end = needs().map(|rows| rows.end).max().unwrap_or(0);
                        ring(random, data, *size, &(start..end))
                    });
                    let rings: Vec<_> = rings.collect();
                    let operands: Vec<_> = rings
                        .iter()
                        .map(|(data, shape)| Rows { data: data[..].into(), shape: *shape })
                        .collect();
                    let constants: Vec<_> = self
                        .constants
                        .iter()
                        .map(|(data, [h, w, c])| Rows {
                            data: (*data).into(),
                            shape: RowShape::dense(*h, *w, *c, *h),
                        })
                        .collect();
                    let [h, w, c] = self.output;
                    let mut shape = RowShape::dense(h, w, c, y.len());
                    shape.first = random.within(0, y.len() - 1);
                    // With room after it that nothing may write.
                    let len = y.len() * shape.row_stride();
                    let mut data: Vec<O> = (0..len + 32).map(|_| O::any(random)).collect();
                    let after = data[len..].to_vec();
                    let mut output = RowsMut { data: (&mut data[..]).into(), shape };
                    let mut context = Context { isa, workers: Some(&mut workers), workspace: &mut [] };
                    share_rows(kernel, &mut context, y.clone(), &operands, &constants, &mut output);
                    y.for_each(|y| made.extend_from_slice(&data[shape.start(y)..][..shape.row_stride()]));
                    let bits = |x: &[O]| format!("{x:?}");
                    assert_eq!(
                        bits(&data[len..]),
                        bits(&after),
                        "{}: it wrote beyond its rows",
                        (self.what)()
                    );
                }
                let wrong = made.iter().zip(self.want).position(|(got, want)| got != want);
                if let Some(at) = wrong {
                    panic!(
                        "{}, {}, {rows} rows, {} workers: element {at} is {:?}, not {:?}",
                        (self.what)(),
                        isa.name(),
                        workers.count(),
                        made[at],
                        self.want[at]
                    );
                }
                assert_eq!(made.len(), self.want.len());
            }
        }
    }

    /// Element by element, of images that are seen with dimensions `[1, C, H, W]`: stored as such, or as rows of pixels.
    fn by_elements<K: ElementKernel<O, I>>(&self, random: &mut Random, kernel: &K) {
        let height = self.output[0];
        let dims = |[h, w, c]: [usize; 3]| [1, c, h, w];
        for isa in Isa::all() {
            let rings: Vec<_> =
                self.inputs.iter().map(|(data, size)| ring(random, data, *size, &(0..size[0]))).collect();
            let operands: Vec<_> = rings
                .iter()
                .map(|(data, shape)| Elements::channels_first(Rows { data: data[..].into(), shape: *shape }))
                .collect();
            let constants: Vec<_> =
                self.constants.iter().map(|(data, size)| (planes(data, *size), dims(*size))).collect();
            let constants: Vec<_> =
                constants.iter().map(|(data, dims)| Elements::dense(data, dims)).collect();
            let mut made: Vec<O> = self.want.iter().map(|_| O::any(random)).collect();
            let [h, w, c] = self.output;
            for y in 0..height {
                let rows = RowsMut { data: (&mut made[..]).into(), shape: RowShape::dense(h, w, c, h) };
                let output = &mut ElementsMut::channels_first(rows);
                kernel.elements(&mut Context::alone(isa), y..y + 1, &operands, &constants, output);
            }
            assert!(made == self.want, "{}, images", (self.what)());

            let inputs: Vec<_> =
                self.inputs.iter().map(|(data, size)| (planes(data, *size), dims(*size))).collect();
            let operands: Vec<_> = inputs.iter().map(|(data, dims)| Elements::dense(data, dims)).collect();
            let sizes = dims(self.output);
            let output = &mut ElementsMut::dense(&mut made, &sizes);
            kernel.elements(&mut Context::alone(isa), 0..1, &operands, &constants, output);
            assert!(made == planes(self.want, self.output), "{}, dense", (self.what)());
        }
    }
}

/// An image as planes.
fn planes<T: Copy>(data: &[T], [h, w, c]: [usize; 3]) -> Vec<T> {
    (0..c).flat_map(|channel| (0..h * w).map(move |pixel| data[pixel * c + channel])).collect()
}

#[test]
fn sums_become_the_nearest_elements() {
    let mut random = Random(71);
    let check = |sum: i32, multiplier: f32, how: Requantize| {
        let want = requantized(sum.into(), multiplier, how);
        assert_eq!(how.apply(sum, multiplier), want, "{sum} {multiplier:e} {how:?}");
    };
    let all = Requantize { zero_point: 100, low: 0, high: 255 };
    for sum in -2000..2000 {
        // Ties, and the numbers next to them.
        for multiplier in [0.5, 0.25, 0.125, 0.1, 1.0, 1.5, 0.499_999_97, 0.500_000_06, 1.0 / 3.0] {
            check(sum, multiplier, all);
        }
    }
    for _ in rounds(200_000) {
        let how = how(&mut random);
        let sum = (random.next() as i32) >> random.within(0, 31);
        let multiplier = f32::from_bits(random.next() as u32 & 0x7fff_ffff);
        let multiplier = if multiplier.is_finite() { multiplier } else { 0.125 };
        check(sum, multiplier, how);
        check(sum, 64.0 / (sum.unsigned_abs().max(1) as f32), how);
    }
    // Sums that floats do not hold are rounded first.
    for sum in
        [i32::MAX, i32::MIN, (1 << 24) + 1, (1 << 24) + 3, -(1 << 24) - 1, (1 << 25) + 2, (1 << 25) + 6]
    {
        for shift in 15..26 {
            check(sum, 1.0 / (1_u32 << shift) as f32, all);
            check(sum, f32::MAX, all);
            check(sum, f32::MIN_POSITIVE, all);
        }
    }
}

#[test]
fn ties_go_to_the_even_one() {
    let mut random = Random(72);
    for i in -4000..4000 {
        let x = i as f32 / 8.0;
        assert_eq!(f64::from(round_half_even(x)), nearest_even(x.into()) as f64, "{x}");
    }
    for _ in rounds(200_000) {
        let x = f32::from_bits(random.next() as u32);
        if x.abs() < 1e15 {
            assert_eq!(f64::from(round_half_even(x)), nearest_even(x.into()) as f64, "{x:e}");
        } else if !x.is_nan() {
            assert_eq!(round_half_even(x), x);
        }
    }
    assert!(round_half_even(f32::NAN).is_nan());
    assert!(round_half_even(-0.25).is_sign_negative());
}
