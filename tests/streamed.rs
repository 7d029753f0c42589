//! Networks whose weights are read from a store.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::PathBuf;

use csdfc_input::app::resolve::{Application, Constraints, RowsChoice, Streamed};
use csdfc_input::app::spec::WeightsPlace;
use csdfc_input::app::{Origin, spec};
use csdfc_input::builtin;
use csdfc_input::units::MemoryGoal;
use csdfc_network::operators::output_shape;
use csdfc_network::pass;
use csdfc_network::{Network, NetworkOutput};
use csdfc_plan::operator::{Conv, Gemm, Operator};
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_plan::shape::Shape;
use csdfc_planner::open::Opened;
use csdfc_planner::search::code;
use csdfc_planner::search::start::Start;
use csdfc_precision::quantize::{Options, quantize};
use csdfc_runtime::run::{Data, Value};
use csdfc_tests::{application, generate, outcome_from, plan, rates, tiled};

/// A few percent of what the weights alone take, in bytes, and every weight read once a frame.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn networks_take_a_fraction_of_their_weights() {
    for (name, most) in [
        ("mobilenet_v1", 970_000),
        ("mobilenet_v2", 700_000),
        ("efficientnet_b0", 2_300_000),
        ("resnet50", 4_500_000),
        ("vgg16", 5_800_000),
    ] {
        let plan = streamed(name, MemoryGoal::Bytes(most));
        let memory = &plan.memory;
        assert!(memory.total <= most, "{name}: {}", memory.total);
        assert_eq!((memory.parameters_resident, memory.total), (Some(0), memory.arena), "{name}");
        // The bytes by which tiles are rounded up are no weights.
        let read = plan.cnns[0].bytes_read.unwrap();
        assert_eq!(plan.store.unwrap().bytes, read);
        assert!(
            (memory.parameters_stored..memory.parameters_stored + memory.parameters_stored / 500)
                .contains(&read),
            "{name}"
        );
    }
}

/// With less memory, some weights are read again. The bytes read are at most a given multiple of all weights.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn networks_take_less_if_they_read_weights_again() {
    for (name, most, times) in [
        ("mobilenet_v2", 534_000, 1.3),
        ("resnet50", 2_800_000, 2.5),
        ("googlenet", 1_340_000, 4.2),
        ("vgg16", 2_800_000, 1.9),
    ] {
        let plan = streamed(name, MemoryGoal::Bytes(most));
        assert!(plan.constraints.met, "{name}: {}", plan.memory.total);
        let all = plan.store.unwrap().bytes as f64;
        assert!((all..all * times).contains(&(plan.cnns[0].bytes_read.unwrap() as f64)), "{name}");
    }
}

fn streamed(name: &str, goal: MemoryGoal) -> Plan {
    let mut opened = csdfc_planner::open::open(&format!("builtin:{name}")).unwrap();
    (opened.spec.weights, opened.spec.constraints.memory) = (WeightsPlace::Streamed, Some(goal));
    plan(&opened.resolve().unwrap())
}

/// Weights are read again only if no plan fits that reads them once, whether the user or csdfc decides that they are
/// streamed.
#[test]
fn weights_are_read_again_where_memory_has_too_little_room() {
    let once = streamed("resnet8", MemoryGoal::Bytes(107_584));
    assert!(once.constraints.met);
    let all = once.store.as_ref().unwrap().bytes;
    assert_eq!(once.cnns[0].bytes_read, Some(all));
    // The smallest plan, which is the nearest to an impossible budget.
    let least = streamed("resnet8", MemoryGoal::Min);
    assert_eq!(streamed("resnet8", MemoryGoal::Bytes(1)).memory.total, least.memory.total);
    assert!(least.memory.total < once.memory.total);
    assert!(least.cnns[0].bytes_read.unwrap() > all);
    for place in [WeightsPlace::Streamed, WeightsPlace::Auto] {
        let within = |bytes: u64| {
            let mut opened = csdfc_planner::open::open("builtin:resnet8").unwrap();
            (opened.spec.weights, opened.spec.constraints.memory) = (place, Some(MemoryGoal::Bytes(bytes)));
            let plan = plan(&opened.resolve().unwrap());
            assert_eq!(plan.constraints.met, bytes >= least.memory.total, "{bytes}: {}", plan.memory.total);
            (plan.cnns[0].bytes_read, plan.store.map(|store| store.bytes))
        };
        let total = least.memory.total;
        let [less, same, little, more] = [total - 64, total, total + 3000, total + 6000].map(within);
        assert_eq!(less, same);
        assert!(little.0 > Some(all) && little.0 < same.0, "{little:?}, {same:?}");
        assert_eq!(more.0, more.1);
    }
}

