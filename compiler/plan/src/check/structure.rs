//! Rule 1: names, lists, partitions and sizes fit each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::format::{Element, Layout, Quantization};
use crate::operator::{InputElement, Operator};
use crate::plan::{Cnn, FORMAT, MAX_BATCH, Partition, Plan, StorageModel, Tensor};
use crate::shape::Shape;

use super::index::{CnnIndex, Index, LayerIndex, PartitionIndex};
use super::{
    Findings, MAX_ELEMENTS, MAX_NAMES, MAX_PARTITIONS, MAX_RANK, MAX_ROWS, MAX_THREADS, Violation, stream,
};

/// Resolves all names and checks all lists and sizes.
pub(super) fn check(plan: &Plan) -> Result<Index<'_>, Vec<Violation>> {
    check_size(plan)?;
    check_names(plan)?;
    check_shapes(plan)?;
    let partitions = partitions(plan)?;
    let ids: BTreeMap<&str, usize> =
        partitions.iter().enumerate().map(|(i, entry)| (entry.partition.name.as_str(), i)).collect();
    let mut tensors: BTreeMap<&str, BTreeMap<&str, &Tensor>> = BTreeMap::new();
    for tensor in &plan.tensors {
        tensors.entry(&tensor.cnn).or_default().insert(&tensor.name, tensor);
    }
    let mut findings = Findings::default();
    let mut cnns = Vec::new();
    for (i, cnn) in plan.cnns.iter().enumerate() {
        let own = (0..partitions.len()).filter(|&p| partitions[p].cnn == i).collect();
        let tensors = tensors.remove(cnn.name.as_str()).unwrap_or_default();
        cnns.extend(resolve(cnn, &tensors, own, &ids, &mut findings));
    }
    let mut index = findings.or(Index { plan, cnns, partitions, concurrent: Vec::new() })?;
    index.concurrent = concurrency(plan, &mut index.cnns, &index.partitions, &ids)?;
    for cnn in &mut index.cnns {
        cnn.over_time = stream::over_time(cnn);
    }
    let mut findings = Findings::default();
    for (i, cnn) in index.cnns.iter().enumerate() {
        check_partitions(&index, cnn, &mut findings);
        check_ends(cnn, &mut findings);
        for l in 0..cnn.layers.len() {
            check_tensor(&index, i, l, &mut findings);
        }
    }
    findings.or(index)
}

fn check_size(plan: &Plan) -> Result<(), Vec<Violation>> {
    let mut findings = Findings::default();
    if plan.format != crate::plan::FORMAT {
        findings.push(Violation::Format { found: plan.format.clone(), known: FORMAT.into() });
    }
    let layers: usize = plan.cnns.iter().map(|cnn| cnn.layers.len()).sum();
    let operands: usize = plan.cnns.iter().flat_map(|cnn| &cnn.layers).map(|layer| layer.inputs.len()).sum();
    let edges: usize = plan.buffers.iter().map(|buffer| buffer.holds.len()).sum();
    for (what, count, limit) in [
        ("the number of partitions", plan.partitions.len(), MAX_PARTITIONS),
        ("the number of CNNs", plan.cnns.len(), MAX_PARTITIONS),
        ("the number of elements of `parallel`", plan.parallel.len(), MAX_NAMES),
        ("the number of layers", layers, MAX_NAMES),
        ("the number of operands", operands, MAX_NAMES * 2),
        ("the number of tensors", plan.tensors.len(), MAX_NAMES),
        ("the number of buffers", plan.buffers.len(), MAX_NAMES),
        ("the number of edges", edges, MAX_NAMES * 2),
        ("the number of threads", plan.threads, MAX_THREADS),
    ] {
        findings.limit(what, Some(count as u64), limit as u64);
    }
    if plan.threads == 0 {
        findings.push(Violation::Sum {
            what: "threads".into(),
            stated: "0".into(),
            expected: "at least 1".into(),
        });
    }
    for cnn in &plan.cnns {
        let what = format!("the batch of CNN `{}`", cnn.name);
        if cnn.batch == 0 {
            findings.push(Violation::Sum { what, stated: "0".into(), expected: "at least 1".into() });
        } else {
            findings.limit(what, Some(cnn.batch), MAX_BATCH);
        }
        if cnn.batch > 1 && (cnn.stream.is_some() || !cnn.states.is_empty()) {
            let why = "it has a batch, but keeps something from frame to frame".into();
            findings.push(Violation::Structure { place: format!("CNN `{}`", cnn.name), why });
        }
    }
    findings.or(())
}

