//! A network written in Rust, layer by layer, without an ONNX file.

use std::collections::{BTreeMap, BTreeSet};

use csdfc_plan::operator::{
    BatchNorm, Binary, BinaryFunction, Concat, Conv, ConvTranspose, DepthToSpace, ElementWise, Function,
    Gemm, Input, InputElement, Lrn, Operator, Pool, PoolKind, Reduce, ReduceFunction, Softmax,
};
use csdfc_plan::shape::Shape;

use csdfc_network::operators::{ShapeError, check_size, output_shape, parameter_dims};
use csdfc_network::weights::{WeightSource, Weights};
use csdfc_network::{Layer, LayerId, Network, NetworkOutput, Operand};

/// Builds a [`Network`] layer by layer, with weights drawn from a seed.
///
/// Every method that adds a layer takes the tensors that it reads and returns the one that it makes, in channels-first
/// shapes with a batch of 1. A layer gets the name that [`Builder::named`] gave just before. Without one, its name is
/// its kind and its number: `conv1`, `conv2`.
///
/// ```
/// use csdfc_input::builtin::{Builder, ConvOptions, Padding, flatten};
/// use csdfc_plan::operator::Function;
///
/// let mut b = Builder::new(1);
/// let image = b.input("image", [1, 3, 32, 32])?;
/// let same = ConvOptions { pads: Padding::Same, ..ConvOptions::default() };
/// let x = b.named("stem").conv(&image, 8, [5, 5], same)?;
/// let x = b.batch_norm(&x)?;
/// let x = b.activation(&x, Function::Relu)?;
/// let x = b.global_average_pool(&x)?;
/// let x = b.gemm(&flatten(&x), 10, true)?;
/// b.output("scores", &x)?;
/// let network = b.finish();
///
/// assert_eq!(network.parameters(), 3 * 8 * 25 + 2 * 8 + 8 * 10 + 10);
/// assert_eq!(network.layers[1].name, "stem");
/// assert_eq!(network.layers[2].name, "batch_norm1");
/// # Ok::<(), csdfc_input::builtin::BuilderError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Builder {
    network: Network,
    seed: u64,
    next_name: Option<String>,
    names: BTreeSet<String>,
    of_kind: BTreeMap<&'static str, usize>,
}

/// What a convolution does besides its filters. The default: stride 1, no padding, one group, no dilation, no bias.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvOptions {
    /// Stride in y and x.
    pub stride: [usize; 2],
    /// Zeros around the input.
    pub pads: Padding,
    /// Groups; the number of input channels for a depthwise convolution.
    pub groups: usize,
    /// Dilation in y and x.
    pub dilation: [usize; 2],
    /// Whether each filter has a bias.
    pub bias: bool,
}

impl Default for ConvOptions {
    fn default() -> Self {
        ConvOptions { stride: [1, 1], pads: Padding::Valid, groups: 1, dilation: [1, 1], bias: false }
    }
}

/// Rows and columns added around the input of a convolution or pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// None.
    Valid,
    /// TensorFlow's `SAME`: the output's size is the input's size divided by the stride, rounded up. If the padding is
    /// odd, the larger half goes to the bottom and the right.
    Same,
    /// So many on each of the four sides.
    Each(usize),
    /// `[top, left, bottom, right]`.
    Sides([usize; 4]),
}

/// The window of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolWindow {
    /// Height and width.
    pub kernel: [usize; 2],
    /// Stride in y and x.
    pub stride: [usize; 2],
    /// Padding. It never counts in a maximum, and it counts in a mean only if asked for.
    pub pads: Padding,
    /// Whether the output size is rounded up, so that the last window may hang over the edge.
    pub ceil: bool,
}

impl PoolWindow {
    /// A square window without padding, sizes rounded down.
    pub fn new(kernel: usize, stride: usize) -> Self {
        PoolWindow { kernel: [kernel; 2], stride: [stride; 2], pads: Padding::Valid, ceil: false }
    }