/// Of the layers that could keep their weights in so much memory, no others would save more reading.
#[test]
fn as_little_is_read_again_as_can_be() {
    let mut read_again = 0;
    for stream in 0..12 {
        let network = tiled::convolutions(&mut csdfc_tests::random(stream));
        let names: Vec<String> = network.layers.iter().skip(1).map(|layer| layer.name.clone()).collect();
        let application = generate::of_one(network, StorageModel::Tensors, RowsChoice::Default);
        let constraints = Constraints { memory: Some(MemoryGoal::Bytes(1)), ..Constraints::default() };
        let found =
            plan(&Application { streamed: Some(Streamed::default()), constraints, ..application.clone() });
        if !found.cnns[0].layers.iter().any(|layer| layer.times_read() > 1) {
            continue;
        }
        read_again += 1;
        let choice = code::read(&found.search.choices["cnn"], &application.cnns[0].network).unwrap();
        for set in 0..1usize << names.len() {
            let again = names.iter().enumerate().filter(|(bit, _)| set >> bit & 1 > 0);
            let again = again.map(|(_, name)| (0, name.clone())).collect();
            let streamed = Some(Streamed { again, ..Streamed::default() });
            let other = Application { streamed, ..application.clone() };
            let other = outcome_from(&Start::Picked(vec![choice.clone()]), &other).plan;
            assert!(
                other.memory.total > found.memory.total
                    || other.cnns[0].bytes_read >= found.cnns[0].bytes_read,
                "stream {stream}, {set:b}: {:?} in {}",
                other.cnns[0].bytes_read,
                other.memory.total
            );
        }
    }
    assert!(read_again > 4, "{read_again}");
}

/// The same for integers, whose tensors take a quarter too.
#[test]
fn integers_take_a_fraction_of_their_weights() {
    let network = builtin::network("mobilenet_v2").unwrap();
    let pixels = generate::sixteenths(1).take(3 * 224 * 224).collect();
    let frame = Value { dims: vec![1, 3, 224, 224], data: Data::F32(pixels) };
    let quantized = quantize(network, &[vec![frame]], Options::default()).unwrap();
    let network = pass::normalise(quantized.network, pass::Fusion::Full);
    let application = generate::of_one(network, StorageModel::Tensors, RowsChoice::Default);
    let constraints = Constraints { memory: Some(MemoryGoal::Min), ..Constraints::default() };
    let plan = plan(&Application { streamed: Some(Streamed::default()), constraints, ..application });
    assert!(plan.memory.total <= 165_000, "{}", plan.memory.total);
    assert!(plan.store.map(|store| store.bytes) <= plan.cnns[0].bytes_read);
}

