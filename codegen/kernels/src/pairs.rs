//! The code that functions of two elements share, whatever the elements are.

/// Left and right: the operands, or an operand and a constant, which may be left.
#[inline]
pub(crate) fn sides<X: Copy>(is_constant_left: bool, operands: &[X], constants: &[X]) -> [X; 2] {
    match (operands, constants) {
        (&[operand], &[constant]) if is_constant_left => [constant, operand],
        (&[operand], &[constant]) => [operand, constant],
        _ => [operands[0], operands[1]],
    }
}

/// Makes elements of those on the left and on the right. Slices of one element repeat.
#[inline(always)]
pub(crate) fn zip<T: Copy>(left: &[T], right: &[T], output: &mut [T], f: impl Fn(T, T) -> T) {
    match (left, right) {
        (&[a], right) if right.len() == output.len() => {
            output.iter_mut().zip(right).for_each(|(r, &b)| *r = f(a, b));
        }
        (left, &[b]) if left.len() == output.len() => {
            output.iter_mut().zip(left).for_each(|(r, &a)| *r = f(a, b));
        }
        (&[a], &[b]) => output.fill(f(a, b)),
        (left, right) => {
            output.iter_mut().zip(left).zip(right).for_each(|((r, &a), &b)| *r = f(a, b));
        }
    }
}