    /// The same window with other padding.
    #[must_use]
    pub fn pads(self, pads: Padding) -> Self {
        PoolWindow { pads, ..self }
    }

    /// The same window with sizes rounded up.
    #[must_use]
    pub fn ceil(self) -> Self {
        PoolWindow { ceil: true, ..self }
    }
}

/// Why a layer cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum BuilderError {
    /// The operator cannot take inputs of these shapes, or a tensor or parameter is too large.
    #[error("layer {layer}: {source}")]
    #[diagnostic(code(csdfc::builder::shape))]
    Shape {
        /// The layer.
        layer: String,
        /// What does not fit.
        source: ShapeError,
    },
    /// The name is taken.
    #[error("two layers or two outputs called {name:?}")]
    #[diagnostic(code(csdfc::builder::name))]
    Name {
        /// The name.
        name: String,
    },
    /// A tensor that is not of this builder.
    #[error("layer {layer}: an input that this builder has not made")]
    #[diagnostic(code(csdfc::builder::foreign))]
    Foreign {
        /// The layer.
        layer: String,
    },
}

impl Builder {
    /// An empty network whose weights are drawn from this seed.
    pub fn new(seed: u64) -> Self {
        Builder {
            network: Network::default(),
            seed,
            next_name: None,
            names: BTreeSet::new(),
            of_kind: BTreeMap::new(),
        }
    }

    /// Names the layer that is added next.
    pub fn named(&mut self, name: impl Into<String>) -> &mut Self {
        self.next_name = Some(name.into());
        self
    }

    /// A network input of this shape, fp32.
    ///
    /// # Errors
    /// When the name is taken or the shape is too large.
    pub fn input(&mut self, name: &str, shape: impl Into<Vec<usize>>) -> Result<Operand, BuilderError> {
        self.named(name);
        let name = self.take_name("input")?;
        let operator = Operator::Input(Input { element: InputElement::F32, camera: None });
        self.push(name, operator, Vec::new(), Shape::new(shape))
    }

    /// A convolution of `[1, C, H, W]`.
    ///
    /// # Errors
    /// When the input is not an image or the kernel does not fit it, or the groups do not divide the channels.
    pub fn conv(
        &mut self,
        x: &Operand,
        filters: usize,
        kernel: [usize; 2],
        options: ConvOptions,
    ) -> Result<Operand, BuilderError> {
        let ConvOptions { stride, pads, groups, dilation, bias } = options;
        let pads = pads.resolve(&x.shape, kernel, stride, dilation);
        let conv = Conv {
            filters,
            kernel,
            stride,
            dilation,
            pads,
            groups,
            bias,
            pre: None,
            residual: false,
            activation: None,
        };
        self.add_layer(Operator::Conv(conv), &[x])
    }

    /// A transposed convolution of `[1, C, H, W]` with a bias, whose kernel of `block` by `block` makes a square of pixels of
    /// each pixel: `[1, filters, block · H, block · W]`.
    ///
    /// # Errors
    /// When the input is not an image.
    pub fn upscale(&mut self, x: &Operand, filters: usize, block: usize) -> Result<Operand, BuilderError> {
        let conv = ConvTranspose {
            filters,
            kernel: [block; 2],
            stride: [block; 2],
            dilation: [1; 2],
            pads: [0; 4],
            output_padding: [0; 2],
            groups: 1,
            bias: true,
            activation: None,
        };
        self.add_layer(Operator::ConvTranspose(conv), &[x])
    }

    /// Batch norm at inference: a scale near 1 and a small shift for each channel.
    ///
    /// # Errors
    /// When the input is a scalar.
    pub fn batch_norm(&mut self, x: &Operand) -> Result<Operand, BuilderError> {
        let channels = x.shape.channels();
        self.add_layer(Operator::BatchNorm(BatchNorm { channels, activation: None }), &[x])
    }