/// Where weights do not fit, some are streamed, and no more than must be. Loads overlap computing.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn weights_that_do_not_fit_are_streamed() {
    let within = |memory: u64| {
        let mut opened = csdfc_tests::app("mobilenet_v2.ron");
        opened.spec.constraints.memory = Some(MemoryGoal::Bytes(memory));
        plan(&opened.resolve().unwrap())
    };
    let [small, large] = [2_000_000, 8_000_000].map(within);
    for plan in [&small, &large] {
        let memory = &plan.memory;
        let limit = plan.constraints.memory.unwrap();
        assert!(plan.constraints.met && memory.total <= limit, "{}", memory.total);
        // The limit is tight: the weights of one more large layer would not fit in addition to the rest.
        assert!(memory.total > limit / 10 * 9 && memory.parameters_resident > Some(0), "{}", memory.total);
        let cnn = &plan.cnns[0];
        let (read, computing) = (cnn.read_ns.unwrap(), cnn.computing_ns.unwrap());
        assert!(
            cnn.latency_ns < read + computing && cnn.latency_ns >= read.max(computing),
            "{}",
            cnn.latency_ns
        );
        let is_doubled = |layer: &csdfc_plan::plan::Layer| {
            layer.streamed.as_ref().is_some_and(|streamed| streamed.blocks.len() == 2)
        };
        assert!(cnn.layers.iter().any(is_doubled));
    }
    assert!(large.cnns[0].bytes_read < small.cnns[0].bytes_read && large.cnns[0].fps > small.cnns[0].fps);
    let roomy = within(20_000_000);
    assert!(roomy.store.is_none() && roomy.cnns[0].bytes_read.is_none());
}

/// In a pipeline whose stages both read, loads overlap computing in each of them, so that the store hardly ever waits.
#[test]
fn loads_of_stages_overlap_computing() {
    let pipeline = application(
        "(cnns: [(model: \"builtin:mobilenet_v1_0.25\", partitions: [(name: \"a\", upto: \"conv_pw_8\"), (name: \"b\")])], \
         parallel: [[\"a\", \"b\"]], weights: streamed)",
    );
    let within = |memory: MemoryGoal| {
        let constraints = Constraints { memory: Some(memory), ..Constraints::default() };
        plan(&Application { constraints, ..pipeline.clone() })
    };
    let least = within(MemoryGoal::Min);
    let limit = least.memory.total + 400_000;
    let roomy = within(MemoryGoal::Bytes(limit));
    assert!(roomy.constraints.met && roomy.memory.total <= limit);
    let rate = |plan: &Plan| plan.cnns[0].fps * plan.cnns[0].read_ns.unwrap() as f64 / 1e9;
    let rates = [rate(&least), rate(&roomy)];
    assert!(rates[0] < 0.95 && rates[1] > 0.97 && rates[1] <= 1.0, "{rates:?}");
    for stage in ["a", "b"] {
        let layers = roomy.cnns[0].layers.iter().filter(|layer| layer.partition == stage);
        let mut streamed = layers.filter_map(|layer| layer.streamed.as_ref());
        assert!(streamed.any(|streamed| streamed.blocks.len() == 2), "{stage}");
    }
}

/// The plan is as fast as by either simple rule: that no weight stays, or as many as fit in addition to the smallest
/// plan, the largest first. In between, it is faster.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn what_stays_is_worth_its_room() {
    let of = |weights: WeightsPlace, goal: MemoryGoal, resident: &[String]| {
        let mut opened = csdfc_tests::app("mobilenet_v2.ron");
        (opened.spec.weights, opened.spec.constraints.memory) = (weights, Some(goal));
        opened.spec.resident = resident.to_vec();
        plan(&opened.resolve().unwrap())
    };
    let least = of(WeightsPlace::Streamed, MemoryGoal::Min, &[]);
    let mut layers: Vec<_> = least.cnns[0].layers.iter().filter(|layer| layer.streamed.is_some()).collect();
    layers.sort_by_key(|layer| std::cmp::Reverse(layer.parameters));
    for limit in [2_000_000, 6_000_000, 10_000_000] {
        let mut room = limit - least.memory.total;
        let mut resident = Vec::new();
        for layer in &layers {
            if layer.parameters <= room {
                room -= layer.parameters;
                resident.push(layer.name.clone());
            }
        }
        let [none, most] = [&[][..], &resident].map(|resident| {
            let plan = of(WeightsPlace::Streamed, MemoryGoal::Bytes(limit), resident);
            assert!(plan.constraints.met);
            plan.cnns[0].fps
        });
        let chosen = of(WeightsPlace::Auto, MemoryGoal::Bytes(limit), &[]);
        assert!(chosen.constraints.met && chosen.memory.total <= limit);
        let fps = chosen.cnns[0].fps;
        assert!(fps >= none.max(most), "{limit}: {fps}, {none} where none stays, {most} where most do");
        assert!(fps > 1.03 * most, "{limit}: {fps}, {most} where most stay");
    }
}

