//! Updates: new weights of the same plan, in place of the embedded ones, without a new crate.
//!
//! An update is what `csdfc emit PLAN --update FILE` writes: a header of [`HEADER_BYTES`], then the weights. It fits a crate
//! whose `PLAN_HASH` is in its header: that of the same network, planned in the same way by the same csdfc. Only the
//! values of its weights may be others. All else is in the code, and so are the checksums of weights that frames read
//! from a store: a change of those needs a new crate.
//!
//! A board has two slots for updates, in flash or as files. At start, [`newest`] finds the update to use. Without one, the
//! model has the embedded weights. So that a power cut does no harm, a new update is written in this order:
//!
//! 1. [`oldest`] says which slot to write, and this slot is erased.
//! 2. The weights are written: all bytes of the update from [`HEADER_BYTES`] on.
//! 3. The header is written when the weights have reached the slot.
//!
//! Until the whole header is there, the slot holds no update, and the other slot is as it was. An interrupted update is
//! written again from the first step. No model may use the slot that is written.

use crate::{PLAN_HASH, WEIGHT_BYTES};

/// Bytes before the weights. They are a multiple of the best alignment of weights.
pub const HEADER_BYTES: usize = 64;

/// What an update begins with.
const MAGIC: u64 = u64::from_le_bytes(*b"csdfc up");

/// New weights, which are whole and of this crate's plan.
#[derive(Debug, Clone, Copy)]
pub struct Update<'a> {
    number: u64,
    weights: &'a [u8],
}

/// Why bytes are no update for this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateError {
    /// They do not begin as an update does. A slot that was erased is such a one.
    Magic,
    /// The header is damaged, or was written in part.
    Header,
    /// The update is one of another plan.
    Plan,
    /// The weights end too early, or are of another length than this model's.
    Length,
    /// The weights do not begin at a multiple of 4 bytes; a multiple of 64 is best.
    Alignment,
    /// The weights are damaged, or were written in part.
    Weights,
}

impl core::fmt::Display for UpdateError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            UpdateError::Magic => "this is no update",
            UpdateError::Header => "the update's header is damaged",
            UpdateError::Plan => "the update is of another network or plan, which needs a new crate",
            UpdateError::Length => "the update's weights are of another length than this model's",
            UpdateError::Alignment => "the update's weights do not begin at a multiple of 4 bytes",
            UpdateError::Weights => "the update's weights are damaged",
        })
    }
}

impl core::error::Error for UpdateError {}

impl<'a> Update<'a> {
    /// The update at the beginning of these bytes. What follows it does not matter.
    ///
    /// # Errors
    /// When there is none that is whole and of this crate's plan.
    pub fn read(bytes: &'a [u8]) -> Result<Self, UpdateError> {
        let (header, weights) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(UpdateError::Magic)?;
        let word = |word| u64::from_le_bytes(core::array::from_fn(|byte| header[8 * word + byte]));
        let [magic, plan, number, length, hash_of_weights, _, _, hash_of_header] = core::array::from_fn(word);
        if magic != MAGIC {
            return Err(UpdateError::Magic);
        }
        if crate::hash::hash(&header[..HEADER_BYTES - 8]) != hash_of_header {
            return Err(UpdateError::Header);
        }
        if plan != PLAN_HASH {
            return Err(UpdateError::Plan);
        }
        let weights = weights.get(..WEIGHT_BYTES).ok_or(UpdateError::Length)?;
        if length != WEIGHT_BYTES as u64 {
            return Err(UpdateError::Length);
        }
        if !weights.as_ptr().cast::<f32>().is_aligned() {
            return Err(UpdateError::Alignment);
        }
        match crate::hash::hash(weights) == hash_of_weights {
            true => Ok(Update { number, weights }),
            false => Err(UpdateError::Weights),
        }
    }

    /// Its number. The higher, the newer.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its weights.
    pub(crate) fn weights(&self) -> &'a [u8] {
        self.weights
    }
}

/// The newest update in these slots, and the number of its slot. Of equals, it is the first.
pub fn newest<'a>(slots: &[&'a [u8]]) -> Option<(usize, Update<'a>)> {
    let slots = slots.iter().enumerate();
    let updates = slots.filter_map(|(slot, bytes)| Some((slot, Update::read(bytes).ok()?)));
    updates.reduce(|best, other| if other.1.number > best.1.number { other } else { best })
}

/// The slot to write a new update into: one that holds none, or else the older. It is never that of [`newest`].
pub fn oldest(slots: &[&[u8]; 2]) -> usize {
    match newest(slots) {
        Some((0, _)) => 1,
        _ => 0,
    }
}
