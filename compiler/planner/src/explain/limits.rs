//! What limits a plan: the tensors of its peak, and the gain from more memory.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::driver;
//! use csdfc_planner::explain::limits;
//! use csdfc_planner::open::open;
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let plan = driver::plan(&application, &device, vec!["builtin:lenet5".into()])?.plan;
//! // The mean pool reads all of C1, and stores its own output beside it.
//! let text = limits::text(&plan);
//! assert!(text.starts_with("memory peaks while S2 fires:"), "{text}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use csdfc_input::units::grouped;
use csdfc_plan::plan::{ParetoPoint, PeakWitness, Plan, StorageModel, Tensor};

use super::table::{short, table};

/// How many of the tensors that are live at the peak are named.
const NAMED: usize = 3;

/// A few lines on the tensors or buffers that determine the memory of a plan, and on the smallest faster plan
/// that was seen.
pub fn text(plan: &Plan) -> String {
    let mut text = match (plan.storage_model, &plan.certificate.bound) {
        (StorageModel::Tensors, Some(witness)) => peak(plan, witness),
        (StorageModel::Edges, _) => largest_buffer(plan),
        _ => String::new(),
    };
    text.push_str(&next_faster(plan));
    text
}

/// The firing at which the most bytes are stored, and the largest tensors then, one per line.
fn peak(plan: &Plan, witness: &PeakWitness) -> String {
    let mut live: Vec<&Tensor> =
        plan.tensors.iter().filter(|tensor| is_in(&witness.tensors, tensor)).collect();
    live.sort_by_key(|tensor| std::cmp::Reverse(tensor.ring.map_or(0, |ring| ring.bytes)));
    let firing: Vec<String> = witness.firing.iter().map(|name| of_plan(plan, name)).collect();
    let fire = if firing.len() == 1 { "fires" } else { "fire" };
    let mut rows: Vec<Vec<String>> =
        live.iter().take(NAMED).map(|tensor| describe(plan, witness, tensor)).collect();
    if let Some(rest) = live.get(NAMED..).filter(|rest| !rest.is_empty()) {
        let bytes = rest.iter().filter_map(|tensor| tensor.ring).map(|ring| ring.bytes).sum();
        rows.push(vec![String::new(), grouped(bytes), format!("{} more", rest.len())]);
    }
    let layers = plan.cnns.iter().flat_map(|cnn| cnn.layers.iter().map(move |layer| (cnn, layer)));
    let blocks: u64 = layers
        .flat_map(|(cnn, layer)| {
            let blocks = layer.streamed.iter().flat_map(|streamed| streamed.blocks.iter().enumerate());
            blocks.map(move |(b, block)| (format!("block {b} of {}/{}", cnn.name, layer.name), block.bytes))
        })
        .filter(|(name, _)| witness.tensors.contains(name))
        .map(|(_, bytes)| bytes)
        .sum();
    if blocks > 0 {
        rows.push(vec![String::new(), grouped(blocks), "blocks of weights".into()]);
    }
    let rings: u64 = live.iter().filter_map(|tensor| tensor.ring).map(|ring| ring.bytes).sum();
    if let Some(unused @ 1..) = (rings + blocks).checked_sub(witness.bytes) {
        let why = "of rows that are not made yet, or no longer needed";
        rows.push(vec![String::new(), format!("−{}", grouped(unused)), why.into()]);
    }
    format!("memory peaks while {} {fire}:\n{}", firing.join(" and "), table(&rows, &[1]))
}

/// A tensor's bytes, its name, and why it is stored at the peak.
fn describe(plan: &Plan, witness: &PeakWitness, tensor: &Tensor) -> Vec<String> {
    let ring = tensor.ring.map_or((0, 0), |ring| (ring.ring_rows, ring.bytes));
    let fires = |layer: &String| witness.firing.contains(&format!("{}/{layer}", tensor.cnn));
    let role = if fires(&tensor.producer) {
        "its output".to_owned()
    } else if tensor.consumers.iter().any(fires) {
        "its input".to_owned()
    } else {
        let last = tensor.consumers.last().map_or("", String::as_str);
        format!("kept for {}", short(last))
    };
    let height = tensor.rows() as u64;
    let rows = if ring.0 < height { format!(", {} of {height} rows", ring.0) } else { String::new() };
    let name = format!("{}/{}", tensor.cnn, tensor.producer);
    vec![String::new(), grouped(ring.1), format!("{}, {role}{rows}", of_plan(plan, &name))]
}

