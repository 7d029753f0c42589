//! Pooling over a window.

use csdfc_plan::operator::{MaxUnpool, Pool};
use csdfc_plan::shape::Shape;

use super::convolution::Window;
use super::facts::{AXES, ShapeError, dimension, fail, image};

pub(super) fn pool_shape(pool: &Pool, x: &Shape) -> Result<Shape, ShapeError> {
    let [n, channels, height, width] = image(x, "pool")?;
    let mut size = [0; 2];
    for axis in 0..2 {
        let (input, name) = ([height, width][axis], AXES[axis]);
        let window = Window::new(axis, pool.kernel, pool.stride, pool.dilation, pool.pads)?;
        if window.before >= window.extent || window.after >= window.extent {
            return fail(format!(
                "pool padding in {name} is not smaller than the window's {}",
                window.extent
            ));
        }
        let slack = window.slack(input, name)?;
        let mut last = slack / window.stride;
        // A window that would start in the padding after the input is left out (ONNX since opset 19, and ONNX
        // Runtime for all).
        if pool.ceil
            && slack % window.stride != 0
            && (last + 1) * window.stride < input as i128 + window.before
        {
            last += 1;
        }
        size[axis] = dimension(last + 1, name)?;
    }
    Ok(Shape::new([n, channels, size[0], size[1]]))
}

pub(super) fn max_unpool_shape(unpool: &MaxUnpool, inputs: &[Shape]) -> Result<Shape, ShapeError> {
    let [x, places] = inputs else { return fail("a max_unpool reads an image and places".into()) };
    let [n, channels, _, _] = image(x, "max_unpool")?;
    if places.dims != x.dims {
        return fail(format!("a max_unpool of {x} to the places {places}"));
    }
    Ok(Shape::new([n, channels, unpool.size[0], unpool.size[1]]))
}
