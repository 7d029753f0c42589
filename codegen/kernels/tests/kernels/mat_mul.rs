//! Products of two tensors.

use csdfc_kernels::Element;
use csdfc_kernels::arch::Isa;
use csdfc_kernels::elements::{Dims, ElementShape, Elements, ElementsMut, MAX_RANK};
use csdfc_kernels::half::F16;
use csdfc_kernels::kernel::{Context, ElementKernel};
use csdfc_kernels::mat_mul::MatMul;
use csdfc_kernels::rows::{RowShape, Rows};
use csdfc_kernels::span::{Span, SpanMut};

use crate::testing::{Random, close};

/// The definition, by indices.
fn textbook(a: &Elements<'_>, b: &Elements<'_>, out: &Dims) -> Vec<f32> {
    let inner = a.seen.sizes[a.seen.rank - 1];
    let mut result = Vec::new();
    out.for_each(|index| {
        let mut sum = 0.0;
        for k in 0..inner {
            // Output dimensions without those that a vector lacks.
            let rows = a.seen.rank - 1;
            let columns = b.seen.rank.min(2) - 1;
            let outer = out.rank - columns;
            let at = |tensor: &Elements<'_>, outside: &[usize], own: [Option<usize>; 2]| {
                let own: Vec<usize> = own.into_iter().flatten().collect();
                let batch = tensor.seen.rank - own.len();
                let mut at = [0; MAX_RANK];
                let skip = outside.len() - batch;
                for axis in 0..batch {
                    at[axis] = if tensor.seen.sizes[axis] == 1 { 0 } else { outside[axis + skip] };
                }
                at[batch..tensor.seen.rank].copy_from_slice(&own);
                tensor.at(&at)
            };
            let batch = &index[..outer - usize::from(rows > 0)];
            let row = (rows > 0).then(|| index[outer - 1]);
            let column = (columns > 0).then(|| index[out.rank - 1]);
            sum += f64::from(at(a, batch, [row, Some(k)])) * f64::from(at(b, batch, [Some(k), column]));
        }
        result.push(sum as f32);
    });
    result
}

fn check(a: &Elements<'_>, b: &Elements<'_>, out: &[usize]) {
    let want = textbook(a, b, &Dims::new(out));
    for isa in Isa::all() {
        let mut got = vec![f32::NAN; want.len()];
        let output = &mut ElementsMut::dense(&mut got, out);
        MatMul.elements(&mut Context::alone(isa), 0..1, &[*a, *b], &[], output);
        close(&got, &want, || format!("{} {:?} {:?}", isa.name(), a.seen, b.seen));
    }
}

#[test]
fn dense_and_broadcast() {
    let mut random = Random(5);
    for (a, b, out) in [
        (&[3, 4][..], &[4, 5][..], &[3, 5][..]),
        (&[1, 1], &[1, 1], &[1, 1]),
        (&[25, 130], &[130, 67], &[25, 67]),
        (&[7], &[7, 40], &[40]),
        (&[20, 7], &[7], &[20]),
        (&[9], &[9], &[]),
        (&[2, 3, 13, 5], &[3, 5, 4], &[2, 3, 13, 4]),
        (&[13, 5], &[2, 1, 5, 4], &[2, 1, 13, 4]),
        (&[2, 1, 13, 5], &[1, 3, 5, 4], &[2, 3, 13, 4]),
        (&[3, 2, 5], &[5], &[3, 2]),
    ] {
        let (x, y) = (random.floats(a.iter().product()), random.floats(b.iter().product()));
        check(&Elements::dense(&x, a), &Elements::dense(&y, b), out);
    }
}

#[test]
fn images_in_rings() {
    let mut random = Random(6);
    for first in [0, 2] {
        // Heads as channels, tokens as rows.
        let mut shape = RowShape::dense(5, 6, 3, 5);
        shape.first = first;
        let (x, y) = (random.floats(90), random.floats(90));
        let (x, y) = (Rows { data: Span::new(&x), shape }, Rows { data: Span::new(&y), shape });
        let left = Elements::channels_first(x);
        let right = Elements::channels_first(y).seen_as(&[1, 3, 6, 5]);
        check(&left, &right, &[1, 3, 5, 5]);
    }
}

/// Elements of `matrices` matrices that lie one after another, as those that lie interleaved.
fn interleaved<E: Copy>(dense: &[E], matrices: usize) -> Vec<E> {
    let places = dense.len() / matrices;
    (0..dense.len()).map(|at| dense[at % matrices * places + at / matrices]).collect()
}

