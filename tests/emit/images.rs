//! Programs of crates that take files of images: their outputs have the bytes of `csdfc run` on the same files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use csdfc_emit::{EmitError, Options};
use csdfc_tests::{application, root};
use image::codecs::jpeg::JpegEncoder;
use image::{GrayImage, RgbImage, RgbaImage};

use super::{Emitted, cargo, inspect_crate};

/// Three CNNs, which take pixels of colors, planes with blue first, and grey.
fn cameras() -> String {
    let cnn = |model: &str, input: &str, camera: &str| {
        format!("(model: \"builtin:{model}\", inputs: {{\"{input}\": (type: u8, {camera})}})")
    };
    let cnns = [
        cnn("resnet8", "input", "mean: [123.7, 116.3, 103.5], scale: [0.0171, 0.0175, 0.0174]"),
        cnn("paper_pair", "l1", "layout: CHW, order: BGR, mean: [1, 2, 3.5], scale: [0.1, 0.2, 0.3]"),
        cnn("lenet5", "input", "scale: 0.0039216"),
    ];
    format!("(name: \"cameras\", cnns: [{}], rows: all)", cnns.join(", "))
}

fn picture(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| image::Rgb([(x * 7) as u8, (y * 5 + x) as u8, (x * y) as u8]))
}

/// Calls a program in a folder with a file for each of these inputs.
fn call(folder: &Path, program: &str, first: &[&str], inputs: &[String]) -> Output {
    let mut command = Command::new(program);
    command.current_dir(folder).args(first);
    inputs.iter().for_each(|input| {
        command.args(["--input", input]);
    });
    command.output().expect("the program")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn images_are_inputs_with_the_feature() {
    let application = application(&cameras());
    let emitted = Emitted::with_image_files(&application);
    let folder = emitted.folder();
    fs::write(folder.join("plan.json"), emitted.plan.to_json()).expect("a file");
    // The versions that csdfc has, which decode to the same bytes.
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).expect("a file");
    let sizes: Vec<[u32; 2]> = emitted
        .plan
        .cnns
        .iter()
        .map(|cnn| {
            let shape = &cnn.layers[0].output_shape;
            [3, 2].map(|axis| shape.dims[axis] as u32)
        })
        .collect();
    let [colors, planes, grey] = &sizes[..] else { panic!("three inputs") };
    picture(colors[0], colors[1]).save(folder.join("colors.png")).expect("a file");
    let rgba = |x: u32, y: u32| image::Rgba([(x * 3) as u8, (y * 5) as u8, 7, (x * y) as u8]);
    RgbaImage::from_fn(planes[0], planes[1], rgba).save(folder.join("planes.png")).expect("a file");
    GrayImage::from_fn(grey[0], grey[1], |x, y| image::Luma([(x * y) as u8]))
        .save(folder.join("grey.PNG"))
        .expect("a file");
    let mut jpeg = Vec::new();
    for (name, [width, height]) in [("colors.jpg", colors), ("planes.jpeg", planes), ("grey.JPG", grey)] {
        jpeg.clear();
        let encoded = JpegEncoder::new_with_quality(&mut jpeg, 90).encode_image(&picture(*width, *height));
        encoded.expect("an image");
        fs::write(folder.join(name), &jpeg).expect("a file");
    }
    // By its content, and not by its name.
    fs::copy(folder.join("grey.JPG"), folder.join("grey.png")).expect("a file");
    let inputs = |files: [&str; 3]| {
        ["resnet8/input", "paper_pair/l1", "lenet5/input"]
            .iter()
            .zip(files)
            .map(|(name, file)| format!("{name}={file}"))
            .collect::<Vec<String>>()
    };
    let program = folder.join("target/debug/emitted");
    let program = program.to_str().expect("a path");

    cargo(folder, &["build", "--offline", "--no-default-features", "--features", "std,weights"]);
    let files = inputs(["colors.png", "planes.png", "grey.PNG"]);
    let ran = call(folder, program, &[], &files);
    assert!(!ran.status.success());
    assert!(
        said(&ran).contains("colors.png: an image: build the program with `--features image`"),
        "{}",
        said(&ran)
    );

    cargo(folder, &["build", "--offline"]);
    for files in [
        ["colors.png", "planes.png", "grey.PNG"],
        ["colors.jpg", "planes.jpeg", "grey.JPG"],
        ["colors.jpg", "planes.png", "grey.png"],
    ] {
        for made in ["expected", "made"] {
            let _ = fs::remove_dir_all(folder.join(made));
        }
        let command = ["run", "plan.json", "--output", "expected"];
        let csdfc = call(folder, env!("CARGO_BIN_EXE_csdfc-under-test"), &command, &inputs(files));
        assert!(csdfc.status.success(), "{}", said(&csdfc));
        let ran = call(folder, program, &["--output", "made"], &inputs(files));
        assert!(ran.status.success(), "{}", said(&ran));
        let told = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert_eq!(told.matches("frames: 1\n").count(), 3, "{told}");
        for cnn in &emitted.plan.cnns {
            for output in &cnn.outputs {
                let read = |made: &str| {
                    fs::read(folder.join(made).join(&cnn.name).join(format!("{}.npy", output.name)))
                };
                assert!(
                    read("made").expect("an output") == read("expected").expect("an output"),
                    "{files:?}: {} of {}",
                    output.name,
                    cnn.name
                );
            }
        }
    }
    // Images may be inputs of CNNs that take turns.
    let ran = call(
        folder,
        program,
        &["--turns", "lenet5,resnet8"],
        &inputs(["colors.jpg", "planes.png", "grey.png"]),
    );
    assert!(ran.status.success(), "{}", said(&ran));

    picture(20, 24).save(folder.join("wide.png")).expect("a file");
    let whole = fs::read(folder.join("colors.png")).expect("a file");
    fs::write(folder.join("cut.png"), &whole[..whole.len() / 2]).expect("a file");
    fs::write(folder.join("text.jpg"), "no image").expect("a file");
    for (file, why) in [
        ("wide.png", "the image has 20×24 pixels, and the input takes 32×32"),
        ("cut.png", "give an image of PNG or JPEG"),
        ("text.jpg", "give an image of PNG or JPEG"),
        ("none.png", "No such file"),
    ] {
        let ran = call(folder, program, &[], &inputs([file, "planes.png", "grey.png"]));
        assert!(!ran.status.success(), "{file}");
        assert!(said(&ran).contains(&format!("{file}: ")) && said(&ran).contains(why), "{}", said(&ran));
    }
    let page = fs::read_to_string(folder.join("README.md")).expect("its page");
    assert!(page.contains("the feature `image`"), "{page}");
    inspect_crate(folder, &["fmt", "--check"]);
    for features in ["std,weights", "std,weights,image"] {
        let words = ["clippy", "--offline", "--no-default-features", "--features", features];
        inspect_crate(folder, &[&words[..], &["--", "-D", "warnings"]].concat());
    }
}

