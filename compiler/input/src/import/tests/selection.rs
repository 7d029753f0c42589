//! Constants that are made of other constants' elements, and constants of shapes and ranges.

use super::*;
use crate::import::fold::index::{Range, slice_ranges};

/// Integers counting up from 0.
fn counting(dims: &[usize]) -> Constant {
    Constant::ints(dims, (0..dims.iter().product::<usize>() as i64).collect())
}

#[test]
fn slices_clamp_their_bounds() {
    let x = counting(&[5]);
    let check = |start: i64, end: i64, step: i64, wanted: &str| {
        let operands = [x.clone(), of_ints(&[start]), of_ints(&[end]), of_ints(&[0]), of_ints(&[step])];
        let found = fold(13, "Slice", &operands, vec![]);
        assert_eq!(found.as_deref(), Ok(wanted), "{start}..{end} by {step}");
    };
    check(1, 4, 1, "[3] [1, 2, 3]");
    check(-3, -1, 1, "[2] [2, 3]");
    check(0, 5, 2, "[3] [0, 2, 4]");
    check(0, 4, 2, "[2] [0, 2]");
    check(-100, 100, 4, "[2] [0, 4]");
    check(3, 1, 1, "[0] []");
    check(5, 9, 1, "[0] []");
    check(4, 0, -1, "[4] [4, 3, 2, 1]");
    check(-1, -6, -2, "[3] [4, 2, 0]");
    check(10, -100, -1, "[5] [4, 3, 2, 1, 0]");
    check(5, 1, -2, "[2] [4, 2]");
    check(2, 9, -1, "[0] []");
    check(i64::MIN, i64::MAX, 1, "[5] [0, 1, 2, 3, 4]");
    check(i64::MAX, i64::MIN, -1, "[5] [4, 3, 2, 1, 0]");
    check(0, i64::MAX, i64::MAX, "[1] [0]");
    check(4, i64::MIN, i64::MIN, "[1] [4]");
    let empty = [of_ints(&[]), of_ints(&[0]), of_ints(&[9]), of_ints(&[0]), of_ints(&[-1])];
    assert_eq!(fold(13, "Slice", &empty, vec![]).as_deref(), Ok("[0] []"));
}

#[test]
fn slices_of_several_dimensions() {
    let x = counting(&[2, 3, 4]);
    let two = [x.clone(), of_ints(&[2, -1]), of_ints(&[0, -3]), of_ints(&[1, -1]), of_ints(&[-1, -1])];
    let wanted = "[2, 2, 2] [11, 10, 7, 6, 23, 22, 19, 18]";
    assert_eq!(fold(13, "Slice", &two, vec![]).as_deref(), Ok(wanted));
    // Without axes, of the first dimensions; before opset 10, by attributes.
    let wanted = "[1, 2, 4] [16, 17, 18, 19, 20, 21, 22, 23]";
    assert_eq!(
        fold(13, "Slice", &[x.clone(), of_ints(&[1, 1]), of_ints(&[2, 3])], vec![]).as_deref(),
        Ok(wanted)
    );
    let attributes = vec![ints("starts", &[1, 1]), ints("ends", &[2, 3])];
    assert_eq!(fold(9, "Slice", std::slice::from_ref(&x), attributes.clone()).as_deref(), Ok(wanted));
    // Steps came with the operands.
    let steps = [x.clone(), x.clone(), x.clone(), x.clone(), of_ints(&[2, 2])];
    assert_eq!(fold(9, "Slice", &steps, attributes).as_deref(), Ok(wanted));

    let wrong = |operands: &[Constant], words: &str| {
        assert_eq!(fold(13, "Slice", operands, vec![]).unwrap_err(), words);
    };
    let one = of_ints(&[1]);
    let zero = of_ints(&[0]);
    wrong(&[x.clone(), zero.clone(), one.clone(), zero.clone(), zero.clone()], "a step of 0");
    wrong(&[x.clone(), zero.clone()], "its starts or ends are missing");
    let differ = "its starts, ends, axes and steps differ in number";
    wrong(&[x.clone(), zero.clone(), of_ints(&[1, 1])], differ);
    wrong(&[x.clone(), zero.clone(), one.clone(), of_ints(&[0, 1])], differ);
    wrong(&[x.clone(), zero.clone(), one.clone(), zero.clone(), of_ints(&[1, 1])], differ);
    wrong(&[x, zero, one, of_ints(&[3])], "axis 3 is out of range: the tensor has rank 3");
}