/// Named layers stay in memory, and the rest is streamed.
#[test]
fn layers_stay_resident_by_name() {
    let of = |resident: &str| {
        let text = format!(
            "(cnns: [(model: \"builtin:lenet5\")], rows: none, weights: streamed, resident: [{resident}])"
        );
        plan(&application(&text))
    };
    let (all, but) = (of(""), of("\"F6\""));
    let layer = |plan: &csdfc_plan::plan::Plan, name: &str| {
        plan.cnns[0].layers.iter().find(|layer| layer.name == name).unwrap().clone()
    };
    let bytes = all.cnns[0].bytes_read.unwrap() - but.cnns[0].bytes_read.unwrap();
    assert!(layer(&all, "F6").streamed.is_some() && layer(&but, "F6").streamed.is_none());
    // 84 units of 120 weights and a bias, and 12 zeros.
    let kept: u64 = (4 * (84 * 121 + 12) as u64).next_multiple_of(64);
    assert_eq!(but.memory.parameters_resident, Some(kept));
    assert!((kept..kept + 64 * 6).contains(&bytes), "{bytes}");
}

/// One filter of one channel would be a depthwise convolution: such layers are read whole, however large they are.
#[test]
fn filters_of_one_channel_come_in_one_piece() {
    let of = |x: Shape, operator: Operator| {
        let mut network = Network::default();
        let x = generate::input(&mut network, x);
        let shape = output_shape(&operator, std::slice::from_ref(&x.shape)).unwrap();
        let operand = generate::add(&mut network, operator, vec![x], shape);
        network.outputs.push(NetworkOutput::new("y", operand));
        network
    };
    let conv = |channels: usize| {
        let conv = Conv {
            filters: 3000,
            kernel: [3, 3],
            stride: [1; 2],
            dilation: [1; 2],
            pads: [0; 4],
            groups: 1,
            bias: true,
            pre: None,
            residual: false,
            activation: None,
        };
        of(Shape::image(channels, 3, 3), Operator::Conv(conv))
    };
    let gemm = |inner: usize| {
        let gemm = Gemm { inner, units: 3000, transposed: true, bias: true, activation: None };
        of(Shape::new([1, inner]), Operator::Gemm(gemm))
    };
    let tiles = |network: Network| {
        let application = generate::of_one(network, StorageModel::Tensors, RowsChoice::None);
        let plan = plan(&Application { streamed: Some(Streamed::default()), ..application });
        let streamed = plan.cnns[0].layers.iter().filter_map(|layer| layer.streamed.as_ref());
        let tiles: Vec<usize> = streamed.map(|streamed| rates(&streamed.tiles).len()).collect();
        tiles[0]
    };
    let integers = |network: Network| tiled::of_integers(&network);
    assert_eq!([tiles(conv(1)), tiles(integers(conv(1))), tiles(integers(gemm(1)))], [1; 3]);
    for network in [conv(2), integers(conv(2)), gemm(2), integers(gemm(2))] {
        assert!(tiles(network) > 1);
    }
}

#[test]
fn what_cannot_be_streamed_is_refused() {
    let error = |text: &str| {
        let origin = Origin { name: "app.ron".into(), text: Some(text.into()), replaced: Vec::new() };
        let spec = spec::parse(&origin).unwrap();
        Opened { spec, origin, folder: PathBuf::new() }.resolve().unwrap_err().to_string()
    };
    let of = |more: &str| error(&format!("(cnns: [(model: \"builtin:lenet5\")], weights: streamed, {more})"));
    assert!(of("storage: edges").contains("need storage model `tensors`"), "{}", of("storage: edges"));
    assert!(of("resident: [\"F7\"]").contains("resident weights of an unknown layer `F7`"));
}
