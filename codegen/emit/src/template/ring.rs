//! Rings of rows between the stages of a pipeline: which rows are written, and for which rows there is room.
//!
//! A ring has one stage that writes it and, for each stage that reads it, a [`Link`] of two counts of rows that run on
//! over frames: rows written, and rows released. One thread writes each count, and another reads it. A thread that has
//! to wait spins for a moment, then yields, then sleeps until the other stage wakes it. There is no lock.
#![allow(dead_code, reason = "without threads nothing is linked")]

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
#[cfg(feature = "std")]
use std::sync::OnceLock;
#[cfg(feature = "std")]
use std::thread::{self, Thread};

/// The stage at the other end is gone: it has no more frames, or it has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;

/// The counts by which two stages share a ring.
#[derive(Debug, Default)]
pub(crate) struct Link {
    written: Count,
    released: Count,
}

/// The end of a ring at which a stage writes.
pub(crate) struct Writer<'p> {
    link: Option<&'p Link>,
    /// Rows of a frame.
    rows: usize,
    /// Rows that may be written and not yet released.
    capacity: usize,
    /// Rows of the frames before.
    before: usize,
}

/// The end of a ring at which `N` layers of a stage read.
pub(crate) struct Reader<'p, const N: usize> {
    link: Option<&'p Link>,
    /// Rows of a frame.
    rows: usize,
    /// Rows of the frames before.
    before: usize,
    /// Rows of this frame that each layer has released.
    released: [usize; N],
}

impl<'p> Writer<'p> {
    /// An end of a ring of rows of frames of `rows` rows. Without a link nobody else runs, and nothing is waited for.
    pub const fn new(link: Option<&'p Link>, rows: usize, capacity: usize) -> Self {
        Writer { link, rows, capacity, before: 0 }
    }

    /// Waits until rows up to `end` of this frame have room.
    #[inline]
    pub fn room(&self, end: usize) -> Result<(), Closed> {
        let Some(link) = self.link else { return Ok(()) };
        // Counts run on and may wrap around, so only differences are compared.
        let end = self.before.wrapping_add(end);
        link.released.wait(|released| end.wrapping_sub(released) as isize <= self.capacity as isize)
    }

    /// Tells the readers that rows up to `end` of this frame are written.
    #[inline]
    pub fn publish(&self, end: usize) {
        if let Some(link) = self.link {
            link.written.set(self.before.wrapping_add(end));
        }
    }

    /// Goes on to the next frame.
    pub fn end_frame(&mut self) {
        self.before = self.before.wrapping_add(self.rows);
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        if let Some(link) = self.link {
            link.written.close();
        }
    }
}

impl<'p, const N: usize> Reader<'p, N> {
    /// An end of a ring of rows of frames of `rows` rows. Without a link nobody else runs, and nothing is waited for.
    pub const fn new(link: Option<&'p Link>, rows: usize) -> Self {
        Reader { link, rows, before: 0, released: [0; N] }
    }

    /// Waits until rows up to `need` of this frame are written.
    #[inline]
    pub fn arrived(&self, need: usize) -> Result<(), Closed> {
        let Some(link) = self.link else { return Ok(()) };
        let need = self.before.wrapping_add(need);
        link.written.wait(|written| written.wrapping_sub(need) as isize >= 0)
    }

    /// Records that a layer no longer needs the rows below `keep` of this frame.
    #[inline]
    pub fn release(&mut self, layer: usize, keep: usize) {
        self.released[layer] = keep;
        if let Some(link) = self.link {
            let released = self.released.into_iter().min().unwrap_or(0);
            link.released.set(self.before.wrapping_add(released));
        }
    }

    /// Goes on to the next frame.
    pub fn end_frame(&mut self) {
        self.before = self.before.wrapping_add(self.rows);
        self.released = [0; N];
    }
}

impl<const N: usize> Drop for Reader<'_, N> {
    fn drop(&mut self) {
        if let Some(link) = self.link {
            link.released.close();
        }
    }
}

/// A count of rows, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Count {
    rows: AtomicUsize,
    /// Whether it will not change any more.
    closed: AtomicBool,
    /// Whether the thread that waits for it sleeps, or is about to.
    asleep: AtomicBool,
    #[cfg(feature = "std")]
    waiter: OnceLock<Thread>,
}

/// How often a waiting thread looks at a count before it yields the processor, and then how often before it sleeps.
const SPINS: u32 = 100;
const YIELDS: u32 = 20;

