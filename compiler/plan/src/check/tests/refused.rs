//! One corruption, one reason.

use crate::check::check;
use crate::format::Layout;
use crate::operator::{Camera, CameraLayout, ColorOrder, Conv, Function, Input, InputElement, Operator, Pre};
use crate::plan::{LayerInput, Plan, Ring, Step, Workspace};
use crate::shape::Shape;

use super::plans::{
    branch, double_buffered, drain, edges, fire, follow, lowered, operands, pair, pipelined, repeat, two,
};

type Corrupt = fn(&mut Plan);

/// The name of a corruption, the plan, the edit, and the variant that must be found.
type Case = (&'static str, fn() -> Plan, Corrupt, &'static str);

/// Checks that the plan is refused, and that some violation is of this variant.
fn refused(name: &str, mut plan: Plan, corrupt: Corrupt, variant: &str) {
    corrupt(&mut plan);
    let violations = check(&plan).expect_err(name);
    let tags: Vec<String> = violations
        .iter()
        .map(|violation| serde_json::to_value(violation).unwrap()["violation"].as_str().unwrap().to_owned())
        .collect();
    assert!(tags.iter().any(|tag| tag == variant), "{name}: not {variant}, but {violations:#?}");
}

fn workspace(plan: &mut Plan) -> &mut Workspace {
    &mut plan.cnns[0].layers[1].workspace
}

fn moved(plan: &mut Plan, tensor: usize, offset: u64) {
    plan.tensors[tensor].ring.as_mut().unwrap().offset = offset;
}

/// Says how many of four cores each partition keeps busy.
fn loaded(plan: &mut Plan, loads: [f64; 2]) {
    plan.device.cores = [("cpu".into(), 4)].into();
    for (partition, load) in plan.partitions.iter_mut().zip(loads) {
        partition.load = Some(load);
    }
}

/// Exactly enough cores, or exactly enough time, is enough.
#[test]
fn limits_may_be_met_exactly() {
    let mut plan = pipelined();
    loaded(&mut plan, [2.5, 1.5]);
    plan.constraints.memory = Some(plan.memory.total);
    let name = plan.cnns[0].name.clone();
    plan.constraints.fps = [(name.clone(), plan.cnns[0].fps)].into();
    plan.constraints.latency_ns = [(name, plan.cnns[0].latency_ns)].into();
    assert_eq!(check(&plan).err(), None);
}

/// The message of a mistake names what it concerns.
#[test]
fn a_deadlock_names_who_waits() {
    let mut plan = pipelined();
    resized(&mut plan, 1, 4);
    (plan.memory.buffers, plan.memory.arena) = (6016, 6016);
    plan.memory.total = plan.memory.parameters_stored + 6016;
    plan.memory.proven = true;
    let found: Vec<String> = check(&plan).unwrap_err().iter().map(ToString::to_string).collect();
    let waits = r#"cnn `pair`: with producers first, every partition of ["p1", "p2"] waits for another"#;
    assert_eq!(found, [waits]);
}

#[test]
fn an_overlap_says_where() {
    let mut plan = drain();
    moved(&mut plan, 3, 192);
    let found: Vec<String> = check(&plan).unwrap_err().iter().map(ToString::to_string).collect();
    let expected = "`drain/t_c` and `drain/t_e` are stored at the same time and share bytes 192..224";
    assert_eq!(found.last().map(String::as_str), Some(expected));
}

/// Sets the rows of a ring, and every sum that follows from them.
fn resized(plan: &mut Plan, tensor: usize, rows: u64) {
    let row_bytes = plan.tensors[tensor].row_bytes;
    let ring = plan.tensors[tensor].ring.as_mut().unwrap();
    let less = ring.bytes - rows * row_bytes;
    (ring.ring_rows, ring.bytes) = (rows, rows * row_bytes);
    plan.memory.bound -= less;
    plan.memory.proven = false;
    if let Some(witness) = &mut plan.certificate.bound {
        witness.bytes -= less;
    }
}

