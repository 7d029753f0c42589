//! Nodes of constants that csdfc's kernels compute at import. The numbers are those of ONNX Runtime.

use super::*;

/// Quarters counting up from 0.25.
pub(super) fn quarters(dims: &[usize]) -> Constant {
    let count: usize = dims.iter().product();
    Constant::floats(dims, (1..=count).map(|i| i as f32 / 4.0).collect())
}

/// Checks the floats that a node of constants makes.
pub(super) fn check(
    opset: i64,
    operator: &str,
    inputs: &[Constant],
    attributes: Vec<AttributeProto>,
    wanted: &[f32],
) {
    let made = fold_all(opset, operator, inputs, attributes, 1).unwrap();
    let made = made[0].to_floats().unwrap();
    let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
    assert!(made.len() == wanted.len() && made.iter().zip(wanted).all(close), "{operator}: {made:?}");
}

#[test]
fn products_and_windows() {
    let attributes = || vec![int("transB", 1), float("alpha", 0.5)];
    let product = [0.6875, 1.5, 2.3125, 3.125, 1.25, 2.90625, 4.5625, 6.21875];
    let operands = [quarters(&[2, 3]), quarters(&[4, 3]), quarters(&[4])];
    check(18, "Gemm", &operands, attributes(), &product);
    check(18, "MatMul", &[quarters(&[1, 2]), quarters(&[2, 2])], vec![], &[0.4375, 0.625]);
    let images = [2.3125, 2.9375, 4.1875, 4.8125, 7.9375, 8.5625, 9.8125, 10.4375];
    check(18, "Conv", &[quarters(&[1, 1, 3, 3]), quarters(&[1, 1, 2, 2])], vec![], &images[..4]);
    check(18, "Conv", &[quarters(&[2, 1, 3, 3]), quarters(&[1, 1, 2, 2])], vec![], &images);
    let window = || vec![ints("kernel_shape", &[2, 2])];
    check(18, "AveragePool", &[quarters(&[2, 1, 2, 2])], window(), &[0.625, 1.625]);
    check(18, "GlobalMaxPool", &[quarters(&[2, 1, 2, 2])], vec![], &[1.0, 2.0]);
}

#[test]
fn normalisations_and_functions() {
    let vector = || quarters(&[2]);
    let operands = [quarters(&[1, 2, 1, 2]), vector(), vector(), vector(), vector()];
    check(18, "BatchNormalization", &operands, vec![], &[0.25, 0.374_997_5, 0.676_774_9, 0.853_549_8]);
    check(18, "Softmax", &[quarters(&[1, 3])], vec![], &[0.254_275_2, 0.326_495_9, 0.419_229]);
    let rows = [-0.306_149_5, 0.0, 0.918_448_4, -0.306_149_5, 0.0, 0.918_448_4];
    check(18, "LayerNormalization", &[quarters(&[2, 3]), quarters(&[3])], vec![], &rows);
    let operands = [quarters(&[2, 1, 1, 2]), quarters(&[1]), quarters(&[1])];
    check(18, "InstanceNormalization", &operands, vec![], &[0.000_08, 0.499_92, 0.000_08, 0.499_92]);
    let local = [0.249_998_1, 0.499_996_1, 0.749_970_7, 0.999_961];
    check(18, "LRN", &[quarters(&[2, 2, 1, 1])], vec![int("size", 3)], &local);
    check(20, "Gelu", &[quarters(&[1, 3])], vec![], &[0.149_676_6, 0.345_731_2, 0.580_029_5]);
    check(18, "Erf", &[quarters(&[3])], vec![], &[0.276_326_4, 0.520_499_9, 0.711_155_7]);
    check(18, "Sin", &[quarters(&[2])], vec![], &[0.247_404, 0.479_425_5]);
    check(18, "Cos", &[quarters(&[2])], vec![], &[0.968_912_4, 0.877_582_6]);
    check(13, "ReduceLogSumExp", &[quarters(&[1, 3])], vec![ints("axes", &[1])], &[1.619_338]);
}

