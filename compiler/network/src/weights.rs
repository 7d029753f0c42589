//! Weights that are read, or drawn, only when somebody asks for their values.
//!
//! Planning needs only the sizes of parameters, so csdfc plans a model of half a gigabyte without converting one of its
//! floats. Folding a batch norm into a convolution multiplies each filter by a constant. This multiplication, too,
//! waits until the values are read.
//!
//! Two filters, and the factors of a batch norm that was folded into them:
//!
//! ```
//! use csdfc_network::weights::Weights;
//!
//! let filters = Weights::new([2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
//! let folded = filters.scaled(0, &[10.0, 0.5]);
//! assert_eq!(folded.elements(), 6);
//! assert_eq!(folded.values()?, [10.0, 20.0, 30.0, 2.0, 2.5, 3.0]);
//! # Ok::<(), std::io::Error>(())
//! ```

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use csdfc_kernels::half::F16;
use csdfc_plan::format::Quantization;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// A constant fp32 tensor.
#[derive(Debug, Clone)]
pub struct Weights {
    /// Dimensions.
    pub dims: Vec<usize>,
    /// Where the values are.
    pub source: WeightSource,
    /// Factors still to be applied, one for each index along a dimension.
    pub scale: Option<Scale>,
}

/// Where the values of [`Weights`] are.
#[derive(Debug, Clone)]
pub enum WeightSource {
    /// Values.
    Values(Arc<[f32]>),
    /// Little-endian bytes, as in the model's file.
    Bytes {
        /// The bytes; exactly as many as the elements need.
        bytes: Arc<Vec<u8>>,
        /// Their element type.
        element: StoredElement,
    },
    /// Bytes of a TFLite model, or of an external data file of an ONNX model.
    File {
        /// The file.
        path: PathBuf,
        /// Where the tensor starts.
        offset: u64,
        /// Their element type.
        element: StoredElement,
    },
    /// Integers of at most 8 bits, or biases of 32 bits, with the scales of the numbers that they stand for.
    Integers(Arc<Integers>),
    /// The values of another tensor with its dimensions permuted: dimension i is dimension `perm[i]` of that tensor.
    Transposed {
        /// The other tensor.
        of: Box<Weights>,
        /// The permutation.
        perm: Vec<usize>,
    },
    /// Uniform random values of this bound, drawn from this seed.
    Seeded {
        /// Seed of the generator.
        seed: u64,
        /// Values lie in `[centre − bound, centre + bound)`.
        bound: f32,
        /// The centre.
        centre: f32,
    },
}

/// Integers that stand for numbers: q stands for `scale · (q − zero_point)`.
#[derive(Debug, PartialEq)]
pub struct Integers {
    /// The integers.
    pub values: Vec<i32>,
    /// The number of elements in the dimensions after the one that has a scale and zero point for each index.
    pub inner: usize,
    /// Scales: one, or one for each index along that dimension.
    pub scales: Vec<f32>,
    /// Zero points, one for each scale.
    pub zero_points: Vec<i32>,
}

impl WeightSource {
    /// Whether it gives the same numbers as another one, for the same dimensions.
    fn is_same(&self, other: &WeightSource) -> bool {
        use WeightSource::{Bytes, File, Seeded, Transposed, Values};
        match (self, other) {
            (Values(a), Values(b)) => Arc::ptr_eq(a, b) || are_same(a, b),
            (Bytes { bytes: a, element: of_a }, Bytes { bytes: b, element: of_b }) => {
                of_a == of_b && (Arc::ptr_eq(a, b) || a == b)
            }
            (
                File { path: a, offset: at_a, element: of_a },
                File { path: b, offset: at_b, element: of_b },
            ) => (a, at_a, of_a) == (b, at_b, of_b),
            (WeightSource::Integers(a), WeightSource::Integers(b)) => Arc::ptr_eq(a, b) || a == b,
            (Transposed { of: a, perm: by_a }, Transposed { of: b, perm: by_b }) => by_a == by_b && a == b,
            (
                Seeded { seed: a, bound: bound_a, centre: centre_a },
                Seeded { seed: b, bound: bound_b, centre: centre_b },
            ) => a == b && are_same(&[*bound_a, *centre_a], &[*bound_b, *centre_b]),
            _ => false,
        }
    }
}

