//! Small plans made by hand, their figures worked out on paper.

use std::collections::BTreeMap;

use crate::format::{Format, Layout};
use crate::operator::{
    Concat, Conv, ElementWise, Function, Input, InputElement, Operator, Reduce, ReduceFunction,
};
use crate::part::ModelPart;
use crate::plan::*;
use crate::shape::Shape;

/// A ring of so many rows at an offset.
pub type At = Option<(u64, u64)>;

/// `(tensor, acquire, release)`.
pub type In<'a> = (&'a str, &'a str, &'a str);

pub fn fire(name: &str) -> Step {
    Step::Fire { fire: name.into() }
}

pub fn repeat(repeat: u64, body: &[Step]) -> Step {
    Step::Repeat { repeat, body: body.to_vec() }
}

fn conv(filters: usize) -> Operator {
    Operator::Conv(Conv {
        filters,
        kernel: [5, 5],
        stride: [1, 1],
        dilation: [1, 1],
        pads: [2, 2, 2, 2],
        groups: 1,
        bias: true,
        pre: None,
        residual: false,
        activation: None,
    })
}

fn input() -> Operator {
    Operator::Input(Input { element: InputElement::F32, camera: None })
}

fn relu() -> Operator {
    Operator::ElementWise(ElementWise { function: Function::Relu })
}

fn empty(storage_model: StorageModel) -> Plan {
    Plan {
        format: FORMAT.into(),
        csdfc: "0.1.0".into(),
        application: "example".into(),
        device: Device { name: "generic".into(), basis: "analytic".into(), ..Device::default() },
        storage_model,
        memory: Memory {
            parameters: 0,
            parameters_stored: 0,
            parameters_resident: None,
            arena: 0,
            buffers: 0,
            workspace: 0,
            total: 0,
            naive: 0,
            bound: 0,
            proven: true,
            external: External { inputs: 0, outputs: 0 },
        },
        regions: Vec::new(),
        store: None,
        constraints: Constraints {
            memory: None,
            flash: None,
            fps: BTreeMap::new(),
            latency_ns: BTreeMap::new(),
            met: true,
            remedies: Vec::new(),
        },
        threads: 1,
        parallel: Vec::new(),
        cnns: Vec::new(),
        partitions: Vec::new(),
        tensors: Vec::new(),
        buffers: Vec::new(),
        search: Search {
            method: "none".into(),
            seed: 1,
            evaluations: 1,
            stopped: "complete".into(),
            choices: BTreeMap::new(),
        },
        pareto: Vec::new(),
        certificate: Certificate { bound: None, claimed: None, rings: String::new() },
    }
}

impl Plan {
    fn add_cnn(&mut self, name: &str) {
        self.cnns.push(Cnn {
            name: name.into(),
            model: Model {
                path: format!("builtin:{name}"),
                bytes: 0,
                sha256: String::new(),
                values: BTreeMap::new(),
                part: ModelPart::default(),
            },
            fps: 12.5,
            latency_ns: 80_000_000,
            batch: 1,
            bytes_read: None,
            read_ns: None,
            computing_ns: None,
            stream: None,
            states: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            layers: Vec::new(),
        });
    }

    fn add_partition(&mut self, name: &str, schedule: &[Step], notation: &str) {
        self.partitions.push(Partition {
            name: name.into(),
            cnn: self.cnns.last().unwrap().name.clone(),
            processor: "cpu".into(),
            load: None,
            schedule: schedule.to_vec(),
            notation: notation.into(),
        });
    }

