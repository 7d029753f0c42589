//! The real models, where they are there.

use std::path::Path;

use crate::import::{ImportOptions, import};

/// Layers and elements of parameters, views and unread constants not counted; the outputs' dimensions.
fn check(model: &str, layers: usize, parameters: u64, outputs: &[&[usize]]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/models").join(model);
    if !path.exists() {
        println!("skipped: no {model}");
        return;
    }
    let imported = import(&path, &ImportOptions::default()).unwrap();
    let network = &imported.network;
    assert_eq!(imported.bytes, std::fs::metadata(&path).unwrap().len());
    assert_eq!((network.layers.len(), network.parameters()), (layers, parameters), "{model}");
    let found: Vec<&[usize]> =
        network.outputs.iter().map(|output| output.operand.shape.dims.as_slice()).collect();
    assert_eq!(found, outputs, "{model}");
}

#[test]
fn real_models() {
    check("mobilenet_v2_embed.onnx", 151, 2_223_872, &[&[1, 1280]]);
    check("nsfw_mobilenet_v2.onnx", 162, 2_585_349, &[&[1, 5]]);
    check("mtcnn_p.onnx", 11, 6_632, &[&[1, 55, 75, 4], &[1, 55, 75, 2]]);
    check("mtcnn_r.onnx", 18, 100_178, &[&[1, 4], &[1, 2]]);
    check("mtcnn_o.onnx", 23, 389_040, &[&[1, 4], &[1, 10], &[1, 2]]);
    check("ocr_cls.onnx", 233, 129_392, &[&[1, 2]]);
    check("ocr_det.onnx", 331, 1_171_641, &[&[1, 1, 480, 480]]);
    check("ocr_rec.onnx", 391, 2_688_579, &[&[1, 40, 6625]]);
}