/// Whether numbers have the same bits: zeros of other signs differ, equal NaNs do not.
fn are_same(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

impl Integers {
    /// The scale and the zero point of an element.
    fn scale_and_zero_point(&self, at: usize) -> (f32, i32) {
        let place = at / self.inner.max(1) % self.scales.len().max(1);
        (self.scales[place], self.zero_points[place])
    }
}

/// Element type of stored weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredElement {
    /// 32-bit float.
    F32,
    /// 64-bit float.
    F64,
    /// 16-bit float.
    F16,
    /// The upper half of a 32-bit float.
    Bf16,
}

/// One factor for each index along `axis`.
#[derive(Debug, Clone)]
pub struct Scale {
    /// The dimension.
    pub axis: usize,
    /// As many factors as that dimension is long.
    pub factors: Arc<[f32]>,
}

/// Tensors are equal if they are the same numbers of the same dimensions. Numbers in files are the same if their places
/// are.
impl PartialEq for Weights {
    fn eq(&self, other: &Self) -> bool {
        let is_scaled_alike = match (&self.scale, &other.scale) {
            (Some(a), Some(b)) => a.axis == b.axis && are_same(&a.factors, &b.factors),
            (a, b) => a.is_none() && b.is_none(),
        };
        self.dims == other.dims && is_scaled_alike && self.source.is_same(&other.source)
    }
}

impl Weights {
    /// A tensor of these values.
    pub fn new(dims: impl Into<Vec<usize>>, values: impl Into<Arc<[f32]>>) -> Self {
        Weights { dims: dims.into(), source: WeightSource::Values(values.into()), scale: None }
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.dims.iter().product()
    }

    /// Multiplies by one factor per index along `axis`, now or when the values are read.
    pub fn scaled(mut self, axis: usize, factors: &[f32]) -> Self {
        let factors = match &self.scale {
            Some(scale) if scale.axis == axis => {
                scale.factors.iter().zip(factors).map(|(a, b)| a * b).collect()
            }
            Some(_) => {
                // Two different axes never meet, since a layer's filters have one output-channel axis.
                unreachable!("a layer has one output-channel axis")
            }
            None => factors.into(),
        };
        self.scale = Some(Scale { axis, factors });
        self
    }

    /// A tensor of the same dimensions whose numbers are all zero, and take no memory.
    pub fn without_values(&self) -> Self {
        let zeros = WeightSource::Seeded { seed: 0, bound: 0.0, centre: 0.0 };
        Weights { dims: self.dims.clone(), source: zeros, scale: None }
    }

    /// The scale of each index along a dimension, if the values are integers times such scales. The integers are those from
    /// −128 to 127, or else reach from one to another that is at most 255 more: then they need an offset, which is said too.
    pub fn scales(&self, axis: usize) -> Option<(Vec<f32>, bool)> {
        let size = *self.dims.get(axis)?;
        let (scales, has_offset) = match &self.source {
            WeightSource::Integers(integers) => {
                let number = |(at, &value): (usize, &i32)| {
                    i64::from(value) - i64::from(integers.scale_and_zero_point(at).1)
                };
                let numbers = integers.values.iter().enumerate().map(number);
                let (low, high) = numbers.fold((0, 0), |(low, high), q| (q.min(low), q.max(high)));
                let inner: usize = self.dims[axis + 1..].iter().product();
                let is_dealt_out_so =
                    integers.scales.len() == 1 || (integers.inner, integers.scales.len()) == (inner, size);
                if !is_dealt_out_so || high - low > 255 {
                    return None;
                }
                let scale = |i: usize| integers.scales[i % integers.scales.len()];
                ((0..size).map(scale).collect(), low < -128 || high > 127)
            }
            WeightSource::Transposed { of, perm } => of.scales(*perm.get(axis)?)?,
            _ => return None,
        };
        Some((self.times_factors(scales, axis)?, has_offset))
    }

    /// The scale of each index along a dimension, if the values are 16-bit floats times such scales.
    pub fn half_scales(&self, axis: usize) -> Option<Vec<f32>> {
        let scales = match &self.source {
            WeightSource::Bytes { element: StoredElement::F16, .. }
            | WeightSource::File { element: StoredElement::F16, .. } => vec![1.0; *self.dims.get(axis)?],
            WeightSource::Transposed { of, perm } => of.half_scales(*perm.get(axis)?)?,
            _ => return None,
        };
        self.times_factors(scales, axis)
    }