    /// Adds a layer, whose tensor is `t` and its name, to the last partition named so far.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn add(
        &mut self,
        name: &str,
        partition: &str,
        op: Operator,
        ins: &[In<'_>],
        shape: Shape,
        r: u64,
        parameters: u64,
        at: At,
    ) {
        let cnn = self.cnns.last_mut().unwrap();
        let output = format!("t_{name}");
        let rows = shape.rows() as u64;
        let row_bytes = shape.row_elements() as u64 * 4;
        if matches!(op, Operator::Input(_)) {
            cnn.inputs.push(name.into());
        }
        for tensor in self.tensors.iter_mut().filter(|tensor| tensor.cnn == cnn.name) {
            if ins.iter().any(|input| input.0 == tensor.name) {
                tensor.consumers.push(name.into());
            }
        }
        self.tensors.push(Tensor {
            name: output.clone(),
            cnn: cnn.name.clone(),
            producer: name.into(),
            consumers: Vec::new(),
            shape: shape.clone(),
            format: Format::default(),
            quantization: None,
            row_bytes,
            external: at.is_none() && self.storage_model == StorageModel::Tensors,
            stream: None,
            ring: at.map(|(ring_rows, offset)| Ring { ring_rows, offset, bytes: ring_rows * row_bytes }),
        });
        let primitive =
            if matches!(op, Operator::Conv(_)) { "indirect-gemm-hwc-hwc" } else { "own-kernel-hwc-hwc" };
        cnn.layers.push(Layer {
            name: name.into(),
            onnx_nodes: vec![name.into()],
            streamed: None,
            time: None,
            operator: op,
            inputs: ins
                .iter()
                .map(|&(tensor, acquire, release)| LayerInput {
                    tensor: tensor.into(),
                    view: None,
                    acquire: acquire.into(),
                    release: release.into(),
                })
                .collect(),
            output,
            output_shape: shape,
            rows_per_firing: r,
            firings: rows.div_ceil(r),
            parameters,
            parameters_of: None,
            primitive: primitive.into(),
            layout_in: Layout::Hwc,
            layout_out: Layout::Hwc,
            partition: partition.into(),
            workspace: Workspace::default(),
        });
    }

    pub(super) fn output(&mut self, tensor: &str) {
        let cnn = self.cnns.last_mut().unwrap();
        cnn.outputs.push(Output { name: format!("out_{tensor}"), tensor: tensor.into(), view: None });
        self.tensors.iter_mut().find(|t| t.name == tensor && t.cnn == cnn.name).unwrap().external = true;
    }

    fn memory(&mut self, parameters: u64, buffers: u64, naive: u64, bound: u64, external: (u64, u64)) {
        let m = &mut self.memory;
        let stored = if parameters == 0 { 0 } else { PAIR_STORED };
        (m.parameters, m.parameters_stored, m.buffers, m.naive, m.bound) =
            (parameters, stored, buffers, naive, bound);
        m.arena = buffers;
        m.total = m.parameters_stored + buffers;
        m.proven = buffers == bound;
        (m.external.inputs, m.external.outputs) = external;
    }

    /// States at which firings, one of each partition that runs then, the most bytes are stored, and what is stored then.
    fn witness(&mut self, firing: &[&str], tensors: &[&str]) {
        let [firing, tensors] =
            [firing, tensors].map(|names| names.iter().map(|name| name.to_string()).collect());
        self.certificate.bound = Some(PeakWitness { firing, tensors, bytes: self.memory.bound });
    }

    fn edge(&mut self, buffer: usize, tensor: &str, consumer: &str, rows: u64, half: Option<u8>) {
        let tensor = self.tensors.iter().find(|t| t.name == tensor).unwrap();
        self.buffers[buffer].holds.push(Edge {
            cnn: tensor.cnn.clone(),
            tensor: tensor.name.clone(),
            consumer: consumer.into(),
            ring_rows: rows,
            bytes: rows * tensor.row_bytes,
            half,
        });
    }
}

/// What a 5×5 window with same padding over 32 rows acquires and releases, row by row.
/// The pair's two convolutions as packed: the 8 filters' biases, 75 and 200 weights of each, and 8 zeros; in lines of 64
/// bytes.
const PAIR_STORED: u64 = 64 * ((8 * (1 + 75) + 8u64).div_ceil(16) + (8 * (1 + 200) + 8u64).div_ceil(16));

const WINDOW: (&str, &str) = ("3,29*1,2*0", "2*0,29*1,3");

fn add_pair(plan: &mut Plan, first: &str, second: &str) {
    plan.add("in", first, input(), &[], Shape::image(3, 32, 32), 1, 0, Some((5, 0)));
    let image = Shape::image(8, 32, 32);
    let reads = |tensor| [(tensor, WINDOW.0, WINDOW.1)];
    plan.add("l1", first, conv(8), &reads("t_in"), image.clone(), 1, 4 * (8 * 3 * 25 + 8), Some((5, 1920)));
    plan.add("l2", second, conv(8), &reads("t_l1"), image, 1, 4 * (8 * 8 * 25 + 8), None);
    plan.output("t_l2");
}

