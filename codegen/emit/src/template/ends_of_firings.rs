//! The times at which firings ended.

use std::cell::RefCell;
use std::time::Instant;

thread_local! {
    /// The firings since a frame began: the layer of each, and the time at which it ended. Frames run on one thread.
    static ENDED: RefCell<Vec<(&'static str, Instant)>> = const { RefCell::new(Vec::new()) };
}

/// A firing under way. It ends when this is dropped.
pub(crate) struct Firing {
    layer: &'static str,
}

impl Firing {
    /// A firing of a layer begins.
    #[inline]
    pub(crate) fn begin(_processor: &'static str, _partition: &'static str, layer: &'static str) -> Self {
        Firing { layer }
    }
}

impl Drop for Firing {
    #[inline]
    fn drop(&mut self) {
        let now = Instant::now();
        ENDED.with_borrow_mut(|ended| ended.push((self.layer, now)));
    }
}

/// Runs a frame. For every firing, it calls `each` with the layer and the nanoseconds since the firing before it ended.
pub fn time(frame: &mut dyn FnMut(), mut each: impl FnMut(&'static str, f64)) {
    ENDED.with_borrow_mut(Vec::clear);
    let mut last = Instant::now();
    frame();
    ENDED.with_borrow(|ended| {
        for (layer, end) in ended {
            each(layer, (*end - last).as_nanos() as f64);
            last = *end;
        }
    });
}