/// A name `cnn/layer`, without the CNN if there is only one, and short.
fn of_plan(plan: &Plan, name: &str) -> String {
    short(match plan.cnns.as_slice() {
        [cnn] => name.strip_prefix(&cnn.name).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name),
        _ => name,
    })
}

fn is_in(names: &[String], tensor: &Tensor) -> bool {
    names.iter().any(|name| {
        name.strip_prefix(&tensor.cnn).and_then(|rest| rest.strip_prefix('/')) == Some(tensor.name.as_str())
    })
}

/// The largest buffer of model `edges`, and the edge that makes it so large.
fn largest_buffer(plan: &Plan) -> String {
    let Some(buffer) = plan.buffers.iter().max_by_key(|buffer| buffer.bytes) else { return String::new() };
    let Some(edge) = buffer.holds.iter().max_by_key(|edge| edge.bytes) else { return String::new() };
    let producer = plan.tensors.iter().find(|tensor| tensor.cnn == edge.cnn && tensor.name == edge.tensor);
    let producer = producer.map_or(edge.tensor.as_str(), |tensor| tensor.producer.as_str());
    let name = format!("{}/{producer}", edge.cnn);
    format!(
        "the largest buffer is {}, of {} bytes for {}→{}\n",
        buffer.name,
        grouped(buffer.bytes),
        of_plan(plan, &name),
        short(&edge.consumer)
    )
}

/// The least gain in fps that is worth a line.
const GAIN: f64 = 0.01;

/// The smallest of the faster plans that were seen.
fn next_faster(plan: &Plan) -> String {
    let gains = |point: &ParetoPoint| -> Option<Vec<(String, f64)>> {
        let gain =
            |cnn: &csdfc_plan::plan::Cnn| Some((cnn.name.clone(), point.fps.get(&cnn.name)? / cnn.fps - 1.0));
        plan.cnns.iter().map(gain).collect()
    };
    // A rate that was computed in another order differs in its last digits.
    let is_faster = |gains: &[(String, f64)]| {
        gains.iter().all(|(_, gain)| *gain > -1e-9) && gains.iter().any(|(_, gain)| *gain >= GAIN)
    };
    let faster = plan.pareto.iter().enumerate().filter_map(|(i, point)| {
        let gains = gains(point).filter(|gains| is_faster(gains))?;
        let more = point.memory.checked_sub(plan.memory.total).filter(|more| *more > 0)?;
        Some((more, i, gains))
    });
    let Some((more, i, gains)) = faster.min_by_key(|(more, ..)| *more) else {
        let none = "no plan that was seen is faster by 1 % or more\n";
        return if plan.pareto.len() > 1 { none.into() } else { String::new() };
    };
    let bought: Vec<String> = gains
        .iter()
        .filter(|(_, gain)| *gain >= GAIN)
        .map(|(name, gain)| match plan.cnns.len() {
            1 => format!("{} more fps", percent(*gain)),
            _ => format!("{} more fps of {name}", percent(*gain)),
        })
        .collect();
    format!("with {} bytes more, plan {} has {}\n", grouped(more), i + 1, bought.join(", "))
}

/// A share of at least [`GAIN`], in two digits.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = usize::from(percent < 10.0);
    format!("{percent:.decimals$} %")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use csdfc_input::device::DeviceProfile;

    use super::text;
    use crate::driver;
    use crate::open::open;

    #[test]
    fn long_names_lose_their_middle() {
        let application = open("builtin:lenet5").unwrap().resolve().unwrap();
        let device = DeviceProfile::find("generic", Path::new("")).unwrap();
        let mut plan = driver::plan(&application, &device, vec!["builtin:lenet5".into()]).unwrap().plan;
        let expected = text(&plan);
        // As TFLite joins the names of fused operators.
        let long = |name: &str| format!("{}{name}", "model/block/conv/BiasAdd;".repeat(9));
        for tensor in &mut plan.tensors {
            tensor.producer = long(&tensor.producer);
            tensor.consumers.iter_mut().for_each(|name| *name = long(name));
        }
        for name in &mut plan.certificate.bound.as_mut().unwrap().firing {
            *name = format!("lenet5/{}", long(&name["lenet5/".len()..]));
        }
        let found = text(&plan);
        assert_eq!(found.lines().count(), expected.lines().count());
        for role in ["while model/block/", "BiasAdd;S2 fires:", "its output", "its input"] {
            assert!(found.contains(role), "{role}: {found}");
        }
        assert!(found.lines().all(|line| line.chars().count() < 120), "{found}");
    }
}
