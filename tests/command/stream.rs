//! Streams: what a call makes, and what no stream can be.

use csdfc_command::npy;
use csdfc_runtime::run::{Data, Value};

use super::{fails, folder, run};

/// Features of so many rows for `builtin:wake_word`.
fn features(rows: usize) -> Vec<u8> {
    let value = |at: usize| (at * 7919 % 1013) as f32 / 507.0 - 1.0;
    (0..rows * 40).flat_map(|at| value(at).to_le_bytes()).collect()
}

#[test]
fn results_come_hop_by_hop() {
    let folder = folder();
    let path = folder.path();
    std::fs::write(path.join("features.f32"), features(50)).unwrap();
    let planned = run(path, &["plan", "builtin:wake_word", "--stream", "features", "-o", "stream.json"]);
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    let said =
        "wake_word is a stream: a hop takes 1 row and makes 46 040 multiplications; scores lags 29 rows; ";
    assert!(planned.stdout.contains(said), "{}", planned.stdout);
    let ran = run(path, &["run", "stream.json", "--input", "features.f32", "--output", "scores=stream.f32"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // The same by windows of 30 rows, one behind the other.
    let windows: Vec<u8> =
        (0..21).flat_map(|first| features(50)[first * 160..][..30 * 160].to_vec()).collect();
    std::fs::write(path.join("windows.f32"), windows).unwrap();
    assert_eq!(run(path, &["plan", "builtin:wake_word", "-o", "plan.json"]).code, 0);
    let ran = run(path, &["run", "plan.json", "--input", "windows.f32", "--output", "scores=windowed.f32"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let [hops, windows] = ["stream.f32", "windowed.f32"].map(|file| std::fs::read(path.join(file)).unwrap());
    assert_eq!((hops.len(), &hops), (21 * 12, &windows));
}

/// A tensor with the rows of many hops gives a tensor with all that they make.
#[test]
fn a_tensor_may_have_many_hops() {
    let folder = folder();
    let path = folder.path();
    let plans = [
        ("builtin:wake_word --stream features", "features", "scores", [1, 40, 50, 1], vec![21, 3]),
        ("builtin:paper_pair --stream l1 --hop 3", "l1", "l2", [1, 3, 48, 32], vec![1, 8, 46, 32]),
    ];
    for (model, input, output, dims, made) in plans {
        let args: Vec<&str> =
            ["plan"].into_iter().chain(model.split(' ')).chain(["-o", "hops.json"]).collect();
        assert_eq!(run(path, &args).code, 0);
        let [_, channels, rows, columns] = dims;
        let signal = |at: usize| (at * 7919 % 1013) as f32 / 507.0 - 1.0;
        let by_rows = (0..rows * columns * channels).flat_map(|at| signal(at).to_le_bytes());
        std::fs::write(path.join("rows.f32"), by_rows.collect::<Vec<u8>>()).unwrap();
        let image = |at: usize| signal(at % (rows * columns) * channels + at / (rows * columns));
        let image = (0..rows * columns * channels).map(image).collect();
        npy::write(&path.join("x.npy"), &Value { dims: dims.to_vec(), data: Data::F32(image) }).unwrap();
        let [raw, tensor] = ["rows.f32", "x.npy"].map(|file| format!("{input}={file}"));
        let [raw_made, tensor_made] = ["y.f32", "y.npy"].map(|file| format!("{output}={file}"));
        for (input, output) in [(raw, raw_made), (tensor, tensor_made)] {
            let ran = run(path, &["run", "hops.json", "--input", &input, "--output", &output]);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
        }
        let Value { dims, data } = npy::read(&path.join("y.npy")).unwrap();
        assert_eq!(dims, made, "{model}");
        let Data::F32(values) = data else { panic!("floats") };
        // Raw files have images as rows of pixels of channels.
        let channels = if dims.len() == 4 { dims[1] } else { 1 };
        let pixels = values.len() / channels;
        let in_rows = (0..values.len()).map(|at| values[at % channels * pixels + at / channels]);
        let bytes: Vec<u8> = in_rows.flat_map(f32::to_le_bytes).collect();
        assert_eq!(bytes, std::fs::read(path.join("y.f32")).unwrap(), "{model}");
    }
    npy::write(&path.join("x.npy"), &Value { dims: vec![1, 3, 50, 32], data: Data::F32(vec![0.0; 4800]) })
        .unwrap();
    insta::assert_snapshot!(
        "stream_hops_left_over",
        fails(path, &["run", "hops.json", "--input", "x.npy", "-q"])
    );
}

/// The wake word of the doorbell makes the same beside another CNN, whether the file or the command line says that it
/// is a stream.
#[test]
fn a_stream_beside_another_cnn_is_as_if_alone() {
    let folder = folder();
    let path = folder.path();
    std::fs::write(path.join("features.f32"), features(50)).unwrap();
    let app =
        r#"(cnns: [(name: "listen", model: "builtin:wake_word"), (name: "look", model: "builtin:lenet5")])"#;
    std::fs::write(path.join("two.ron"), app).unwrap();
    for (file, name, args) in [
        ("one", "", "builtin:wake_word --stream features"),
        ("two", "listen/", "two.ron --stream listen/features"),
        ("models", "wake_word/", "builtin:wake_word builtin:lenet5 --stream wake_word/features"),
    ] {
        let output = format!("{file}.json");
        let args: Vec<&str> = ["plan"].into_iter().chain(args.split(' ')).chain(["-o", &output]).collect();
        let planned = run(path, &args);
        assert_eq!(planned.code, 0, "{}", planned.stderr);
        let input = format!("{name}features=features.f32");
        let output = format!("{name}scores={file}.f32");
        let plan = format!("{file}.json");
        let mut args = vec!["run", &plan, "--input", &input, "--output", &output];
        if file != "one" {
            args.push("--random=1");
        }
        let ran = run(path, &args);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    let made = ["one.f32", "two.f32", "models.f32"].map(|file| std::fs::read(path.join(file)).unwrap());
    assert_eq!(made[0].len(), 21 * 12);
    assert!(made.iter().all(|other| *other == made[0]));
}

#[test]
fn what_does_not_fit_is_named_with_what_would() {
    let folder = folder();
    let app = r#"(cnns: [(model: "builtin:wake_word", stream: ()), (model: "builtin:lenet5")],
        parallel: [["wake_word", "lenet5"]])"#;
    std::fs::write(folder.path().join("two.ron"), app).unwrap();
    for (snapshot, line) in [
        ("stream_unknown_input", "builtin:wake_word --stream feature"),
        ("stream_unknown_axis", "builtin:wake_word --stream features=7"),
        ("stream_axis_of_channels", "builtin:wake_word --stream features=1"),
        ("stream_axis_no_number", "builtin:wake_word --stream features=rows"),
        ("stream_needs_a_window", "builtin:resnet8 --stream input"),
        ("stream_needs_all", "builtin:vgg16 --stream input"),
        ("stream_short_window", "builtin:resnet8 --stream input --window 0"),
        ("stream_hop_does_not_fit", "builtin:resnet8 --stream input --hop 6 --window 32"),
        ("stream_window_does_not_end_with_a_hop", "builtin:resnet8 --stream input --hop 12 --window 32"),
        ("stream_of_one_row", "builtin:wake_word --stream features --hop 4"),
        ("stream_hop_without_stream", "builtin:wake_word --hop 4"),
        ("stream_at_the_same_time", "two.ron"),
        ("models_beside_an_application", "two.ron builtin:lenet5"),
        ("stream_in_edges", "builtin:wake_word --stream features --storage edges"),
    ] {
        let args: Vec<&str> = ["plan"].into_iter().chain(line.split_whitespace()).collect();
        insta::assert_snapshot!(snapshot, fails(folder.path(), &args));
    }
}