/// However long a step is, one past the dimension does the same.
#[test]
fn steps_are_at_most_one_longer_than_their_dimension() {
    let check = |size: usize, start: i64, end: i64, step: i64, wanted: Range| {
        let proto = NodeProto::default();
        let operand = |value: i64| Some(Value::Constant(of_ints(&[value])));
        let inputs = vec![None, operand(start), operand(end), operand(0), operand(step)];
        let node = Node { proto: &proto, index: 0, operator: "Slice", opset: 13, inputs };
        assert_eq!(slice_ranges(&node, &[size]).unwrap(), [wanted]);
    };
    check(5, 0, 5, i64::MAX, Range { start: 0, step: 6, length: 1 });
    check(5, 4, i64::MIN, i64::MIN, Range { start: 4, step: -6, length: 1 });
    check(5, 0, 5, 6, Range { start: 0, step: 6, length: 1 });
    check(1, 0, 1, 1, Range { start: 0, step: 1, length: 1 });
    check(1, 0, -2, -1, Range { start: 0, step: -1, length: 1 });
}

#[test]
fn splits_into_parts() {
    let x = counting(&[2, 6]);
    let split = |opset, sizes: Option<&[i64]>, attributes: Vec<AttributeProto>, outputs| {
        let mut operands = vec![x.clone()];
        operands.extend(sizes.map(of_ints));
        let attributes = [vec![int("axis", 1)], attributes].concat();
        let parts = fold_all(opset, "Split", &operands, attributes, outputs)?;
        Ok(parts.iter().map(shown).collect::<Vec<_>>().join(" "))
    };
    let check = |found: Result<String, String>, wanted: &str| assert_eq!(found.as_deref(), Ok(wanted));
    let wrong = |found: Result<String, String>, wanted: &str| assert_eq!(found.unwrap_err(), wanted);
    let uneven = "[2, 1] [0, 6] [2, 2] [1, 2, 7, 8] [2, 3] [3, 4, 5, 9, 10, 11]";
    check(split(13, Some(&[1, 2, 3]), vec![], 3), uneven);
    check(split(11, None, vec![ints("split", &[1, 2, 3])], 3), uneven);
    // Parts that no output names.
    check(split(13, Some(&[1, 2, 3]), vec![], 2), uneven);
    wrong(split(13, Some(&[1, 2, 2]), vec![], 3), "parts of [1, 2, 2] do not add up to 6");
    wrong(split(13, Some(&[3, 3]), vec![], 3), "parts of [3, 3] do not add up to 6");
    wrong(split(13, Some(&[7, -1]), vec![], 2), "a tensor of [7, -1] has a negative dimension");

    let halves = "[2, 3] [0, 1, 2, 6, 7, 8] [2, 3] [3, 4, 5, 9, 10, 11]";
    check(split(13, None, vec![], 2), halves);
    check(split(18, None, vec![int("num_outputs", 2)], 2), halves);
    check(split(18, None, vec![int("num_outputs", 2)], 1), halves);
    // Up to opset 17 the parts are equal; from then on the last may be smaller.
    wrong(split(17, None, vec![], 4), "6 elements cannot be split into 4 equal parts");
    wrong(split(13, None, vec![], 5), "6 elements cannot be split into 5 equal parts");
    let smaller = "[2, 4] [0, 1, 2, 3, 6, 7, 8, 9] [2, 2] [4, 5, 10, 11]";
    let five = of_ints(&[0, 1, 2, 3, 4]);
    let of_five = |opset, parts: i64, outputs| {
        let attributes = vec![int("num_outputs", parts)];
        let parts = fold_all(opset, "Split", std::slice::from_ref(&five), attributes, outputs)?;
        Ok(parts.iter().map(shown).collect::<Vec<_>>().join(" "))
    };
    check(of_five(18, 2, 2), "[3] [0, 1, 2] [2] [3, 4]");
    check(of_five(18, 3, 3), "[2] [0, 1] [2] [2, 3] [1] [4]");
    check(of_five(18, 5, 5), "[1] [0] [1] [1] [1] [2] [1] [3] [1] [4]");
    check(split(18, Some(&[4, 2]), vec![], 2), smaller);
    wrong(of_five(18, 4, 4), "5 elements cannot be split into 4 parts");
    wrong(of_five(13, 6, 6), "5 elements cannot be split into 6 parts");
    wrong(of_five(13, 1, 5), "5 elements cannot be split into 5 parts");
    wrong(of_five(18, 0, 0), "5 elements cannot be split into 0 parts");
    wrong(of_five(18, 0, 1), "5 elements cannot be split into 1 parts");
}

