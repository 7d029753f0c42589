//! The shapes of a network's inputs. The user's shapes complete and override those of the model.

use std::collections::BTreeMap;

use csdfc_plan::operator::{Input, InputElement, Operator};
use csdfc_plan::shape::{Order, Shape};
use rten_onnx::onnx::{DataType, Dimension, ValueInfoProto};

use super::ImportOptions;
use super::builder::{Builder, CHANNELS_LAST_TO_FIRST};
use super::constant::{Constant, float, type_name};
use super::error::ImportError;
use super::node::{Tensor, Value};
use csdfc_network::Network;

/// Maximum number of elements of an input of integers that is a constant.
const MAX_INTEGERS: usize = 1 << 20;

/// A network input of the model.
pub(super) struct InputSeat<'a> {
    pub name: &'a str,
    pub info: &'a ValueInfoProto,
    /// Whether all its readers are Transposes to channels-first.
    pub channels_last: bool,
}

/// What the user gives of the inputs' shapes.
#[derive(Default)]
pub(super) struct Given<'a> {
    /// By input.
    shapes: BTreeMap<&'a str, &'a [usize]>,
    /// By the name of a dimension that the model leaves open.
    dims: BTreeMap<&'a str, usize>,
    /// The number that all elements of an input are, by input.
    values: BTreeMap<&'a str, f64>,
    /// Frames that a call takes, if the user says how many.
    asked: Option<usize>,
    /// Frames that the model has of its inputs; 1 if it is imported as it is.
    batch: usize,
}

/// What the user gives of the shapes of these inputs, each with its dimensions if it states them. `batch` is as for
/// [`with_batch`].
pub(super) fn given<'a>(
    model: &str,
    inputs: &[(&'a str, Option<&'a [Dimension]>)],
    options: &'a ImportOptions,
    batch: usize,
) -> Result<Given<'a>, ImportError> {
    let open = || inputs.iter().flat_map(|(_, dims)| dims.unwrap_or_default());
    let open: Vec<&str> = open().filter_map(|dim| dim.dim_param.as_deref()).collect();
    let mut given = Given { asked: options.batch, batch, ..Given::default() };
    for (name, dims) in &options.shapes {
        let input = match inputs {
            [(only, _)] if name.is_empty() => Some(*only),
            _ => inputs.iter().map(|(input, _)| *input).find(|input| input == name),
        };
        match (input, dims.as_slice()) {
            (Some(input), dims) => _ = given.shapes.insert(input, dims),
            (None, [size]) if open.contains(&name.as_str()) => _ = given.dims.insert(name, *size),
            _ => {
                let inputs: Vec<&str> = inputs.iter().map(|(input, _)| *input).collect();
                return Err(unknown(model, name, &inputs, &open));
            }
        }
    }
    // A dimension of one name has one size. That of a batch is 1.
    for (input, dims) in inputs.iter().filter_map(|(input, dims)| Some((*input, (*dims)?))) {
        let sizes = given.shapes.get(input).copied().unwrap_or(if dims.len() > 1 { &[1] } else { &[] });
        for (dim, size) in dims.iter().zip(sizes) {
            if let Some(name) = dim.dim_param.as_deref().filter(|name| !name.is_empty()) {
                given.dims.entry(name).or_insert(*size);
            }
        }
    }
    for (name, value) in &options.values {
        let Some((input, _)) = inputs.iter().find(|(input, _)| input == name) else {
            let inputs: Vec<&str> = inputs.iter().map(|(input, _)| *input).collect();
            return Err(unknown(model, name, &inputs, &[]));
        };
        given.values.insert(input, *value);
    }
    Ok(given)
}

/// The error for a shape that belongs to no input, and to none of the dimensions that have a name.
fn unknown(model: &str, given: &str, inputs: &[&str], open: &[&str]) -> ImportError {
    let model = model.to_string();
    let all = inputs.join(", ");
    if given.is_empty() {
        let reason = format!("a shape is given without a name, but it has {} inputs", inputs.len());
        return ImportError::Graph {
            model,
            reason,
            help: format!("give --shape INPUT=…; the inputs are {all}"),
        };
    }
    let near = inputs.iter().chain(open).map(|name| (strsim::jaro_winkler(name, given), name));
    let near = near.filter(|(score, name)| *score > 0.7 && !name.is_empty());
    let help = match near.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((_, name)) => format!("did you mean {name}?"),
        None => format!("the model's inputs are {all}"),
    };
    ImportError::UnknownInput { model, input: given.to_string(), help }
}