/// Has the reader of the first ring take it whole: a transpose and back.
fn read_whole(plan: &mut Plan) {
    let swap = Operator::Transpose(crate::operator::Transpose::new([0, 1, 3, 2]));
    plan.cnns[0].layers[2].operator = swap;
}

/// Changes how the caller hands over the input.
fn delivered(plan: &mut Plan, change: impl Fn(&mut Input)) {
    match &mut plan.cnns[0].layers[0].operator {
        Operator::Input(input) => change(input),
        other => panic!("{other:?}"),
    }
}

/// Images of bytes need what turns them into floats, and only they have it.
#[test]
fn deliveries() {
    fn seen(plan: &mut Plan, change: fn(&mut Camera)) {
        delivered(plan, |input| {
            let mut camera = Camera {
                layout: CameraLayout::Hwc,
                order: ColorOrder::Bgr,
                mean: vec![0.5; 3],
                scale: vec![2.0; 3],
            };
            change(&mut camera);
            *input = Input { element: InputElement::U8, camera: Some(camera) };
        });
    }
    let mut plan = pair();
    seen(&mut plan, |_| {});
    assert_eq!(check(&plan).err(), None);
    let table: &[Case] = &[
        ("bytes as they are", pair, |p| delivered(p, |input| input.element = InputElement::U8), "operator"),
        ("integers of floats", pair, |p| delivered(p, |input| input.element = InputElement::I8), "operator"),
        (
            "signed bytes of a camera",
            pair,
            |p| {
                seen(p, |_| {});
                delivered(p, |input| input.element = InputElement::I8);
            },
            "operator",
        ),
        (
            "floats of a camera",
            pair,
            |p| {
                seen(p, |_| {});
                delivered(p, |input| input.element = InputElement::F32);
            },
            "operator",
        ),
        ("a mean too few", pair, |p| seen(p, |camera| camera.mean.truncate(2)), "operator"),
        ("a scale too many", pair, |p| seen(p, |camera| camera.scale.push(1.0)), "operator"),
        ("a scale of 0", pair, |p| seen(p, |camera| camera.scale[1] = 0.0), "operator"),
        ("a mean that is none", pair, |p| seen(p, |camera| camera.mean[1] = f32::NAN), "operator"),
        (
            "BGR of two channels",
            edges,
            |p| seen(p, |camera| (camera.mean, camera.scale) = (vec![0.0; 2], vec![1.0; 2])),
            "operator",
        ),
    ];
    table.iter().for_each(|&(name, plan, corrupt, variant)| refused(name, plan(), corrupt, variant));
}

fn scheduled(plan: &mut Plan, schedule: &[Step], notation: &str) {
    plan.partitions[0].schedule = schedule.to_vec();
    plan.partitions[0].notation = notation.into();
}

