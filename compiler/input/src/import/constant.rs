//! Constant tensors of a model. Integers and truth values are read at once, floats only when they are needed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rten_onnx::onnx::{DataLocation, DataType, TensorProto};

use super::builder::Builder;
use super::error::{Fault, fault};
use super::messages::SparseTensor;
use csdfc_network::weights::{StoredElement, WeightSource, Weights, transposed};

/// Highest rank of a tensor.
pub(super) const MAX_RANK: usize = 8;

/// Maximum number of elements of a tensor.
pub(super) const MAX_ELEMENTS: usize = 1 << 31;

/// Maximum number of elements of a constant whose values are read at import.
pub(super) const MAX_READ: usize = 1 << 27;

/// A tensor known at import. A dimension may be 0, for instance in the absent `scales` of a Resize.
#[derive(Debug, Clone)]
pub(super) struct Constant {
    pub dims: Vec<usize>,
    pub data: Data,
    /// The type of its elements in the file, if it is stored there.
    pub stored: Option<DataType>,
}

/// The elements of a [`Constant`], in row-major order.
#[derive(Debug, Clone)]
pub(super) enum Data {
    /// Floats of any stored precision.
    Floats(WeightSource),
    /// Integers of any width.
    Ints(Arc<[i64]>),
    Bools(Arc<[bool]>),
}

impl Constant {
    pub fn floats(dims: impl Into<Vec<usize>>, values: Vec<f32>) -> Self {
        Constant { dims: dims.into(), data: Data::Floats(WeightSource::Values(values.into())), stored: None }
    }

    pub fn ints(dims: impl Into<Vec<usize>>, values: Vec<i64>) -> Self {
        Constant { dims: dims.into(), data: Data::Ints(values.into()), stored: None }
    }

    pub fn bools(dims: impl Into<Vec<usize>>, values: Vec<bool>) -> Self {
        Constant { dims: dims.into(), data: Data::Bools(values.into()), stored: None }
    }

    /// Floats of one value, as many as the dimensions ask for. None of them is stored.
    pub fn filled(dims: Vec<usize>, value: f32) -> Self {
        // Random values within a bound of 0 are all the centre.
        let source = WeightSource::Seeded { seed: 0, bound: 0.0, centre: value };
        Constant { dims, data: Data::Floats(source), stored: None }
    }

    pub fn elements(&self) -> usize {
        // Checked when the constant was made.
        self.dims.iter().product()
    }

    /// The elements as parameters of a layer.
    pub fn weights(&self) -> Result<Weights, Fault> {
        if self.elements() == 0 {
            return fault!("a constant is empty");
        }
        match &self.data {
            Data::Floats(source) => {
                Ok(Weights { dims: self.dims.clone(), source: source.clone(), scale: None })
            }
            Data::Ints(values) => {
                Ok(Weights::new(self.dims.clone(), values.iter().map(|v| *v as f32).collect::<Vec<_>>()))
            }
            Data::Bools(_) => fault!("a constant holds truth values where numbers are needed"),
        }
    }

    /// The elements as floats.
    pub fn to_floats(&self) -> Result<Vec<f32>, Fault> {
        if self.elements() > MAX_READ {
            return fault!("a constant of {} elements is too large to compute with", self.elements());
        }
        match &self.data {
            Data::Floats(_) if self.elements() == 0 => Ok(Vec::new()),
            Data::Floats(_) => self
                .weights()?
                .values()
                .map_err(|error| Fault::new(format!("a constant cannot be read: {error}"))),
            Data::Ints(values) => Ok(values.iter().map(|v| *v as f32).collect()),
            Data::Bools(values) => Ok(values.iter().map(|v| f32::from(u8::from(*v))).collect()),
        }
    }

    /// The elements as integers.
    pub fn to_ints(&self) -> Result<Vec<i64>, Fault> {
        match &self.data {
            Data::Ints(values) => Ok(values.to_vec()),
            Data::Bools(values) => Ok(values.iter().map(|v| i64::from(*v)).collect()),
            Data::Floats(_) => fault!("a constant holds floats where integers are needed"),
        }
    }

    /// The one element, as a float.
    pub fn scalar(&self) -> Result<f32, Fault> {
        match self.elements() {
            1 => Ok(self.to_floats()?[0]),
            n => fault!("a constant of {n} elements where one is needed"),
        }
    }

