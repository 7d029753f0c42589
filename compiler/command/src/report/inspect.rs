//! A model as a table: layers, shapes, multiply-accumulates, parameters, memory.

use csdfc_input::app::resolve::Application;
use csdfc_input::units::{self, grouped};
use csdfc_network::operators;
use csdfc_plan::plan::StorageModel;
use csdfc_planner::explain::table::table;
use csdfc_planner::frame::choice::Choice;
use csdfc_planner::frame::execution::{Rings, execute};
use csdfc_planner::frame::lower::RateTable;
use csdfc_planner::frame::request::Request;
use csdfc_planner::frame::task;
use csdfc_planner::storage::{self, Effort, Storage};
use serde::Serialize;

use crate::error::Error;

/// The result of `inspect` for an application.
#[derive(Debug, Serialize)]
pub struct Inspection {
    /// The CNNs.
    pub cnns: Vec<CnnInspection>,
}

/// The result of `inspect` for a CNN; sizes in bytes.
#[derive(Debug, Serialize)]
pub struct CnnInspection {
    /// Its name.
    pub name: String,
    /// Its layers after folding.
    pub layers: Vec<LayerInspection>,
    /// Elements of all weights and biases.
    pub parameters: u64,
    /// Their bytes.
    pub parameter_bytes: u64,
    /// Multiply-accumulates of one frame.
    pub macs: u64,
    /// The memory of its tensors without processing by parts, by storage model.
    pub memory: Vec<MemoryInspection>,
}

/// The memory of a CNN's buffers without processing by parts, in bytes.
#[derive(Debug, Serialize)]
pub struct MemoryInspection {
    /// The storage model.
    pub storage_model: StorageModel,
    /// Every edge or tensor in a place of its own.
    pub naive: u64,
    /// Reused.
    pub buffers: u64,
    /// No placement takes less.
    pub bound: u64,
}

/// The result of `inspect` for a layer.
#[derive(Debug, Serialize)]
pub struct LayerInspection {
    /// Its name.
    pub name: String,
    /// Its operator, with what is fused into it.
    pub op: String,
    /// Names of the layers that it reads.
    pub inputs: Vec<String>,
    /// Shape of its output.
    pub output_shape: Vec<usize>,
    /// Rows of its output.
    pub rows: usize,
    /// Bytes of its output.
    pub output_bytes: u64,
    /// Multiply-accumulates of one frame.
    pub macs: u64,
    /// Elements of its weights and biases.
    pub parameters: u64,
}

/// Inspects every CNN of an application. `other` is the same application in the other storage model.
///
/// # Errors
/// Those of the dataflow analyses.
pub fn inspect(application: &Application, other: &Application) -> Result<Inspection, Error> {
    let mut cnns = Vec::new();
    let tasks = task::tasks(application).into_iter().zip(task::tasks(other));
    for (cnn, (task, other_task)) in application.cnns.iter().zip(tasks) {
        let network = task.network;
        let layers = network.layers.iter().map(|layer| LayerInspection {
            name: layer.name.clone(),
            op: operator_name(&layer.operator),
            inputs: layer.inputs.iter().map(|operand| network.layer(operand.layer).name.clone()).collect(),
            output_shape: layer.shape.dims.clone(),
            rows: layer.rows(),
            output_bytes: layer.tensor_bytes(),
            macs: operators::macs(&layer.operator, &layer.input_shapes(), &layer.shape),
            parameters: layer.parameter_elements(),
        });
        let layers: Vec<LayerInspection> = layers.collect();
        let mut memory = Vec::new();
        for model in [StorageModel::Tensors, StorageModel::Edges] {
            let task = if model == application.storage { &task } else { &other_task };
            let network = task.network;
            let rates = RateTable::new(network);
            let execution = execute(task, &rates, &Choice::none(network), model, Rings::OnDemand)?;
            let elements: Vec<Vec<(usize, usize)>> = Vec::new();
            let alone = Storage { executions: vec![&execution], elements: &elements };
            let arrangement = storage::arrange(&alone, model, Effort::Final);
            let whole = |request: &Request| network.layer(request.tensor).tensor_bytes();
            memory.push(MemoryInspection {
                storage_model: model,
                naive: execution.requests.iter().filter(|request| request.is_ring()).map(whole).sum(),
                buffers: arrangement.bytes,
                bound: arrangement.bound.bytes,
            });
        }
        cnns.push(CnnInspection {
            name: cnn.name.clone(),
            parameters: network.parameters(),
            parameter_bytes: network.parameter_bytes(),
            macs: layers.iter().map(|layer| layer.macs).sum(),
            layers,
            memory,
        });
    }
    Ok(Inspection { cnns })
}

fn operator_name(operator: &csdfc_plan::operator::Operator) -> String {
    let function = |function: &csdfc_plan::operator::Function| {
        let value = serde_json::to_value(function).ok();
        value.and_then(|value| value["function"].as_str().map(str::to_owned)).unwrap_or_default()
    };
    use csdfc_plan::operator::{Conv, Operator};
    let mut name = match operator {
        Operator::ElementWise(element_wise) => function(&element_wise.function),
        Operator::Binary(binary) => format!("{:?}", binary.function).to_lowercase(),
        Operator::Conv(conv) => {
            let [height, width] = conv.kernel;
            let kind = if conv.groups > 1 { "conv/g" } else { "conv" };
            format!("{kind} {height}×{width}")
        }
        other => other.kind().to_owned(),
    };
    if let Operator::Conv(Conv { pre: Some(pre), .. }) = operator {
        let norm = pre.affine.then(|| "batch_norm".to_owned());
        let before: Vec<String> = norm.into_iter().chain(pre.activation.as_ref().map(function)).collect();
        name = format!("{} + {name}", before.join(" + "));
    }
    if matches!(operator, Operator::Conv(conv) if conv.residual) {
        name.push_str(" + add");
    }
    if let Some(activation) = operator.activation() {
        name.push_str(" + ");
        name.push_str(&function(activation));
    }
    name
}

/// The inspection as text.
pub fn text(inspection: &Inspection) -> String {
    let mut text = String::new();
    for cnn in &inspection.cnns {
        let header = ["layer", "operator", "output", "MACs", "parameters"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for layer in &cnn.layers {
            let dims: Vec<String> = layer.output_shape.iter().map(usize::to_string).collect();
            let blank_zero = |n: u64| if n == 0 { String::new() } else { grouped(n) };
            rows.push(vec![
                layer.name.clone(),
                layer.op.clone(),
                dims.join("×"),
                blank_zero(layer.macs),
                blank_zero(layer.parameters),
            ]);
        }
        let layers = cnn.layers.len().to_string();
        rows.push(vec!["total".into(), layers, String::new(), grouped(cnn.macs), grouped(cnn.parameters)]);
        text.push_str(&format!("{}\n", cnn.name));
        text.push_str(&table(&rows, &[3, 4]));
        text.push_str(&format!("\nparameters {}\n", units::bytes(cnn.parameter_bytes)));
        let header = ["buffers, no parts", "without reuse", "reused", "liveness bound"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for memory in &cnn.memory {
            let figures = [memory.naive, memory.buffers, memory.bound].map(grouped);
            rows.push([vec![format!("  model {}", memory.storage_model)], figures.to_vec()].concat());
        }
        text.push_str(&table(&rows, &[1, 2, 3]));
        text.push('\n');
    }
    text
}
