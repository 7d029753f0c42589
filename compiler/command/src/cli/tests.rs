use clap::CommandFactory;
use csdfc_input::app::spec::FpsSpec;
use csdfc_input::units::{MemoryGoal, Nanoseconds};

use super::*;

fn plan_args(words: &str) -> Result<PlanArgs, clap::Error> {
    let line = ["csdfc", "plan", "a.ron"].into_iter().chain(words.split_whitespace());
    Cli::try_parse_from(line).map(|cli| match cli.command {
        Command::Plan(args) => *args,
        _ => unreachable!("the line says plan"),
    })
}

fn applied(file: &str, words: &str) -> AppSpec {
    let mut origin = Origin { name: "app.ron".into(), text: Some(file.into()), replaced: Vec::new() };
    let mut spec = csdfc_input::app::spec::parse(&origin).unwrap();
    plan_args(words).unwrap().apply(&mut spec, &mut origin).unwrap();
    spec
}

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn options_win_over_the_file() {
    let file = r#"(
        cnns: [(name: "a", model: "a.onnx"), (name: "b", model: "b.onnx")],
        constraints: (memory: "8MB", fps: {"a": 10, "b": 20}),
        rows: all, threads: 2, search: (seed: 9),
    )"#;
    let spec =
        applied(file, "--mem min --fps b=30 --rows a/c=4,d=2 --storage edges --threads 3 --seed 5 --no-fuse");
    assert_eq!(spec.constraints.memory, Some(MemoryGoal::Min));
    assert_eq!(spec.constraints.fps.of, [("a".into(), 10.0), ("b".into(), 30.0)].into());
    assert_eq!(spec.rows, RowsSpec::Layers([("a/c".into(), 4), ("d".into(), 2)].into()));
    assert_eq!((spec.storage, spec.threads, spec.search.seed), (Some(StorageModel::Edges), 3, 5));
    assert!(!spec.fuse);

    // Names as exporters make them.
    let spec = applied(file, "--rows a/x,y=1=4,d,2=2,e=1");
    let named = [("a/x,y=1".into(), 4), ("d,2".into(), 2), ("e".into(), 1)];
    assert_eq!(spec.rows, RowsSpec::Layers(named.into()));

    let spec = applied(file, "--fps 71 --shape b/image=1,3,8,8");
    assert_eq!(spec.constraints.fps, FpsSpec { every: Some(71.0), of: [].into() });
    assert_eq!(spec.cnns[1].shapes, [("image".into(), vec![1, 3, 8, 8])].into());
    assert_eq!((spec.rows, spec.threads), (RowsSpec::All, 2));

    let spec = applied(file, "--latency 40ms --latency b=1.5s");
    let latency = &spec.constraints.latency;
    assert_eq!(latency.every, Some(Nanoseconds(40_000_000)));
    assert_eq!(latency.of, [("b".into(), Nanoseconds(1_500_000_000))].into());

    // A method and rows given for every layer exclude each other.
    let spec = applied(file, "--method paper");
    assert_eq!((spec.search.method, spec.rows), (Some(Method::Paper), RowsSpec::Default));
    let file = r#"(cnns: [(model: "a.onnx")], search: (method: parts))"#;
    let spec = applied(file, "--rows none");
    assert_eq!((spec.search.method, spec.rows), (None, RowsSpec::None));
}

#[test]
fn wrong_options_are_explained() {
    for (words, expected) in [
        ("--mem 0", "`min`"),
        ("--mem banana", "8MiB is 8 x 2^20"),
        ("--mem -8MB", "unexpected argument"),
        ("--mem=-8MB", "is not a size"),
        ("--fps 0", "above 0"),
        ("--fps NaN", "above 0"),
        ("--fps a=-1", "above 0"),
        ("--latency 40", "`40ms`"),
        ("--latency a=0ms", "`CNN=40ms`"),
        ("--rows some", "`none`, `all`"),
        ("--rows a=1,a=2", "given twice"),
        ("--rows a=x", "`none`, `all`"),
        ("--storage edge", "`edges`"),
        ("--shape image", "image=1,3,224,224"),
        ("--shape image=1,0", "image=1,3,224,224"),
        ("--shape =1", "image=1,3,224,224"),
        ("--prefer speed", "fps, memory"),
        ("--method papr", "'paper'"),
        ("--method paper --rows all", "cannot be used with"),
    ] {
        let error = plan_args(words).unwrap_err().to_string();
        assert!(error.contains(expected), "{words}: {error}");
    }
}

#[test]
fn a_shape_names_its_cnn_where_there_are_several() {
    let mut origin = Origin::default();
    let mut spec = AppSpec::of_model("a.onnx");
    let shape = plan_args("--shape image=1,3,8,8").unwrap();
    shape.apply(&mut spec, &mut origin).unwrap();
    assert_eq!(spec.cnns[0].shapes["image"], [1, 3, 8, 8]);
    spec.cnns.push(spec.cnns[0].clone());
    assert!(shape.apply(&mut spec, &mut origin).is_err());
}

#[test]
fn a_negative_value_belongs_to_its_option() {
    for (option, value) in [
        ("--mem", "-5MB"),
        ("--mem", "-5"),
        ("--fps", "-5"),
        ("--latency", "-5ms"),
        ("--budget", "-5s"),
        ("--threads", "-2"),
    ] {
        let said = Cli::parsed(["csdfc", "plan", "a.ron", option, value].map(OsString::from)).unwrap_err();
        assert!(said.starts_with(&format!("invalid value '{value}' for '{option} ")), "{said}");
    }
    let said = Cli::parsed(["csdfc", "plan", "a.ron", "-5"].map(OsString::from)).unwrap_err();
    assert!(said.starts_with("unexpected argument '-5' found"), "{said}");
}