    /// The one element, as an integer.
    pub fn scalar_int(&self) -> Result<i64, Fault> {
        match self.to_ints()?.as_slice() {
            [value] => Ok(*value),
            values => fault!("a constant of {} elements where one is needed", values.len()),
        }
    }

    /// The tensor with its dimensions permuted: dimension i is dimension `perm[i]` of this. Floats are moved when they are
    /// read.
    pub fn transposed(&self, perm: &[usize]) -> Result<Self, Fault> {
        let dims = perm.iter().map(|axis| self.dims[*axis]).collect();
        let data = match &self.data {
            Data::Floats(_) => {
                Data::Floats(WeightSource::Transposed { of: Box::new(self.weights()?), perm: perm.to_vec() })
            }
            Data::Ints(values) => Data::Ints(transposed(values, &self.dims, perm).into()),
            Data::Bools(values) => Data::Bools(transposed(values, &self.dims, perm).into()),
        };
        Ok(Constant { dims, data, stored: self.stored })
    }

    /// The same elements in other dimensions, as many in all.
    pub fn reshaped(&self, dims: Vec<usize>) -> Self {
        Constant { dims, data: self.data.clone(), stored: self.stored }
    }
}

/// Number of elements of a tensor of these dimensions.
///
/// # Errors
/// When there are more dimensions or elements than a tensor may have.
pub(super) fn count(dims: &[usize]) -> Result<usize, Fault> {
    if dims.len() > MAX_RANK {
        return fault!("a tensor of rank {}; at most {MAX_RANK} is supported", dims.len());
    }
    // A dimension of 0 must not hide others whose product overflows.
    let elements = dims.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim.max(1)));
    match elements.filter(|&elements| elements <= MAX_ELEMENTS) {
        Some(_) if dims.contains(&0) => Ok(0),
        Some(elements) => Ok(elements),
        None => fault!("a tensor of {dims:?} has more than {MAX_ELEMENTS} elements"),
    }
}

/// The dimensions as counts.
///
/// # Errors
/// When one is negative.
pub(super) fn dimensions(dims: &[i64]) -> Result<Vec<usize>, Fault> {
    dims.iter()
        .map(|&dim| {
            let negative = |_| Fault::new(format!("a tensor of {dims:?} has a negative dimension"));
            usize::try_from(dim).map_err(negative)
        })
        .collect()
}

/// Reads a stored tensor. Raw bytes are taken out of the message, so that a tensor is read once.
pub(super) fn read(tensor: &TensorProto, folder: Option<&Path>) -> Result<Constant, Fault> {
    let dims = dimensions(&tensor.dims)?;
    let elements = count(&dims)?;
    let data_type = tensor.data_type.unwrap_or(DataType(0));
    let external = tensor.data_location == Some(DataLocation::EXTERNAL);
    let data = match (data_type, float(data_type)) {
        (_, Some(element)) if external => external_floats(tensor, elements, folder, element)?,
        (_, Some(element)) => match take_raw(tensor, elements * element.bytes())? {
            Some(bytes) => stored(bytes, element),
            None => typed_floats(tensor, elements, element)?,
        },
        (DataType::BOOL, _) => {
            let values = integers(tensor, data_type, elements, external, folder)?;
            Data::Bools(values.iter().map(|v| *v != 0).collect())
        }
        _ => Data::Ints(integers(tensor, data_type, elements, external, folder)?.into()),
    };
    Ok(Constant { dims, data, stored: Some(data_type) })
}

/// Reads a tensor of which only some elements are stored.
pub(super) fn sparse(
    builder: &mut Builder,
    tensor: &SparseTensor,
    folder: Option<&Path>,
) -> Result<Constant, Fault> {
    let dims = dimensions(&tensor.dims)?;
    let elements = count(&dims)?;
    builder.charge(elements)?;
    let (values, indices) = (read(&tensor.values, folder)?, read(&tensor.indices, folder)?);
    let each = match indices.dims.as_slice() {
        [_] => 1,
        &[_, rank] if rank == dims.len() => rank,
        other => return fault!("it is sparse, and its indices have dimensions {other:?}"),
    };
    let indices = indices.to_ints()?;
    if indices.len() != values.elements() * each {
        return fault!("it is sparse, with {} elements and {} indices", values.elements(), indices.len());
    }
    let mut places = Vec::with_capacity(values.elements());
    for index in indices.chunks_exact(each.max(1)) {
        let sizes = if each == 1 { &[elements][..] } else { &dims };
        let place = index.iter().zip(sizes).try_fold(0, |place, (&index, &size)| {
            let index = usize::try_from(index).ok().filter(|index| *index < size)?;
            Some(place * size + index)
        });
        places.push(place.map_or_else(|| fault!("it is sparse, and {index:?} is out of its range"), Ok)?);
    }
    fn dense<T: Copy + Default>(values: &[T], places: &[usize], elements: usize) -> Vec<T> {
        let mut all = vec![T::default(); elements];
        values.iter().zip(places).for_each(|(value, place)| all[*place] = *value);
        all
    }
    let data = match &values.data {
        Data::Floats(_) => {
            Data::Floats(WeightSource::Values(dense(&values.to_floats()?, &places, elements).into()))
        }
        Data::Ints(values) => Data::Ints(dense(values, &places, elements).into()),
        Data::Bools(values) => Data::Bools(dense(values, &places, elements).into()),
    };
    Ok(Constant { dims, data, stored: values.stored })
}