#[test]
fn structure() {
    let table: &[Case] = &[
        ("format", pair, |p| p.format = "csdfc-plan/9".into(), "format"),
        ("threads", pair, |p| p.threads = 0, "sum"),
        ("batch", pair, |p| p.cnns[0].batch = 0, "sum"),
        ("large batch", pair, |p| p.cnns[0].batch = 65537, "too_large"),
        ("many threads", pair, |p| p.threads = 257, "too_large"),
        ("layers alike", pair, |p| p.cnns[0].layers[2].name = "l1".into(), "duplicate_name"),
        ("tensors alike", pair, |p| p.tensors[1].name = "t_in".into(), "duplicate_name"),
        ("CNNs alike", two, |p| p.cnns[1].name = "pair".into(), "duplicate_name"),
        ("partitions alike", pipelined, |p| p.partitions[1].name = "p1".into(), "duplicate_name"),
        ("unknown operand", pair, |p| p.cnns[0].layers[1].inputs[0].tensor = "x".into(), "unknown_name"),
        ("unknown partition", pair, |p| p.cnns[0].layers[1].partition = "x".into(), "unknown_name"),
        ("partition of another CNN", two, |p| p.cnns[0].layers[1].partition = "q".into(), "unknown_name"),
        ("unknown in parallel", pair, |p| p.parallel[0].push("x".into()), "unknown_name"),
        ("twice in parallel", pair, |p| p.parallel[0].push("p".into()), "structure"),
        ("not in parallel", two, |p| drop(p.parallel.pop()), "structure"),
        ("CNN of a tensor", pair, |p| p.tensors[0].cnn = "x".into(), "unknown_name"),
        ("a tensor gone", pair, |p| drop(p.tensors.remove(0)), "unknown_name"),
        ("unknown output", pair, |p| p.cnns[0].outputs[0].tensor = "x".into(), "unknown_name"),
        (
            "a layer of itself",
            pair,
            |p| p.cnns[0].layers[1].inputs[0].tensor = "t_l1".into(),
            "not_topological",
        ),
        ("order of layers", pair, |p| p.cnns[0].layers.swap(1, 2), "not_topological"),
        (
            "backward cut",
            pipelined,
            |p| {
                p.partitions.swap(0, 1);
                p.parallel = vec![vec!["p1".into()], vec!["p2".into()]];
            },
            "backward_cut",
        ),
        ("inputs", pair, |p| p.cnns[0].inputs.push("l1".into()), "structure"),
        ("producer", pair, |p| p.tensors[1].producer = "l2".into(), "tensor"),
        ("consumers", pair, |p| p.tensors[1].consumers.clear(), "tensor"),
        ("shape of a tensor", pair, |p| p.tensors[1].shape = Shape::image(8, 16, 64), "tensor"),
        ("no elements", pair, |p| p.tensors[1].shape = Shape::image(0, 32, 32), "structure"),
        ("wide elements", pair, |p| p.tensors[1].format.element = crate::format::Element::I64, "tensor"),
        ("external inside", pair, |p| p.tensors[1].external = true, "tensor"),
        ("output not external", pair, |p| p.tensors[2].external = false, "tensor"),
        ("no storage", pair, |p| p.tensors[1].ring = None, "tensor"),
        ("whole, but by rows", pair, |p| (p.tensors[0].ring, p.tensors[0].external) = (None, true), "tensor"),
        (
            "wrong view",
            branch,
            |p| p.cnns[0].layers[1].inputs[0].view = Some(Shape::image(2, 4, 5)),
            "wrong_view",
        ),
        (
            "other view",
            branch,
            |p| p.cnns[0].layers[1].inputs[0].view = Some(Shape::image(4, 2, 4)),
            "output_shape",
        ),
        (
            "order",
            branch,
            |p| {
                p.cnns[0].layers[5].output_shape.order = crate::shape::Order::ChannelsLast;
                p.tensors[5].shape.order = crate::shape::Order::ChannelsLast;
            },
            "output_shape",
        ),
        ("wrong view out", branch, |p| p.cnns[0].outputs[0].view = Some(Shape::new([1, 63])), "wrong_view"),
    ];
    table.iter().for_each(|&(name, plan, corrupt, variant)| refused(name, plan(), corrupt, variant));
}