    /// A function of each element. The slopes of a PRelu lie around 0.25.
    ///
    /// # Errors
    /// When the slope of a PRelu does not broadcast to the input.
    pub fn activation(&mut self, x: &Operand, function: Function) -> Result<Operand, BuilderError> {
        self.add_layer(Operator::ElementWise(ElementWise { function }), &[x])
    }

    /// Max pooling.
    ///
    /// # Errors
    /// When the input is not an image or the window does not fit it.
    pub fn max_pool(&mut self, x: &Operand, window: PoolWindow) -> Result<Operand, BuilderError> {
        self.pool(x, PoolKind::Max, window)
    }

    /// Average pooling; `count_include_pad` says whether padding counts in the divisor.
    ///
    /// # Errors
    /// When the input is not an image or the window does not fit it.
    pub fn average_pool(
        &mut self,
        x: &Operand,
        window: PoolWindow,
        count_include_pad: bool,
    ) -> Result<Operand, BuilderError> {
        self.pool(x, PoolKind::Average { count_include_pad }, window)
    }

    /// The mean of each channel, `[1, C, H, W]` → `[1, C, 1, 1]`.
    ///
    /// # Errors
    /// When the input has no height and width.
    pub fn global_average_pool(&mut self, x: &Operand) -> Result<Operand, BuilderError> {
        let reduce = Reduce { function: ReduceFunction::Mean, axes: vec![2, 3], keep_dims: true };
        self.add_layer(Operator::Reduce(reduce), &[x])
    }

    /// Fully connected on the last dimension. See [`flatten`].
    ///
    /// # Errors
    /// When the input is a scalar.
    pub fn gemm(&mut self, x: &Operand, units: usize, bias: bool) -> Result<Operand, BuilderError> {
        let inner = x.shape.dims.last().copied().unwrap_or(1);
        let gemm = Gemm { inner, units, transposed: true, bias, activation: None };
        self.add_layer(Operator::Gemm(gemm), &[x])
    }

    /// The sum, with broadcasting.
    ///
    /// # Errors
    /// When the shapes do not broadcast.
    pub fn add(&mut self, a: &Operand, b: &Operand) -> Result<Operand, BuilderError> {
        self.binary(BinaryFunction::Add, a, b)
    }

    /// The difference, with broadcasting.
    ///
    /// # Errors
    /// When the shapes do not broadcast.
    pub fn sub(&mut self, a: &Operand, b: &Operand) -> Result<Operand, BuilderError> {
        self.binary(BinaryFunction::Sub, a, b)
    }

    /// The product, with broadcasting.
    ///
    /// # Errors
    /// When the shapes do not broadcast.
    pub fn mul(&mut self, a: &Operand, b: &Operand) -> Result<Operand, BuilderError> {
        self.binary(BinaryFunction::Mul, a, b)
    }

    /// Concatenation along the channels.
    ///
    /// # Errors
    /// When there is no input, or they differ in another dimension.
    pub fn concat(&mut self, inputs: &[&Operand]) -> Result<Operand, BuilderError> {
        self.add_layer(Operator::Concat(Concat { axis: 1 }), inputs)
    }

    /// Pixels of `block²` times fewer channels: the channels of a pixel become a square of `block` by `block` pixels, as in
    /// PyTorch's `pixel_shuffle` (ONNX: depth to space, mode CRD).
    ///
    /// # Errors
    /// When the input is not an image, or its channels are no multiple of `block²`.
    pub fn pixel_shuffle(&mut self, x: &Operand, block: usize) -> Result<Operand, BuilderError> {
        self.add_layer(Operator::DepthToSpace(DepthToSpace { block, depth_first: false }), &[x])
    }

    /// Softmax over the last dimension.
    ///
    /// # Errors
    /// When the input is a scalar.
    pub fn softmax(&mut self, x: &Operand) -> Result<Operand, BuilderError> {
        let axis = x.shape.rank().saturating_sub(1);
        self.add_layer(Operator::Softmax(Softmax { axes: vec![axis], log: false }), &[x])
    }