    /// The scales times the factors that are still to be applied, if these are along the same dimension.
    fn times_factors(&self, scales: Vec<f32>, axis: usize) -> Option<Vec<f32>> {
        match &self.scale {
            None => Some(scales),
            Some(scale) if scale.axis == axis => {
                let factors = scale.factors.iter().cycle();
                Some(scales.iter().zip(factors).map(|(own, factor)| own * factor).collect())
            }
            Some(_) => None,
        }
    }

    /// Which numbers 8-bit integers stand for, if the values are such numbers. Signed integers are moved by 128.
    pub fn quantization(&self) -> Option<Quantization> {
        let WeightSource::Integers(integers) = &self.source else { return None };
        let (&[scale], &[zero_point], None) =
            (integers.scales.as_slice(), integers.zero_points.as_slice(), &self.scale)
        else {
            return None;
        };
        let moved = [0, 128].into_iter().find(|moved| {
            let all = integers.values.iter().chain([&zero_point]);
            all.copied().all(|q| q.checked_add(*moved).is_some_and(|q| (0..=255).contains(&q)))
        })?;
        Some(Quantization { scale, zero_point: (zero_point + moved) as u8 })
    }

    /// The values, in row-major order.
    ///
    /// # Errors
    /// When an external data file cannot be read or is too short.
    pub fn values(&self) -> std::io::Result<Vec<f32>> {
        self.read().map(Cow::into_owned)
    }

    /// The values, in row-major order, borrowed if they are in memory as they are.
    ///
    /// # Errors
    /// As [`Weights::values`].
    pub fn read(&self) -> std::io::Result<Cow<'_, [f32]>> {
        if let (WeightSource::Values(values), None) = (&self.source, &self.scale) {
            return Ok(values[..].into());
        }
        let mut values = match &self.source {
            WeightSource::Values(values) => values.to_vec(),
            WeightSource::Bytes { bytes, element } => element.decode(bytes),
            WeightSource::File { path, offset, element } => {
                use std::io::{Read, Seek, SeekFrom};
                let mut file = std::fs::File::open(path)?;
                file.seek(SeekFrom::Start(*offset))?;
                let mut bytes = vec![0; self.elements() * element.bytes()];
                file.read_exact(&mut bytes)?;
                element.decode(&bytes)
            }
            WeightSource::Integers(integers) => {
                let number = |(at, &value): (usize, &i32)| {
                    let (scale, zero_point) = integers.scale_and_zero_point(at);
                    // 64 bits, since a damaged model may hold anything.
                    scale * (i64::from(value) - i64::from(zero_point)) as f32
                };
                integers.values.iter().enumerate().map(number).collect()
            }
            WeightSource::Transposed { of, perm } => transposed(&of.values()?, &of.dims, perm),
            WeightSource::Seeded { seed, bound, centre } => {
                let mut random = ChaCha8Rng::seed_from_u64(*seed);
                (0..self.elements()).map(|_| centre + bound * random.random_range(-1.0f32..1.0)).collect()
            }
        };
        if let Some(Scale { axis, factors }) = &self.scale {
            let inner: usize = self.dims[axis + 1..].iter().product();
            for (i, value) in values.iter_mut().enumerate() {
                *value *= factors[i / inner % factors.len()];
            }
        }
        Ok(values.into())
    }

    /// The same weights with their values in memory, so that they are not read or drawn again whenever somebody asks.
    /// Integers stay integers.
    ///
    /// # Errors
    /// As [`Weights::values`].
    pub fn in_memory(&self) -> std::io::Result<Weights> {
        match self.source {
            WeightSource::Integers(_) => Ok(self.clone()),
            _ => Ok(Weights::new(self.dims.clone(), self.values()?)),
        }
    }
}

/// Elements of a tensor of these dimensions in the order of the permuted ones.
pub fn transposed<T: Copy>(values: &[T], dims: &[usize], perm: &[usize]) -> Vec<T> {
    let stride = |axis: &usize| dims[axis + 1..].iter().product::<usize>();
    let steps: Vec<[usize; 2]> = perm.iter().map(|axis| [dims[*axis], stride(axis)]).collect();
    let place = |at: usize| {
        let mut rest = at;
        steps.iter().rev().fold(0, |place, [size, step]| {
            let index = rest % size;
            rest /= size;
            place + index * step
        })
    };
    (0..values.len()).map(|at| values[place(at)]).collect()
}