/// The same, the first by its windows: of a row 32·75 floats, above the rings.
pub fn lowered() -> Plan {
    let mut plan = pair();
    let layer = &mut plan.cnns[0].layers[1];
    layer.primitive = "im2row-strip-hwc-hwc".into();
    layer.workspace = Workspace { offset: 7040, bytes: 9600 };
    let memory = &mut plan.memory;
    (memory.arena, memory.workspace, memory.bound, memory.proven) = (16_640, 9600, 16_640, true);
    memory.total = memory.parameters_stored + memory.arena;
    plan.witness(&["pair/l1"], &["pair/t_in", "pair/t_l1", "workspace of pair/l1"]);
    plan
}

/// Two convolutions 5×5 over 32 rows, row by row: rings of five rows, 5·384 and 5·1024 bytes.
pub fn pair() -> Plan {
    let mut plan = empty(StorageModel::Tensors);
    plan.add_cnn("pair");
    add_pair(&mut plan, "p", "p");
    let [i, a, b] = ["in", "l1", "l2"].map(fire);
    let schedule = [
        repeat(3, std::slice::from_ref(&i)),
        a.clone(),
        repeat(2, &[i.clone(), a.clone()]),
        b.clone(),
        repeat(27, &[i, a.clone(), b.clone()]),
        repeat(2, &[a, b.clone()]),
        repeat(2, &[b]),
    ];
    let notation = "[in]×3,[l1],([in],[l1])×2,[l2],([in],[l1],[l2])×27,([l1],[l2])×2,[l2]×2";
    plan.add_partition("p", &schedule, notation);
    plan.parallel = vec![vec!["p".into()]];
    plan.memory(2432 + 6432, 7040, 32 * 384 + 32 * 1024, 7040, (0, 32 * 1024));
    plan.witness(&["pair/l1"], &["pair/t_in", "pair/t_l1"]);
    plan
}

/// The same in two partitions that run at the same time; the cut ring has five rows, too.
pub fn pipelined() -> Plan {
    let mut plan = empty(StorageModel::Tensors);
    plan.add_cnn("pair");
    add_pair(&mut plan, "p1", "p2");
    let [i, a, b] = ["in", "l1", "l2"].map(fire);
    let first =
        [repeat(3, std::slice::from_ref(&i)), a.clone(), repeat(29, &[i, a.clone()]), repeat(2, &[a])];
    plan.add_partition("p1", &first, "[in]×3,[l1],([in],[l1])×29,[l1]×2");
    plan.add_partition("p2", &[repeat(32, &[b])], "[l2]×32");
    plan.parallel = vec![vec!["p1".into(), "p2".into()]];
    plan.memory(2432 + 6432, 7040, 32 * 384 + 2 * 32 * 1024, 7040, (0, 32 * 1024));
    plan.witness(&["pair/l1", "pair/l2"], &["pair/t_in", "pair/t_l1"]);
    plan
}

/// Adds relu, relu and a relu parallel to them, concatenated, and a relu, all whole: 4 rows of 32 bytes a tensor.
fn add_branch(plan: &mut Plan, at: [At; 5]) {
    let image = || Shape::image(2, 4, 4);
    let whole = |tensor| (tensor, "4", "4");
    plan.add("in", "q", input(), &[], image(), 4, 0, at[0]);
    plan.add("z", "q", relu(), &[whole("t_in")], image(), 4, 0, at[1]);
    plan.add("a", "q", relu(), &[whole("t_z")], image(), 4, 0, at[2]);
    plan.add("b", "q", relu(), &[whole("t_a")], image(), 4, 0, at[3]);
    let join = Operator::Concat(Concat { axis: 1 });
    plan.add("c", "q", join, &[whole("t_b"), whole("t_a")], Shape::image(4, 4, 4), 4, 0, at[4]);
    plan.add("d", "q", relu(), &[whole("t_c")], Shape::image(4, 4, 4), 4, 0, None);
    plan.output("t_d");
    let schedule: Vec<Step> = ["in", "z", "a", "b", "c", "d"].map(fire).into();
    plan.add_partition("q", &schedule, "[in],[z],[a],[b],[c],[d]");
    plan.parallel.push(vec!["q".into()]);
}