impl Count {
    #[inline]
    fn set(&self, rows: usize) {
        // Either the waiter sees the new count before it sleeps, or this thread sees that the waiter sleeps: each side
        // writes one of the two and then reads the other, in the single order of all sequentially consistent
        // operations. Whoever sees the count also sees what was written to the ring before it.
        self.rows.store(rows, Ordering::SeqCst);
        self.wake();
    }

    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.wake();
    }

    #[inline]
    fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) {
            self.asleep.store(false, Ordering::SeqCst);
            #[cfg(feature = "std")]
            if let Some(waiter) = self.waiter.get() {
                waiter.unpark();
            }
        }
    }

    /// Waits until there are enough rows.
    #[inline]
    fn wait(&self, enough: impl Fn(usize) -> bool) -> Result<(), Closed> {
        if enough(self.rows.load(Ordering::Acquire)) { Ok(()) } else { self.wait_long(enough) }
    }

    #[cold]
    fn wait_long(&self, enough: impl Fn(usize) -> bool) -> Result<(), Closed> {
        let mut looks = 0;
        loop {
            // `closed` is read first: then all that was counted before the end was closed is seen.
            let closed = self.closed.load(Ordering::SeqCst);
            if enough(self.rows.load(Ordering::SeqCst)) {
                self.asleep.store(false, Ordering::SeqCst);
                return Ok(());
            }
            if closed {
                return Err(Closed);
            }
            looks += 1;
            self.pause(looks);
        }
    }

    #[cfg(feature = "std")]
    fn pause(&self, looks: u32) {
        if looks <= SPINS {
            core::hint::spin_loop();
        } else if looks <= SPINS + YIELDS {
            thread::yield_now();
        } else if !self.asleep.load(Ordering::SeqCst) {
            self.waiter.get_or_init(thread::current);
            // Look once more: the count may have changed before anybody could see this flag.
            self.asleep.store(true, Ordering::SeqCst);
        } else {
            thread::park();
        }
    }

    #[cfg(not(feature = "std"))]
    fn pause(&self, _: u32) {
        core::hint::spin_loop();
    }
}

/// Why a stage ended before its frames did.
#[cfg(feature = "std")]
pub type Failure = std::boxed::Box<dyn core::error::Error + Send + Sync>;

/// Why a pipeline ended before its frames did.
#[cfg(feature = "std")]
#[derive(Debug)]
pub enum PipelineError {
    /// A stage panicked.
    Panic {
        /// The stage.
        stage: &'static str,
        /// Its message.
        message: std::string::String,
    },
    /// A stage cannot go on: the store of its weights fails.
    Stage {
        /// The stage.
        stage: &'static str,
        /// Why.
        error: Failure,
    },
    /// A stage got no thread.
    Thread {
        /// The stage.
        stage: &'static str,
        /// Why.
        error: std::io::Error,
    },
}

#[cfg(feature = "std")]
impl core::fmt::Display for PipelineError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            PipelineError::Panic { stage, message } => write!(f, "stage `{stage}` panicked: {message}"),
            PipelineError::Stage { stage, error } => write!(f, "stage `{stage}` cannot go on: {error}"),
            PipelineError::Thread { stage, error } => write!(f, "stage `{stage}` has no thread: {error}"),
        }
    }
}

#[cfg(feature = "std")]
impl core::error::Error for PipelineError {}

/// Runs a stage to its end, and gives its panic as an error.
#[cfg(feature = "std")]
pub(crate) fn guarded(
    stage: &'static str,
    run: impl FnOnce() -> Result<usize, Failure>,
) -> Result<usize, PipelineError> {
    // Made before the first frame, so that no waiting allocates it.
    let _ = thread::current();
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).into());
        let message = text.or_else(|| payload.downcast_ref::<std::string::String>().cloned());
        PipelineError::Panic { stage, message: message.unwrap_or_else(|| "no message".into()) }
    })?;
    ran.map_err(|error| PipelineError::Stage { stage, error })
}

/// The result of a stage on a thread of its own.
#[cfg(feature = "std")]
pub(crate) type Spawned<'s> =
    Result<thread::ScopedJoinHandle<'s, Result<usize, PipelineError>>, PipelineError>;

/// Runs a stage on a thread of its own. If there is none, the stage is dropped, and its neighbours see that it is gone.
#[cfg(feature = "std")]
pub(crate) fn spawn<'s>(
    scope: &'s thread::Scope<'s, '_>,
    stage: &'static str,
    run: impl FnOnce() -> Result<usize, Failure> + Send + 's,
) -> Spawned<'s> {
    let thread = thread::Builder::new().name(stage.into());
    let spawned = thread.spawn_scoped(scope, move || guarded(stage, run));
    spawned.map_err(|error| PipelineError::Thread { stage, error })
}

/// Waits for the end of a stage.
#[cfg(feature = "std")]
pub(crate) fn join(spawned: Spawned<'_>) -> Result<usize, PipelineError> {
    // The stage's thread catches its panics.
    spawned?.join().unwrap_or(Ok(0))
}
