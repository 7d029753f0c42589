
/// Bytes of the only region: all of the arena.
pub(crate) const REGION_BYTES: [usize; 1] = [crate::ARENA_BYTES];

/// The memory of the application: buffers and workspace, exactly [`crate::ARENA_BYTES`] of it.
///
/// A model borrows it for as long as the model lives. So no two models run in it at the same time, except those that
/// may. Its content between frames matters only to models that keep something from frame to frame.
#[repr(C, align(4))]
pub struct Arena {
    bytes: [u8; crate::ARENA_BYTES],
}

impl Arena {
    /// An arena, for a static or the stack.
    pub const fn new() -> Self {
        Arena { bytes: [0; crate::ARENA_BYTES] }
    }

    /// The ready static arena, the first time; nothing after that. A processor that cannot swap a flag at once, such as a
    /// Cortex-M0, has none.
    #[cfg(target_has_atomic = "8")]
    pub fn take() -> Option<&'static mut Arena> {
        // It begins at the start of a cache line, since a vector that lies in two lines takes twice as long.
        #[repr(align(64))]
        struct Ready(UnsafeCell<Arena>);
        // SAFETY: the flag below gives its content to one caller, once.
        unsafe impl Sync for Ready {}
        static READY: Ready = Ready(UnsafeCell::new(Arena::new()));
        static TAKEN: AtomicBool = AtomicBool::new(false);
        if TAKEN.swap(true, Ordering::AcqRel) {
            return None;
        }
        // SAFETY: the flag was not set before, so nobody else has a reference, and it stays set, so nobody else will.
        Some(unsafe { &mut *READY.0.get() })
    }

    fn starts(&mut self) -> [*mut u8; REGIONS] {
        [self.bytes.as_mut_ptr()]
    }
}

impl Default for Arena {
    fn default() -> Self {
        Arena::new()
    }
}