/// Heads that are channels, whose tokens are rows: the elements are those of matrices one after another.
fn check_interleaved<E: Element + PartialEq + std::fmt::Debug>(
    x: &[E],
    y: &[E],
    matrices: usize,
    [rows, inner, columns]: [usize; 3],
) {
    let image = |data, height, width| {
        let shape = RowShape::dense(height, width, matrices, height);
        Elements::channels_first(Rows { data: Span::new(data), shape })
    };
    let (left, right) = (interleaved(x, matrices), interleaved(y, matrices));
    let (left, right) = (image(&left, rows, inner), image(&right, inner, columns));
    let sizes = [1, matrices, rows, columns];
    for isa in Isa::all() {
        let mut dense = vec![E::narrow(f32::NAN); matrices * rows * columns];
        let operands = [[1, matrices, rows, inner], [1, matrices, inner, columns]];
        let operands = [Elements::dense(x, &operands[0]), Elements::dense(y, &operands[1])];
        let output = &mut ElementsMut::dense(&mut dense, &sizes);
        MatMul.elements(&mut Context::alone(isa), 0..rows, &operands, &[], output);
        let wanted = interleaved(&dense, matrices);
        let mut made = vec![E::narrow(f32::NAN); dense.len()];
        // All rows at once, or some and then the others.
        for part in [0..rows, 0..rows / 2, rows / 2..rows] {
            let shape = ElementShape::channels_first(RowShape::dense(rows, columns, matrices, rows));
            let mut output = ElementsMut { data: SpanMut::new(&mut made), shape };
            MatMul.elements(&mut Context::alone(isa), part.clone(), &[left, right], &[], &mut output);
            let part = part.start * columns * matrices..part.end * columns * matrices;
            assert_eq!(made[part.clone()], wanted[part], "{} {matrices} {rows} {inner}", isa.name());
        }
    }
}

#[test]
fn interleaved_matrices() {
    let mut random = Random(8);
    for matrices in [2, 3, 5, 6, 7, 8, 12, 16, 20] {
        for size in [[5, 3, 1], [4, 16, 7], [7, 37, 33], [1, 64, 12]] {
            let [rows, inner, columns] = size;
            let (x, y) = (random.floats(matrices * rows * inner), random.floats(matrices * inner * columns));
            check_interleaved(&x, &y, matrices, size);
            let [x, y] = [x, y].map(|x| x.into_iter().map(F16::from_f32).collect::<Vec<_>>());
            check_interleaved(&x, &y, matrices, size);
        }
    }
}

/// Rows of the first operand and of the output in rings of four rows, which they go round.
#[test]
fn lines_by_parts() {
    let mut random = Random(7);
    let (rows, inner, units, ring) = (7, 5, 3, 4);
    for sizes in [&[1, rows, inner][..], &[rows, inner]] {
        let axis = sizes.len() - 2;
        let mut out = sizes.to_vec();
        out[axis + 1] = units;
        let (x, w) = (random.floats(rows * inner), random.floats(inner * units));
        let weights = Elements::dense(&w, &[inner, units]);
        let want = textbook(&Elements::dense(&x, sizes), &weights, &Dims::new(&out));
        for (isa, first) in Isa::all().flat_map(|isa| [(isa, 0), (isa, 3)]) {
            for y in [0..3, 2..6, 3..5, 6..7] {
                let (mut stored, mut made) = (vec![f32::NAN; ring * inner], vec![f32::NAN; ring * units]);
                for row in y.clone() {
                    let slot = (first + row) % ring;
                    stored[slot * inner..][..inner].copy_from_slice(&x[row * inner..][..inner]);
                }
                let seen_as = |sizes| ElementShape { first, ..ElementShape::by_rows(sizes, axis, ring) };
                let left =
                    Elements { data: Span::new(&stored), shape: seen_as(sizes), seen: Dims::new(sizes) };
                let mut output = ElementsMut { data: SpanMut::new(&mut made), shape: seen_as(&out) };
                MatMul.elements(&mut Context::alone(isa), y.clone(), &[left, weights], &[], &mut output);
                for slot in 0..ring {
                    let got = &made[slot * units..][..units];
                    match y.clone().find(|row| (first + row) % ring == slot) {
                        Some(row) => close(got, &want[row * units..][..units], || {
                            format!("{} {sizes:?} {y:?} {row}", isa.name())
                        }),
                        None => assert!(got.iter().all(|x| x.is_nan()), "{y:?} {slot}"),
                    }
                }
            }
        }
    }
}
