//! The contents of a TFLite file, in the terms of its schema. The numbers are the ids of fields in `schema.fbs`,
//! version 3a.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use rten_onnx::onnx::DataType;

use super::flat::{Record, Records, Stored};
use super::{codes, sparse};
use crate::import::builder::{Builder, Names};
use crate::import::constant::{
    Constant, Data, MAX_RANK, PRECISION_HELP, count, dimensions, integer, type_name,
};
use crate::import::error::{Fault, fault};
use csdfc_network::weights::{StoredElement, WeightSource};
use csdfc_plan::operator::InputElement;

/// The bytes that follow the first offset of a file.
const IDENTIFIER: &[u8] = b"TFL3";

/// Where they are.
const IDENTIFIER_AT: usize = 4;

/// Maximum number of tables of a kind.
const MAX_TABLES: usize = 1 << 16;

/// Maximum number of operands, or outputs, of an operator.
const MAX_OPERANDS: usize = 1 << 12;

/// Maximum number of operands and outputs of all operators.
const MAX_ALL_OPERANDS: usize = 1 << 20;

/// Longest name. Of a longer one the beginning is taken.
const MAX_NAME: usize = 1 << 10;

/// Whether a file that begins with these bytes is a TFLite model.
pub(in crate::import) fn is_tflite(start: &[u8]) -> bool {
    start.get(IDENTIFIER_AT..).is_some_and(|rest| rest.starts_with(IDENTIFIER))
}

/// The file of a model.
#[derive(Clone, Copy)]
pub(super) struct File<'a> {
    pub bytes: &'a [u8],
    /// The path from which its weights can be read later, if there is one.
    pub path: Option<&'a Path>,
}

/// A subgraph of a model, the first as a rule, and what it refers to.
pub(super) struct Model<'a> {
    /// Each has a name of its own.
    pub tensors: Vec<Tensor<'a>>,
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
    /// In an order in which they can be computed.
    pub operators: Vec<Operator<'a>>,
    buffers: Vec<Record<'a>>,
}

/// A tensor as the file states it.
#[derive(Clone)]
pub(super) struct Tensor<'a> {
    pub name: String,
    /// Its dimensions, −1 where one is dynamic.
    pub dims: Vec<i32>,
    /// The type of its elements, as ONNX has it.
    pub element: DataType,
    pub quantization: Option<Quantization<'a>>,
    /// Whether it keeps its elements from one frame to the next.
    pub is_variable: bool,
    buffer: usize,
    /// The places of its stored elements, if not all elements are stored.
    sparsity: Option<Record<'a>>,
}

/// The quantization of a tensor.
#[derive(Clone, Copy)]
pub(super) struct Quantization<'a> {
    scales: planus::Vector<'a, f32>,
    zero_points: Option<planus::Vector<'a, i64>>,
    /// The dimension that has a scale for each index, if there are several scales and dimensions.
    pub axis: i32,
}

/// An operator as the file states it.
pub(super) struct Operator<'a> {
    pub kind: codes::OperatorCode<'a>,
    /// Tensors; `None` where an optional operand is left out.
    pub inputs: Vec<Option<usize>>,
    pub outputs: Vec<usize>,
    /// The operator's own table, if it has one.
    pub options: Option<Record<'a>>,
    /// The options of a custom operator.
    pub custom: &'a [u8],
}

impl<'a> Model<'a> {
    pub fn read(file: &'a [u8]) -> Result<Self, Fault> {
        Model::of_subgraph(file, 0)
    }