#[test]
fn moved_and_resized_elements() {
    let scales = of_floats(&[1.0, 1.0, 2.0, 2.0]);
    let image = [
        [0.25, 0.3125, 0.4375, 0.5],
        [0.375, 0.4375, 0.5625, 0.625],
        [0.625, 0.6875, 0.8125, 0.875],
        [0.75, 0.8125, 0.9375, 1.0],
    ];
    let operands = [quarters(&[1, 1, 2, 2]), of_floats(&[]), scales];
    check(18, "Resize", &operands, vec![text("mode", "linear")], image.as_flattened());
    let padded = fold(18, "Pad", &[of_ints(&[7, -3]), of_ints(&[1, 0])], vec![]);
    assert_eq!(padded.unwrap(), "[3] [0, 7, -3]");
    let padded = fold(18, "Pad", &[of_bools(&[true]), of_ints(&[0, 1])], vec![]);
    assert_eq!(padded.unwrap(), "[2] [true, false]");
    let refused = fold(18, "Pad", &[of_ints(&[1 << 25]), of_ints(&[1, 0])], vec![]).unwrap_err();
    assert_eq!(refused, "its integers exceed 16777216, up to which csdfc computes with integers exactly");
}

#[test]
fn indices_are_integers() {
    let x = || of_floats(&[3.0, 9.0, 1.0]);
    assert_eq!(fold(18, "ArgMax", &[x()], vec![int("keepdims", 0)]).unwrap(), "[] [1]");
    let best = fold_all(18, "TopK", &[x(), of_ints(&[2])], vec![], 2).unwrap();
    assert_eq!(best.iter().map(shown).collect::<Vec<_>>(), ["[2] [9.0, 3.0]", "[2] [1, 0]"]);
}

/// Constants before the first tensor of a chain are added up at import.
#[test]
fn constants_of_a_chain() {
    let network = Model::new(13, &[1, 2], &["y"])
        .floats("a", &[2])
        .floats("b", &[2])
        .node("Sum", &["a", "b", "x"], &["y"], vec![])
        .import()
        .unwrap();
    assert_eq!(network.layers.len(), 2);
    assert_eq!(network.layers[1].parameters[0].values().unwrap(), [2.0, 4.0]);
}

/// A product that would take minutes.
#[test]
fn what_takes_too_long_is_refused() {
    let square = || Constant::filled(vec![10_000, 10_000], 1.0);
    let refused = fold_all(18, "MatMul", &[square(), square()], vec![], 1).unwrap_err();
    assert!(refused.contains("need more than"), "{refused}");
}

#[test]
fn masks_and_positions() {
    let x = || of_ints(&[1, 2, 3, 4, 5, 6]).reshaped(vec![2, 3]);
    let number = |value: i64| Constant::ints([], vec![value]);
    let check = |operator, inputs: &[Constant], attributes, wanted: &str| {
        assert_eq!(fold(14, operator, inputs, attributes).as_deref(), Ok(wanted), "{operator}");
    };
    let both = || vec![int("exclusive", 1), int("reverse", 1)];
    check("CumSum", &[x(), number(1)], vec![], "[2, 3] [1, 3, 6, 4, 9, 15]");
    check("CumSum", &[x(), number(0)], vec![], "[2, 3] [1, 2, 3, 5, 7, 9]");
    check("CumSum", &[x(), number(1)], both(), "[2, 3] [5, 3, 0, 11, 6, 0]");
    check("CumSum", &[quarters(&[3]), number(0)], vec![int("reverse", 1)], "[3] [1.5, 1.25, 0.75]");
    let sparse = Constant::floats([2, 3], vec![1.0, 0.0, 2.0, 0.0, 3.0, 0.0]);
    check("NonZero", &[sparse], vec![], "[2, 3] [0, 0, 1, 0, 2, 1]");
    let eye = vec![int("k", -1), int("dtype", 1)];
    check("EyeLike", &[x()], vec![int("k", 1), int("dtype", 7)], "[2, 3] [0, 1, 0, 0, 0, 1]");
    check("EyeLike", &[x()], eye, "[2, 3] [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]");
    let operands = [of_ints(&[0, -1, 3]), number(3), of_floats(&[0.5, 2.0])];
    check("OneHot", &operands, vec![], "[3, 3] [2.0, 0.5, 0.5, 0.5, 0.5, 2.0, 0.5, 0.5, 0.5]");
    let operands = [of_ints(&[0, 1]).reshaped(vec![1, 2]), number(2), of_ints(&[5, 7])];
    check("OneHot", &operands, vec![int("axis", 1)], "[1, 2, 2] [7, 5, 5, 7]");
    check("Trilu", &[x()], vec![], "[2, 3] [1, 2, 3, 0, 5, 6]");
    check("Trilu", &[x(), number(1)], vec![], "[2, 3] [0, 2, 3, 0, 0, 6]");
    check("Trilu", &[x(), number(-1)], vec![int("upper", 0)], "[2, 3] [0, 0, 0, 4, 0, 0]");
}