    /// Local response normalisation over `size` channels.
    ///
    /// # Errors
    /// When the input is not an image.
    pub fn lrn(&mut self, x: &Operand, lrn: Lrn) -> Result<Operand, BuilderError> {
        self.add_layer(Operator::Lrn(lrn), &[x])
    }

    /// Makes the tensor an output of the network, by this name.
    ///
    /// # Errors
    /// When another output has that name.
    pub fn output(&mut self, name: &str, x: &Operand) -> Result<(), BuilderError> {
        if self.network.outputs.iter().any(|output| output.name == name) {
            return Err(BuilderError::Name { name: name.into() });
        }
        self.check_made_here(name, x)?;
        self.network.outputs.push(NetworkOutput::new(name, x.clone()));
        Ok(())
    }

    /// Returns the network. The caller has to give it an output, since a network without one computes nothing.
    pub fn finish(self) -> Network {
        self.network
    }

    fn pool(&mut self, x: &Operand, kind: PoolKind, window: PoolWindow) -> Result<Operand, BuilderError> {
        let PoolWindow { kernel, stride, pads, ceil } = window;
        let dilation = [1, 1];
        let pads = pads.resolve(&x.shape, kernel, stride, dilation);
        self.add_layer(Operator::Pool(Pool { kind, kernel, stride, dilation, pads, ceil }), &[x])
    }

    fn binary(
        &mut self,
        function: BinaryFunction,
        a: &Operand,
        b: &Operand,
    ) -> Result<Operand, BuilderError> {
        let binary = Binary { function, constant: None, activation: None };
        self.add_layer(Operator::Binary(binary), &[a, b])
    }

    /// Adds a layer and infers its shape.
    fn add_layer(&mut self, operator: Operator, inputs: &[&Operand]) -> Result<Operand, BuilderError> {
        let name = self.take_name(operator.kind())?;
        for input in inputs {
            self.check_made_here(&name, input)?;
        }
        let inputs: Vec<Operand> = inputs.iter().map(|&input| input.clone()).collect();
        let shapes: Vec<Shape> = inputs.iter().map(|input| input.shape.clone()).collect();
        let shape = output_shape(&operator, &shapes)
            .map_err(|source| BuilderError::Shape { layer: name.clone(), source })?;
        self.push(name, operator, inputs, shape)
    }

    /// Adds a layer and draws its parameters.
    fn push(
        &mut self,
        name: String,
        operator: Operator,
        inputs: Vec<Operand>,
        shape: Shape,
    ) -> Result<Operand, BuilderError> {
        let shapes: Vec<Shape> = inputs.iter().map(|input| input.shape.clone()).collect();
        let dims = parameter_dims(&operator, &shapes);
        for tensor in dims.iter().cloned().map(Shape::new).chain([shape.clone()]) {
            check_size(&tensor).map_err(|source| BuilderError::Shape { layer: name.clone(), source })?;
        }
        let parameters = (0..)
            .zip(dims)
            .map(|(slot, dims)| {
                let (centre, bound) = distribution(&operator, slot, &dims);
                let seed = parameter_seed(self.seed, self.network.layers.len() as u64, slot);
                Weights { dims, source: WeightSource::Seeded { seed, bound, centre }, scale: None }
            })
            .collect();
        self.names.insert(name.clone());
        let layer = self.network.add(Layer {
            output: name.clone(),
            name,
            onnx_nodes: Vec::new(),
            operator,
            inputs,
            parameters,
            shape: shape.clone(),
            primitive: None,
            quantization: None,
        });
        Ok(Operand { layer, shape })
    }

