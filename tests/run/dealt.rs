//! Layers that are dealt out to partitions at random: the outputs have the same bytes as with one partition.

use csdfc_input::app::partition::Partition;
use csdfc_input::app::resolve::{Application, Cnn, RowsChoice};
use csdfc_network::component::components;
use csdfc_plan::plan::StorageModel;
use csdfc_tests::{app, generate, random, until_all_are_tested};
use rand::RngExt;

use super::{bits, run};

/// Networks drawn.
const NETWORKS: u64 = 60;

/// The application with one partition for each CNN.
fn whole(application: &Application) -> Application {
    let whole = |cnn: &Cnn| {
        let (name, layers) = (cnn.name.clone(), cnn.network.ids().collect());
        let partition = Partition { name, layers, processor: "cpu".into(), schedule: None };
        Cnn { partitions: vec![partition], ..cnn.clone() }
    };
    let cnns: Vec<Cnn> = application.cnns.iter().map(whole).collect();
    let parallel = cnns.iter().map(|cnn| vec![cnn.name.clone()]).collect();
    Application { cnns, parallel, rows: RowsChoice::None, ..application.clone() }
}

/// Whether partitions of a CNN wait for each other within a frame.
fn waits(cnn: &Cnn) -> bool {
    let of = |id| cnn.partitions.iter().position(|partition| partition.layers.contains(&id)).unwrap();
    let partition_of: Vec<usize> = cnn.network.ids().map(of).collect();
    components(&cnn.network, &partition_of, cnn.partitions.len()).iter().any(|component| component.len() > 1)
}

#[test]
fn partitions_of_any_layers_compute_the_same() {
    let partitioned = [("that wait for one another", 0), ("in a pipeline", 0)].into();
    until_all_are_tested(NETWORKS, 5, partitioned, |stream, partitioned| {
        let mut random = random(stream);
        let bytes: Vec<u8> = (0..random.random_range(20..300)).map(|_| random.random()).collect();
        for storage in [StorageModel::Tensors, StorageModel::Edges] {
            let drawn = generate::dealt(&bytes, storage);
            let expected = run(&whole(&drawn)).unwrap();
            for (threads, rows) in (1..).zip([drawn.rows.clone(), RowsChoice::None, RowsChoice::All]) {
                let application = Application { rows, threads, ..drawn.clone() };
                let outputs = run(&application).unwrap();
                let which = format!("stream {stream}, {:?}, {storage}", application.rows);
                assert_eq!(bits(&expected), bits(&outputs), "{which}");
            }
            for cnn in drawn.cnns.iter().filter(|cnn| cnn.partitions.len() > 1) {
                let how = if waits(cnn) { "that wait for one another" } else { "in a pipeline" };
                *partitioned.entry(how).or_default() += 1;
            }
        }
    });
}

/// One branch of each inception module of GoogLeNet on another processor.
#[test]
fn a_branch_of_each_module() {
    let application = app("pipelines/googlenet.ron").resolve().unwrap();
    // The search would take longer than everything else.
    let application = Application { rows: RowsChoice::None, ..application };
    let sizes = application.cnns[0].partitions.iter().map(|partition| partition.layers.len());
    assert_eq!(sizes.collect::<Vec<_>>(), [18, 86]);
    assert!(waits(&application.cnns[0]));
    assert_eq!(bits(&run(&whole(&application)).unwrap()), bits(&run(&application).unwrap()));
}
