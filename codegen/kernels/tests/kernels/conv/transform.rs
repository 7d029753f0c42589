//! Winograd's matrices against the published ones.

use csdfc_kernels::conv::winograd::transform::*;

/// The matrices of Lavin and Gray, sections 4.1 and 4.3. Their rows have other signs, and another order of points.
#[test]
fn filters_are_transformed_by_the_published_matrices() {
    let row = |a: usize, taps: usize, at: usize| [0, 1, 2].map(|tap| filter_factor(a, taps, at, tap));
    assert_eq!(row(4, 3, 0), [-1.0, 0.0, 0.0]);
    assert_eq!([1, 2, 3].map(|at| row(4, 3, at)), [[0.5; 3], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]]);
    assert_eq!(row(6, 3, 0), [0.25, 0.0, 0.0]);
    assert_eq!(row(6, 3, 1), [-1.0 / 6.0; 3]);
    assert_eq!(row(6, 3, 3), [1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0]);
}

#[test]
fn polynomials_have_the_squares_of_the_points_as_roots() {
    assert_eq!(polynomial(1, None), [-1.0, 1.0, 0.0, 0.0]);
    assert_eq!(polynomial(2, None), [4.0, -5.0, 1.0, 0.0]);
    assert_eq!(polynomial(3, None), [-1.0, 5.25, -5.25, 1.0]);
    assert_eq!(polynomial(3, Some(1)), [0.25, -1.25, 1.0, 0.0]);
}
