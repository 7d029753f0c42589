//! Images for `csdfc run`, how `plan --input` says what their bytes are, and the names of classes.

use std::path::Path;

use csdfc_command::npy;
use csdfc_runtime::run::{Data, Value};
use image::codecs::jpeg::JpegEncoder;
use image::{GrayImage, RgbImage};

use super::{fails, folder, run};

/// A picture of these sizes in which no two corners, and no two colors, are alike.
fn picture(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| image::Rgb([(x * 7) as u8, (y * 5 + x) as u8, (x * y) as u8]))
}

/// What `run` makes of an input.
fn output(folder: &Path, input: &str) -> Value {
    let ended = run(folder, &["run", "plan.json", "--input", input, "--output", "output=made.npy"]);
    assert_eq!(ended.code, 0, "{input}: {}", ended.stderr);
    npy::read(&folder.join("made.npy")).unwrap()
}

fn planned(folder: &Path, options: &[&str]) {
    let ended = run(folder, &[&["plan", "builtin:resnet8", "-o", "plan.json"], options].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

fn write(folder: &Path, name: &str, dims: &[usize], data: Data) {
    npy::write(&folder.join(name), &Value { dims: dims.to_vec(), data }).unwrap();
}

#[test]
fn images_are_their_bytes_in_every_order() {
    let folder = folder();
    let folder = folder.path();
    let pixels = picture(32, 32);
    pixels.save(folder.join("photo.png")).unwrap();
    for order in ["rgb", "bgr"] {
        let channel = |c: usize| if order == "rgb" { c } else { 2 - c };
        let floats =
            (0..3).flat_map(|c| pixels.pixels().map(move |pixel| (f32::from(pixel.0[c]) - 127.5) / 128.0));
        planned(folder, &[]);
        write(folder, "floats.npy", &[1, 3, 32, 32], Data::F32(floats.collect()));
        let expected = output(folder, "floats.npy");
        for layout in ["hwc", "chw"] {
            let input = format!("u8:{layout}:{order},mean=127.5,scale=0.0078125");
            planned(folder, &["--input", &input]);
            assert_eq!(output(folder, "photo.png"), expected, "{input}");
            // The same bytes as a camera of this kind hands them over, in either order of dimensions.
            let hwc = pixels.pixels().flat_map(|pixel| [0, 1, 2].map(|c| pixel.0[channel(c)])).collect();
            write(folder, "hwc.npy", &[32, 32, 3], Data::U8(hwc));
            let chw = (0..3).flat_map(|c| pixels.pixels().map(move |pixel| pixel.0[channel(c)])).collect();
            write(folder, "chw.npy", &[1, 3, 32, 32], Data::U8(chw));
            for file in ["hwc.npy", "chw.npy"] {
                assert_eq!(output(folder, file), expected, "{input}: {file}");
            }
        }
    }
}

#[test]
fn jpegs_are_what_their_decoder_makes_of_them() {
    let folder = folder();
    let folder = folder.path();
    let mut file = Vec::new();
    JpegEncoder::new_with_quality(&mut file, 90).encode_image(&picture(32, 32)).unwrap();
    // The content counts, and not the name.
    for name in ["photo.jpg", "photo.JPEG", "photo.png"] {
        std::fs::write(folder.join(name), &file).unwrap();
    }
    planned(folder, &["--input", "input=u8"]);
    let pixels = image::load_from_memory(&file).unwrap().into_rgb8();
    write(folder, "pixels.npy", &[32, 32, 3], Data::U8(pixels.into_raw()));
    let expected = output(folder, "pixels.npy");
    for name in ["photo.jpg", "photo.JPEG", "photo.png"] {
        assert_eq!(output(folder, name), expected, "{name}");
    }
}

#[test]
fn grey_and_transparent_images() {
    let folder = folder();
    let folder = folder.path();
    GrayImage::from_fn(28, 28, |x, y| image::Luma([(x * y) as u8])).save(folder.join("grey.png")).unwrap();
    assert_eq!(run(folder, &["inspect", "builtin:resnet8", "--format", "json"]).code, 0);
    let rgba = image::RgbaImage::from_fn(32, 32, |x, y| image::Rgba([x as u8, y as u8, 7, (x * y) as u8]));
    rgba.save(folder.join("rgba.png")).unwrap();
    image::DynamicImage::ImageRgba8(rgba).into_rgb8().save(folder.join("rgb.png")).unwrap();
    planned(folder, &["--input", "u8"]);
    assert_eq!(output(folder, "rgba.png"), output(folder, "rgb.png"));
    let said = fails(folder, &["run", "plan.json", "--input", "grey.png"]);
    assert!(said.contains("28×28 pixels") && said.contains("32×32"), "{said}");
}

#[test]
fn images_that_cannot_be_used_are_refused() {
    let folder = folder();
    let folder = folder.path();
    picture(32, 32).save(folder.join("photo.png")).unwrap();
    picture(48, 20).save(folder.join("wide.png")).unwrap();
    let refused = |file: &str| fails(folder, &["run", "plan.json", "--input", file]).replace("\n  │ ", " ");
    planned(folder, &[]);
    let said = refused("photo.png");
    assert!(said.contains("takes no pixels") && said.contains("--input u8:hwc:rgb"), "{said}");
    planned(folder, &["--input", "u8"]);
    assert!(refused("wide.png").contains("48×20 pixels, and input input takes 32×32"));
    assert!(refused("no.png").contains("cannot read no.png"));
    let whole = std::fs::read(folder.join("photo.png")).unwrap();
    for (name, bytes) in
        [("cut.png", &whole[..whole.len() / 2]), ("empty.jpg", &[]), ("text.png", b"no image")]
    {
        std::fs::write(folder.join(name), bytes).unwrap();
        let said = refused(name);
        assert!(said.contains(name), "{said}");
    }
}

#[test]
fn arrays_have_their_channels_first_or_last() {
    let folder = folder();
    let folder = folder.path();
    planned(folder, &[]);
    let element = |c: usize, y: usize, x: usize| ((c * 1024 + y * 32 + x) * 7919 % 1009) as f32 / 1009.0;
    let all = || (0..32usize).flat_map(|y| (0..32usize).map(move |x| (y, x)));
    let first = (0..3).flat_map(|c| all().map(move |(y, x)| element(c, y, x))).collect();
    let last: Vec<f32> = all().flat_map(|(y, x)| (0..3).map(move |c| element(c, y, x))).collect();
    write(folder, "first.npy", &[1, 3, 32, 32], Data::F32(first));
    let expected = output(folder, "first.npy");
    for dims in [&[1, 32, 32, 3][..], &[32, 32, 3]] {
        write(folder, "last.npy", dims, Data::F32(last.clone()));
        assert_eq!(output(folder, "last.npy"), expected, "{dims:?}");
    }
    for dims in [&[1, 32, 3, 32][..], &[3072], &[1, 3, 1024]] {
        write(folder, "other.npy", dims, Data::F32(last.clone()));
        let said = fails(folder, &["run", "plan.json", "--input", "other.npy"]).replace("\n  │ ", " ");
        assert!(said.contains(&format!("{dims:?}")) && said.contains("[1, 3, 32, 32]"), "{said}");
    }
}

#[test]
fn classes_have_names() {
    let folder = folder();
    let folder = folder.path();
    planned(folder, &[]);
    let names: Vec<String> = (0..10).map(|class| format!("class no. {class}")).collect();
    std::fs::write(folder.join("labels.txt"), names.join("\n") + "\n").unwrap();
    let call = ["run", "plan.json", "--random", "1"];
    let said = run(folder, &[&call[..], &["--labels", "labels.txt"]].concat()).stdout;
    let report = run(folder, &[&call[..], &["--labels", "labels.txt", "--format", "json"]].concat()).stdout;
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let output = &report["cnns"][0]["outputs"][0];
    for place in 0..5 {
        let (class, value) = (&output["top"][place][0], output["top"][place][1].as_f64().unwrap());
        assert_eq!(output["classes"][place], format!("class no. {class}"));
        assert!(said.contains(&format!("    {}. class no. {class}: {value:.6}\n", place + 1)), "{said}");
    }
    std::fs::write(folder.join("labels.txt"), "one\ntwo\n").unwrap();
    let said = fails(folder, &[&call[..], &["--labels", "labels.txt"]].concat()).replace("\n  │ ", " ");
    assert!(said.contains("names 2 classes") && said.contains("output has 10"), "{said}");
    assert!(fails(folder, &[&call[..], &["--labels", "no.txt"]].concat()).contains("no.txt"));
}

#[test]
fn the_option_says_what_an_application_file_says() {
    let folder = folder();
    let folder = folder.path();
    let camera = "(type: u8, layout: CHW, order: BGR, mean: [1, 2, 3.5], scale: 0.25)";
    let text =
        format!("(name: \"resnet8\", cnns: [(model: \"builtin:resnet8\", inputs: {{\"input\": {camera}}})])");
    std::fs::write(folder.join("app.ron"), text).unwrap();
    let of_file = run(folder, &["plan", "app.ron", "--format", "json"]);
    assert_eq!(of_file.code, 0, "{}", of_file.stderr);
    let input = "u8:bgr:chw,mean=1:2:3.5,scale=0.25";
    for input in [input.to_owned(), format!("input={input}"), format!("resnet8/input={input}")] {
        let of_option = run(folder, &["plan", "builtin:resnet8", "--input", &input, "--format", "json"]);
        assert_eq!(of_option.stdout, of_file.stdout, "{input}");
    }
    let refused = |input: &str| fails(folder, &["plan", "builtin:resnet8", "--input", input]);
    assert!(refused("image=u8").contains("the model has no input `image`"));
    assert!(refused("u8,mean=1:2").contains("`mean` has 2 numbers, but the input has 3 channels"));
    assert!(refused("u8,scale=0").contains("`scale` must be finite and not 0"));
    let several = ["plan", "builtin:resnet8", "builtin:lenet5", "--input", "u8"];
    assert!(fails(folder, &several).contains("the application has several CNNs"));
}
