//! Images and tensors in rings, and firings compared with definitions.

use core::ops::Range;

use csdfc_kernels::arch::Isa;
use csdfc_kernels::elements::{Dims, Elements, ElementsMut, Index};
use csdfc_kernels::kernel::Context;
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
use csdfc_kernels::span::{Span, SpanMut};

use crate::testing::Random;

/// A firing by the instruction set that this is compiled for.
pub fn alone() -> Context<'static> {
    Context::alone(Isa::compiled())
}

/// Rows of pixels of channels.
pub struct Image {
    pub size: [usize; 3],
    pub data: Vec<f32>,
}

impl Image {
    pub fn random(random: &mut Random, size: [usize; 3]) -> Self {
        Image { size, data: random.floats(size.iter().product()) }
    }

    pub fn at(&self, y: usize, x: usize, c: usize) -> f64 {
        f64::from(self.data[(y * self.size[1] + x) * self.size[2] + c])
    }

    /// The element that broadcasts to `[y, x, c]`.
    pub fn broadcast(&self, at: [usize; 3]) -> f64 {
        let [y, x, c] = [0, 1, 2].map(|i| if self.size[i] == 1 { 0 } else { at[i] });
        self.at(y, x, c)
    }

    /// A ring that holds these rows and no other, NaN wherever it holds none.
    fn ring(&self, random: &mut Random, rows: Range<usize>, spare: usize) -> (Vec<f32>, RowShape) {
        let [height, width, channels] = self.size;
        let (mut data, shape) = empty_ring(random, self.size, rows.len().max(1) + spare);
        assert!(rows.end <= height);
        for y in rows {
            let stride = width * channels;
            data[shape.start(y)..][..stride].copy_from_slice(&self.data[y * stride..][..stride]);
        }
        (data, shape)
    }
}

/// A ring of NaNs.
fn empty_ring(random: &mut Random, [h, w, c]: [usize; 3], ring_rows: usize) -> (Vec<f32>, RowShape) {
    let mut shape = RowShape::dense(h, w, c, ring_rows);
    shape.first = random.within(0, ring_rows - 1);
    (vec![f32::NAN; ring_rows * shape.row_stride()], shape)
}

/// One operator: its operands, the size of its output, and which rows of an operand an output row reads.
pub struct Case<'a, N, W> {
    pub what: &'a str,
    pub inputs: &'a [&'a Image],
    pub output: [usize; 3],
    pub need: N,
    pub want: W,
}

