//! The matrix product that other kernels are made of.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::arch::{Isa, PANEL};
use csdfc_kernels::product::*;

use crate::testing::Random;

/// A sum as the module's documentation has it, and the sums of its terms and of their absolute values in doubles.
fn sum(isa: Isa, start: f32, terms: impl Iterator<Item = (f32, f32)>) -> (f32, f64, f64) {
    let (mut exact, mut near, mut size) = (start, f64::from(start), f64::from(start).abs());
    for (a, b) in terms {
        exact = if isa == Isa::PORTABLE { a * b + exact } else { a.mul_add(b, exact) };
        near += f64::from(a) * f64::from(b);
        size += (f64::from(a) * f64::from(b)).abs();
    }
    (exact, near, size)
}

#[test]
fn products_of_any_size_and_any_strides_are_the_sums_in_order() {
    let mut random = Random(5);
    for case in 0..800 {
        let m = *random.pick(&[1, 1, 2, 5, 12, 13, 30]);
        let n = *random.pick(&[1, 3, 15, 16, 17, 31, 33, 64, 100, 130, 257]);
        let k = *random.pick(&[0, 1, 2, 7, 20, 33, if case % 20 == 0 { 1100 } else { 5 }]);
        // Plain, transposed, or with rows that overlap.
        let spare = random.within(0, 3);
        let (left_row, left_step) =
            *random.pick(&[(k + spare, 1), (1, m + spare), (1 + spare, 1), (2, 3), (0, 1)]);
        let left = random.floats((m - 1) * left_row + k.saturating_sub(1) * left_step + 1);
        let a = |i: usize, p: usize| left[i * left_row + p * left_step];
        // The last element is the last of the slice, so that nothing can be read beyond.
        let (before, after) = (random.within(0, 1), random.within(0, 1));
        let (each, row) = (before + k + after, *random.pick(&[n, n + 5, 1, 0]));
        let in_panels = random.within(0, 1) == 0;
        let width = (n - 1) % PANEL + 1;
        let right = random.floats(match in_panels {
            true => (n - width) * each + (before + k) * width,
            false => k.saturating_sub(1) * row + n,
        });
        let b = |p: usize, j: usize| match in_panels {
            true => {
                let (first, column) = (j / PANEL * PANEL, j % PANEL);
                right[first * each + (before + p) * PANEL.min(n - first) + column]
            }
            false => right[p * row + j],
        };
        let elements = right.as_slice();
        let right = match in_panels {
            true => Right::Panels { elements, before, each },
            false => Right::Rows { elements, row },
        };
        let activation = *random.pick(&[
            Activation::None,
            Activation::Relu,
            Activation::Clip { min: -0.5, max: 0.75 },
            Activation::Swish,
        ]);
        let starts = random.floats(m.max(n));
        let which = random.within(0, 3);
        let start = [Start::Zero, Start::Old, Start::Rows(&starts[..m]), Start::Columns(&starts[..n])][which];
        let product = Product {
            size: [m, n, k],
            left: Left { elements: &left, row: left_row, step: left_step },
            right,
            start,
            activation,
        };
        let gap = random.within(0, 4);
        let mut old = random.floats((m - 1) * (n + gap) + n);
        for (at, x) in old.iter_mut().enumerate() {
            // C is read only if the sums begin with it. The elements between its rows are never read.
            *x = if at % (n + gap) >= n || which != 1 { f32::NAN } else { *x };
        }
        for isa in Isa::all() {
            let mut made = old.clone();
            product.make(isa, &mut made, n + gap);
            for (at, (&got, &old)) in made.iter().zip(&old).enumerate() {
                let (i, j) = (at / (n + gap), at % (n + gap));
                if j >= n {
                    assert!(got.is_nan(), "case {case}: it wrote between the rows");
                    continue;
                }
                let start = [0.0, old, starts[i], starts[j % starts.len()]][which];
                let (exact, near, size) = sum(isa, start, (0..k).map(|p| (a(i, p), b(p, j))));
                let what = || format!("case {case} {}: ({i}, {j}) of {:?}", isa.name(), product.size);
                assert_eq!(got.to_bits(), activation.apply(exact, 0.0).to_bits(), "{}", what());
                assert!((f64::from(exact) - near).abs() <= 1e-5 * size.max(1e-9), "{}", what());
            }
        }
    }
}

#[test]
fn what_is_too_short_is_refused() {
    let elements = [1.0; 64];
    let left = |len: usize| Left { elements: &elements[..len], row: 4, step: 1 };
    let rows = |len: usize| Right::Rows { elements: &elements[..len], row: 17 };
    let panels = |len: usize| Right::Panels { elements: &elements[..len], before: 1, each: 3 };
    let refuses = |left, right, start, activation, (output, row): (usize, usize)| {
        let product = Product { size: [3, 17, 2], left, right, start, activation };
        std::panic::catch_unwind(|| product.make(Isa::PORTABLE, &mut vec![0.0; output], row)).is_err()
    };
    let columns = |len: usize| Start::Columns(&elements[..len]);
    let starts = |len: usize| Start::Rows(&elements[..len]);
    let (none, fits) = (Activation::None, (2 * 17 + 17, 17));
    for (right, short) in [(rows(34), rows(33)), (panels(16 * 3 + 3), panels(16 * 3 + 2))] {
        assert!(!refuses(left(10), right, columns(17), none, fits));
        assert!(refuses(left(9), right, columns(17), none, fits), "left");
        assert!(refuses(left(10), short, columns(17), none, fits), "right");
        assert!(refuses(left(10), right, columns(16), none, fits), "start");
        assert!(!refuses(left(10), right, starts(3), none, fits));
        assert!(refuses(left(10), right, starts(2), none, fits), "start");
        assert!(refuses(left(10), right, columns(17), Activation::PRelu, fits), "activation");
        assert!(refuses(left(10), right, columns(17), none, (fits.0 - 1, 17)), "output");
        assert!(refuses(left(10), right, columns(17), none, (fits.0, 16)), "overlap");
    }
    let beyond = Right::Panels { elements: &elements, before: 2, each: 3 };
    assert!(refuses(left(10), beyond, columns(17), none, fits), "steps");
}

#[test]
fn products_of_nothing_leave_everything() {
    for size in [[0, 5, 3], [4, 0, 3]] {
        let left = Left { elements: &[], row: 3, step: 1 };
        let product = Product {
            size,
            left,
            right: Right::Rows { elements: &[], row: 5 },
            start: Start::Zero,
            activation: Activation::Relu,
        };
        let mut output: Vec<f32> = vec![];
        product.make(Isa::PORTABLE, &mut output, 5);
    }
}