    /// A subgraph, and what it refers to.
    pub fn of_subgraph(file: &'a [u8], index: usize) -> Result<Self, Fault> {
        if !is_tflite(file) {
            return fault!("it does not begin as one");
        }
        let model = Record::root(file)?;
        let version = model.field::<u32>(0)?.unwrap_or(0);
        if version != 3 {
            return fault!("it has version {version} of the format; 3 is supported");
        }
        let mut kinds = Vec::new();
        for code in all(model.records(1, MAX_TABLES)?)? {
            kinds.push(codes::OperatorCode::read(&code)?);
        }
        let Some(graph) = model.records(2, MAX_TABLES)?.iter().nth(index).transpose()? else {
            return match index {
                0 => fault!("it has no subgraph"),
                _ => fault!("it has no subgraph {index}"),
            };
        };
        let buffers = all(model.records(4, MAX_TABLES)?)?;
        let mut tensors = Vec::new();
        for (index, tensor) in graph.records(0, MAX_TABLES)?.iter().enumerate() {
            tensors.push(Tensor::read(index, &tensor?)?);
        }
        let mut operators = Vec::new();
        let mut operands = 0;
        for operator in graph.records(3, MAX_TABLES)?.iter() {
            let operator = Operator::read(&operator?, &kinds, tensors.len())?;
            operands += operator.inputs.len() + operator.outputs.len();
            if operands > MAX_ALL_OPERANDS {
                return fault!("its operators have more than {MAX_ALL_OPERANDS} operands");
            }
            operators.push(operator);
        }
        let inputs = indices(&graph, 1, tensors.len())?;
        let outputs = indices(&graph, 2, tensors.len())?;
        rename_duplicates(&mut tensors, inputs.iter().chain(&outputs).copied());
        Ok(Model { tensors, inputs, outputs, operators, buffers })
    }

    /// The elements of a tensor that the file stores, if it does.
    pub fn constant(
        &self,
        builder: &mut Builder,
        file: File<'_>,
        tensor: &Tensor,
    ) -> Result<Option<Constant>, Fault> {
        // Tensors without a buffer state buffer 0.
        let Some(buffer) = self.buffers.get(tensor.buffer).filter(|_| tensor.buffer > 0) else {
            return Ok(None);
        };
        let Some(Stored { bytes, offset }) = stored(buffer, file.bytes)? else { return Ok(None) };
        let dims = dimensions(&tensor.dims.iter().map(|dim| i64::from(*dim)).collect::<Vec<_>>())?;
        let elements = count(&dims)?;
        let float = match tensor.element {
            DataType::FLOAT => Some(StoredElement::F32),
            DataType::FLOAT16 => Some(StoredElement::F16),
            DataType::DOUBLE => Some(StoredElement::F64),
            _ => None,
        };
        let size = match (float, tensor.element) {
            (Some(float), _) => float.bytes(),
            (_, DataType::BOOL | DataType::UINT8 | DataType::INT8) => 1,
            (_, DataType::UINT16 | DataType::INT16) => 2,
            (_, DataType::INT32 | DataType::UINT32) => 4,
            (_, DataType::INT64) => 8,
            (_, other) => {
                let name = type_name(other);
                return Err(Fault::new(format!("its elements are {name}")).help(PRECISION_HELP));
            }
        };
        if let Some(sparsity) = &tensor.sparsity {
            builder.charge(elements)?;
            return dense(sparsity, dims, bytes, float).map(Some);
        }
        // At most 2^31 elements of 8 bytes.
        if bytes.len() != elements * size {
            return fault!("{} bytes are stored where its dimensions need {}", bytes.len(), elements * size);
        }
        let data = match (float, file.path) {
            (Some(element), Some(path)) => {
                Data::Floats(WeightSource::File { path: path.to_path_buf(), offset: offset as u64, element })
            }
            (Some(element), None) => {
                builder.charge(elements)?;
                Data::Floats(WeightSource::Bytes { bytes: Arc::new(bytes.to_vec()), element })
            }
            _ => {
                builder.charge(elements)?;
                let values = bytes.chunks_exact(size).map(|chunk| integer(chunk, tensor.element));
                match tensor.element {
                    DataType::BOOL => Data::Bools(values.map(|value| value != 0).collect()),
                    _ => Data::Ints(values.collect()),
                }
            }
        };
        Ok(Some(Constant { dims, data, stored: Some(tensor.element) }))
    }
}