#[test]
fn shapes_and_rates() {
    fn operator(plan: &mut Plan, change: impl Fn(&mut crate::operator::Conv)) {
        match &mut plan.cnns[0].layers[1].operator {
            Operator::Conv(conv) => change(conv),
            other => panic!("{other:?}"),
        }
    }
    fn before(affine: bool, activation: Option<Function>) -> Option<Pre> {
        Some(Pre { affine, activation, quantization: None })
    }
    let table: &[Case] = &[
        ("kernel", pair, |p| operator(p, |conv| conv.kernel = [3, 5]), "output_shape"),
        ("pads", pair, |p| operator(p, |conv| conv.pads = [2, 1, 2, 2]), "output_shape"),
        ("pads elsewhere", pair, |p| operator(p, |conv| conv.pads = [1, 2, 3, 2]), "rate"),
        ("groups", pair, |p| operator(p, |conv| conv.groups = 2), "operator"),
        ("filters", pair, |p| operator(p, |conv| conv.filters = 9), "output_shape"),
        ("huge kernel", pair, |p| operator(p, |conv| conv.kernel = [usize::MAX; 2]), "operator"),
        ("no stride", pair, |p| operator(p, |conv| conv.stride = [0, 1]), "operator"),
        ("no operand", pair, |p| p.cnns[0].layers[2].inputs.clear(), "tensor"),
        ("bias", pair, |p| operator(p, |conv| conv.bias = false), "sum"),
        ("norm before", pair, |p| operator(p, |conv| conv.pre = before(true, None)), "sum"),
        (
            "slopes before",
            pair,
            |p| operator(p, |conv| conv.pre = before(false, Some(Function::PRelu { slope: vec![1] }))),
            "operator",
        ),
        ("firings", pair, |p| p.cnns[0].layers[1].firings = 31, "firings"),
        ("rows per firing", pair, |p| p.cnns[0].layers[1].rows_per_firing = 2, "firings"),
        ("no rows per firing", pair, |p| p.cnns[0].layers[1].rows_per_firing = 0, "firings"),
        ("less acquired", pair, |p| p.cnns[0].layers[1].inputs[0].acquire = "2,30*1,1*0".into(), "rate"),
        ("early release", pair, |p| p.cnns[0].layers[1].inputs[0].release = "1*0,30*1,2".into(), "rate"),
        ("a rate too many", pair, |p| p.cnns[0].layers[1].inputs[0].release = "2*0,29*1,3,0".into(), "rate"),
        ("garbage", pair, |p| p.cnns[0].layers[1].inputs[0].acquire = "30*".into(), "rate"),
    ];
    table.iter().for_each(|&(name, plan, corrupt, variant)| refused(name, plan(), corrupt, variant));
}