#[test]
fn gathers_joins_and_repeats() {
    let x = counting(&[2, 3, 2]);
    let check = |operator, operands: &[Constant], attributes: Vec<AttributeProto>, wanted: &str| {
        assert_eq!(fold(13, operator, operands, attributes).as_deref(), Ok(wanted), "{operator}");
    };
    let wrong = |operator, operands: &[Constant], attributes: Vec<AttributeProto>, wanted: &str| {
        assert_eq!(fold(13, operator, operands, attributes).unwrap_err(), wanted, "{operator}");
    };
    let places = of_ints(&[2, -3]);
    check(
        "Gather",
        &[x.clone(), places.clone()],
        vec![int("axis", 1)],
        "[2, 2, 2] [4, 5, 0, 1, 10, 11, 6, 7]",
    );
    let scalar = Constant::ints([], vec![-1]);
    check("Gather", &[x.clone(), scalar], vec![int("axis", -1)], "[2, 3] [1, 3, 5, 7, 9, 11]");
    check("Gather", &[of_floats(&[1.5, 2.5]), of_ints(&[1])], vec![], "[1] [2.5]");
    check("Gather", &[x.clone(), of_ints(&[])], vec![], "[0, 3, 2] []");
    let outside = |index: i64| format!("index {index} is out of range: dimension 1 is 3");
    for index in [3, -4] {
        wrong("Gather", &[x.clone(), of_ints(&[index])], vec![int("axis", 1)], &outside(index));
    }

    let (a, b) = (counting(&[2, 2]), counting(&[2, 1]));
    check(
        "Concat",
        &[a.clone(), b.clone(), a.clone()],
        vec![int("axis", 1)],
        "[2, 5] [0, 1, 0, 0, 1, 2, 3, 1, 2, 3]",
    );
    check(
        "Concat",
        &[of_floats(&[1.5]), of_floats(&[]), of_floats(&[2.5])],
        vec![int("axis", 0)],
        "[2] [1.5, 2.5]",
    );
    check("Concat", &[of_ints(&[]), of_ints(&[])], vec![int("axis", 0)], "[0] []");
    let differ = "constants of [2, 2] and [2, 1] cannot be concatenated";
    wrong("Concat", &[a.clone(), b], vec![int("axis", 0)], differ);
    let ranks = "constants of [2] and [2, 2] cannot be concatenated";
    wrong("Concat", &[of_ints(&[1, 2]), a.clone()], vec![int("axis", 0)], ranks);
    wrong(
        "Concat",
        &[a.clone(), of_ints(&[1])],
        vec![int("axis", 0)],
        "constants of [2, 2] and [1] cannot be concatenated",
    );

    let tiled = "[4, 4] [0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3]";
    check("Tile", &[a.clone(), of_ints(&[2, 2])], vec![], tiled);
    let wide = counting(&[2, 3]);
    let tiled = "[2, 6] [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]";
    check("Tile", &[wide.clone(), of_ints(&[1, 2])], vec![], tiled);
    check("Tile", &[of_ints(&[7]), of_ints(&[0])], vec![], "[0] []");
    wrong("Tile", &[a.clone(), of_ints(&[2])], vec![], "1 repeats for 2 dimensions");

    check(
        "Transpose",
        &[x],
        vec![ints("perm", &[2, 0, 1])],
        "[2, 2, 3] [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]",
    );
    wrong(
        "Transpose",
        std::slice::from_ref(&wide),
        vec![ints("perm", &[0, 0])],
        "perm [0, 0] does not permute 2 dimensions",
    );
    wrong(
        "Transpose",
        std::slice::from_ref(&wide),
        vec![int("perm", 1)],
        "attribute perm is no list of integers",
    );
    check("Expand", &[of_ints(&[1, 2]), of_ints(&[2, 1])], vec![], "[2, 2] [1, 2, 1, 2]");
    let column = of_ints(&[1, 2]).reshaped(vec![2, 1]);
    check("Expand", &[column, of_ints(&[3, 1, 2])], vec![], "[3, 2, 2] [1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2]");

    let condition = of_bools(&[true, false]);
    check("Where", &[condition.clone(), of_ints(&[1]), of_ints(&[8, 9])], vec![], "[2] [1, 9]");
    check("Where", &[condition, of_floats(&[1.5]), of_floats(&[8.0, 9.0])], vec![], "[2] [1.5, 9.0]");
}

