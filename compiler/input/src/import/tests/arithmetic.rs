//! Constants computed element by element and by reduction, against the definitions of ONNX.

use rten_onnx::onnx::AttributeProto;

use super::*;

#[test]
fn functions_of_floats_are_those_of_their_definitions() {
    let xs = [-20.0f32, -2.5, -1.0, -0.5, 0.0, 0.5, 1.0, 2.5, 100.0];
    let check = |operator: &str, attributes: Vec<AttributeProto>, definition: fn(f64) -> f64| {
        let found = fold_all(13, operator, &[of_floats(&xs)], attributes, 1).unwrap();
        assert_eq!(found[0].dims, [xs.len()]);
        for (x, y) in xs.iter().zip(found[0].to_floats().unwrap()) {
            let wanted = definition(f64::from(*x)) as f32;
            let close = y == wanted || (y - wanted).abs() <= 1e-6 * wanted.abs();
            assert!(close || (y.is_nan() && wanted.is_nan()), "{operator} of {x} is {y}, not {wanted}");
        }
    };
    check("Abs", vec![], f64::abs);
    check("Ceil", vec![], f64::ceil);
    check("Exp", vec![], f64::exp);
    check("Floor", vec![], f64::floor);
    check("HardSigmoid", vec![float("alpha", 0.25), float("beta", 0.75)], |x| {
        (0.25 * x + 0.75).clamp(0.0, 1.0)
    });
    check("LeakyRelu", vec![float("alpha", 0.25)], |x| if x < 0.0 { 0.25 * x } else { x });
    check("Log", vec![], f64::ln);
    check("Neg", vec![], |x| -x);
    check("Reciprocal", vec![], |x| 1.0 / x);
    check("Relu", vec![], |x| x.max(0.0));
    check("Round", vec![], f64::round_ties_even);
    check("Sigmoid", vec![], |x| 1.0 / (1.0 + (-x).exp()));
    check("Softplus", vec![], |x| x.exp().ln_1p());
    check("Sqrt", vec![], f64::sqrt);
    check("Tanh", vec![], f64::tanh);
    // 0 is not below 0, so that its sign stays.
    assert_eq!(fold(13, "LeakyRelu", &[of_floats(&[0.0])], vec![float("alpha", -1.0)]).unwrap(), "[1] [0.0]");
}

#[test]
fn functions_of_integers_stay_integers() {
    let check = |operator, wanted: &str| {
        assert_eq!(fold(14, operator, &[of_ints(&[-3, 0, 1 << 60])], vec![]).as_deref(), Ok(wanted));
    };
    check("Neg", "[3] [3, 0, -1152921504606846976]");
    check("Abs", "[3] [3, 0, 1152921504606846976]");
    check("Relu", "[3] [0, 0, 1152921504606846976]");
    let error = fold(14, "Sqrt", &[of_ints(&[4])], vec![]).unwrap_err();
    assert_eq!(error, "Sqrt of integers is not computed at import");
    // `Clip` keeps what lies within its bounds.
    let clip = |x, min, max| fold(13, "Clip", &[x, min, max], vec![]);
    let ints = clip(of_ints(&[-9, 2, 9]), of_ints(&[-3]), of_ints(&[4]));
    assert_eq!(ints.as_deref(), Ok("[3] [-3, 2, 4]"));
    let floats = clip(of_floats(&[-9.0, 2.5, 9.0]), of_floats(&[-3.5]), of_floats(&[4.5]));
    assert_eq!(floats.as_deref(), Ok("[3] [-3.5, 2.5, 4.5]"));
}

#[test]
fn functions_of_two_operands() {
    let check = |operator, ints: &str, floats: &str| {
        let of = |a: Constant, b: Constant| fold(13, operator, &[a, b], vec![]).unwrap();
        assert_eq!(of(of_ints(&[7, -7, 2]), of_ints(&[2, 2, 3])), ints, "{operator}");
        assert_eq!(of(of_floats(&[7.5, -7.5, 2.0]), of_floats(&[2.0, 2.0, 3.0])), floats, "{operator}");
    };
    check("Add", "[3] [9, -5, 5]", "[3] [9.5, -5.5, 5.0]");
    check("Sum", "[3] [9, -5, 5]", "[3] [9.5, -5.5, 5.0]");
    check("Sub", "[3] [5, -9, -1]", "[3] [5.5, -9.5, -1.0]");
    check("Mul", "[3] [14, -14, 6]", "[3] [15.0, -15.0, 6.0]");
    check("Div", "[3] [3, -3, 0]", "[3] [3.75, -3.75, 0.6666667]");
    check("Max", "[3] [7, 2, 3]", "[3] [7.5, 2.0, 3.0]");
    check("Min", "[3] [2, -7, 2]", "[3] [2.0, -7.5, 2.0]");
    check("Pow", "[3] [49, 49, 8]", "[3] [56.25, 56.25, 8.0]");
    let (column, row) = (of_ints(&[10, 20]).reshaped(vec![2, 1]), of_ints(&[1, 2, 3]));
    assert_eq!(
        fold(13, "Sub", &[column, row.clone()], vec![]).as_deref(),
        Ok("[2, 3] [9, 8, 7, 19, 18, 17]")
    );
    let wrong = |operator, a: i64, b: i64| {
        let error = fold(13, operator, &[of_ints(&[a]), of_ints(&[b])], vec![]).unwrap_err();
        assert_eq!(error, format!("the result for {a} and {b} is undefined or exceeds 64 bits"));
    };
    wrong("Add", i64::MAX, 1);
    wrong("Sub", i64::MIN, 1);
    wrong("Mul", 1 << 32, 1 << 31);
    wrong("Div", 1, 0);
    wrong("Pow", 2, 63);
    wrong("Pow", 2, -1);
    let error = fold(13, "Add", &[of_ints(&[1, 2]), row], vec![]).unwrap_err();
    assert!(error.contains("do not broadcast"), "{error}");
}

