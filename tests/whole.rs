//! No throughput lost at all: plans in which no layer processes its data by parts.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use csdfc_input::app::resolve::Application;
use csdfc_input::app::spec::RowsSpec;
use csdfc_network::LayerId;
use csdfc_network::operators;
use csdfc_plan::plan::{Memory, StorageModel};
use csdfc_tests::{app, plan};

fn whole(name: &str) -> (Application, Memory) {
    let mut opened = app(name);
    (opened.spec.rows, opened.spec.storage) = (RowsSpec::None, Some(StorageModel::Tensors));
    let application = opened.resolve().unwrap();
    let plan = plan(&application);
    assert!(plan.cnns.iter().flat_map(|cnn| &cnn.layers).all(|layer| layer.firings == 1), "{name}");
    (application, plan.memory)
}

/// Bytes of parameters and buffers, as the paper counts them: no more than when this test was written.
#[test]
fn applications_of_table_12() {
    for (name, most) in [
        ("table12/app1.ron", 18_796_832),
        ("table12/app2.ron", 25_915_728),
        ("table12/app5.ron", 154_310_368),
        ("table12/app6.ron", 156_109_792),
    ] {
        let (_, memory) = whole(name);
        let found = memory.parameters + memory.buffers;
        println!("{name}: {} + {} = {found}", memory.parameters, memory.buffers);
        assert!(found <= most, "{name}: {found}");
    }
}

/// The distance of a pipeline's first stage from half of the multiplications, for each layer at which it could end; and
/// the place at which it does end.
fn distances(application: &Application) -> (Vec<u64>, usize) {
    let network = &application.cnns[0].network;
    let macs = |id: LayerId| {
        let layer = network.layer(id);
        operators::macs(&layer.operator, &layer.input_shapes(), &layer.shape)
    };
    let all: u64 = network.ids().map(macs).sum();
    let mut before = 0;
    let distance = |id| {
        before += macs(id);
        (2 * before).abs_diff(all)
    };
    (network.ids().map(distance).collect(), application.cnns[0].partitions[0].layers.len() - 1)
}

/// Bytes of buffers of pipelines that are cut where the multiplications halve.
#[test]
fn pipelines_cut_at_half_the_multiplications() {
    for (name, most) in [
        ("pipelines/mobilenet_v2.ron", 5_497_856),
        ("pipelines/efficientnet_b0.ron", 6_601_728),
        ("pipelines/resnet50.ron", 8_830_976),
    ] {
        let (application, memory) = whole(name);
        assert_eq!((application.cnns[0].partitions.len(), &application.parallel[0].len()), (2, &2), "{name}");
        let (distances, cut) = distances(&application);
        assert_eq!(Some(&distances[cut]), distances.iter().min(), "{name}");
        println!("{name}: {}", memory.buffers);
        assert!(memory.buffers <= most, "{name}: {}", memory.buffers);
    }
}
