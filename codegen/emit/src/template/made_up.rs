//! Weights and inputs that replace the real ones. They are the same in each run.

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Weights.
pub struct Weights {
    bytes: Vec<u8>,
    start: usize,
}

impl Weights {
    /// This many bytes. Each is drawn at random from two values. In every format, the bytes make numbers of a medium
    /// size and of both signs: 0.01 to 0.02 as 32-bit floats, 1.1 as 16-bit floats, 60 and 68 as integers. Tiny floats
    /// would take longer.
    pub fn new(len: usize) -> Self {
        let mut state = 1u64;
        let mut next = || {
            // Steele and Vigna's SplitMix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            if (mixed ^ (mixed >> 27)) >> 63 == 0 { 0x3c } else { 0xbc }
        };
        let bytes: Vec<u8> = (0..len + LINE).map(|_| next()).collect();
        let start = bytes.as_ptr().align_offset(LINE).min(LINE);
        Weights { bytes, start }
    }

    /// All of them, from the start of a line of the cache on.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.bytes.len() - (LINE - self.start)]
    }
}

/// Some bytes.
fn some() -> impl Iterator<Item = u8> {
    (0usize..).map(|i| (i * 37 % 251) as u8)
}

/// An input of floats between -1 and 1.
pub fn floats<const N: usize>() -> Box<[f32; N]> {
    let mut room = room();
    room.iter_mut().zip(some()).for_each(|(to, byte)| *to = f32::from(byte) / 128.0 - 1.0);
    room
}

/// An input of bytes.
pub fn bytes<const N: usize>() -> Box<[u8; N]> {
    let mut room = room();
    room.iter_mut().zip(some()).for_each(|(to, byte)| *to = byte);
    room
}

/// An input of signed bytes.
pub fn integers<const N: usize>() -> Box<[i8; N]> {
    let mut room = room();
    room.iter_mut().zip(some()).for_each(|(to, byte)| *to = byte.cast_signed());
    room
}

/// Room for a frame of an input or an output.
///
/// # Panics
/// Never: the length is right.
pub fn room<T: Copy + Default, const N: usize>() -> Box<[T; N]> {
    let room: Result<Box<[T; N]>, _> = vec![T::default(); N].into_boxed_slice().try_into();
    room.unwrap_or_else(|_| unreachable!("it has N elements"))
}
