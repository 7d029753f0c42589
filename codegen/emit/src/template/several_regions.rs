
/// The memory of an arena in one region of the board.
#[repr(C, align(8))]
pub struct Region<const BYTES: usize> {
    bytes: [u8; BYTES],
}

impl<const BYTES: usize> Region<BYTES> {
    /// Memory for a static. It need not stay zeros: an arena may begin with any bytes.
    pub const fn new() -> Self {
        Region { bytes: [0; BYTES] }
    }
}

impl<const BYTES: usize> Default for Region<BYTES> {
    fn default() -> Self {
        Region::new()
    }
}

/// A static for [`Arena::take`].
#[cfg(target_has_atomic = "8")]
struct Ready<T>(UnsafeCell<core::mem::MaybeUninit<T>>);

// SAFETY: `Arena::take` hands its content to one caller, once.
#[cfg(target_has_atomic = "8")]
unsafe impl<T: Send> Sync for Ready<T> {}

#[cfg(target_has_atomic = "8")]
impl<T> Ready<T> {
    const fn new() -> Self {
        Ready(UnsafeCell::new(core::mem::MaybeUninit::uninit()))
    }

    /// Its content, cleared: what starts a board may leave any bytes in sections that it does not know.
    ///
    /// # Safety
    /// Nobody else uses the content meanwhile.
    unsafe fn cleared(&self) -> *mut T {
        let content = self.0.get().cast::<T>();
        // SAFETY: the content is within the static, and nobody else uses it: `# Safety` of this function.
        unsafe { content.write_bytes(0, 1) };
        content
    }
}