    /// The name given to the next layer, or one after its kind.
    fn take_name(&mut self, kind: &'static str) -> Result<String, BuilderError> {
        if let Some(name) = self.next_name.take() {
            return if self.names.contains(&name) { Err(BuilderError::Name { name }) } else { Ok(name) };
        }
        let number = self.of_kind.entry(kind).or_default();
        loop {
            *number += 1;
            let name = format!("{kind}{number}");
            if !self.names.contains(&name) {
                return Ok(name);
            }
        }
    }

    /// Checks that this builder made the tensor, and that the tensor can be seen in this shape.
    fn check_made_here(&self, layer: &str, x: &Operand) -> Result<(), BuilderError> {
        let LayerId(index) = x.layer;
        match self.network.layers.get(index) {
            Some(made) if elements(&made.shape) == elements(&x.shape) => Ok(()),
            _ => Err(BuilderError::Foreign { layer: layer.into() }),
        }
    }
}

/// The tensor seen as `[1, elements]`: a view, no layer. Channels vary slowest, as in ONNX.
pub fn flatten(x: &Operand) -> Operand {
    Operand { layer: x.layer, shape: Shape::new([1, elements(&x.shape)]) }
}

/// Elements of a shape that nobody has checked.
fn elements(shape: &Shape) -> usize {
    shape.dims.iter().fold(1, |product, &dim| product.saturating_mul(dim))
}

/// The seed of a layer's parameter. ChaCha scrambles neighbouring seeds, and the product keeps the seeds of different
/// networks apart.
fn parameter_seed(network: u64, layer: u64, slot: u64) -> u64 {
    network.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(layer << 8 | slot)
}

impl Padding {
    /// The padding `[top, left, bottom, right]` for this input. A stride of 0 or an input that is not an image yields
    /// zeros: shape inference then reports the mistake.
    fn resolve(
        self,
        input: &Shape,
        kernel: [usize; 2],
        stride: [usize; 2],
        dilation: [usize; 2],
    ) -> [usize; 4] {
        match self {
            Padding::Valid => [0; 4],
            Padding::Each(pad) => [pad; 4],
            Padding::Sides(pads) => pads,
            Padding::Same => {
                let Some(axis) = input.row_axis() else { return [0; 4] };
                let [top, bottom] = same_padding(input.dims[axis], kernel[0], stride[0], dilation[0]);
                let [left, right] = same_padding(input.dims[axis + 1], kernel[1], stride[1], dilation[1]);
                [top, left, bottom, right]
            }
        }
    }
}

/// TensorFlow's `SAME` along one dimension: padding before and after.
fn same_padding(size: usize, kernel: usize, stride: usize, dilation: usize) -> [usize; 2] {
    if stride == 0 {
        return [0, 0];
    }
    let reach = kernel.saturating_sub(1).saturating_mul(dilation).saturating_add(1);
    let last_start = (size.div_ceil(stride)).saturating_sub(1) * stride;
    let pad = last_start.saturating_add(reach).saturating_sub(size);
    [pad / 2, pad - pad / 2]
}

/// Centre and bound of the uniform distribution of an operator's parameter.
///
/// Filters and weights have He's variance 2 / fan-in ("Delving deep into rectifiers", 2015), so that signals neither
/// die nor explode through layers with rectifiers. Batch norms scale by about 1 and shift by little. Slopes of PRelu
/// lie around the usual 1/4.
fn distribution(operator: &Operator, slot: u64, dims: &[usize]) -> (f32, f32) {
    match (operator, slot) {
        (Operator::Conv(_) | Operator::Gemm(_), 0) => {
            let fan_in: usize = dims.iter().skip(1).product();
            (0.0, (6.0 / fan_in as f32).sqrt())
        }
        // Each output element is a sum over the input channels.
        (Operator::ConvTranspose(_), 0) => (0.0, (6.0 / dims[0] as f32).sqrt()),
        (Operator::BatchNorm(_), 0) => (1.0, 0.1),
        (Operator::ElementWise(_), _) => (0.25, 0.1),
        _ => (0.0, 0.1),
    }
}