/// A branch and a concat; `t_z` is dead when `t_c` takes its place.
pub fn branch() -> Plan {
    let mut plan = empty(StorageModel::Tensors);
    plan.add_cnn("branch");
    add_branch(&mut plan, [None, Some((4, 256)), Some((4, 0)), Some((4, 128)), Some((4, 256))]);
    add_branch_sums(&mut plan, 512);
    plan
}

/// The sums of a branch. The first row of `t_c` is made from all rows of `t_a` and `t_b`, 128 bytes each.
fn add_branch_sums(plan: &mut Plan, buffers: u64) {
    plan.memory(0, buffers, 3 * 128 + 256, 320, (128, 256));
    plan.witness(&["branch/c"], &["branch/t_a", "branch/t_b", "branch/t_c"]);
}

/// The branch with rings that follow those that they are made from as closely as they may: `t_a` a row before `t_z`;
/// rows of `t_c`, twice as wide, end below `t_a` and `t_b` when their last is made.
pub fn follow() -> Plan {
    let mut plan = empty(StorageModel::Tensors);
    plan.add_cnn("branch");
    add_branch(&mut plan, [None, Some((4, 192)), Some((4, 160)), Some((4, 288)), Some((4, 0))]);
    add_branch_sums(&mut plan, 416);
    plan
}

/// Eight rows of 32 bytes that are taken away one by one, and come back three layers later in the same place.
pub fn drain() -> Plan {
    let mut plan = empty(StorageModel::Tensors);
    plan.add_cnn("drain");
    let image = || Shape::image(2, 8, 4);
    plan.add("in", "p", input(), &[], image(), 8, 0, None);
    plan.add("a", "p", relu(), &[("t_in", "8", "8")], image(), 8, 0, Some((8, 0)));
    plan.add("b", "p", relu(), &[("t_a", "8*1", "8*1")], image(), 1, 0, Some((2, 256)));
    plan.add("e", "p", relu(), &[("t_b", "8*1", "8*1")], image(), 1, 0, Some((1, 320)));
    plan.add("c", "p", relu(), &[("t_e", "8*1", "8*1")], image(), 1, 0, Some((8, 0)));
    plan.add("d", "p", relu(), &[("t_c", "8", "8")], image(), 8, 0, None);
    plan.output("t_d");
    let [i, a, b, e, c, d] = ["in", "a", "b", "e", "c", "d"].map(fire);
    plan.add_partition("p", &[i, a, repeat(8, &[b, e, c]), d], "[in],[a],([b],[e],[c])×8,[d]");
    plan.parallel = vec![vec!["p".into()]];
    plan.memory(0, 352, 4 * 256, 352, (256, 256));
    plan.witness(&["drain/c"], &["drain/t_a", "drain/t_b", "drain/t_e", "drain/t_c"]);
    plan
}

/// A convolution 3×3 of an image in two parts, to which a third is added, each row in the place of the one added before:
/// at its first two rows all but one of the 16 rows of 32 bytes, and three more, are occupied.
pub fn operands() -> Plan {
    let mut plan = empty(StorageModel::Tensors);
    plan.add_cnn("operands");
    let image = || Shape::image(2, 4, 4);
    let whole = |tensor| [(tensor, "4", "4")];
    plan.add("in", "p", input(), &[], image(), 4, 0, None);
    plan.add("z", "p", relu(), &whole("t_in"), image(), 4, 0, Some((4, 32)));
    plan.add("a", "p", relu(), &whole("t_z"), image(), 4, 0, Some((4, 160)));
    plan.add("b", "p", relu(), &whole("t_a"), image(), 4, 0, Some((4, 288)));
    let Operator::Conv(conv) = conv(2) else { unreachable!() };
    let (kernel, pads) = ([3, 3], [1; 4]);
    let conv = Operator::Conv(Conv { kernel, pads, residual: true, ..conv });
    let window = |tensor| (tensor, "2,2*1,0", "0,2*1,2");
    let reads = [window("t_b"), window("t_a"), ("t_z", "4*1", "4*1")];
    plan.add("c", "p", conv, &reads, image(), 1, 4 * (2 * 4 * 9 + 2), Some((4, 0)));
    plan.add("d", "p", relu(), &whole("t_c"), image(), 4, 0, None);
    plan.output("t_d");
    let [i, z, a, b, c, d] = ["in", "z", "a", "b", "c", "d"].map(fire);
    plan.add_partition("p", &[i, z, a, b, repeat(4, &[c]), d], "[in],[z],[a],[b],[c]×4,[d]");
    plan.parallel = vec![vec!["p".into()]];
    plan.memory(4 * 74, 416, 4 * 128, 416, (128, 128));
    plan.witness(&["operands/c"], &["operands/t_z", "operands/t_a", "operands/t_b", "operands/t_c"]);
    // Biases of 2 filters, 36 weights of each, and 14 zeros, in lines of 64 bytes.
    plan.memory.parameters_stored = 64 * (2 * (1 + 36) + 14u64).div_ceil(16);
    plan.memory.total = plan.memory.parameters_stored + 416;
    plan
}