fn check_names(plan: &Plan) -> Result<(), Vec<Violation>> {
    fn unique<'a>(kind: &str, names: impl Iterator<Item = &'a String>, findings: &mut Findings) {
        let mut seen = BTreeSet::new();
        for name in names {
            if !seen.insert(name) {
                findings.push(Violation::DuplicateName { kind: kind.into(), name: name.clone() });
            }
        }
    }
    let mut findings = Findings::default();
    unique("CNN", plan.cnns.iter().map(|cnn| &cnn.name), &mut findings);
    unique("partition", plan.partitions.iter().map(|partition| &partition.name), &mut findings);
    unique("buffer", plan.buffers.iter().map(|buffer| &buffer.name), &mut findings);
    let cnns: BTreeSet<&String> = plan.cnns.iter().map(|cnn| &cnn.name).collect();
    let mut tensors: BTreeMap<&String, Vec<&String>> = BTreeMap::new();
    for tensor in &plan.tensors {
        tensors.entry(&tensor.cnn).or_default().push(&tensor.name);
        if !cnns.contains(&tensor.cnn) {
            let place = format!("tensor `{}`", tensor.name);
            findings.push(Violation::UnknownName { kind: "CNN".into(), name: tensor.cnn.clone(), place });
        }
    }
    for names in tensors.values() {
        unique("tensor", names.iter().copied(), &mut findings);
    }
    for cnn in &plan.cnns {
        unique("layer", cnn.layers.iter().map(|layer| &layer.name), &mut findings);
        unique("tensor produced", cnn.layers.iter().map(|layer| &layer.output), &mut findings);
        unique("output", cnn.outputs.iter().map(|output| &output.name), &mut findings);
        unique("input", cnn.inputs.iter(), &mut findings);
        unique("input of a state", cnn.states.iter().map(|state| &state.input), &mut findings);
        unique("output of a state", cnn.states.iter().map(|state| &state.output), &mut findings);
    }
    findings.or(())
}

/// Checks that all shapes are small enough for later checks to multiply their dimensions.
fn check_shapes(plan: &Plan) -> Result<(), Vec<Violation>> {
    let mut findings = Findings::default();
    let mut shape = |shape: &Shape, place: &dyn Fn() -> String| {
        let elements = shape.dims.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim as u64));
        if shape.dims.contains(&0) {
            findings.push(Violation::Structure { place: place(), why: format!("{shape} has no elements") });
            return;
        }
        findings.limit(format!("rank of {}", place()), Some(shape.rank() as u64), MAX_RANK as u64);
        findings.limit(format!("elements of {}", place()), elements, MAX_ELEMENTS);
        if elements.is_some_and(|elements| elements <= MAX_ELEMENTS) {
            findings.limit(format!("rows of {}", place()), Some(shape.rows() as u64), MAX_ROWS);
        }
    };
    for tensor in &plan.tensors {
        shape(&tensor.shape, &|| format!("tensor `{}/{}`", tensor.cnn, tensor.name));
    }
    for cnn in &plan.cnns {
        for layer in &cnn.layers {
            shape(&layer.output_shape, &|| format!("the output of `{}/{}`", cnn.name, layer.name));
            for view in layer.inputs.iter().filter_map(|input| input.view.as_ref()) {
                shape(view, &|| format!("a view of layer `{}/{}`", cnn.name, layer.name));
            }
        }
        for output in &cnn.outputs {
            if let Some(view) = &output.view {
                shape(view, &|| format!("the view of output `{}/{}`", cnn.name, output.name));
            }
        }
    }
    findings.or(())
}

fn partitions(plan: &Plan) -> Result<Vec<PartitionIndex<'_>>, Vec<Violation>> {
    let mut findings = Findings::default();
    let cnn_of = |partition: &Partition| plan.cnns.iter().position(|cnn| cnn.name == partition.cnn);
    let mut resolved = Vec::new();
    for partition in &plan.partitions {
        match cnn_of(partition) {
            Some(cnn) => resolved.push(PartitionIndex { partition, cnn }),
            None => findings.push(Violation::UnknownName {
                kind: "CNN".into(),
                name: partition.cnn.clone(),
                place: format!("partition `{}`", partition.name),
            }),
        }
    }
    findings.or(resolved)
}