#[test]
fn views_of_constants() {
    let x = counting(&[1, 2, 3]);
    let check = |operator, operands: &[Constant], attributes: Vec<AttributeProto>, dims: &[usize]| {
        let found = fold(13, operator, operands, attributes).unwrap();
        assert_eq!(found, format!("{dims:?} [0, 1, 2, 3, 4, 5]"), "{operator}");
    };
    check("Reshape", &[x.clone(), of_ints(&[0, -1])], vec![], &[1, 6]);
    check("Flatten", std::slice::from_ref(&x), vec![int("axis", 3)], &[6, 1]);
    check("Flatten", std::slice::from_ref(&x), vec![int("axis", 2)], &[2, 3]);
    check("Flatten", std::slice::from_ref(&x), vec![int("axis", -1)], &[2, 3]);
    check("Squeeze", std::slice::from_ref(&x), vec![], &[2, 3]);
    check("Squeeze", &[x.clone(), of_ints(&[-3])], vec![], &[2, 3]);
    check("Unsqueeze", &[x.clone(), of_ints(&[-1, 0])], vec![], &[1, 1, 2, 3, 1]);
    check("Identity", std::slice::from_ref(&x), vec![], &[1, 2, 3]);
    let wrong = |operator, operands: &[Constant], attributes: Vec<AttributeProto>, wanted: &str| {
        assert_eq!(fold(13, operator, operands, attributes).unwrap_err(), wanted, "{operator}");
    };
    wrong("Reshape", &[x.clone(), of_ints(&[-1, -1])], vec![], "shape [-1, -1] is not lawful");
    wrong("Reshape", &[x.clone(), of_ints(&[4, -1])], vec![], "[1, 2, 3] cannot be seen as [4, -1]");
    wrong(
        "Flatten",
        std::slice::from_ref(&x),
        vec![int("axis", 4)],
        "axis 4 is out of range: the tensor has rank 3",
    );
    wrong("Squeeze", &[x, of_ints(&[1])], vec![], "dimension 1 of [1, 2, 3] is not 1");
}

#[test]
fn dropout_at_inference_is_its_operand() {
    let dropout = |training: bool| {
        let operands = [of_floats(&[1.5]), of_floats(&[0.5]).reshaped(vec![]), of_bools(&[training])];
        fold(13, "Dropout", &operands, vec![int("seed", 1)])
    };
    assert_eq!(dropout(false).as_deref(), Ok("[1] [1.5]"));
    assert_eq!(dropout(true).unwrap_err(), "it is in training mode");
    let ratio = fold(10, "Dropout", &[of_floats(&[1.5])], vec![float("ratio", 0.5)]);
    assert_eq!(ratio.as_deref(), Ok("[1] [1.5]"));
}

#[test]
fn ranges_count_from_start_to_before_their_limit() {
    let scalar = |value: i64| Constant::ints([], vec![value]);
    let check = |start: i64, limit: i64, step: i64, wanted: &str| {
        let found = fold(13, "Range", &[scalar(start), scalar(limit), scalar(step)], vec![]);
        assert_eq!(found.as_deref(), Ok(wanted), "{start}..{limit} by {step}");
    };
    check(1, 10, 3, "[3] [1, 4, 7]");
    check(1, 11, 3, "[4] [1, 4, 7, 10]");
    check(10, 1, -3, "[3] [10, 7, 4]");
    check(10, 0, -3, "[4] [10, 7, 4, 1]");
    check(3, 1, 1, "[0] []");
    check(3, 3, 1, "[0] []");
    let scalar = |value: f32| Constant::floats([], vec![value]);
    let check = |start: f32, limit: f32, step: f32, wanted: &str| {
        let found = fold(13, "Range", &[scalar(start), scalar(limit), scalar(step)], vec![]);
        assert_eq!(found.as_deref(), Ok(wanted), "{start}..{limit} by {step}");
    };
    check(1.0, 2.25, 0.5, "[3] [1.0, 1.5, 2.0]");
    check(4.0, 1.0, -1.5, "[2] [4.0, 2.5]");
    check(4.0, 1.0, 1.0, "[0] []");
    let wrong = |operands: [Constant; 3], words: &str| {
        assert_eq!(fold(13, "Range", &operands, vec![]).unwrap_err(), words);
    };
    wrong([of_ints(&[0]), of_ints(&[1]), of_ints(&[0])], "a range by steps of 0");
    wrong([scalar(0.0), scalar(1.0), scalar(0.0)], "a range of inf");
    wrong([of_ints(&[0]), of_ints(&[1, 2]), of_ints(&[1])], "a constant of 2 elements where one is needed");
}

