//! The methods that convolve a layer: csdfc's MEC, and csdfc's methods that MEC is compared with.

use csdfc_kernels::conv::lowered::{Lowered, PatchMatrix};
use csdfc_kernels::conv::mec::{Mec, Solution, T};
use csdfc_kernels::conv::mec_batch::MecBatch;
use csdfc_kernels::conv::winograd::Winograd;
use csdfc_kernels::rows::RowShape;
use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};

use super::layers::Layer;

/// A method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// im2col with the windows of a whole image, image by image.
    Im2col,
    /// Algorithm 2 with T = 100.
    Mec,
    /// Algorithm 2 with T = 0: solution B.
    MecB,
    /// MEC with L of a strip of rows.
    MecStrip,
    /// Winograd F(2×2, 3×3), all tiles of an image at once.
    WinogradWhole,
    /// The same by strips.
    WinogradStrip,
    /// A matrix product that reads the pixels where they lie.
    Indirect,
}

/// A method for a layer and a batch.
pub struct Convolution {
    kernel: Kernel,
    /// Floats of the workspace.
    pub workspace: usize,
    /// Biases and filters.
    pub packed: Vec<f32>,
}

enum Kernel {
    /// Image by image.
    Each(Box<dyn RowKernel>),
    Batch(MecBatch),
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 7] = [
        Method::Im2col,
        Method::Mec,
        Method::MecB,
        Method::MecStrip,
        Method::WinogradWhole,
        Method::WinogradStrip,
        Method::Indirect,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Method::Im2col => "im2col",
            Method::Mec => "MEC",
            Method::MecB => "MEC, B alone",
            Method::MecStrip => "MEC by strips",
            Method::WinogradWhole => "Winograd, whole",
            Method::WinogradStrip => "Winograd by strips",
            Method::Indirect => "indirect",
        }
    }

    /// The method, ready for a batch of images of this layer with these weights (`[filters, channels, kernel_y,
    /// kernel_x]`). There is none if the method is Winograd's and the layer's filters are not 3×3.
    pub fn convolution(self, layer: &Layer, images: usize, weights: &[f32]) -> Option<Convolution> {
        let scenario = layer.scenario();
        let (conv, all) = (scenario.conv, layer.output());
        let winograd = |is_whole| {
            let (input, output, layouts) = (scenario.input, scenario.output, scenario.layouts);
            Winograd { conv, input, output, layouts, tile: [2, 2], is_whole }
        };
        let mut packed = vec![0.0; scenario.packed_len()];
        let (kernel, workspace) = match self {
            Method::Im2col => {
                let im2row = Lowered { scenario, patches: PatchMatrix::Rows, strip: all };
                (Kernel::Each(Box::new(im2row)), im2row.workspace_len())
            }
            Method::Mec | Method::MecB => {
                let t = if self == Method::Mec { T } else { 0 };
                let mec = MecBatch::new(scenario, images, t);
                (Kernel::Batch(mec), mec.lowered_len())
            }
            Method::MecStrip => {
                let mec = Mec { scenario, solution: Solution::B, strip: scenario.strip() };
                (Kernel::Each(Box::new(mec)), mec.workspace_len())
            }
            Method::WinogradWhole | Method::WinogradStrip => {
                if conv.kernel != [3, 3] {
                    return None;
                }
                let winograd = winograd(self == Method::WinogradWhole);
                packed = vec![0.0; winograd.packed_len()];
                winograd.pack(weights, &[], &mut packed);
                (Kernel::Each(Box::new(winograd)), winograd.workspace_len())
            }
            Method::Indirect => {
                packed = vec![0.0; conv.packed_len()];
                conv.pack(weights, &[], &[], [&[]; 2], &mut packed);
                (Kernel::Each(Box::new(conv)), 0)
            }
        };
        if matches!(self, Method::Im2col | Method::Mec | Method::MecB | Method::MecStrip) {
            scenario.pack(weights, &[], &mut packed);
        }
        Some(Convolution { kernel, workspace, packed })
    }
}

impl Convolution {
    /// Floats of the filters as they are kept.
    pub fn kept(&self, layer: &Layer) -> usize {
        self.packed.len() - layer.filters
    }

    /// Convolves images (`[images, height, width, channels]`) of the layer and the batch for which the method was made.
    /// The workspace holds `self.workspace` floats.
    pub fn run(&self, isa: Isa, layer: &Layer, images: &[f32], workspace: &mut [f32], output: &mut [f32]) {
        let workspace = &mut workspace[..self.workspace];
        let kernel = match &self.kernel {
            Kernel::Batch(mec) => return mec.convolve(isa, images, &self.packed, workspace, output),
            Kernel::Each(kernel) => kernel,
        };
        let (size, made) = (layer.size, layer.output());
        let [shape, to] = [(size, layer.channels), (made, layer.filters)]
            .map(|(size, channels)| RowShape::dense(size, size, channels, size));
        let each = |shape: &RowShape| shape.height * shape.row_stride();
        for (image, output) in images.chunks_exact(each(&shape)).zip(output.chunks_exact_mut(each(&to))) {
            let context = &mut Context { isa, workers: None, workspace };
            let input = Rows { data: image.into(), shape };
            let output = &mut RowsMut { data: output.into(), shape: to };
            kernel.rows(context, 0..made, &[input], &[Rows::line(&self.packed)], output);
        }
    }
}
