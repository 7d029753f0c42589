//! The pages in `docs/` are as this crate writes them, as far as that needs neither a search nor a measurement.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::path::Path;

use csdfc_input::device::DeviceProfile;
use csdfc_input::device::measured::{Measured, Sample, scenario};
use csdfc_network::Layer;
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::StorageModel;
use csdfc_plan::shape::Shape;
use csdfc_planner::open;
use csdfc_reproduce::{mec, precision, s1, selection, strategies, table12, upscale};
use csdfc_runtime::bind::Primitive;

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).unwrap()
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn the_page_of_s1_is_not_old() {
    let (beginning, figures) = s1::without_search().unwrap();
    assert!(page("s1/README.md").starts_with(&beginning), "`csdfc-reproduce s1 -o docs/s1`");
    for (name, figure) in figures {
        assert!(page(&format!("s1/{name}")) == figure, "`csdfc-reproduce s1 -o docs/s1`: {name} is old");
    }
}

#[test]
fn the_page_of_the_strategies_lists_all() {
    let beginning = strategies::without_plans();
    assert!(
        page("strategies/README.md").starts_with(&beginning),
        "`csdfc-reproduce strategies -o docs/strategies`"
    );
}

#[test]
fn the_page_of_mec_is_not_old() {
    let (beginning, figures) = mec::without_times();
    assert!(page("mec/README.md").starts_with(&beginning), "`csdfc-reproduce mec -o docs/mec`");
    for (name, figure) in figures {
        assert!(page(&format!("mec/{name}")) == figure, "`csdfc-reproduce mec -o docs/mec`: {name} is old");
    }
}

/// The network makes what the filter does by its definition, to a tenth of a step of a byte. Kernels of other processors
/// round otherwise, so only what is before the network is the same everywhere.
#[test]
fn the_enlarged_picture_is_what_its_label_says() {
    let command = "`csdfc-reproduce upscale -o docs/guide/src`";
    assert!(page(&format!("guide/src/{}", upscale::FILE)).starts_with(&upscale::beginning()), "{command}");
    let (made, expected) = (upscale::enlarged().unwrap(), upscale::filtered());
    assert_eq!((made.width, made.pixels.len()), (192, 192 * 128));
    let both = made.pixels.iter().flatten().zip(expected.pixels.iter().flatten());
    let most = both.map(|(made, expected)| (made - expected).abs()).fold(0.0, f32::max);
    assert!(most < 0.1 / 255.0, "{most}");
}

/// The pages on the choice of primitives hold nothing that is not the same twice.
#[test]
fn the_pages_of_pbqp_and_taso_are_not_old() {
    let device = DeviceProfile::find(selection::DEVICE, Path::new("")).unwrap();
    let made = [
        ("pbqp", selection::pbqp::files(&device, &|_| ()).unwrap()),
        ("taso", selection::taso::files(&device, &|_| ()).unwrap().0),
    ];
    for (paper, files) in made {
        for (name, content) in files {
            let path = format!("{paper}/{name}");
            assert!(page(&path) == content, "`csdfc-reproduce {paper} -o docs/{paper}`: {path} is old");
        }
    }
}

/// On a profile that has all primitives of all networks, with one thread and with two, every network is there, and the figures
/// are those that follow from the times: sum2d takes twice as long as any other primitive, and two threads half the time.
#[test]
fn the_page_of_pbqp_has_what_a_profile_has() {
    let mut device = DeviceProfile::find("generic", Path::new("")).unwrap();
    let mut measured: BTreeMap<(String, u64), Measured> = BTreeMap::new();
    let mut convolutions = Vec::new();
    let names = [
        "alexnet",
        "vgg_b",
        "vgg_c",
        "vgg16",
        "vgg_e",
        "googlenet",
        "resnet50",
        "squeezenet1_0",
        "inception_v2",
    ];
    for name in names {
        let mut opened = open::open(&format!("builtin:{name}")).unwrap();
        opened.spec.storage = Some(StorageModel::Edges);
        let application = opened.resolve().unwrap();
        let layers = &application.cnns[0].network.layers;
        convolutions.push(0);
        for layer in layers.iter().filter(|layer| matches!(layer.operator, Operator::Conv(_))) {
            *convolutions.last_mut().unwrap() += 1;
            let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
            for threads in [1, 2] {
                let mut times = BTreeMap::new();
                for primitive in
                    Primitive::all().filter(|primitive| primitive.computes(&layer.operator, &inputs))
                {
                    let ns = if primitive.name().contains("sum2d") { 1e6 } else { 5e5 } / threads as f64;
                    let rows = Layer { primitive: Some(primitive), ..layer.clone() }.rows() as u64;
                    times.insert(primitive.name().to_owned(), vec![Sample { rows, ns, spread: 0.0 }]);
                }
                let scenario = scenario(layer);
                measured.insert((scenario.clone(), threads), Measured { scenario, threads, times });
            }
        }
    }
    device.processors.get_mut("cpu").unwrap().measured = measured.into_values().collect();
    let files = selection::pbqp::files(&device, &|_| ()).unwrap();
    let page = &files.iter().find(|(name, _)| name == "README.md").unwrap().1;
    assert!(!page.contains("Left out") && !page.contains("(over indirect)"), "{page}");
    assert_eq!(convolutions[..6], [5, 10, 13, 13, 16, 57]);
    for threads in [1.0, 2.0] {
        // The optimum has no conversions, and takes half a millisecond for each convolution.
        let cell =
            |count: &u32| format!(" {:.1} ({:.1}×) |", f64::from(*count) / 2.0 / threads, 2.0 * threads);
        let row = format!("| PBQP |{}\n", convolutions.iter().map(cell).collect::<String>());
        assert!(page.contains(&row), "{row}{page}");
    }
}

#[test]
fn the_page_of_table_12_is_not_old() {
    let page = page("table12/README.md");
    for part in table12::without_search().unwrap() {
        assert!(page.contains(&part), "`csdfc-reproduce table12 -o docs/table12`, it lacks:\n{part}");
    }
}

#[test]
fn the_page_of_precisions_is_not_old() {
    let page = page("precision/README.md");
    for part in precision::without_search().unwrap() {
        assert!(page.contains(&part), "`csdfc-reproduce precision -o docs/precision`, it lacks:\n{part}");
    }
    // Of half precision one application has a published rate, and of the others none has.
    let of_unknown: Vec<&str> = page.lines().filter(|line| line.contains("no published rate")).collect();
    assert_eq!(of_unknown.len(), 11);
    assert!(of_unknown.iter().all(|line| !line.ends_with("| met |")), "{of_unknown:?}");
}