#[test]
fn a_modulus_has_the_sign_of_the_divisor_and_fmod_that_of_the_dividend() {
    let operands = [of_ints(&[7, -7, 5, -5, 6, -6]), of_ints(&[3, 3, -3, -3, -3, 3])];
    let modulo = |fmod| fold(13, "Mod", &operands, vec![int("fmod", fmod)]);
    assert_eq!(modulo(0).as_deref(), Ok("[6] [1, 2, -1, -2, 0, 0]"));
    assert_eq!(modulo(1).as_deref(), Ok("[6] [1, -1, 2, -2, 0, 0]"));
    let error = fold(13, "Mod", &[of_ints(&[7]), of_ints(&[0])], vec![]).unwrap_err();
    assert_eq!(error, "the result for 7 and 0 is undefined or exceeds 64 bits");
    let operands = [of_floats(&[7.5, -7.5, 5.0, -5.0, 6.0]), of_floats(&[2.0, 2.0, -3.0, -3.0, -3.0])];
    let modulo = |fmod| fold(13, "Mod", &operands, vec![int("fmod", fmod)]);
    assert_eq!(modulo(0).as_deref(), Ok("[5] [1.5, 0.5, -1.0, -2.0, 0.0]"));
    assert_eq!(modulo(1).as_deref(), Ok("[5] [1.5, -1.5, 2.0, -2.0, 0.0]"));
}

#[test]
fn comparisons_of_integers_and_floats() {
    let check = |operator, wanted: [bool; 3]| {
        let of = |a: Constant, b: Constant| fold(16, operator, &[a, b], vec![]).unwrap();
        let ints = of(of_ints(&[1, 2, 3]), of_ints(&[2]));
        assert_eq!(ints, format!("[3] {wanted:?}"), "{operator}");
        let floats = of(of_floats(&[1.5, 2.0, 2.5]), of_floats(&[2.0]));
        assert_eq!(floats, format!("[3] {wanted:?}"), "{operator}");
        // NaN is neither below, nor equal, nor above.
        assert_eq!(of(of_floats(&[f32::NAN]), of_floats(&[2.0])), "[1] [false]", "{operator}");
    };
    check("Equal", [false, true, false]);
    check("Less", [true, false, false]);
    check("LessOrEqual", [true, true, false]);
    check("Greater", [false, false, true]);
    check("GreaterOrEqual", [false, true, true]);
    // Integers that one float stands for differ.
    let near = fold(16, "Equal", &[of_ints(&[1 << 24]), of_ints(&[(1 << 24) + 1])], vec![]);
    assert_eq!(near.as_deref(), Ok("[1] [false]"));
}

#[test]
fn logic_of_truth_values() {
    let operands = [of_bools(&[false, false, true, true]), of_bools(&[false, true, false, true])];
    let check = |operator, wanted: [bool; 4]| {
        let found = fold(13, operator, &operands, vec![]).unwrap();
        assert_eq!(found, format!("[4] {wanted:?}"), "{operator}");
    };
    check("And", [false, false, false, true]);
    check("Or", [false, true, true, true]);
    check("Xor", [false, true, true, false]);
    let not = |x| fold(13, "Not", &[x], vec![]);
    assert_eq!(not(of_bools(&[true, false])).as_deref(), Ok("[2] [false, true]"));
    // Some writers store truth values in this way.
    assert_eq!(not(of_ints(&[2, 0])).as_deref(), Ok("[2] [false, true]"));
}

