//! Rows in rings.

use csdfc_kernels::rows::*;

#[test]
fn rows_that_are_stored_alone_begin_with_the_first() {
    for rows in [0..1, 0..4, 3..4, 5..8, 7..12] {
        let shape = RowShape::dense(12, 2, 3, 12).stored(&rows);
        for (at, y) in rows.clone().enumerate() {
            assert_eq!(shape.start(y), at * 6, "row {y} of {rows:?}");
        }
    }
    // Nothing is read of it, but asked where it would be.
    assert_eq!(RowShape::dense(12, 2, 3, 12).stored(&(4..4)).start(4), 0);
}