/// Gives tensors that share a name different ones, with a number after it. The first keeps the name: of the model's
/// inputs, then its outputs, then all others.
fn rename_duplicates(tensors: &mut [Tensor], ends: impl Iterator<Item = usize>) {
    let mut names = Names::taken(tensors.iter().map(|tensor| tensor.name.clone()));
    let (mut named, mut kept) = (vec![false; tensors.len()], BTreeSet::new());
    for index in ends.chain(0..tensors.len()) {
        let tensor = &mut tensors[index];
        if !std::mem::replace(&mut named[index], true) && !kept.insert(tensor.name.clone()) {
            tensor.name = names.unique(&tensor.name);
        }
    }
}

/// A sparse constant of floats with its zeros.
fn dense(
    sparsity: &Record,
    dims: Vec<usize>,
    bytes: &[u8],
    float: Option<StoredElement>,
) -> Result<Constant, Fault> {
    let Some(float) = float else {
        return Err(Fault::new("it is sparse, and has integers; csdfc reads sparse floats")
            .help("convert the model without sparsity"));
    };
    let (values, places) = (float.decode(bytes), sparse::places(sparsity, &dims)?);
    if values.len() != places.len() {
        return fault!("it is sparse: {} elements are stored, and {} are listed", values.len(), places.len());
    }
    let mut all = vec![0.0; dims.iter().product()];
    places.into_iter().zip(values).for_each(|(place, value)| all[place] = value);
    Ok(Constant::floats(dims, all))
}

/// The bytes of a buffer, which may lie beyond the flatbuffer. None if it is empty.
fn stored<'a>(buffer: &Record<'a>, file: &'a [u8]) -> Result<Option<Stored<'a>>, Fault> {
    let [offset, size] = [buffer.field::<u64>(1)?.unwrap_or(0), buffer.field::<u64>(2)?.unwrap_or(0)];
    // An offset of 1 is a writer's mark that has not been replaced.
    if offset > 1 {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let to = from.saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
        return match file.get(from..to) {
            Some(bytes) => Ok(Some(Stored { bytes, offset: from })),
            None => fault!("its {size} bytes at {offset} reach beyond the end of the file"),
        };
    }
    Ok(buffer.field::<Stored>(0)?.filter(|stored| !stored.bytes.is_empty()))
}

impl<'a> Tensor<'a> {
    fn read(index: usize, tensor: &Record<'a>) -> Result<Self, Fault> {
        let name = match tensor.field::<Stored>(3)? {
            Some(name) if !name.bytes.is_empty() => {
                String::from_utf8_lossy(&name.bytes[..name.bytes.len().min(MAX_NAME)]).into_owned()
            }
            _ => format!("tensor {index}"),
        };
        let named = |fault: Fault| Fault { reason: format!("tensor {name}: {}", fault.reason), ..fault };
        let dims = tensor.ints(0, MAX_RANK).map_err(named)?;
        let signature = tensor.ints(7, MAX_RANK).map_err(named)?;
        let dims = if signature.len() == dims.len() { signature } else { dims };
        let quantization = tensor.field::<Record>(4)?.map(|stated| Quantization::read(&stated)).transpose();
        Ok(Tensor {
            dims,
            element: codes::element(tensor.code(1)?),
            quantization: quantization.map_err(named)?.flatten(),
            is_variable: tensor.flag(5)?,
            buffer: tensor.field::<u32>(2)?.unwrap_or(0) as usize,
            sparsity: tensor.field(6)?,
            name,
        })
    }

    /// Whether its elements are integers of 8 or 16 bits that stand for numbers.
    pub fn is_quantized(&self) -> bool {
        self.quantization.is_some()
            && matches!(self.element, DataType::INT8 | DataType::UINT8 | DataType::INT16)
    }