/// Four partitions, of which the second and the third run at the same time. `t_z` passes by both; `t_w` is gone when they
/// start, `t_c` comes after them.
pub fn staged() -> Plan {
    let mut plan = empty(StorageModel::Tensors);
    plan.add_cnn("staged");
    let image = |channels| Shape::image(channels, 4, 4);
    let whole = |tensor| (tensor, "4", "4");
    let join = || Operator::Concat(Concat { axis: 1 });
    let mean = || Operator::Reduce(Reduce { function: ReduceFunction::Mean, axes: vec![1], keep_dims: true });
    plan.add("in", "q1", input(), &[], image(2), 4, 0, None);
    plan.add("z", "q1", relu(), &[whole("t_in")], image(2), 4, 0, Some((4, 0)));
    plan.add("w", "q1", mean(), &[whole("t_z")], image(1), 4, 0, Some((4, 128)));
    plan.add("y", "q1", relu(), &[whole("t_w")], image(1), 4, 0, Some((4, 256)));
    plan.add("a", "q2", join(), &[whole("t_y"), whole("t_y")], image(2), 4, 0, Some((4, 128)));
    plan.add("b", "q3", mean(), &[whole("t_a")], image(1), 4, 0, Some((4, 320)));
    plan.add("c", "q4", join(), &[whole("t_b"), whole("t_z")], image(3), 4, 0, Some((4, 128)));
    plan.add("d", "q4", relu(), &[whole("t_c")], image(3), 4, 0, None);
    plan.output("t_d");
    plan.add_partition("q1", &["in", "z", "w", "y"].map(fire), "[in],[z],[w],[y]");
    plan.add_partition("q2", &[fire("a")], "[a]");
    plan.add_partition("q3", &[fire("b")], "[b]");
    plan.add_partition("q4", &["c", "d"].map(fire), "[c],[d]");
    plan.parallel = [&["q1"][..], &["q2", "q3"], &["q4"]]
        .map(|names| names.iter().map(|name| name.to_string()).collect())
        .into();
    // The tensor between partitions that run at the same time is stored twice, if nothing is saved. While a and b run:
    // t_z, t_a, and the most of t_y and of t_b.
    plan.memory(0, 384, 128 + 3 * 64 + 2 * 128 + 192, 128 + 128 + 64 + 64, (128, 192));
    plan.witness(&["staged/a", "staged/b"], &["staged/t_z", "staged/t_a", "staged/t_y", "staged/t_b"]);
    plan
}

/// A relu in layout HCW, between a conversion there and one back; rows of 32 bytes in each.
pub fn converted() -> Plan {
    let mut plan = empty(StorageModel::Tensors);
    plan.add_cnn("converted");
    let image = || Shape::image(2, 4, 4);
    let whole = |tensor| [(tensor, "4", "4")];
    plan.add("in", "p", input(), &[], image(), 4, 0, None);
    plan.add("k", "p", Operator::Convert, &whole("t_in"), image(), 4, 0, Some((4, 0)));
    plan.add("r", "p", relu(), &whole("t_k"), image(), 4, 0, Some((4, 128)));
    plan.add("b", "p", Operator::Convert, &whole("t_r"), image(), 4, 0, Some((4, 0)));
    plan.add("d", "p", relu(), &whole("t_b"), image(), 4, 0, None);
    plan.output("t_d");
    for (l, primitive, layouts) in [
        (1, "convert-swap-hwc-hcw", [Layout::Hwc, Layout::Hcw]),
        (2, "element-wise-hcw-hcw", [Layout::Hcw; 2]),
        (3, "convert-swap-hcw-hwc", [Layout::Hcw, Layout::Hwc]),
    ] {
        let layer = &mut plan.cnns[0].layers[l];
        (layer.primitive, [layer.layout_in, layer.layout_out]) = (primitive.into(), layouts);
        plan.tensors[l].format.layout = layouts[1];
    }
    plan.add_partition("p", &["in", "k", "r", "b", "d"].map(fire), "[in],[k],[r],[b],[d]");
    plan.parallel = vec![vec!["p".into()]];
    plan.memory(0, 256, 3 * 128, 160, (128, 128));
    plan.witness(&["converted/r"], &["converted/t_k", "converted/t_r"]);
    plan
}