impl StoredElement {
    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        match self {
            StoredElement::F32 => 4,
            StoredElement::F64 => 8,
            StoredElement::F16 | StoredElement::Bf16 => 2,
        }
    }

    /// The values of little-endian bytes.
    pub fn decode(self, bytes: &[u8]) -> Vec<f32> {
        match self {
            StoredElement::F32 => {
                bytes.as_chunks().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect()
            }
            StoredElement::F64 => {
                bytes.as_chunks().0.iter().map(|chunk| f64::from_le_bytes(*chunk) as f32).collect()
            }
            StoredElement::F16 => {
                let half = |chunk: &[u8; 2]| F16::from_bits(u16::from_le_bytes(*chunk)).to_f32();
                bytes.as_chunks().0.iter().map(half).collect()
            }
            StoredElement::Bf16 => {
                let upper = |[a, b]: &[u8; 2]| f32::from_le_bytes([0, 0, *a, *b]);
                bytes.as_chunks().0.iter().map(upper).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_apply_along_their_axis() {
        let weights = Weights::new([2, 3], vec![1.0; 6]).scaled(0, &[2.0, 3.0]).scaled(0, &[1.0, 10.0]);
        assert_eq!(weights.values().unwrap(), [2.0, 2.0, 2.0, 30.0, 30.0, 30.0]);
        let columns = Weights::new([2, 3], vec![1.0; 6]).scaled(1, &[1.0, 2.0, 3.0]);
        assert_eq!(columns.values().unwrap(), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    }

    #[test]
    fn a_permuted_tensor_has_the_elements_of_its_source() {
        let of = Weights::new([2, 3, 4], (0..24).map(|i| i as f32).collect::<Vec<_>>());
        let perm = vec![2, 0, 1];
        let source = WeightSource::Transposed { of: Box::new(of), perm };
        let values = Weights { dims: vec![4, 2, 3], source, scale: None }.values().unwrap();
        for (k, i, j) in (0..4).flat_map(|k| (0..2).flat_map(move |i| (0..3).map(move |j| (k, i, j)))) {
            assert_eq!(values[k * 6 + i * 3 + j], (i * 12 + j * 4 + k) as f32);
        }
    }

    #[test]
    fn halves_are_read() {
        let halves: Vec<u8> =
            [0x3c00u16, 0xc100, 0x0001].iter().flat_map(|half| half.to_le_bytes()).collect();
        let source = WeightSource::Bytes { bytes: Arc::new(halves), element: StoredElement::F16 };
        let values = Weights { dims: vec![3], source, scale: None }.values().unwrap();
        assert_eq!(values, [1.0, -2.5, 2.0f32.powi(-24)]);
    }

    #[test]
    fn upper_halves_are_read() {
        let source = WeightSource::Bytes {
            bytes: Arc::new(vec![0x80, 0x3f, 0x20, 0xc0]),
            element: StoredElement::Bf16,
        };
        let values = Weights { dims: vec![2], source, scale: None }.values().unwrap();
        assert_eq!(values, [1.0, -2.5]);
    }

    #[test]
    fn seeded_weights_repeat() {
        let seeded = Weights {
            dims: vec![64],
            source: WeightSource::Seeded { seed: 7, bound: 0.5, centre: 1.0 },
            scale: None,
        };
        let values = seeded.values().unwrap();
        assert_eq!(values, seeded.values().unwrap());
        assert!(values.iter().all(|v| (0.5..1.5).contains(v)));
    }

    #[test]
    fn in_memory_are_the_same_values_and_integers_stay() {
        let source = WeightSource::Seeded { seed: 7, bound: 0.5, centre: 1.0 };
        let seeded = Weights { dims: vec![2, 3], source, scale: None }.scaled(0, &[2.0, 3.0]);
        let read = seeded.in_memory().unwrap();
        assert!(matches!(read.source, WeightSource::Values(_)));
        assert_eq!((&read.dims, read.values().unwrap()), (&seeded.dims, seeded.values().unwrap()));

        let integers = Integers { values: vec![-3, 5], inner: 1, scales: vec![0.5], zero_points: vec![0] };
        let source = WeightSource::Integers(Arc::new(integers));
        let integers = Weights { dims: vec![2], source, scale: None }.in_memory().unwrap();
        assert_eq!(integers.scales(0).unwrap(), (vec![0.5, 0.5], false));
    }
}