    /// The 8-bit integers that its elements are, and what they stand for.
    pub fn integers(&self) -> Option<(InputElement, csdfc_plan::format::Quantization)> {
        let element = match self.element {
            DataType::INT8 => InputElement::I8,
            DataType::UINT8 => InputElement::U8,
            _ => return None,
        };
        Some((element, self.quantization?.single(element == InputElement::I8)?))
    }
}

impl<'a> Quantization<'a> {
    fn read(stated: &Record<'a>) -> Result<Option<Self>, Fault> {
        let scales = stated.field::<planus::Vector<'a, f32>>(2)?.filter(|scales| !scales.is_empty());
        let Some(scales) = scales else { return Ok(None) };
        let zero_points = stated.field::<planus::Vector<'a, i64>>(3)?.filter(|points| !points.is_empty());
        Ok(Some(Quantization { scales, zero_points, axis: stated.int(6, 0)? }))
    }

    /// How many scales there are.
    pub fn count(&self) -> usize {
        self.scales.len()
    }

    /// The scale and the zero point, if there is one of each. 128 is added to the zero point of signed integers.
    fn single(&self, is_signed: bool) -> Option<csdfc_plan::format::Quantization> {
        let scale = self.scales.first().filter(|scale| self.scales.len() == 1 && scale.is_normal())?;
        let point = self.zero_points.and_then(|points| points.first()).unwrap_or(0);
        let zero_point = u8::try_from(point.checked_add(if is_signed { 128 } else { 0 })?).ok()?;
        (scale > 0.0).then_some(csdfc_plan::format::Quantization { scale, zero_point })
    }

    /// The scales and the equally many zero points, as operands of ONNX's `DequantizeLinear`. Their type is that of the
    /// integers.
    pub fn operands(&self, builder: &mut Builder, element: DataType) -> Result<[Constant; 2], Fault> {
        let count = self.scales.len();
        let points = self.zero_points.map_or(0, |points| points.len());
        if points > 1 && points != count {
            return fault!("it has {points} zero points, but {count} scales");
        }
        builder.charge(count)?;
        let scales: Vec<f32> = self.scales.iter().collect();
        let points: Vec<i64> = match self.zero_points {
            Some(points) if points.len() == count => points.iter().collect(),
            Some(points) => vec![points.first().unwrap_or(0); count],
            None => vec![0; count],
        };
        let dims = if count == 1 { vec![] } else { vec![count] };
        let points = Constant { stored: Some(element), ..Constant::ints(dims.clone(), points) };
        Ok([Constant::floats(dims, scales), points])
    }
}

impl<'a> Operator<'a> {
    fn read(operator: &Record<'a>, kinds: &[codes::OperatorCode<'a>], tensors: usize) -> Result<Self, Fault> {
        let code = operator.field::<u32>(0)?.unwrap_or(0) as usize;
        let Some(kind) = kinds.get(code) else {
            return fault!("an operator has code {code}, but there are only {} codes", kinds.len());
        };
        let mut inputs = Vec::new();
        for index in operator.ints(1, MAX_OPERANDS)? {
            inputs.push(match index {
                -1 => None,
                index => Some(place(index, tensors)?),
            });
        }
        let outputs = indices(operator, 2, tensors)?;
        let custom = operator.field::<Stored>(5)?.map_or(&[][..], |stored| stored.bytes);
        Ok(Operator { kind: *kind, inputs, outputs, options: operator.field(4)?, custom })
    }
}

/// Indices of tensors.
fn indices(record: &Record, id: usize, tensors: usize) -> Result<Vec<usize>, Fault> {
    record.ints(id, MAX_OPERANDS)?.into_iter().map(|index| place(index, tensors)).collect()
}

fn place(index: i32, tensors: usize) -> Result<usize, Fault> {
    match usize::try_from(index).ok().filter(|index| *index < tensors) {
        Some(index) => Ok(index),
        None => fault!("it refers to tensor {index}, but there are {tensors}"),
    }
}

fn all(records: Records<'_>) -> Result<Vec<Record<'_>>, Fault> {
    records.iter().collect()
}
