//! `csdfc run` on raw files and pipes: frame after frame, row by row.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use csdfc_command::npy;
use csdfc_runtime::run::{Data, Value};

use super::{CSDFC, fails, folder, run};

/// Calls the command with these bytes on its standard input: what it prints on standard output and standard error.
fn piped(folder: &Path, arguments: &[&str], given: &[u8]) -> (Vec<u8>, String) {
    let mut command = Command::new(CSDFC);
    command.args(arguments).current_dir(folder).env_clear().env("LC_ALL", "C.UTF-8");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let ended = std::thread::scope(|scope| {
        // The command takes no more once it has failed.
        scope.spawn(move || stdin.write_all(given));
        child.wait_with_output().unwrap()
    });
    (ended.stdout, String::from_utf8(ended.stderr).unwrap())
}

/// The bytes of an output of 32-bit floats as rows of pixels of channels.
fn by_rows(value: &Value) -> Vec<u8> {
    let [_, channels, height, width] = value.dims[..] else { unreachable!("the output is an image") };
    let Data::F32(values) = &value.data else { unreachable!("the output is of floats") };
    let pixels = height * width;
    let element = |i: usize| values[i % channels * pixels + i / channels];
    (0..values.len()).flat_map(|i| element(i).to_le_bytes()).collect()
}

#[test]
fn raw_frames_are_read_and_written_by_rows() {
    for (layout, dims, rows) in [("HWC", vec![32, 32, 3], "all"), ("CHW", vec![3, 32, 32], "none")] {
        let folder = folder();
        let folder = folder.path();
        let camera =
            format!("(type: u8, layout: {layout}, order: BGR, mean: [1, 2, 3.5], scale: [0.1, 0.2, 0.3])");
        let text =
            format!("(cnns: [(model: \"builtin:paper_pair\", inputs: {{\"l1\": {camera}}})], rows: {rows})");
        std::fs::write(folder.join("app.ron"), text).unwrap();
        assert_eq!(run(folder, &["plan", "app.ron", "-o", "plan.json"]).code, 0);
        let frame = |number: usize| -> Vec<u8> {
            (0..3 * 32 * 32).map(|i| ((i + number) * 7919 % 251) as u8).collect()
        };
        let mut expected = Vec::new();
        for number in 0..3 {
            let value = Value { dims: dims.clone(), data: Data::U8(frame(number)) };
            npy::write(&folder.join("x.npy"), &value).unwrap();
            let whole = ["run", "plan.json", "--input", "x.npy", "--output", "l2=y.npy"];
            assert_eq!(run(folder, &whole).code, 0);
            expected.extend(by_rows(&npy::read(&folder.join("y.npy")).unwrap()));
        }
        let frames = [frame(0), frame(1), frame(2)].concat();
        let (made, said) = piped(folder, &["run", "plan.json", "--input", "-", "--output", "-"], &frames);
        assert!(made == expected, "{layout}: {} bytes\n{said}", made.len());
        assert!(said.contains("paper_pair") && said.contains("ms a frame"), "{said}");

        std::fs::write(folder.join("frames"), &frames).unwrap();
        let files = ["--input", "l1=frames", "--output", "l2=made", "--bytes", "--frames", "2"];
        let ended = run(folder, &[&["run", "plan.json"], &files[..]].concat());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let floats = expected.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        let bytes: Vec<u8> = floats.map(|x| (x * 255.0).round().clamp(0.0, 255.0) as u8).collect();
        assert!(std::fs::read(folder.join("made")).unwrap() == bytes[..bytes.len() / 3 * 2], "{layout}");

        let cut = ["run", "plan.json", "--input", "-", "--output", "-"];
        let (_, said) = piped(folder, &cut, &frames[..3 * 32 * 32 + 100]);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ").replace(" │", "");
        assert!(said.contains("ends in frame 2: 2972 of 3072 bytes are missing"), "{said}");
    }
}

#[test]
fn files_that_cannot_be_used_are_refused() {
    let folder = folder();
    let folder = folder.path();
    assert_eq!(run(folder, &["plan", "builtin:lenet5", "-o", "plan.json"]).code, 0);
    let refused = |arguments: &[&str]| fails(folder, &[&["run", "plan.json"], arguments].concat());
    assert!(refused(&["--input", "-"]).contains("standard input: it holds no frame"));
    assert!(refused(&["--random", "1", "--bytes"]).contains("--bytes is for outputs in raw files"));
    let twice = ["--random", "1", "--output", "-", "--output", "-"];
    assert!(refused(&twice).contains("only one output can go to standard output"));
    assert!(fails(folder, &["run", "-", "--input", "-"]).contains("standard input"));
}