/// Only those crates need another one. Its version is that of csdfc.
#[test]
fn only_crates_that_take_images_need_another_crate() {
    let files = |text: &str, image_files: bool| {
        let application = application(text);
        let plan = csdfc_tests::plan(&application);
        let options = Options { image_files, ..Options::default() };
        let values = |cnn: usize, layer, parameter| application.cnns[cnn].network.parameter(layer, parameter);
        csdfc_emit::emit(&plan, &values, &options)
    };
    let manifest = |image_files: bool| {
        let files = files(&cameras(), image_files).expect("a crate");
        let is_there = |name: &str| files.iter().any(|(path, _)| path == Path::new(name));
        assert_eq!(is_there("src/pixels.rs"), image_files);
        let (_, text) = files.iter().find(|(path, _)| path == Path::new("Cargo.toml")).expect("a manifest");
        String::from_utf8(text.clone()).expect("text")
    };
    assert!(!manifest(false).contains("dependencies"));
    let ours = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let line = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("image = {")).expect("a dependency");
        line.replace(", optional = true", "")
    };
    assert_eq!(line(&manifest(true)), line(&ours));
    // Without an input of pixels there is nothing to take them.
    let refused = files("(cnns: [(model: \"builtin:lenet5\")])", true).expect_err("no pixels");
    assert!(matches!(refused, EmitError::NoPixels), "{refused}");
}
