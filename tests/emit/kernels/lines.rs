//! Tensors of lines, `[1, T, C]` and `[T, C]`.

use super::*;

/// Tensors of rank 3 and 2 that are made of six rows, as they are and as views of each other and of images.
pub fn lines() -> Vec<Group> {
    let last = Shape { dims: vec![1, 6, 2, 4], order: Order::ChannelsLast };
    let lines = Shape::new([1, 6, 8]);
    let inputs = [
        (["lines", "lines_pairs"], plain(lines.clone())),
        (["lines_2", "lines_pairs_2"], plain(lines.clone())),
        (["lines_3", "lines_pairs_3"], plain(lines.clone())),
        (["matrix", "matrix_pairs"], plain(Shape::new([6, 8]))),
        (["matrix_2", "matrix_pairs_2"], plain(Shape::new([6, 8]))),
        (["matrix_3", "matrix_pairs_3"], plain(Shape::new([6, 8]))),
        (["lines_of_image", "pairs_of_image"], [Shape::image(1, 6, 8), lines.clone()]),
        (["lines_of_last", "pairs_of_last"], [last, lines.clone()]),
        (["lines_of_other", "pairs_of_other"], [image(), Shape::new([1, 6, 32])]),
        (["lines_of_rows", "pairs_of_rows"], [Shape::new([1, 12, 4]), lines.clone()]),
        (["lines_of_matrix", "pairs_of_matrix"], [Shape::new([6, 8]), lines.clone()]),
        (["matrix_of_lines", "matrix_pairs_of_lines"], [lines.clone(), Shape::new([6, 8])]),
        (["image_of_lines", "image_pairs_of_lines"], [lines.clone(), Shape::image(1, 6, 8)]),
        (["other_of_lines", "other_pairs_of_lines"], [lines.clone(), Shape::image(6, 2, 4)]),
    ];
    let group = |(names, input): ([&'static str; 2], [Shape; 2])| {
        let (rank, own) = (input[1].rank(), input[1].dims.clone());
        // The dimension of rows and, except for images, the dimension of a row's elements.
        let [rows, inner] = [rank - 2, rank - 1];
        let ones = vec![1; rank];
        let with = |axis: usize, size: usize| {
            let mut dims = ones.clone();
            dims[axis] = size;
            dims
        };
        let softmax = |axes: &[usize]| Operator::Softmax(Softmax { axes: axes.into(), log: false });
        let reduce = |axes: &[usize], keep_dims| {
            Operator::Reduce(Reduce { function: ReduceFunction::Mean, axes: axes.into(), keep_dims })
        };
        let sliced = |axis: usize| {
            let mut slice = Slice { starts: vec![0; rank], steps: vec![1; rank], lengths: own.clone() };
            (slice.starts[axis], slice.steps[axis], slice.lengths[axis]) = (own[axis] - 1, -1, 2);
            Operator::Slice(slice)
        };
        let padded = |axis: usize, mode| {
            let mut pad = Pad { mode, before: vec![0; rank], after: vec![0; rank] };
            (pad.before[axis], pad.after[axis]) = (1, -1);
            Operator::Pad(pad)
        };
        let mut swapped: Vec<usize> = (0..rank).collect();
        swapped.swap(rows, inner);
        let function = |function| Operator::ElementWise(ElementWise { function });
        let arg_max =
            |axis, keep_dims| Operator::ArgMax(ArgMax { axis, keep_dims, select_last: false, floats: false });
        let gemm = |transposed, activation| {
            Operator::Gemm(Gemm { inner: own[inner], units: 5, transposed, bias: true, activation })
        };
        let mut operators = vec![
            function(Function::Sigmoid),
            function(Function::PRelu { slope: with(inner, own[inner]) }),
            function(Function::PRelu { slope: with(rows, own[rows]) }),
            constant(BinaryFunction::Sub, &with(rows, own[rows]), true, None),
            constant(BinaryFunction::Add, &[own[inner]], false, Some(Function::Relu)),
            constant(BinaryFunction::Mul, &own, false, None),
            softmax(&[inner]),
            softmax(&[rows]),
            softmax(&[rows, inner]),
            reduce(&[inner], true),
            reduce(&[inner], false),
            reduce(&[rows], true),
            arg_max(inner, true),
            arg_max(rows, false),
            sliced(rows),
            sliced(inner),
            padded(rows, PadMode::Edge),
            padded(inner, PadMode::Constant { value: None }),
            Operator::Transpose(Transpose::new(swapped)),
            gemm(true, None),
            gemm(false, slopes(&with(rows, own[rows]))),
        ];
        if rank < 4 {
            operators.push(Operator::BatchNorm(BatchNorm { channels: own[1], activation: None }));
        }
        if rank == 3 {
            operators.push(Operator::Lrn(Lrn { size: 3, alpha: 1e-2, beta: 0.75, bias: 1.0 }));
            operators.push(Operator::InstanceNorm(InstanceNorm { channels: own[1], epsilon: 1e-5 }));
        }
        let pairs = vec![
            binary(BinaryFunction::Sub, None),
            binary(BinaryFunction::Max, slopes(&with(inner, own[inner]))),
            Operator::Concat(Concat { axis: rows }),
            Operator::Concat(Concat { axis: inner }),
        ];
        let of = |name, count, operators| Group { name, inputs: vec![input.clone(); count], operators };
        [of(names[0], 1, operators), of(names[1], 2, pairs)]
    };
    let (mut groups, pairs): (Vec<Group>, Vec<Group>) =
        inputs.into_iter().map(group).map(|[unary, pairs]| (unary, pairs)).unzip();
    groups.extend(pairs);
    for (name, other) in [("lines_mat_mul", [1, 8, 3].to_vec()), ("lines_by_matrix", vec![8, 3])] {
        let inputs = vec![plain(Shape::new([1, 6, 8])), plain(Shape::new(other))];
        groups.push(Group { name, inputs, operators: vec![Operator::MatMul] });
    }
    let inputs = vec![plain(Shape::new([6, 8])), plain(Shape::new([1, 8, 3]))];
    groups.push(Group { name: "matrix_by_lines", inputs, operators: vec![Operator::MatMul] });
    groups
}