/// The CNN with its names resolved, or nothing with findings pushed.
fn resolve<'a>(
    cnn: &'a Cnn,
    tensors: &BTreeMap<&str, &'a Tensor>,
    partitions: Vec<usize>,
    partition_ids: &BTreeMap<&str, usize>,
    findings: &mut Findings,
) -> Option<CnnIndex<'a>> {
    let mut own = Findings::default();
    let producers: BTreeMap<&str, usize> =
        cnn.layers.iter().enumerate().map(|(l, layer)| (layer.output.as_str(), l)).collect();
    let names: BTreeMap<&str, usize> =
        cnn.layers.iter().enumerate().map(|(l, layer)| (layer.name.as_str(), l)).collect();
    let unknown = |kind: &str, name: &str, place: String| Violation::UnknownName {
        kind: kind.into(),
        name: name.into(),
        place,
    };
    for tensor in tensors.values().filter(|tensor| !producers.contains_key(tensor.name.as_str())) {
        let why = "no layer produces it".into();
        own.push(Violation::Tensor { cnn: cnn.name.clone(), tensor: tensor.name.clone(), why });
    }
    let mut layers: Vec<LayerIndex<'a>> = Vec::new();
    for (l, layer) in cnn.layers.iter().enumerate() {
        let place = || format!("layer `{}/{}`", cnn.name, layer.name);
        let tensor = tensors.get(layer.output.as_str());
        let partition = partition_ids.get(layer.partition.as_str()).filter(|p| partitions.contains(p));
        if tensor.is_none() {
            own.push(unknown("tensor", &layer.output, place()));
        }
        if partition.is_none() {
            own.push(unknown("partition of its CNN", &layer.partition, place()));
        }
        let mut inputs = Vec::new();
        for input in &layer.inputs {
            match producers.get(input.tensor.as_str()) {
                Some(&producer) if producer < l => inputs.push(producer),
                Some(_) => own.push(Violation::NotTopological {
                    cnn: cnn.name.clone(),
                    layer: layer.name.clone(),
                    tensor: input.tensor.clone(),
                }),
                None => own.push(unknown("tensor", &input.tensor, place())),
            }
        }
        let owner = layer.parameters_of.as_ref().and_then(|name| names.get(name.as_str()).copied());
        if let (Some(name), None) = (&layer.parameters_of, owner) {
            own.push(unknown("layer", name, place()));
        }
        if let (Some(&tensor), Some(&partition)) = (tensor, partition) {
            let is_output = cnn.outputs.iter().any(|output| output.tensor == layer.output);
            layers.push(LayerIndex {
                layer,
                tensor,
                inputs,
                readers: Vec::new(),
                partition,
                parameters_of: owner,
                is_output,
                is_state: cnn.states.iter().any(|state| state.input == layer.name),
                is_kept: cnn.states.iter().any(|state| state.tensor == layer.output),
            });
        }
    }
    for state in &cnn.states {
        let place = || format!("state `{}/{}`", cnn.name, state.output);
        if !names.contains_key(state.input.as_str()) {
            own.push(unknown("layer", &state.input, place()));
        }
        if !producers.contains_key(state.tensor.as_str()) {
            own.push(unknown("tensor", &state.tensor, place()));
        }
    }
    for output in &cnn.outputs {
        if !producers.contains_key(output.tensor.as_str()) {
            own.push(unknown("tensor", &output.tensor, format!("output `{}/{}`", cnn.name, output.name)));
        }
    }
    if let Err(violations) = own.or(()) {
        violations.into_iter().for_each(|violation| findings.push(violation));
        return None;
    }
    for l in 0..layers.len() {
        for operand in 0..layers[l].inputs.len() {
            let producer = layers[l].inputs[operand];
            if layers[producer].readers.last() != Some(&l) {
                layers[producer].readers.push(l);
            }
        }
    }
    Some(CnnIndex { cnn, layers, partitions, groups: Vec::new(), over_time: Vec::new() })
}