/// The name of an element type.
pub(super) fn type_name(data_type: DataType) -> String {
    const NAMES: [&str; 24] = [
        "float32",
        "uint8",
        "int8",
        "uint16",
        "int16",
        "int32",
        "int64",
        "string",
        "bool",
        "float16",
        "float64",
        "uint32",
        "uint64",
        "complex64",
        "complex128",
        "bfloat16",
        "float8e4m3fn",
        "float8e4m3fnuz",
        "float8e5m2",
        "float8e5m2fnuz",
        "uint4",
        "int4",
        "float4e2m1",
        "float8e8m0",
    ];
    let name = usize::try_from(data_type.0).ok().and_then(|code| NAMES.get(code.wrapping_sub(1)));
    name.map_or_else(|| format!("type {}", data_type.0), |name| (*name).to_string())
}

/// The help for a model in a precision that is not read.
pub(super) const PRECISION_HELP: &str = "convert the model to float32 precision and import that";

/// How a type of floats is stored.
pub(super) fn float(data_type: DataType) -> Option<StoredElement> {
    match data_type {
        DataType::FLOAT => Some(StoredElement::F32),
        DataType::DOUBLE => Some(StoredElement::F64),
        DataType::FLOAT16 => Some(StoredElement::F16),
        DataType::BFLOAT16 => Some(StoredElement::Bf16),
        _ => None,
    }
}

fn stored(bytes: Vec<u8>, element: StoredElement) -> Data {
    Data::Floats(WeightSource::Bytes { bytes: Arc::new(bytes), element })
}

fn take_raw(tensor: &TensorProto, size: usize) -> Result<Option<Vec<u8>>, Fault> {
    let Some(raw) = &tensor.raw_data else { return Ok(None) };
    let bytes = raw.take();
    if bytes.len() != size {
        return fault!("{} bytes are stored where its dimensions need {size}", bytes.len());
    }
    Ok(Some(bytes))
}

/// Floats in the field of their type. Those of 16 bits are the lower bits of integers.
fn typed_floats(tensor: &TensorProto, elements: usize, element: StoredElement) -> Result<Data, Fault> {
    let values = match element {
        StoredElement::F32 => typed(&tensor.float_data, elements)?.into(),
        StoredElement::F64 => typed(&tensor.double_data, elements)?.iter().map(|v| *v as f32).collect(),
        StoredElement::F16 | StoredElement::Bf16 => {
            let bits = typed(&tensor.int32_data, elements)?;
            let bytes = bits.iter().flat_map(|bits| (*bits as u16).to_le_bytes());
            return Ok(stored(bytes.collect(), element));
        }
    };
    Ok(Data::Floats(WeightSource::Values(values)))
}

fn typed<T>(values: &[T], elements: usize) -> Result<&[T], Fault> {
    if values.len() != elements {
        return fault!("{} elements are stored where its dimensions need {elements}", values.len());
    }
    Ok(values)
}