/// The messages for a tensor that lies in a wrong place.
#[test]
fn tensors_without_their_place() {
    fn cut_output(plan: &mut Plan) {
        plan.output("t_l1");
        plan.tensors[1].ring = None;
    }
    fn read_output(plan: &mut Plan) {
        plan.output("t_l1");
        plan.tensors[1].ring = None;
    }
    fn bytes(plan: &mut Plan) {
        delivered(plan, |input| input.element = InputElement::U8);
    }
    type Wrong = (fn() -> Plan, Corrupt, &'static str);
    let table: &[Wrong] = &[
        (pair, |p| p.tensors[2].external = false, "it is a network output, but not external"),
        (pair, |p| p.tensors[1].external = true, "it is external, but neither input nor output"),
        (pair, |p| p.tensors[0].external = true, "it is delivered whole, but has a ring"),
        (pair, |p| p.tensors[1].ring = None, "it has neither a ring nor the caller's copy"),
        (
            pair,
            |p| (p.tensors[0].ring, p.tensors[0].external) = (None, true),
            "it is delivered whole, but its layer makes 1 rows a firing",
        ),
        (pipelined, cut_output, "it goes to a partition that runs at the same time, but has no ring"),
        (pair, read_output, "layers read it, but it has no ring"),
        (pair, |p| p.tensors[2].ring = p.tensors[1].ring, "no layer reads it, but it has a ring"),
        (branch, bytes, "layers read what is made of its bytes, but it has no ring for that"),
        (
            edges,
            |p| p.tensors[1].ring = branch().tensors[1].ring,
            "it has a ring, which model `edges` does not have",
        ),
        (
            branch,
            |p| p.tensors[0].format.layout = Layout::Hcw,
            "the caller holds it, so it must lie as HWC, not HCW",
        ),
        (
            branch,
            |p| (p.tensors[1].format.layout, p.tensors[1].shape) = (Layout::Hcw, Shape::new([4, 8])),
            "it is no image, so it must lie as HWC, not HCW",
        ),
    ];
    for &(plan, corrupt, why) in table {
        let mut plan = plan();
        corrupt(&mut plan);
        let found: Vec<String> = check(&plan).expect_err(why).iter().map(ToString::to_string).collect();
        assert!(found.iter().any(|found| found.ends_with(why)), "{why}: {found:#?}");
    }
}

#[test]
fn primitives() {
    let table: &[Case] = &[
        ("no such primitive", pair, |p| p.cnns[0].layers[1].primitive = "magic-hwc-hwc".into(), "operator"),
        (
            "of another operator",
            pair,
            |p| p.cnns[0].layers[1].primitive = "own-kernel-hwc-hwc".into(),
            "operator",
        ),
        ("another layout read", pair, |p| p.cnns[0].layers[1].layout_in = Layout::Hcw, "operator"),
        ("another layout written", pair, |p| p.cnns[0].layers[1].layout_out = Layout::Hcw, "operator"),
        ("another layout stored", pair, |p| p.tensors[1].format.layout = Layout::Hcw, "operator"),
        (
            "a primitive of other layouts",
            branch,
            |p| p.cnns[0].layers[1].primitive = "element-wise-hcw-hcw".into(),
            "operator",
        ),
    ];
    table.iter().for_each(|&(name, plan, corrupt, variant)| refused(name, plan(), corrupt, variant));
}

#[test]
fn operands_of_a_convolution() {
    fn layer(plan: &mut Plan, layer: usize, change: impl Fn(&mut Conv, &mut Vec<LayerInput>)) {
        let layer = &mut plan.cnns[0].layers[layer];
        match &mut layer.operator {
            Operator::Conv(conv) => change(conv, &mut layer.inputs),
            other => panic!("{other:?}"),
        }
    }
    fn changed(plan: &mut Plan, change: impl Fn(&mut Conv, &mut Vec<LayerInput>)) {
        layer(plan, 4, change);
    }
    let table: &[Case] = &[
        (
            "a part of another size",
            operands,
            |p| changed(p, |_, x| x[1].view = Some(Shape::image(4, 2, 4))),
            "operator",
        ),
        (
            "a part that is no image",
            operands,
            |p| changed(p, |_, x| x[1].view = Some(Shape::new([1, 32]))),
            "operator",
        ),
        ("parts for groups", operands, |p| changed(p, |conv, _| conv.groups = 2), "operator"),
        ("a residual of another shape", operands, |p| changed(p, |conv, _| conv.filters = 3), "operator"),
        (
            "a residual in another order",
            operands,
            |p| changed(p, |_, x| x[2].view = Some(Shape::image(4, 4, 2))),
            "operator",
        ),
        ("a residual that is a part", operands, |p| changed(p, |conv, _| conv.residual = false), "rate"),
        ("nothing but a residual", pair, |p| layer(p, 1, |conv, _| conv.residual = true), "operator"),
        (
            "a residual of a depthwise convolution",
            pair,
            |p| {
                layer(p, 1, |conv, x| {
                    (conv.groups, conv.filters, conv.residual) = (3, 3, true);
                    x.push(x[0].clone());
                });
            },
            "operator",
        ),
        ("a residual by windows", operands, |p| changed(p, |_, x| x[2].acquire = "2,2*1,0".into()), "rate"),
        ("a part by rows", operands, |p| changed(p, |_, x| x[1].acquire = "4*1".into()), "rate"),
        ("parameters of one part", operands, |p| p.cnns[0].layers[4].parameters = 4 * (2 * 2 * 9 + 2), "sum"),
        (
            "parameters stored of one part",
            operands,
            |p| p.memory.parameters_stored = 64 * (2 * (1 + 18) + 14u64).div_ceil(16),
            "sum",
        ),
        ("over what is still to be added", operands, |p| moved(p, 4, 4), "overwrites_needed"),
        ("over a window of a part", operands, |p| moved(p, 4, 128), "overwrites_needed"),
    ];
    table.iter().for_each(|&(name, plan, corrupt, variant)| refused(name, plan(), corrupt, variant));
}

#[test]
fn storage() {
    let table: &[Case] = &[
        ("overlap", pair, |p| moved(p, 1, 1916), "overlap"),
        (
            "a ring of no rows",
            pair,
            |p| p.tensors[1].ring = Some(Ring { ring_rows: 0, offset: 0, bytes: 0 }),
            "ring",
        ),
        ("overlap of live rings", branch, |p| moved(p, 3, 0), "overwrites_needed"),
        ("in place, without a row between", follow, |p| moved(p, 1, 160), "overwrites_needed"),
        ("a ring that follows too closely", follow, |p| moved(p, 2, 156), "overwrites_needed"),
        ("a ring that follows another too closely", follow, |p| moved(p, 4, 4), "overwrites_needed"),
        ("a ring below one that it is made from", follow, |p| moved(p, 1, 128), "overwrites_needed"),
        ("a row over one that is still needed", drain, |p| moved(p, 4, 32), "overwrites_needed"),
        ("a ring that wraps over needed rows", drain, |p| moved(p, 3, 192), "overlap"),
        ("a ring that wraps over what it is made from", drain, |p| moved(p, 2, 192), "overlap"),
        (
            "into a ring that wraps",
            drain,
            |p| {
                p.memory.arena = 1024;
                moved(p, 3, 800);
                moved(p, 4, 288);
            },
            "overlap",
        ),
        ("a ring that wraps below one that follows it", drain, |p| moved(p, 3, 0), "overlap"),
        ("over a ring that is read whole", follow, |p| read_whole(p), "overlap"),
        ("beyond the arena", pair, |p| moved(p, 1, 1924), "ring"),
        ("offset beyond all", pair, |p| moved(p, 1, u64::MAX), "ring"),
        ("misaligned", branch, |p| moved(p, 1, 257), "ring"),
        ("bytes of a ring", pair, |p| p.tensors[1].ring.as_mut().unwrap().bytes -= 1, "ring"),
        ("no rows", pair, |p| p.tensors[1].ring.as_mut().unwrap().ring_rows = 0, "ring"),
        ("ring below its need", pair, |p| resized(p, 1, 4), "overwrites_needed"),
        ("input ring below its need", pair, |p| resized(p, 0, 4), "overwrites_needed"),
        ("cut ring below its need", pipelined, |p| resized(p, 1, 4), "deadlock"),
        ("cut ring shared", pipelined, |p| moved(p, 1, 1916), "shared_by_concurrent"),
        ("whole ring short", branch, |p| resized(p, 2, 3), "overwrites_needed"),
        ("a cut tensor without ring", pipelined, |p| p.tensors[1].ring = None, "tensor"),
        (
            "workspaces of concurrent partitions",
            pipelined,
            |p| {
                for (l, bytes) in [(1, 9600), (2, 25_600)] {
                    let layer = &mut p.cnns[0].layers[l];
                    layer.primitive = "im2row-strip-hwc-hwc".into();
                    layer.workspace = Workspace { offset: 16_384, bytes };
                }
                p.memory.arena = 16_384 + 25_600;
            },
            "shared_by_concurrent",
        ),
        ("a workspace over a ring", lowered, |p| workspace(p).offset -= 4, "overlap"),
        ("a workspace between elements", lowered, |p| workspace(p).offset -= 2, "ring"),
        ("a workspace beyond the arena", lowered, |p| workspace(p).offset += 4, "ring"),
        ("a workspace beyond all", lowered, |p| workspace(p).offset = u64::MAX - 3, "ring"),
        ("a workspace too small", lowered, |p| workspace(p).bytes -= 4, "ring"),
        ("a workspace too large", lowered, |p| workspace(p).bytes += 4, "ring"),
        ("no workspace", lowered, |p| *workspace(p) = Workspace::default(), "ring"),
        ("a workspace of nobody", pair, |p| workspace(p).bytes = 4, "ring"),
        ("a place for no workspace", pair, |p| workspace(p).offset = 4, "ring"),
        ("an edge gone", edges, |p| drop(p.buffers[0].holds.remove(0)), "edge"),
        (
            "an edge twice",
            edges,
            |p| {
                let e = p.buffers[0].holds[0].clone();
                p.buffers[1].holds.push(e)
            },
            "edge",
        ),
        ("an unknown edge", edges, |p| p.buffers[0].holds[0].consumer = "b".into(), "edge"),
        (
            "a short ring",
            edges,
            |p| {
                let e = &mut p.buffers[2].holds[0];
                (e.ring_rows, e.bytes) = (3, 96)
            },
            "buffer",
        ),
        (
            "edges at the same time",
            edges,
            |p| {
                let edge = p.buffers[1].holds.remove(1);
                p.buffers[2].holds.push(edge);
            },
            "overlap",
        ),
        ("buffers overlap", edges, |p| p.buffers[2].offset -= 4, "overlap"),
        ("buffer beyond the arena", edges, |p| p.buffers[2].offset += 4, "buffer"),
        ("size of a buffer", edges, |p| p.buffers[0].bytes = 252, "buffer"),
        ("one half", double_buffered, |p| p.buffers[2].holds[0].half = Some(1), "edge"),
        (
            "halves together",
            double_buffered,
            |p| {
                let e = p.buffers[2].holds.remove(0);
                p.buffers[1].holds.push(e)
            },
            "edge",
        ),
        (
            "half of the rows",
            double_buffered,
            |p| {
                let e = &mut p.buffers[1].holds[0];
                (e.ring_rows, e.bytes) = (2, 64)
            },
            "edge",
        ),
        (
            "a busy buffer",
            double_buffered,
            |p| {
                let e = p.buffers[0].holds.remove(0);
                p.buffers[1].holds.push(e)
            },
            "buffer",
        ),
        (
            "a busy buffer, the empty one gone",
            double_buffered,
            |p| {
                let e = p.buffers[0].holds.remove(0);
                p.buffers[1].holds.push(e);
                drop(p.buffers.remove(0))
            },
            "shared_by_concurrent",
        ),
        (
            "buffers over each other",
            edges,
            |p| {
                let holds = vec![p.buffers[1].holds.remove(1)];
                p.buffers.push(crate::plan::Buffer { name: "B4".into(), offset: 256, bytes: 128, holds });
                (p.memory.buffers, p.memory.arena, p.memory.total, p.memory.proven) = (640, 640, 640, false);
            },
            "overlap",
        ),
        ("buffers in model tensors", pair, |p| p.buffers = edges().buffers, "buffer"),
        ("a ring in model edges", edges, |p| p.tensors[1].ring = branch().tensors[1].ring, "tensor"),
    ];
    table.iter().for_each(|&(name, plan, corrupt, variant)| refused(name, plan(), corrupt, variant));
}

#[test]
fn schedules() {
    let table: &[Case] = &[
        ("a firing dropped", pair, |p| drop(p.partitions[0].schedule.remove(3)), "firing_count"),
        ("a firing more", pair, |p| p.partitions[0].schedule.push(fire("l2")), "firing_count"),
        ("a foreign layer", pipelined, |p| p.partitions[0].schedule.push(fire("l2")), "schedule"),
        (
            "absurd repeats",
            pair,
            |p| p.partitions[0].schedule.push(repeat(1 << 60, &[fire("l2")])),
            "firing_count",
        ),
        (
            "repeats beyond counting",
            pair,
            |p| p.partitions[0].schedule.push(repeat(u64::MAX, &[fire("l2")])),
            "schedule",
        ),
        ("empty loop", pair, |p| p.partitions[0].schedule.push(repeat(u64::MAX, &[])), "schedule"),
        ("notation", pair, |p| p.partitions[0].notation.push(' '), "notation"),
        (
            "a reader before its producer",
            branch,
            |p| scheduled(p, &["in", "z", "b", "a", "c", "d"].map(fire), "[in],[z],[b],[a],[c],[d]"),
            "not_written",
        ),
        (
            "a producer too early",
            pair,
            |p| {
                let [i, a, b] = ["in", "l1", "l2"].map(fire);
                let schedule = [repeat(32, &[i]), repeat(32, &[a]), repeat(32, &[b])];
                scheduled(p, &schedule, "[in]×32,[l1]×32,[l2]×32");
                // Only the first ring and the second, then the second and nothing, live at the same time.
                p.memory.bound = 7040;
            },
            "overwrites_needed",
        ),
    ];
    table.iter().for_each(|&(name, plan, corrupt, variant)| refused(name, plan(), corrupt, variant));
}

#[test]
fn sums() {
    let table: &[Case] = &[
        ("total", two, |p| p.memory.total += 1, "sum"),
        ("naive", edges, |p| p.memory.naive -= 1, "sum"),
        ("bound", branch, |p| p.memory.bound -= 1, "sum"),
        ("proven", drain, |p| p.memory.proven = false, "sum"),
        ("not proven", branch, |p| p.memory.proven = true, "sum"),
        ("least", drain, |p| p.certificate.claimed = Some(p.memory.bound), "sum"),
        (
            "least above the arena",
            branch,
            |p| (p.certificate.claimed, p.memory.proven) = (Some(p.memory.arena + 4), false),
            "sum",
        ),
        ("least in edges", edges, |p| p.certificate.claimed = Some(p.memory.arena), "sum"),
        ("parameters of a layer", pair, |p| p.cnns[0].layers[1].parameters -= 4, "sum"),
        ("parameters", pair, |p| p.memory.parameters += 4, "sum"),
        ("parameters stored", pair, |p| p.memory.parameters_stored -= 4, "sum"),
        ("workspace", pair, |p| p.memory.workspace = 1, "sum"),
        ("inputs", branch, |p| p.memory.external.inputs = 0, "sum"),
        ("outputs", branch, |p| p.memory.external.outputs *= 2, "sum"),
        ("memory not met", two, |p| p.constraints.memory = Some(15_903), "sum"),
        ("fps not met", two, |p| p.constraints.fps = [("pair".into(), 12.6)].into(), "sum"),
        ("fps of nothing", two, |p| p.constraints.fps = [("x".into(), 1.0)].into(), "unknown_name"),
        ("latency not met", two, |p| p.constraints.latency_ns = [("pair".into(), 79_999_999)].into(), "sum"),
        ("latency of nothing", two, |p| p.constraints.latency_ns = [("x".into(), 1)].into(), "unknown_name"),
        ("more load than cores", pipelined, |p| loaded(p, [2.5, 1.6]), "sum"),
        ("less load than none", pipelined, |p| loaded(p, [-0.1, 1.0]), "sum"),
        ("no load", pipelined, |p| loaded(p, [f64::NAN, 1.0]), "sum"),
        (
            "load of no processor",
            pipelined,
            |p| {
                loaded(p, [1.0, 1.0]);
                p.partitions[1].processor = "gpu".into();
            },
            "unknown_name",
        ),
        ("no fps", pair, |p| p.cnns[0].fps = f64::NAN, "sum"),
        ("fps of nothing at all", pair, |p| p.cnns[0].fps = 0.0, "sum"),
        ("fps without end", pair, |p| p.cnns[0].fps = f64::INFINITY, "sum"),
        (
            "endless fps wanted",
            two,
            |p| {
                p.constraints.fps = [("pair".into(), f64::INFINITY)].into();
                p.constraints.met = false;
            },
            "sum",
        ),
        (
            "larger arena",
            branch,
            |p| (p.memory.arena, p.memory.total, p.memory.proven) = (516, 516, false),
            "sum",
        ),
    ];
    table.iter().for_each(|&(name, plan, corrupt, variant)| refused(name, plan(), corrupt, variant));
}

/// Of a partition that runs at the same time as another one.
#[test]
fn a_firing_is_named_by_its_place_in_its_partition() {
    let mut plan = pipelined();
    let [i, a] = ["in", "l1"].map(fire);
    plan.partitions[0].schedule = vec![
        repeat(2, std::slice::from_ref(&i)),
        a.clone(),
        i.clone(),
        repeat(29, &[i, a.clone()]),
        repeat(2, &[a]),
    ];
    plan.partitions[0].notation = "[in]×2,[l1],[in],([in],[l1])×29,[l1]×2".into();
    let violations = check(&plan).expect_err("a row that is not there");
    let text = violations[0].to_string();
    let expected = "partition `p1`, firing 2: layer `l1` reads row 2 of `pair/t_in` before it is written";
    assert_eq!(text, expected);
}