/// Which partitions may run at the same time; sets the groups of each CNN.
fn concurrency(
    plan: &Plan,
    cnns: &mut [CnnIndex<'_>],
    partitions: &[PartitionIndex<'_>],
    ids: &BTreeMap<&str, usize>,
) -> Result<Vec<Vec<bool>>, Vec<Violation>> {
    let mut findings = Findings::default();
    let mut used = vec![false; partitions.len()];
    let mut concurrent = vec![vec![false; partitions.len()]; partitions.len()];
    for (i, element) in plan.parallel.iter().enumerate() {
        let place = format!("element {i} of `parallel`");
        if element.is_empty() {
            findings.push(Violation::Structure { place: place.clone(), why: "it names no partition".into() });
        }
        let mut members: Vec<usize> = Vec::new();
        for name in element {
            match ids.get(name.as_str()) {
                None => findings.push(Violation::UnknownName {
                    kind: "partition".into(),
                    name: name.clone(),
                    place: place.clone(),
                }),
                Some(p) if members.contains(p) => findings.push(Violation::Structure {
                    place: place.clone(),
                    why: format!("it names partition `{name}` twice"),
                }),
                Some(&p) => members.push(p),
            }
        }
        for &p in &members {
            used[p] = true;
            for &q in members.iter().filter(|&&q| q != p) {
                concurrent[p][q] = true;
            }
        }
    }
    for (entry, _) in partitions.iter().zip(used).filter(|(_, used)| !used) {
        findings.push(Violation::Structure {
            place: format!("partition `{}`", entry.partition.name),
            why: "no element of `parallel` runs it".into(),
        });
    }
    for cnn in cnns {
        let mut rest = cnn.partitions.clone();
        while let Some(&first) = rest.first() {
            let mut group = vec![first];
            let mut next = 0;
            while let Some(&p) = group.get(next) {
                next += 1;
                let joined = rest.iter().filter(|&&q| concurrent[p][q] && !group.contains(&q));
                group.extend(joined.copied().collect::<Vec<_>>());
            }
            rest.retain(|p| !group.contains(p));
            group.sort_unstable();
            for &p in &group {
                for &q in group.iter().filter(|&&q| q != p) {
                    concurrent[p][q] = true;
                }
            }
            cnn.groups.push(group);
        }
    }
    findings.or(concurrent)
}

fn check_partitions(index: &Index<'_>, cnn: &CnnIndex<'_>, findings: &mut Findings) {
    let name = |p: usize| index.partitions[p].partition.name.clone();
    for entry in &cnn.layers {
        for &input in &entry.inputs {
            let producer = &cnn.layers[input];
            let waits = index.concurrent[producer.partition][entry.partition];
            if producer.partition > entry.partition && !waits {
                findings.push(Violation::BackwardCut {
                    cnn: cnn.cnn.name.clone(),
                    layer: entry.layer.name.clone(),
                    partition: name(entry.partition),
                    tensor: producer.tensor.name.clone(),
                    from: name(producer.partition),
                });
            }
        }
    }
    let used: BTreeSet<usize> = cnn.layers.iter().map(|entry| entry.partition).collect();
    for &p in cnn.partitions.iter().filter(|p| !used.contains(p)) {
        let why = "no layer belongs to it".into();
        findings.push(Violation::Structure { place: format!("partition `{}`", name(p)), why });
    }
}

fn check_ends(cnn: &CnnIndex<'_>, findings: &mut Findings) {
    let place = || format!("CNN `{}`", cnn.cnn.name);
    let is_input =
        |entry: &&LayerIndex<'_>| matches!(entry.layer.operator, Operator::Input(_)) && !entry.is_state;
    let expected: Vec<&String> = cnn.layers.iter().filter(is_input).map(|entry| &entry.layer.name).collect();
    if !cnn.cnn.inputs.iter().eq(expected.iter().copied()) {
        let why = format!("its inputs are the layers {expected:?}, not {:?}", cnn.cnn.inputs);
        findings.push(Violation::Structure { place: place(), why });
    }
    for output in &cnn.cnn.outputs {
        let Some(entry) = cnn.layers.iter().find(|entry| entry.tensor.name == output.tensor) else {
            continue;
        };
        if let Some(view) = &output.view {
            check_view(cnn, &format!("output {}", output.name), entry, view, findings);
        }
    }
}

fn check_view(cnn: &CnnIndex<'_>, reader: &str, of: &LayerIndex<'_>, view: &Shape, findings: &mut Findings) {
    if view.elements() != of.tensor.shape.elements() {
        findings.push(Violation::WrongView {
            cnn: cnn.cnn.name.clone(),
            reader: reader.into(),
            tensor: of.tensor.name.clone(),
            shape: of.tensor.shape.clone(),
            view: view.clone(),
        });
    }
}

/// The tensor of a layer, and the views through which the layer itself reads.
fn check_tensor(index: &Index<'_>, c: usize, l: usize, findings: &mut Findings) {
    let cnn = &index.cnns[c];
    let LayerIndex { layer, tensor, inputs, readers, is_output, is_kept, .. } = &cnn.layers[l];
    let mut wrong = |why: String| {
        findings.push(Violation::Tensor { cnn: cnn.cnn.name.clone(), tensor: tensor.name.clone(), why });
    };
    if tensor.producer != layer.name {
        wrong(format!("`{}` produces it, not `{}`", layer.name, tensor.producer));
    }
    let mut stated: Vec<&str> = tensor.consumers.iter().map(String::as_str).collect();
    let mut expected: Vec<&str> =
        readers.iter().map(|&reader| cnn.layers[reader].layer.name.as_str()).collect();
    stated.sort_unstable();
    expected.sort_unstable();
    if stated != expected {
        wrong(format!("its consumers are {expected:?}, not {stated:?}"));
    }
    if tensor.shape != layer.output_shape {
        wrong(format!("its shape is {}, but its producer makes {}", tensor.shape, layer.output_shape));
    }
    let row_bytes = tensor.format.row_bytes(&tensor.shape);
    if row_bytes != Some(tensor.row_bytes) {
        let (shape, format) = (&tensor.shape, tensor.format);
        let expected = row_bytes.map_or("more than 64 bits of".into(), |bytes| bytes.to_string());
        wrong(format!("a row of {shape}, {format}, has {expected} bytes, not {}", tensor.row_bytes));
    }
    if tensor.format.layout != Layout::Hwc && (tensor.external || !tensor.shape.is_image()) {
        let what = if tensor.external { "the caller holds it" } else { "it is no image" };
        wrong(format!("{what}, so it must lie as HWC, not {}", tensor.format.layout));
    }
    let is_input = matches!(layer.operator, Operator::Input(_));
    match tensor.format.element {
        Element::F16 if tensor.external => {
            wrong("the caller holds it, so its elements cannot be f16".into());
        }
        Element::U8 if tensor.external && is_input => {
            wrong("the caller hands it over, so its elements cannot be u8".into());
        }
        _ => {}
    }
    match (tensor.format.element, tensor.quantization) {
        (Element::U8, None) => wrong("its elements are u8, but it has no `quantization`".into()),
        (Element::U8, Some(Quantization { scale, .. })) => {
            if !(scale.is_normal() && scale > 0.0) {
                wrong(format!("its scale is {scale}, no positive normal number"));
            }
        }
        (element, Some(_)) => wrong(format!("it has a `quantization`, but its elements are {element}")),
        (_, None) => {}
    }
    let is_of_bytes = matches!(&layer.operator, Operator::Input(input) if input.element != InputElement::F32);
    let tensors_model = index.plan.storage_model == StorageModel::Tensors;
    match (tensor.external, tensor.ring) {
        (false, _) if *is_output => wrong("it is a network output, but not external".into()),
        (true, _) if !is_output && !is_input => wrong("it is external, but neither input nor output".into()),
        (true, Some(_)) if !is_output => wrong("it is delivered whole, but has a ring".into()),
        (true, Some(_)) if tensors_model && readers.is_empty() && !is_kept => {
            wrong("no layer reads it, but it has a ring".into());
        }
        (false, None) if tensors_model => wrong("it has neither a ring nor the caller's copy".into()),
        (true, None) if tensors_model && is_input && layer.rows_per_firing < tensor.rows() as u64 => {
            wrong(format!(
                "it is delivered whole, but its layer makes {} rows a firing",
                layer.rows_per_firing
            ));
        }
        (_, None) if tensors_model && index.is_cut(c, l) => {
            wrong("it goes to a partition that runs at the same time, but has no ring".into());
        }
        (true, None) if tensors_model && !is_input && !readers.is_empty() => {
            wrong("layers read it, but it has no ring".into());
        }
        (true, None) if tensors_model && is_of_bytes && !readers.is_empty() => {
            wrong("layers read what is made of its bytes, but it has no ring for that".into());
        }
        (_, Some(_)) if !tensors_model => wrong("it has a ring, which model `edges` does not have".into()),
        _ => {}
    }
    for (input, &producer) in layer.inputs.iter().zip(inputs) {
        if let Some(view) = &input.view {
            check_view(cnn, &layer.name, &cnn.layers[producer], view, findings);
        }
    }
}
