//! Primitives of convolutions that read and write several layouts. A family is one variant of a kernel, and has a
//! primitive for each pair of layouts.

use std::sync::LazyLock;

use csdfc_kernels::conv::Conv;
use csdfc_kernels::conv::direct::{Direct, LoopOrder};
use csdfc_kernels::conv::fft::{Fft1d, Spectra};
use csdfc_kernels::conv::fft2d::Fft2d;
use csdfc_kernels::conv::kn2::{Kn2Accumulate, Kn2Separate};
use csdfc_kernels::conv::lowered::{Lowered, PatchMatrix};
use csdfc_kernels::conv::mec::{self, Mec, Solution};
use csdfc_kernels::conv::pointwise::Pointwise;
use csdfc_kernels::conv::scenario::{Filters, Scenario};
use csdfc_kernels::conv::winograd::Winograd;
use csdfc_kernels::layout;

use csdfc_plan::format::Layout::{self, Chw, Hcw, Hwc};
use csdfc_plan::operator::{Function, Operator};
use csdfc_plan::shape::Shape;

use crate::error::LayerError;

use super::choice::Choice;
use super::constants::Packing;
use super::kernel::Site;
use super::layouts::rows;
use super::translate::activation;
use super::views::Input;

/// The largest error of a primitive of plain sums and products; see [`super::Primitive::error`].
pub(super) const ERROR: f64 = 1e-5;

/// A family: `<family>-<variant>`.
struct Family {
    name: &'static str,
    layouts: Pairs,
    filters: Filters,
    algorithm: Algorithm,
}