#[test]
fn shapes_and_sizes() {
    let x = counting(&[2, 3, 4]);
    let check = |attributes: Vec<AttributeProto>, wanted: &str| {
        assert_eq!(fold(15, "Shape", std::slice::from_ref(&x), attributes).as_deref(), Ok(wanted));
    };
    check(vec![], "[3] [2, 3, 4]");
    check(vec![int("start", 1)], "[2] [3, 4]");
    check(vec![int("start", -2), int("end", -1)], "[1] [3]");
    check(vec![int("end", 2)], "[2] [2, 3]");
    check(vec![int("start", -9), int("end", 9)], "[3] [2, 3, 4]");
    check(vec![int("start", 2), int("end", 1)], "[0] []");
    assert_eq!(fold(13, "Size", &[x], vec![]).as_deref(), Ok("[] [24]"));
}

#[test]
fn constants_of_one_value() {
    let tensor = |tensor: TensorProto| AttributeProto {
        name: Some("value".into()),
        t: Some(tensor),
        r#type: Some(AttributeType::TENSOR),
        ..Default::default()
    };
    let of = |data_type| TensorProto { dims: vec![1], data_type: Some(data_type), ..Default::default() };
    let filled = |attributes| fold(13, "ConstantOfShape", &[of_ints(&[1, 2])], attributes);
    assert_eq!(filled(vec![]).as_deref(), Ok("[1, 2] [0.0, 0.0]"));
    let floats = tensor(TensorProto { float_data: vec![2.5], ..of(DataType::FLOAT) });
    assert_eq!(filled(vec![floats.clone()]).as_deref(), Ok("[1, 2] [2.5, 2.5]"));
    let integers = tensor(TensorProto { int64_data: vec![7], ..of(DataType::INT64) });
    assert_eq!(filled(vec![integers.clone()]).as_deref(), Ok("[1, 2] [7, 7]"));
    let truths = tensor(TensorProto { int32_data: vec![1], ..of(DataType::BOOL) });
    assert_eq!(filled(vec![truths]).as_deref(), Ok("[1, 2] [true, true]"));

    let constant = |attribute| fold(13, "Constant", &[], vec![attribute]);
    assert_eq!(constant(floats).as_deref(), Ok("[1] [2.5]"));
    assert_eq!(constant(integers).as_deref(), Ok("[1] [7]"));
    assert_eq!(constant(float("value_float", 1.5)).as_deref(), Ok("[] [1.5]"));
    assert_eq!(constant(int("value_int", 3)).as_deref(), Ok("[] [3]"));
    assert_eq!(constant(ints("value_ints", &[3, 4])).as_deref(), Ok("[2] [3, 4]"));
    let list = AttributeProto {
        name: Some("value_floats".into()),
        floats: vec![1.5, 2.5],
        r#type: Some(AttributeType::FLOATS),
        ..Default::default()
    };
    assert_eq!(constant(list).as_deref(), Ok("[2] [1.5, 2.5]"));
    assert_eq!(constant(text("value_string", "a")).unwrap_err(), "it holds no numbers");
}

#[test]
fn truth_values_stay_truth_values() {
    let bools = |values: &[bool]| of_bools(values);
    let selected =
        fold(16, "Where", &[bools(&[true, false]), bools(&[false, false]), bools(&[true, true])], vec![]);
    assert_eq!(selected.unwrap(), "[2] [false, true]");
    let joined = fold(16, "Concat", &[bools(&[true]), bools(&[false])], vec![int("axis", 0)]);
    assert_eq!(joined.unwrap(), "[2] [true, false]");
}
