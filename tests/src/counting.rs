
/// Counts allocations: part of programs that tests write.
mod counting {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Counting;

    static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

    // SAFETY: every method does what the same method of the system's allocator does, with the same arguments.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
            // SAFETY: `System.alloc` asks for what `# Safety` of `GlobalAlloc::alloc` asks for: a layout of some size.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
            // SAFETY: `start` came from `System.alloc` with this very layout.
            unsafe { System.dealloc(start, layout) }
        }
    }

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    /// Allocations so far, by whomever.
    pub fn allocations() -> usize {
        ALLOCATIONS.load(Ordering::Relaxed)
    }
}