#[test]
fn casts_between_kinds_of_numbers() {
    let check = |x: &Constant, to: DataType, wanted: &str| {
        let found = fold(13, "Cast", std::slice::from_ref(x), vec![int("to", i64::from(to.0))]);
        assert_eq!(found.as_deref(), Ok(wanted), "{to:?}");
    };
    let (floats, ints) = (of_floats(&[-2.75, 0.0, 3.5]), of_ints(&[-1, 0, 200]));
    let bools = of_bools(&[true, false]);
    for to in [DataType::FLOAT, DataType::DOUBLE, DataType::FLOAT16, DataType::BFLOAT16] {
        check(&floats, to, "[3] [-2.75, 0.0, 3.5]");
        check(&ints, to, "[3] [-1.0, 0.0, 200.0]");
        check(&bools, to, "[2] [1.0, 0.0]");
    }
    check(&floats, DataType::BOOL, "[3] [true, false, true]");
    check(&ints, DataType::BOOL, "[3] [true, false, true]");
    check(&floats, DataType::INT64, "[3] [-2, 0, 3]");
    check(&bools, DataType::INT32, "[2] [1, 0]");
    // A value that exceeds the type loses its upper bits.
    let wide = of_ints(&[200, -1, 70_000, 5_000_000_000, i64::MAX]);
    check(&wide, DataType::INT8, "[5] [-56, -1, 112, 0, -1]");
    check(&wide, DataType::UINT8, "[5] [200, 255, 112, 0, 255]");
    check(&wide, DataType::INT16, "[5] [200, -1, 4464, -3584, -1]");
    check(&wide, DataType::UINT16, "[5] [200, 65535, 4464, 61952, 65535]");
    check(&wide, DataType::INT32, "[5] [200, -1, 70000, 705032704, -1]");
    check(&wide, DataType::UINT32, "[5] [200, 4294967295, 70000, 705032704, 4294967295]");
    for to in [DataType::INT64, DataType::UINT64] {
        check(&wide, to, "[5] [200, -1, 70000, 5000000000, 9223372036854775807]");
    }
    let error = fold(13, "Cast", &[ints], vec![int("to", i64::from(DataType::STRING.0))]).unwrap_err();
    assert_eq!(error, "a constant cannot become string");
}

#[test]
fn reductions_of_floats_are_those_of_their_definitions() {
    let x = of_floats(&[3.0, -4.0, 6.0, 8.0]).reshaped(vec![2, 2]);
    let check = |operator: &str, wanted: &str| {
        let found = fold(11, operator, std::slice::from_ref(&x), vec![ints("axes", &[1])]);
        assert_eq!(found.as_deref(), Ok(wanted), "{operator}");
    };
    check("ReduceL1", "[2, 1] [7.0, 14.0]");
    check("ReduceL2", "[2, 1] [5.0, 10.0]");
    check("ReduceMax", "[2, 1] [3.0, 8.0]");
    check("ReduceMean", "[2, 1] [-0.5, 7.0]");
    check("ReduceMin", "[2, 1] [-4.0, 6.0]");
    check("ReduceProd", "[2, 1] [-12.0, 48.0]");
    check("ReduceSum", "[2, 1] [-1.0, 14.0]");
    check("ReduceSumSquare", "[2, 1] [25.0, 100.0]");
    let ones = of_floats(&[0.25, 0.75]);
    assert_eq!(fold(11, "ReduceLogSum", std::slice::from_ref(&ones), vec![]).as_deref(), Ok("[1] [0.0]"));
    assert_eq!(fold(11, "ReduceLogSumExp", &[ones], vec![]).as_deref(), Ok("[1] [1.224077]"));
}

#[test]
fn reductions_over_any_dimensions() {
    let x = Constant::ints([2, 3, 4], (1..=24).collect());
    let check = |axes: &[i64], keep: i64, wanted: &str| {
        let attributes = vec![ints("axes", axes), int("keepdims", keep)];
        let found = fold(11, "ReduceSum", std::slice::from_ref(&x), attributes);
        assert_eq!(found.as_deref(), Ok(wanted), "{axes:?}");
    };
    check(&[0], 0, "[3, 4] [14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36]");
    check(&[0], 1, "[1, 3, 4] [14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36]");
    check(&[1], 0, "[2, 4] [15, 18, 21, 24, 51, 54, 57, 60]");
    check(&[-1, 0], 1, "[1, 3, 1] [68, 100, 132]");
    // No list is all dimensions, unless it is said to be none; so is an empty one.
    check(&[], 0, "[] [300]");
    let y = of_ints(&[1, 2, 3, 4]).reshaped(vec![2, 2]);
    let no_op =
        |flag| fold(13, "ReduceSum", std::slice::from_ref(&y), vec![int("noop_with_empty_axes", flag)]);
    assert_eq!(no_op(0).as_deref(), Ok("[1, 1] [10]"));
    assert_eq!(no_op(1).as_deref(), Ok("[2, 2] [1, 2, 3, 4]"));
    // Integers beyond the floats' precision are exact, and stay integers.
    let max = fold(11, "ReduceMax", &[of_ints(&[-5, (1 << 24) + 1])], vec![int("keepdims", 0)]);
    assert_eq!(max.as_deref(), Ok("[] [16777217]"));
}