fn integers(
    tensor: &TensorProto,
    data_type: DataType,
    elements: usize,
    external: bool,
    folder: Option<&Path>,
) -> Result<Vec<i64>, Fault> {
    let size = match data_type {
        DataType::BOOL | DataType::UINT8 | DataType::INT8 | DataType::UINT4 | DataType::INT4 => 1,
        DataType::UINT16 | DataType::INT16 => 2,
        DataType::INT32 | DataType::UINT32 => 4,
        DataType::INT64 => 8,
        _ => {
            let name = type_name(data_type);
            return Err(Fault::new(format!("its elements are {name}")).help(PRECISION_HELP));
        }
    };
    let is_packed = matches!(data_type, DataType::UINT4 | DataType::INT4);
    let count = if is_packed { elements.div_ceil(2) } else { elements };
    let bytes = if external {
        let (path, offset) = external_file(tensor, count * size, folder)?;
        Some(read_file(&path, offset, count * size)?)
    } else {
        take_raw(tensor, count * size)?
    };
    match bytes {
        Some(bytes) if is_packed => Ok(packed(&bytes, elements, data_type)),
        Some(bytes) => Ok(bytes.chunks_exact(size).map(|chunk| integer(chunk, data_type)).collect()),
        None if is_packed => {
            let bytes: Vec<u8> = typed(&tensor.int32_data, count)?.iter().map(|pair| *pair as u8).collect();
            Ok(packed(&bytes, elements, data_type))
        }
        None if data_type == DataType::INT64 => Ok(typed(&tensor.int64_data, elements)?.to_vec()),
        None => Ok(typed(&tensor.int32_data, elements)?.iter().map(|v| i64::from(*v)).collect()),
    }
}

/// Integers of 4 bits, two in each byte, the first in the lower half.
fn packed(bytes: &[u8], elements: usize, data_type: DataType) -> Vec<i64> {
    let integer = |half: u8| match data_type {
        DataType::INT4 if half >= 8 => i64::from(half) - 16,
        _ => i64::from(half),
    };
    bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]).take(elements).map(integer).collect()
}

/// A little-endian integer.
pub(super) fn integer(bytes: &[u8], data_type: DataType) -> i64 {
    let unsigned = bytes.iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    let signed = matches!(data_type, DataType::INT8 | DataType::INT16 | DataType::INT32 | DataType::INT64);
    // Shifted up and down again, the sign bit fills the upper bits.
    let shift = if signed { 64 - 8 * bytes.len() } else { 0 };
    (unsigned as i64) << shift >> shift
}

fn external_floats(
    tensor: &TensorProto,
    elements: usize,
    folder: Option<&Path>,
    element: StoredElement,
) -> Result<Data, Fault> {
    let (path, offset) = external_file(tensor, elements * element.bytes(), folder)?;
    Ok(Data::Floats(WeightSource::File { path, offset, element }))
}

/// The file of an external tensor, which must lie under the model's folder, and where the tensor starts in it.
fn external_file(tensor: &TensorProto, bytes: usize, folder: Option<&Path>) -> Result<(PathBuf, u64), Fault> {
    let entry = |key: &str| {
        let found = tensor.external_data.iter().find(|entry| entry.key.as_deref() == Some(key));
        found.and_then(|entry| entry.value.as_deref())
    };
    let number = |key: &str| match entry(key).map(str::parse::<u64>) {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(_)) => fault!("the {key} of its external data is no number"),
    };
    let Some(folder) = folder else {
        return fault!("its data are in another file, but the model was not read from a file");
    };
    let Some(location) = entry("location") else {
        return fault!("its data are in another file that is not named");
    };
    let io = |what: &Path, error: std::io::Error| {
        Fault::new(format!("its data cannot be read from {}: {error}", what.display()))
            .help("keep the model's external data files beside it")
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let path = folder.join(location);
    let root = folder.canonicalize().map_err(|error| io(folder, error))?;
    let real = path.canonicalize().map_err(|error| io(Path::new(location), error))?;
    if !real.starts_with(&root) {
        return fault!("its data are in {location}, outside the model's folder");
    }
    let file = std::fs::metadata(&real).map_err(|error| io(Path::new(location), error))?;
    let offset = number("offset")?.unwrap_or(0);
    let bytes = bytes as u64;
    if let Some(length) = number("length")?
        && length != bytes
    {
        return fault!("{length} bytes of external data where its dimensions need {bytes}");
    }
    if !file.is_file() || offset.checked_add(bytes).is_none_or(|end| end > file.len()) {
        return fault!(
            "its {bytes} bytes at {offset} reach beyond the end of {location} ({} bytes)",
            file.len()
        );
    }
    Ok((path, offset))
}

fn read_file(path: &Path, offset: u64, bytes: usize) -> Result<Vec<u8>, Fault> {
    use std::io::{Read, Seek, SeekFrom};
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut buffer = vec![0; bytes];
        file.read_exact(&mut buffer)?;
        Ok(buffer)
    };
    read().map_err(|error| Fault::new(format!("its data cannot be read: {error}")))
}
