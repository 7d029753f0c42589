//! Frames by rows: what the caller hands over and takes while a frame runs.

use std::io;

/// A row of an input, to be filled in.
#[derive(Debug, PartialEq)]
pub enum InputRow<'a> {
    /// 32-bit floats: pixels of channels of an image, or the elements as they come.
    F32(&'a mut [f32]),
    /// Bytes of a camera: pixels of channels or, if the camera has planes, the row of each plane in turn. Or unsigned
    /// integers of a quantized network, as floats are.
    U8(&'a mut [u8]),
    /// Signed integers of a quantized network, as floats are.
    I8(&'a mut [i8]),
}

/// A row of an output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OutputRow<'a> {
    /// 32-bit floats: pixels of channels of an image, or the elements as they come.
    F32(&'a [f32]),
    /// Indices, of ArgMax and TopK.
    I64(&'a [i64]),
    /// 8-bit integers: masks, classes, and the integers of a quantized tensor.
    U8(&'a [u8]),
}

/// Hands over the rows of inputs and takes the rows of outputs, as [`super::Runner::infer_rows`] asks for them: those of
/// each input and output from the top, each once a frame. Inputs are numbered in the order of
/// [`csdfc_plan::plan::Cnn::inputs`], outputs in that of [`csdfc_plan::plan::Cnn::outputs`]. The rows are those of the
/// tensor that the layer makes, [`csdfc_plan::plan::Layer::output_shape`].
pub trait FrameRows {
    /// Fills in row `y` of an input.
    ///
    /// # Errors
    /// When there is no such row. The frame then ends with [`super::RunError::Row`].
    fn input(&mut self, input: usize, y: usize, row: InputRow<'_>) -> io::Result<()>;

    /// Takes row `y` of an output.
    ///
    /// # Errors
    /// When it can go nowhere. The frame then ends with [`super::RunError::Row`].
    fn output(&mut self, output: usize, y: usize, row: OutputRow<'_>) -> io::Result<()>;
}