impl<N: Fn(usize, usize) -> Range<usize>, W: Fn(usize, usize, usize) -> f64> Case<'_, N, W> {
    /// By rows: 1, 2, 3 and all at a time, from rings that hold nothing but what the rows need. The bits are the same.
    pub fn by_rows(&self, random: &mut Random, run: impl Fn(Range<usize>, &[Rows<'_>], &mut RowsMut<'_>)) {
        self.splits(random, |random, y, output| {
            let rings: Vec<_> = self
                .inputs
                .iter()
                .enumerate()
                .map(|(i, input)| {
                    let needs = || y.clone().map(|y| (self.need)(i, y)).filter(|rows| !rows.is_empty());
                    let start = needs().map(|rows| rows.start).min().unwrap_or(0);
                    let end = needs().map(|rows| rows.end).max().unwrap_or(0);
                    input.ring(random, start..end, 0)
                })
                .collect();
            let rows: Vec<_> =
                rings.iter().map(|(data, shape)| Rows { data: Span::new(data), shape: *shape }).collect();
            run(y, &rows, output);
        });
    }

    /// Through elements: the operands whole, the output by rows.
    pub fn by_elements(
        &self,
        random: &mut Random,
        run: impl Fn(Range<usize>, &[Elements<'_>], &mut ElementsMut<'_>),
    ) {
        self.splits(random, |random, y, output| {
            let rings: Vec<_> = self
                .inputs
                .iter()
                .map(|input| {
                    let spare = random.within(0, 1);
                    input.ring(random, 0..input.size[0], spare)
                })
                .collect();
            let elements: Vec<_> = rings
                .iter()
                .map(|(data, shape)| Elements::channels_first(Rows { data: Span::new(data), shape: *shape }))
                .collect();
            let rows = RowsMut { data: output.data.reborrow(), shape: output.shape };
            run(y, &elements, &mut ElementsMut::channels_first(rows));
        });
    }

    fn splits(&self, random: &mut Random, mut run: impl FnMut(&mut Random, Range<usize>, &mut RowsMut<'_>)) {
        let [height, width, channels] = self.output;
        let mut first: Option<Vec<u32>> = None;
        for rows in [1, 2, 3, height] {
            let mut result = Vec::new();
            for start in (0..height).step_by(rows) {
                let y = start..height.min(start + rows);
                let (mut data, shape) = empty_ring(random, self.output, y.len());
                run(random, y.clone(), &mut RowsMut { data: SpanMut::new(&mut data), shape });
                for y in y {
                    result.extend_from_slice(&data[shape.start(y)..][..shape.row_stride()]);
                }
            }
            for (i, got) in result.iter().enumerate() {
                let (y, x, c) = (i / channels / width, i / channels % width, i % channels);
                near(*got, (self.want)(y, x, c), || format!("{}: [{y}, {x}, {c}]", self.what));
            }
            let bits = result.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits, *first.get_or_insert_with(|| bits.clone()), "{}: {rows} rows", self.what);
        }
    }
}

/// Panics unless `got` is `want` but for rounding.
pub fn near(got: f32, want: f64, what: impl Fn() -> std::string::String) {
    let exact = want.is_infinite() && f64::from(got) == want;
    let close = (f64::from(got) - want).abs() <= 2e-5 * want.abs().max(1.0);
    assert!(exact || close, "{}: {got}, not {want}", what());
}

/// A tensor of some shape, stored dense or as an image that is seen in that shape.
pub struct Tensor {
    pub dims: Vec<usize>,
    /// In the row-major order of `dims`.
    pub values: Vec<f32>,
    image: Option<[usize; 3]>,
}

impl Tensor {
    /// Random dimensions of this rank, with at least one element.
    pub fn random(random: &mut Random, rank: usize) -> Self {
        let dims: Vec<usize> = (0..rank).map(|_| random.within(1, 4)).collect();
        let elements: usize = dims.iter().product();
        let divisor = |n: usize, random: &mut Random| {
            let all: Vec<usize> = (1..=n).filter(|d| n.is_multiple_of(*d)).collect();
            *random.pick(&all)
        };
        let image = (random.within(0, 1) == 1).then(|| {
            let c = divisor(elements, random);
            let h = divisor(elements / c, random);
            [h, elements / c / h, c]
        });
        Tensor { values: random.floats(elements), dims, image }
    }

    pub fn at(&self, index: &Index) -> f64 {
        f64::from(self.values[Dims::new(&self.dims).linear(index)])
    }

    /// Calls `f` with the tensor as a kernel gets it.
    pub fn with(&self, random: &mut Random, f: impl FnOnce(&Elements<'_>)) {
        let Some(size @ [h, w, c]) = self.image else {
            return f(&Elements::dense(&self.values, &self.dims));
        };
        let mut image = Image { size, data: vec![0.0; self.values.len()] };
        for (i, value) in self.values.iter().enumerate() {
            let (channel, y, x) = (i / w / h, i / w % h, i % w);
            image.data[(y * w + x) * c + channel] = *value;
        }
        let (data, shape) = image.ring(random, 0..h, 0);
        f(&Elements::channels_first(Rows { data: Span::new(&data), shape }).seen_as(&self.dims));
    }
}

/// Checks a kernel that makes a dense tensor of these dimensions.
pub fn check_dense(
    what: &str,
    dims: &[usize],
    run: impl FnOnce(&mut ElementsMut<'_>),
    want: impl Fn(&Index) -> f64,
) {
    let sizes = Dims::new(dims);
    let mut data = vec![f32::NAN; sizes.elements()];
    run(&mut ElementsMut::dense(&mut data, dims));
    for (i, got) in data.iter().enumerate() {
        let index = sizes.index(i);
        near(*got, want(&index), || format!("{what}: {index:?} of {dims:?}"));
    }
}