/// The dimensions that an input states.
pub(super) fn declared(info: &ValueInfoProto) -> Option<&[Dimension]> {
    Some(info.r#type.as_ref()?.tensor_type.as_ref()?.shape.as_ref()?.dim.as_slice())
}

/// Those of a model's inputs that are not layers of its network.
pub(super) fn unused(names: &[&str], network: &Network) -> Vec<String> {
    let is_layer = |name: &str| {
        let mut inputs = network.layers.iter().filter(|layer| matches!(layer.operator, Operator::Input(_)));
        inputs.any(|layer| layer.name == name)
    };
    names.iter().filter(|name| !is_layer(name)).map(|name| (*name).to_string()).collect()
}

/// Adds the layer that delivers an input; or, if the user gives the number that it is, only makes a constant.
pub(super) fn add(
    model: &str,
    builder: &mut Builder,
    seat: &InputSeat,
    given: &Given,
) -> Result<Value, ImportError> {
    let wrong = |reason: String, help: String| ImportError::Input {
        model: model.to_string(),
        input: seat.name.to_string(),
        reason,
        help,
    };
    let tensor = seat.info.r#type.as_ref().and_then(|kind| kind.tensor_type.as_ref());
    let Some(tensor) = tensor else {
        return Err(wrong("it is no tensor".into(), "csdfc plans tensors only".into()));
    };
    let element = tensor.elem_type.unwrap_or(DataType(0));
    // Floats hold integers.
    let is_integer = matches!(
        element,
        DataType::UINT8
            | DataType::INT8
            | DataType::UINT16
            | DataType::INT16
            | DataType::UINT32
            | DataType::INT32
            | DataType::UINT64
            | DataType::INT64
            | DataType::BOOL
    );
    if float(element).is_none() && !is_integer {
        let reason = format!("its elements are {}, neither floats nor integers", type_name(element));
        let help = "cut the model behind what turns them into numbers (onnx.utils.extract_model), and do that before the run";
        return Err(wrong(reason, help.into()));
    }
    let declared = declared(seat.info);
    let dims = match given.shapes.get(seat.name) {
        Some(given) => {
            if let Some(declared) = declared.filter(|declared| declared.len() != given.len()) {
                let reason =
                    format!("--shape gives {} dimensions, the model has {}", given.len(), listed(declared));
                return Err(wrong(reason, format!("give all {} dimensions", declared.len())));
            }
            given.to_vec()
        }
        None => {
            static_dims(seat.name, declared, &given.dims).map_err(|(reason, help)| wrong(reason, help))?
        }
    };
    if let Some(value) = given.values.get(seat.name) {
        return constant(dims, *value, element).map(Value::Constant).map_err(|reason| {
            wrong(reason, format!("give a number that it can hold: --value {}=1", seat.name))
        });
    }
    let stated = declared.and_then(|dims| dims.first()?.dim_value).and_then(|dim| usize::try_from(dim).ok());
    if let Some((first, rest)) = dims.split_first()
        && has_batch(&dims)
        && given.shapes.contains_key(seat.name)
        && stated != Some(*first)
    {
        let rest: String = rest.iter().map(|dim| format!(",{dim}")).collect();
        let help = format!(
            "give the shape of one frame, and how many a call takes: --shape {}=1{rest} --batch {first}",
            seat.name
        );
        return Err(wrong(format!("--shape gives a batch of {first}"), help));
    }
    let dims = one_frame(dims, stated, given).map_err(|batch| ImportError::Batch {
        model: model.to_string(),
        input: seat.name.to_string(),
        batch,
        reason: String::new(),
        help: String::new(),
    })?;
    let last = seat.channels_last && dims.len() == CHANNELS_LAST_TO_FIRST.len() && dims[0] == 1;
    let order = if last { Order::ChannelsLast } else { Order::ChannelsFirst };
    let operator = Operator::Input(Input { element: InputElement::F32, camera: None });
    let input = builder
        .input(seat.name, operator, Shape { dims, order })
        .map_err(|fault| wrong(fault.reason, "give other dimensions with --shape".into()))?;
    let input = Tensor { batch: given.batch, ..input };
    Ok(Value::Tensor(if is_integer { input.as_integers(element) } else { input }))
}

/// Whether the first of these dimensions is a batch. Tensors of rank 1 and 3 may as well have none.
fn has_batch(dims: &[usize]) -> bool {
    matches!(dims.len(), 2 | 4..) && dims[0] > 1
}

/// The dimensions of one frame of an input, whose first dimension the model perhaps states. `Err` with the batch that it
/// has, unless it is that of the model.
fn one_frame(mut dims: Vec<usize>, stated: Option<usize>, given: &Given) -> Result<Vec<usize>, usize> {
    let Some(first) = dims.first_mut() else { return if given.batch > 1 { Err(1) } else { Ok(dims) } };
    // A batch of 1 may be given beside the model's own.
    let of_model = stated.filter(|stated| *first == *stated || (*first == 1 && given.asked == Some(*stated)));
    if given.batch > 1 {
        return match of_model == Some(given.batch) {
            true => {
                *first = 1;
                Ok(dims)
            }
            false => Err(*first),
        };
    }
    match of_model.filter(|batch| *batch > 1 && given.asked == Some(*batch)) {
        Some(batch) => Err(batch),
        None if has_batch(&dims) => Err(dims[0]),
        None => Ok(dims),
    }
}

/// A constant of these dimensions, all of whose elements are one number.
fn constant(dims: Vec<usize>, value: f64, element: DataType) -> Result<Constant, String> {
    let elements: usize = dims.iter().product();
    if float(element).is_some() {
        return Ok(Constant::filled(dims, value as f32));
    }
    if value.fract() != 0.0 || value.abs() > i32::MAX.into() {
        return Err(format!("its elements are {}, which do not hold {value}", type_name(element)));
    }
    if elements > MAX_INTEGERS {
        return Err(format!("it has {elements} integers; csdfc keeps at most {MAX_INTEGERS}"));
    }
    Ok(match element {
        DataType::BOOL => Constant::bools(dims, vec![value != 0.0; elements]),
        _ => Constant::ints(dims, vec![value as i64; elements]),
    })
}

/// What `build` makes of one frame of a model, and the frames that a call takes. `build` is told the batch of the model: 1
/// at first, and if it finds another then that, of which it makes one frame. Inputs come before constants, which can be
/// read once only.
pub(super) fn with_batch<T>(
    options: &ImportOptions,
    build: impl Fn(usize) -> Result<T, ImportError>,
) -> Result<(T, usize), ImportError> {
    let (model, input, batch) = match build(1) {
        Ok(built) => return Ok((built, options.batch.unwrap_or(1))),
        Err(ImportError::Batch { model, input, batch, .. }) => (model, input, batch),
        Err(why) => return Err(why),
    };
    let wrong = |reason: String, help: String| ImportError::Batch {
        model: model.clone(),
        input: input.clone(),
        batch,
        reason,
        help,
    };
    if let Some(asked) = options.batch.filter(|asked| *asked != batch) {
        let reason = format!("but a call is to take {asked} frames");
        return Err(wrong(reason, format!("leave out --batch, or give --batch {batch}")));
    }
    let built = build(batch).map_err(|why| {
        let why = match why {
            ImportError::Batch { input, batch, .. } => format!("input {input} has a batch of {batch}"),
            why => {
                let why = why.to_string();
                why.strip_prefix(&format!("{model}: ")).unwrap_or(&why).to_string()
            }
        };
        let reason = format!("and csdfc cannot compute its frames one after another: {why}");
        let help = "export the model with a batch of 1, or with one that is left open (dynamic_shapes or dynamic_axes of \
                    torch.onnx.export), or give every input a batch of 1 with --shape";
        wrong(reason, help.into())
    })?;
    Ok((built, batch))
}

/// The declared dimensions with a dynamic batch of 1. Dimensions of a given name have the given size.
fn static_dims(
    name: &str,
    declared: Option<&[Dimension]>,
    given: &BTreeMap<&str, usize>,
) -> Result<Vec<usize>, (String, String)> {
    let Some(declared) = declared else {
        return Err((
            "the model does not state its shape".into(),
            format!("give it with --shape, for instance --shape {name}=1,3,224,224"),
        ));
    };
    // Some exporters write a batch of 0 for any batch.
    if let Some(axis) = (1..declared.len()).find(|axis| declared[*axis].dim_value == Some(0)) {
        return Err((
            format!("dimension {axis} of its shape {} is 0: there is nothing to compute", listed(declared)),
            format!("give it another size with --shape {name}=…, or export the model anew"),
        ));
    }
    let mut dims = Vec::with_capacity(declared.len());
    let mut open = false;
    for (i, dim) in declared.iter().enumerate() {
        let named = dim.dim_param.as_deref().and_then(|name| given.get(name).copied());
        let stated = dim.dim_value.and_then(|value| usize::try_from(value).ok());
        match named.or(stated).filter(|value| *value > 0) {
            Some(value) => dims.push(value),
            None => {
                open |= i > 0;
                dims.push(1);
            }
        }
    }
    if !open {
        return Ok(dims);
    }
    // Models mostly leave the height and width of an image open.
    let example = |(i, dim): (usize, &Dimension)| match dims[i] {
        _ if i == 0 || is_static(dim) => dims[i].to_string(),
        _ if i >= 2 && dims.len() == 4 => "224".into(),
        _ => "16".into(),
    };
    let example: Vec<String> = declared.iter().enumerate().map(example).collect();
    Err((
        format!("its shape {} is dynamic", listed(declared)),
        format!("give every dimension a number, such as --shape {name}={}", example.join(",")),
    ))
}

fn is_static(dim: &Dimension) -> bool {
    dim.dim_value.is_some_and(|value| value > 0)
}

/// Dimensions as the model declares them: `[batch, 3, ?, ?]`.
fn listed(declared: &[Dimension]) -> String {
    let dims: Vec<String> = declared
        .iter()
        .map(|dim| match (&dim.dim_value, &dim.dim_param) {
            (Some(value), _) if *value >= 0 => value.to_string(),
            (_, Some(name)) if !name.is_empty() => name.clone(),
            _ => "?".into(),
        })
        .collect();
    format!("[{}]", dims.join(", "))
}