/// Two CNNs that exclude each other in time and share the arena.
pub fn two() -> Plan {
    let mut plan = pair();
    plan.add_cnn("branch");
    add_branch(&mut plan, [None, Some((4, 256)), Some((4, 0)), Some((4, 128)), Some((4, 256))]);
    plan.memory(8864, 7040, 45_056 + 640, 7040, (128, 32 * 1024 + 256));
    plan.constraints.memory = Some(PAIR_STORED + 7040);
    plan.constraints.fps = BTreeMap::from([("pair".into(), 10.0)]);
    plan
}

fn buffers(plan: &mut Plan, sizes: &[u64]) {
    let mut offset = 0;
    for (i, &bytes) in sizes.iter().enumerate() {
        plan.buffers.push(Buffer { name: format!("B{}", i + 1), offset, bytes, holds: Vec::new() });
        offset += bytes;
    }
}

/// The branch in model `edges`: six edges in three buffers.
pub fn edges() -> Plan {
    let mut plan = empty(StorageModel::Edges);
    plan.add_cnn("branch");
    add_branch(&mut plan, [None; 5]);
    buffers(&mut plan, &[256, 128, 128]);
    for (buffer, tensor, consumer) in [
        (0, "t_in", "z"),
        (0, "t_a", "b"),
        (0, "t_c", "d"),
        (1, "t_z", "a"),
        (1, "t_b", "c"),
        (2, "t_a", "c"),
    ] {
        plan.edge(buffer, tensor, consumer, 4, None);
    }
    plan.memory(0, 512, 5 * 128 + 256, 512, (0, 256));
    plan.witness(&["branch/c"], &["branch/t_a", "branch/t_b", "branch/t_c"]);
    plan
}

/// Two relus in two partitions that run at the same time, in model `edges`: a double buffer between them.
pub fn double_buffered() -> Plan {
    let mut plan = empty(StorageModel::Edges);
    plan.add_cnn("relus");
    let image = || Shape::image(2, 4, 4);
    plan.add("in", "p1", input(), &[], image(), 4, 0, None);
    plan.add("a", "p1", relu(), &[("t_in", "4", "4")], image(), 4, 0, None);
    plan.add("b", "p2", relu(), &[("t_a", "4*1", "4*1")], image(), 1, 0, None);
    plan.output("t_b");
    plan.add_partition("p1", &[fire("in"), fire("a")], "[in],[a]");
    plan.add_partition("p2", &[repeat(4, &[fire("b")])], "[b]×4");
    plan.parallel = vec![vec!["p1".into(), "p2".into()]];
    buffers(&mut plan, &[128, 128, 128]);
    plan.edge(0, "t_in", "a", 4, None);
    plan.edge(1, "t_a", "b", 4, Some(1));
    plan.edge(2, "t_a", "b", 4, Some(2));
    plan.memory(0, 384, 384, 384, (0, 128));
    plan.witness(&["relus/a", "relus/b"], &["relus/t_in", "relus/t_a"]);
    plan
}

/// All of them, by name.
pub fn all() -> Vec<(&'static str, Plan)> {
    vec![
        ("pair", pair()),
        ("lowered", lowered()),
        ("pipelined", pipelined()),
        ("branch", branch()),
        ("follow", follow()),
        ("drain", drain()),
        ("operands", operands()),
        ("staged", staged()),
        ("converted", converted()),
        ("two", two()),
        ("edges", edges()),
        ("double_buffered", double_buffered()),
    ]
}
