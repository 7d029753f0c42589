//! The packed parameters of a plan.
//!
//! A product of 84 inputs and 10 units, in a panel of 16:
//!
//! ```
//! use csdfc_plan::operator::{Gemm, Operator};
//! use csdfc_plan::shape::Shape;
//! use csdfc_runtime::bind::{Primitive, Site, bind};
//! use csdfc_runtime::weights::{Blob, packed_len};
//!
//! let gemm = Operator::Gemm(Gemm { inner: 84, units: 10, transposed: true, bias: true, activation: None });
//! let (x, y) = (Shape::new([1, 84]), Shape::new([1, 10]));
//! let call = bind(Primitive::new(&gemm, &[&x]), &Site::whole(&gemm, [(&x, &x)].into_iter(), &y))?;
//! // 84 weights and a bias for each unit, and 6 zeros.
//! assert_eq!(packed_len(&call), 4 * (10 * (84 + 1) + 6));
//! let mut blob = Blob::for_layers([&call].into_iter()).ok_or("no memory")?;
//! blob.push(&call, &|parameter| Ok(vec![0.5; [840, 10][parameter]].into()))?;
//! // Layers begin at the start of a cache line.
//! assert_eq!(blob.bytes() % 64, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::borrow::Cow;
use std::ops::Range;

use csdfc_kernels::half::F16;
use csdfc_kernels::span::SpanMut;

use crate::bind::{self, Call, Packing};
use crate::bytes::{Bytes, LINE};
use crate::error::{LayerError, ParameterError};
use csdfc_plan::check::CnnIndex;
use csdfc_plan::format::Element;

/// Values of one parameter tensor of a layer, asked for by its place among the layer's parameters.
pub type Values<'a> = dyn Fn(usize) -> Result<Cow<'a, [f32]>, ParameterError> + 'a;

/// The packed parameters of many layers, one after another.
#[derive(Debug)]
pub struct Blob {
    data: Bytes,
    /// Bytes of the layers that were pushed.
    used: usize,
}

impl Blob {
    /// Room for the parameters of these layers; `None` if there is no memory for them.
    pub fn for_layers<'c>(calls: impl Iterator<Item = &'c Call>) -> Option<Self> {
        let data = Bytes::zeros(calls.map(stored_len).sum())?;
        Some(Blob { data, used: 0 })
    }

    /// Bytes of all layers.
    pub fn bytes(&self) -> u64 {
        self.used as u64
    }

    /// Packs the parameters of one more layer, and returns where they are, in bytes. `values` gives the parameter of an
    /// index.
    ///
    /// # Errors
    /// When values cannot be read, or their number is wrong.
    pub fn push(&mut self, call: &Call, values: &Values<'_>) -> Result<Range<usize>, LayerError> {
        let start = self.used;
        self.used += stored_len(call);
        pack(call, values, &mut self.data[start..self.used])?;
        Ok(start..start + packed_len(call))
    }

    /// The packed parameters of a layer.
    pub fn layer_bytes(&self, layer: &Range<usize>) -> &[u8] {
        &self.data[layer.clone()]
    }
}

/// For each layer of a CNN, the one whose packed parameters it uses: itself, or the first of those with which it shares
/// them that is computed.
pub fn keepers(cnn: &CnnIndex<'_>, is_computed: impl Fn(usize) -> bool) -> Vec<usize> {
    let keeper = |l: usize| {
        let owner = cnn.layers[l].parameters_of?;
        let shares = |&other: &usize| other == owner || cnn.layers[other].parameters_of == Some(owner);
        (owner..l).filter(shares).find(|&other| is_computed(other))
    };
    (0..cnn.layers.len()).map(|l| keeper(l).unwrap_or(l)).collect()
}

/// Packs the parameters of a layer into [`stored_len`] bytes, which are zero at first and begin at the start of a cache
/// line. `values` gives the parameter of an index.
///
/// # Errors
/// When values cannot be read, or their number is wrong.
pub fn pack(call: &Call, values: &Values<'_>, packed: &mut [u8]) -> Result<(), LayerError> {
    for constant in &call.constants {
        let parameters: Vec<Cow<'_, [f32]>> =
            constant.parameters.clone().map(values).collect::<Result<_, _>>()?;
        let packed = &mut packed[constant.range.clone()];
        match (&constant.packing, call.elements()) {
            (Packing::Integers(integers), _) => integers.pack(&parameters, packed)?,
            (Packing::Scaled { panels, halves }, _) => {
                bind::pack_scaled(panels, *halves, &parameters, packed)?;
            }
            (Packing::Mixed(panels), _) => bind::pack_mixed(panels, &parameters, packed)?,
            (_, [Element::F16, _]) => {
                let mut wide = vec![0.0; constant.packing.len()];
                constant.packing.pack(&parameters, &mut wide)?;
                let narrow: &mut [F16] = SpanMut::of_bytes(packed).all();
                narrow.iter_mut().zip(wide).for_each(|(to, x)| *to = F16::from_f32(x));
            }
            _ => constant.packing.pack(&parameters, SpanMut::of_bytes(packed).all())?,
        }
    }
    Ok(())
}

/// The packed parameters of some output channels of a layer, in the form in which `tile`, the call that makes these
/// channels, reads them. `whole` are the packed parameters of the layer. `None` if the layer has no such channels.
pub fn tile(call: &Call, tile: &Call, whole: &[u8], filters: Range<usize>) -> Option<Vec<u8>> {
    let [channels, beside] = bind::packed(call, filters)?;
    let mut packed = vec![0; stored_len(tile)];
    let (channels, beside) = (whole.get(channels)?, whole.get(beside)?);
    let end = packed_len(tile);
    packed.get_mut(..channels.len())?.copy_from_slice(channels);
    packed.get_mut(end.checked_sub(beside.len())?..end)?.copy_from_slice(beside);
    Some(packed)
}

/// Bytes of a layer's packed parameters, rounded up to whole cache lines.
pub fn stored_len(call: &Call) -> usize {
    packed_len(call).next_multiple_of(LINE)
}

/// Bytes of a layer's packed parameters.
pub fn packed_len(call: &Call) -> usize {
    call.constants.last().map_or(0, |constant| constant.range.end)
}