/// Pairs of a layout that is read and a layout that is written.
#[derive(Debug, Clone, Copy)]
enum Pairs {
    /// Each layout of the first list, read, with each layout of the second list, written.
    Each([&'static [Layout]; 2]),
    These(&'static [[Layout; 2]]),
}

impl Pairs {
    fn list(self) -> Vec<[Layout; 2]> {
        match self {
            Pairs::Each([reads, writes]) => {
                reads.iter().flat_map(|reads| writes.iter().map(|writes| [*reads, *writes])).collect()
            }
            Pairs::These(pairs) => pairs.to_vec(),
        }
    }
}

/// The algorithm that computes a scenario.
#[derive(Debug, Clone, Copy)]
enum Algorithm {
    Direct(LoopOrder),
    /// A patch matrix, of all or of a strip of rows.
    Lowered(PatchMatrix, Rows),
    Kn2Accumulate,
    Kn2Separate,
    Mec(Solution, Rows),
    Fft1d(Spectra),
    Fft2d(Spectra),
    Pointwise,
    /// Tiles of this many rows and columns, for filters of this many columns.
    Winograd {
        tile: [usize; 2],
        taps: usize,
    },
}

/// Rows of the output that are lowered at a time.
#[derive(Debug, Clone, Copy)]
enum Rows {
    All,
    Strip,
}

/// One primitive of a family.
pub(super) struct Member {
    pub name: String,
    pub layouts: [Layout; 2],
    filters: Filters,
    algorithm: Algorithm,
}

/// The most elements of biases, turns and spectra of filters, kept or made, of a convolution by spectra of planes. A
/// larger one would only take memory and time, since each channel of each filter has a spectrum of the image's size.
const MAX_SPECTRA: usize = 1 << 22;

const ANY: &[Layout] = &[Chw, Hcw, Hwc];
/// Layouts whose columns are contiguous.
const LINES: &[Layout] = &[Chw, Hcw];
const PLANES: &[Layout] = &[Chw];
const PIXELS: &[Layout] = &[Hwc];

/// Pairs of equal layouts; and the pairs for tiles that are transformed along both axes, which can also bring an image
/// from HWC into CHW or back.
const SAME: &[[Layout; 2]] = &[[Hwc, Hwc], [Chw, Chw], [Hcw, Hcw]];
const SAME_OR_TURNED: &[[Layout; 2]] = &[[Hwc, Hwc], [Chw, Chw], [Hcw, Hcw], [Chw, Hwc], [Hwc, Chw]];

const fn family(
    name: &'static str,
    layouts: [&'static [Layout]; 2],
    filters: Filters,
    algorithm: Algorithm,
) -> Family {
    Family { name, layouts: Pairs::Each(layouts), filters, algorithm }
}

/// Filters are handed over as planes, and kept transformed.
const fn winograd(name: &'static str, tile: [usize; 2], taps: usize) -> Family {
    let layouts = Pairs::These(if tile[0] == 1 { SAME } else { SAME_OR_TURNED });
    Family { name, layouts, filters: Filters::Planes, algorithm: Algorithm::Winograd { tile, taps } }
}

const FAMILIES: &[Family] = &[
    family("direct-sum2d", [PLANES, PLANES], Filters::Planes, Algorithm::Direct(LoopOrder::Sum2d)),
    family("direct-shift", [PLANES, PLANES], Filters::Planes, Algorithm::Direct(LoopOrder::Shift)),
    family("direct-row", [LINES, LINES], Filters::Planes, Algorithm::Direct(LoopOrder::Row)),
    family("direct-columns", [LINES, LINES], Filters::Planes, Algorithm::Direct(LoopOrder::Columns)),
    family("direct-filters", [ANY, ANY], Filters::Steps, Algorithm::Direct(LoopOrder::FilterTile)),
    family("direct-pixel", [ANY, PIXELS], Filters::Steps, Algorithm::Direct(LoopOrder::Pixel)),
    family("direct-dot", [PIXELS, ANY], Filters::Lines, Algorithm::Direct(LoopOrder::Dot)),
    family("im2col-lines", [ANY, LINES], Filters::Lines, Algorithm::Lowered(PatchMatrix::Columns, Rows::All)),
    family("im2col-steps", [ANY, ANY], Filters::Steps, Algorithm::Lowered(PatchMatrix::Columns, Rows::All)),
    family(
        "im2col-panels",
        [ANY, PIXELS],
        Filters::Panels,
        Algorithm::Lowered(PatchMatrix::Columns, Rows::All),
    ),
    family(
        "im2col-strip",
        [ANY, LINES],
        Filters::Lines,
        Algorithm::Lowered(PatchMatrix::Columns, Rows::Strip),
    ),
    family("im2row-steps", [ANY, PIXELS], Filters::Steps, Algorithm::Lowered(PatchMatrix::Rows, Rows::All)),
    family("im2row-panels", [ANY, PIXELS], Filters::Panels, Algorithm::Lowered(PatchMatrix::Rows, Rows::All)),
    // From HWC there is an older primitive, whose strips are single rows.
    family(
        "im2row-strip",
        [LINES, PIXELS],
        Filters::Panels,
        Algorithm::Lowered(PatchMatrix::Rows, Rows::Strip),
    ),
    family("kn2row-lines", [LINES, LINES], Filters::Lines, Algorithm::Kn2Accumulate),
    family("kn2row-steps", [LINES, LINES], Filters::Steps, Algorithm::Kn2Accumulate),
    family("kn2row-separate", [LINES, LINES], Filters::Taps, Algorithm::Kn2Separate),
    family("kn2col-steps", [ANY, PIXELS], Filters::Steps, Algorithm::Kn2Accumulate),
    family("kn2col-panels", [ANY, PIXELS], Filters::Panels, Algorithm::Kn2Accumulate),
    family("mec-a", [ANY, LINES], Filters::Panels, Algorithm::Mec(Solution::A, Rows::All)),
    family("mec-b", [ANY, ANY], Filters::Steps, Algorithm::Mec(Solution::B, Rows::All)),
    family("mec-strip", [ANY, ANY], Filters::Steps, Algorithm::Mec(Solution::B, Rows::Strip)),
    family("fft1d-kept", [ANY, ANY], Filters::Planes, Algorithm::Fft1d(Spectra::Kept)),
    family("fft1d-made", [ANY, ANY], Filters::Planes, Algorithm::Fft1d(Spectra::Made)),
    // An output in CHW is made at once, as the whole image is needed.
    family("fft2d-kept", [ANY, PLANES], Filters::Planes, Algorithm::Fft2d(Spectra::Kept)),
    family("fft2d-made", [ANY, PLANES], Filters::Planes, Algorithm::Fft2d(Spectra::Made)),
    family("pointwise-lines", [LINES, LINES], Filters::Lines, Algorithm::Pointwise),
    family("pointwise-steps", [LINES, LINES], Filters::Steps, Algorithm::Pointwise),
    family("pointwise-panels", [ANY, PIXELS], Filters::Panels, Algorithm::Pointwise),
    winograd("winograd-f2x2-3x3", [2, 2], 3),
    winograd("winograd-f4x4-3x3", [4, 4], 3),
    winograd("winograd-f6x6-3x3", [6, 6], 3),
    winograd("winograd-f2x2-5x5", [2, 2], 5),
    winograd("winograd-f2-3", [1, 2], 3),
    winograd("winograd-f4-3", [1, 4], 3),
    winograd("winograd-f2-5", [1, 2], 5),
];

static MEMBERS: LazyLock<Vec<Member>> = LazyLock::new(|| {
    let members = |family: &Family| {
        let Family { name, layouts, filters, algorithm } = *family;
        let member = move |layouts: [Layout; 2]| {
            let [reads, writes] = layouts.map(|layout| layout.to_string().to_lowercase());
            Member { name: format!("{name}-{reads}-{writes}"), layouts, filters, algorithm }
        };
        layouts.list().into_iter().map(member)
    };
    FAMILIES.iter().flat_map(members).collect()
});

/// All members of all families.
pub(super) fn members() -> &'static [Member] {
    &MEMBERS
}

impl Member {
    /// The scenario of a layer with this operator and these operands, as seen, if kernels of this family can compute it.
    fn scenario(&self, operator: &Operator, inputs: &[&Shape]) -> Option<(Scenario, bool)> {
        let (Operator::Conv(conv), [x]) = (operator, inputs) else { return None };
        let has_slopes = matches!(conv.activation, Some(Function::PRelu { .. }));
        if conv.groups != 1 || conv.pre.is_some() || conv.residual || has_slopes || !x.is_image() {
            return None;
        }
        let (kernel, stride, dilation, pads) = (conv.kernel, conv.stride, conv.dilation, conv.pads);
        let input = [x.rows(), x.dims[x.column_axis()?]];
        let made = |axis: usize| {
            let reach = (kernel[axis].checked_sub(1)?).checked_mul(dilation[axis])?.checked_add(1)?;
            let padded = input[axis].checked_add(pads[axis])?.checked_add(pads[axis + 2])?;
            Some(padded.checked_sub(reach)?.checked_div(stride[axis])? + 1)
        };
        let output = [made(0)?, made(1)?];
        let kernel = Conv {
            channels: x.channels(),
            filters: conv.filters,
            kernel,
            stride,
            dilation,
            pads,
            groups: 1,
            pre: None,
            residual: false,
            activation: activation(conv.activation.as_ref()),
        };
        let layouts = self.layouts.map(kernel_layout);
        Some((Scenario { conv: kernel, input, output, layouts, filters: self.filters }, conv.bias))
    }

    /// Whether it computes an operator of these operands, as seen.
    pub fn computes(&self, operator: &Operator, inputs: &[&Shape]) -> bool {
        let Some((scenario, _)) = self.scenario(operator, inputs) else { return false };
        let Conv { kernel, stride, dilation, pads, .. } = scenario.conv;
        match self.algorithm {
            Algorithm::Direct(_) | Algorithm::Lowered(..) | Algorithm::Fft1d(_) => true,
            Algorithm::Fft2d(_) => Fft2d { scenario, spectra: Spectra::Kept }.packed_len() <= MAX_SPECTRA,
            Algorithm::Kn2Accumulate | Algorithm::Kn2Separate => stride == [1, 1],
            Algorithm::Mec(Solution::A, rows) => {
                dilation[0] == 1 && mec(scenario, Solution::A, rows).suits_a(mec::T)
            }
            Algorithm::Mec(Solution::B, _) => dilation[0] == 1,
            Algorithm::Pointwise => [kernel, stride] == [[1, 1]; 2] && pads == [0; 4],
            Algorithm::Winograd { tile, taps } => {
                let is_dense = [stride, dilation] == [[1, 1]; 2];
                is_dense && kernel[1] == taps && Winograd::is_known(tile, kernel)
            }
        }
    }

    /// See `Primitive::error`.
    pub fn error(&self) -> f64 {
        match self.algorithm {
            Algorithm::Winograd { tile: [6, _], .. } => 1e-3,
            Algorithm::Winograd { tile: [_, 4], .. } | Algorithm::Winograd { tile: [2, _], taps: 5 } => 1e-4,
            Algorithm::Winograd { .. } => 2e-5,
            _ => ERROR,
        }
    }

    /// Elements of workspace for operands as seen.
    pub fn workspace_len(&self, operator: &Operator, inputs: &[&Shape]) -> usize {
        let Some((scenario, _)) = self.scenario(operator, inputs) else { return 0 };
        match self.algorithm {
            Algorithm::Direct(_) | Algorithm::Kn2Accumulate | Algorithm::Pointwise => 0,
            Algorithm::Lowered(patches, rows) => lowered(scenario, patches, rows).workspace_len(),
            Algorithm::Kn2Separate => Kn2Separate { scenario }.workspace_len(),
            Algorithm::Mec(solution, rows) => mec(scenario, solution, rows).workspace_len(),
            Algorithm::Fft1d(spectra) => Fft1d { scenario, spectra }.workspace_len(),
            Algorithm::Fft2d(spectra) => Fft2d { scenario, spectra }.workspace_len(),
            Algorithm::Winograd { tile, .. } => tiled(scenario, tile).workspace_len(),
        }
    }

    /// Elements that it keeps of the parameters, for operands as seen.
    pub fn stored_len(&self, operator: &Operator, inputs: &[&Shape]) -> usize {
        self.scenario(operator, inputs).map_or(0, |(scenario, bias)| self.packing(scenario, bias).len())
    }

    /// How the parameters are packed.
    fn packing(&self, scenario: Scenario, bias: bool) -> Packing {
        match self.algorithm {
            Algorithm::Fft1d(spectra) => Packing::Fft1d { fft: Fft1d { scenario, spectra }, bias },
            Algorithm::Fft2d(spectra) => Packing::Fft2d { fft: Fft2d { scenario, spectra }, bias },
            Algorithm::Winograd { tile, .. } => Packing::Winograd { winograd: tiled(scenario, tile), bias },
            _ => Packing::Scenario { scenario, bias },
        }
    }

    pub fn kernel(&self, site: &Site<'_>) -> Result<Choice, LayerError> {
        let [x] = site.inputs.as_slice() else { return site.unsupported() };
        let input = match x.layout {
            Hwc => x.image(),
            layout => rows(x.own, layout, x.ring_rows).filter(|_| x.own == x.seen).map(Input::whole),
        };
        let output = rows(site.output, site.layout, site.ring_rows);
        let scenario = self.scenario(site.operator, &[x.seen]);
        let (Some(input), Some(output), Some((scenario, bias))) = (input, output, scenario) else {
            return site.unsupported();
        };
        if [x.layout, site.layout] != self.layouts {
            return site.unsupported();
        }
        let inputs = vec![input];
        let choice = match self.algorithm {
            Algorithm::Direct(order) => Choice::by_f32_rows(Direct { scenario, order }, inputs, output),
            Algorithm::Lowered(patches, rows) => {
                Choice::by_f32_rows(lowered(scenario, patches, rows), inputs, output)
            }
            Algorithm::Kn2Accumulate => Choice::by_f32_rows(Kn2Accumulate { scenario }, inputs, output),
            Algorithm::Kn2Separate => Choice::by_f32_rows(Kn2Separate { scenario }, inputs, output),
            Algorithm::Mec(solution, rows) => {
                Choice::by_f32_rows(mec(scenario, solution, rows), inputs, output)
            }
            Algorithm::Fft1d(spectra) => Choice::by_f32_rows(Fft1d { scenario, spectra }, inputs, output),
            Algorithm::Fft2d(spectra) => Choice::by_f32_rows(Fft2d { scenario, spectra }, inputs, output),
            Algorithm::Pointwise => Choice::by_f32_rows(Pointwise { scenario }, inputs, output),
            Algorithm::Winograd { tile, .. } => Choice::by_f32_rows(tiled(scenario, tile), inputs, output),
        };
        Ok(choice.with_packing(self.packing(scenario, bias), 0..1 + usize::from(bias)))
    }
}

fn lowered(scenario: Scenario, patches: PatchMatrix, rows: Rows) -> Lowered {
    Lowered { scenario, patches, strip: rows.count(&scenario) }
}

fn mec(scenario: Scenario, solution: Solution, rows: Rows) -> Mec {
    Mec { scenario, solution, strip: rows.count(&scenario) }
}

fn tiled(scenario: Scenario, tile: [usize; 2]) -> Winograd {
    let Scenario { conv, input, output, layouts, .. } = scenario;
    Winograd { conv, input, output, layouts, tile, is_whole: false }
}

impl Rows {
    /// Their number.
    fn count(self, scenario: &Scenario) -> usize {
        match self {
            Rows::All => scenario.output[0],
            Rows::Strip => scenario.strip(),
        }
    }
}

/// A layout as kernels take it.
fn kernel_layout(layout: Layout) -> layout::Layout {
    match layout {
        Chw => layout::Layout::Chw,
        Hcw => layout::Layout::Hcw,
        Hwc => layout::Layout::Hwc,
    }
}
