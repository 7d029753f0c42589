//! Workers that share one firing.
//!
//! A firing is cut into pieces. Each worker, including the caller, has a share of them: the pieces at the places where
//! its share lay in the layer before, so that its cache has the data that they read. A worker that is done with its own
//! share takes pieces from the ends of other shares.
//!
//! ```text
//! pieces      0 1 2 3 | 4 5 6 7
//! worker 0    → → →               its own
//! worker 1                → → →   its own, and then 3, if nobody has begun it
//! ```
//!
//! A thread that comes late finds nothing left, and nobody waits for it. So on a busy machine, a frame takes no longer
//! than with the caller alone, except for the pieces that others have begun. Nothing is allocated once the threads
//! exist. Without feature `std` there is only one worker, the caller, whatever number is asked for.
//!
//! # Example
//!
//! ```
//! use core::sync::atomic::{AtomicUsize, Ordering};
//!
//! use csdfc_kernels::workers::Workers;
//!
//! let sum = AtomicUsize::new(0);
//! Workers::new(2).deal(5, &|_, piece| {
//!     sum.fetch_add(piece, Ordering::Relaxed);
//! });
//! assert_eq!(sum.into_inner(), 10);
//! ```
#![allow(unsafe_code, reason = "threads borrow what their caller waits for; each block says why it is sound")]

#[cfg(feature = "std")]
extern crate std;

/// The caller and the threads that work for it.
#[derive(Debug, Default)]
pub struct Workers {
    #[cfg(feature = "std")]
    pool: Option<std::boxed::Box<pool::ThreadPool>>,
}

impl Workers {
    /// `count` workers, the caller among them; fewer where there are no more threads.
    pub fn new(count: usize) -> Self {
        #[cfg(feature = "std")]
        return Workers { pool: (count > 1).then(|| std::boxed::Box::new(pool::ThreadPool::new(count - 1))) };
        #[cfg(not(feature = "std"))]
        {
            let _ = count;
            Workers {}
        }
    }

    /// How many there are, the caller among them.
    pub fn count(&self) -> usize {
        #[cfg(feature = "std")]
        return 1 + self.pool.as_ref().map_or(0, |pool| pool.threads());
        #[cfg(not(feature = "std"))]
        1
    }

    /// Does `job(worker, piece)` once for each of so many pieces, those of different workers at the same time, and waits
    /// for all. Which worker takes a piece is a matter of chance.
    ///
    /// # Panics
    /// If one of them does.
    pub fn deal(&mut self, pieces: usize, job: &(dyn Fn(usize, usize) + Sync)) {
        #[cfg(feature = "std")]
        if let Some(pool) = &mut self.pool {
            return pool.deal(pieces, job);
        }
        (0..pieces).for_each(|piece| job(0, piece));
    }
}

#[cfg(feature = "std")]
mod pool {
    use super::std;

    use core::cell::UnsafeCell;
    use core::ops::Range;
    use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    use std::boxed::Box;
    use std::sync::{Arc, OnceLock};
    use std::thread::{self, JoinHandle, Thread};
    use std::vec::Vec;

    /// What is to be done.
    #[derive(Clone)]
    struct Job {
        /// Called with worker and piece; it lives as long as a piece is not done.
        call: *const (dyn Fn(usize, usize) + Sync),
        /// Who waits for it.
        caller: Thread,
    }

    /// Threads that wait for work.
    #[derive(Debug)]
    pub struct ThreadPool {
        common: Arc<Common>,
        threads: Vec<JoinHandle<()>>,
    }

    struct Common {
        /// Written by the caller while no piece is left or undone. Read by who has taken a piece, until it is done.
        job: UnsafeCell<Option<Job>>,
        /// The pieces of each worker, the caller's last.
        shares: Box<[Share]>,
        /// Pieces that are not done; before the first job, threads that do not work yet.
        undone: AtomicUsize,
        panicked: AtomicBool,
        over: AtomicBool,
        /// Whether the caller sleeps, or is about to.
        asleep: AtomicBool,
        /// One for each thread.
        parkers: Box<[Parker]>,
    }

    /// Those pieces of a worker that nobody has taken: the first, the end, and the number of the job. With that, a thread
    /// that has seen pieces of a job cannot take them for those of a later one.
    #[derive(Debug, Default)]
    #[repr(align(64))]
    struct Share(AtomicU64);

    impl Share {
        fn give(&self, pieces: Range<usize>) {
            let job = (self.0.load(Ordering::SeqCst) >> 32).wrapping_add(1);
            self.0.store(job << 32 | (pieces.start as u64) << 16 | pieces.end as u64, Ordering::SeqCst);
        }

        fn range(word: u64) -> Range<u64> {
            word >> 16 & MAX..word & MAX
        }

        fn is_empty(&self) -> bool {
            Share::range(self.0.load(Ordering::SeqCst)).is_empty()
        }

        fn take_first(&self) -> Option<usize> {
            let take = |word| (!Share::range(word).is_empty()).then(|| word + (1 << 16));
            let word = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).ok()?;
            Some(Share::range(word).start as usize)
        }

        fn take_last(&self) -> Option<usize> {
            let take = |word| (!Share::range(word).is_empty()).then(|| word - 1);
            let word = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).ok()?;
            Some(Share::range(word).end as usize - 1)
        }
    }

    /// The most pieces of a job.
    const MAX: u64 = u16::MAX as u64;

    /// Where somebody waits.
    #[derive(Debug, Default)]
    #[repr(align(64))]
    struct Parker {
        asleep: AtomicBool,
        thread: OnceLock<Thread>,
    }

    // SAFETY: only `job` is not `Send` by itself. It is written and read as it says, never both at the same time, and
    // its call is `Sync`, so any thread may make it.
    unsafe impl Send for Common {}
    // SAFETY: only `job` is not `Sync` by itself. It is read only by who has taken a piece, which the caller gave out
    // after it had written the job, and is written again only when no piece is undone.
    unsafe impl Sync for Common {}

    /// Looks at a condition before the processor is given to another thread, and before sleep.
    const SPINS: u32 = 2000;
    const YIELDS: u32 = 20;

    /// Waits until it is so. Either the condition is seen before sleep, or the sleeper by who makes it true: each
    /// writes one and reads the other in the one order of all sequentially consistent operations.
    fn wait(asleep: &AtomicBool, until: impl Fn() -> bool) {
        let mut looks = 0;
        while !until() {
            looks += 1;
            if looks <= SPINS {
                core::hint::spin_loop();
            } else if looks <= SPINS + YIELDS {
                thread::yield_now();
            } else if asleep.swap(true, Ordering::SeqCst) {
                thread::park();
            }
        }
        asleep.store(false, Ordering::SeqCst);
    }

    impl Parker {
        fn wake(&self) {
            if self.asleep.swap(false, Ordering::SeqCst)
                && let Some(thread) = self.thread.get()
            {
                thread.unpark();
            }
        }
    }

    impl ThreadPool {
        pub fn new(threads: usize) -> Self {
            let common = Arc::new(Common {
                job: UnsafeCell::new(None),
                shares: (0..=threads).map(|_| Share::default()).collect(),
                undone: AtomicUsize::new(threads),
                panicked: AtomicBool::new(false),
                over: AtomicBool::new(false),
                asleep: AtomicBool::new(false),
                parkers: (0..threads).map(|_| Parker::default()).collect(),
            });
            let spawn = |number: usize| {
                let common = common.clone();
                thread::Builder::new().name("worker".into()).spawn(move || common.work(number)).ok()
            };
            let spawned: Vec<JoinHandle<()>> = (0..threads).map_while(spawn).collect();
            common.undone.fetch_sub(threads - spawned.len(), Ordering::SeqCst);
            // What threads allocate, they do before their work begins.
            while common.undone.load(Ordering::SeqCst) > 0 {
                thread::yield_now();
            }
            ThreadPool { common, threads: spawned }
        }

        pub fn threads(&self) -> usize {
            self.threads.len()
        }

        pub fn deal(&mut self, pieces: usize, job: &(dyn Fn(usize, usize) + Sync)) {
            /// A piece of the caller's, done when this is dropped, also by a panic.
            struct Piece<'c>(&'c Common);

            impl Drop for Piece<'_> {
                fn drop(&mut self) {
                    self.0.undone.fetch_sub(1, Ordering::SeqCst);
                }
            }

            /// Waits for what others have begun, also where a piece of the caller's panics: they borrow from it.
            struct Wait<'c>(&'c Common);

            impl Drop for Wait<'_> {
                fn drop(&mut self) {
                    // After a panic, what is left stays undone.
                    while self.0.take(0).is_some() {
                        drop(Piece(self.0));
                    }
                    wait(&self.0.asleep, || self.0.undone.load(Ordering::SeqCst) == 0);
                }
            }

            let common = &*self.common;
            assert!(pieces as u64 <= MAX, "pieces of a firing");
            // SAFETY: the borrow may have any lifetime, since nothing uses it when this returns or panics: `Wait` waits
            // until all pieces are done.
            let call = unsafe {
                core::mem::transmute::<&(dyn Fn(usize, usize) + Sync), &'static (dyn Fn(usize, usize) + Sync)>(
                    job,
                )
            };
            // SAFETY: no piece is left or undone, so no thread reads the job; and `&mut self` makes this the only
            // caller.
            unsafe { *common.job.get() = Some(Job { call, caller: thread::current() }) };
            common.undone.store(pieces, Ordering::SeqCst);
            let (caller, wait) = (self.threads.len(), Wait(common));
            let begin = |worker: usize| pieces * worker / (caller + 1);
            for (worker, share) in common.shares[..=caller].iter().enumerate() {
                share.give(begin(worker)..begin(worker + 1));
            }
            common.parkers.iter().take(pieces.saturating_sub(1)).for_each(Parker::wake);
            while let Some(piece) = common.take(caller) {
                let _piece = Piece(common);
                job(caller, piece);
            }
            drop(wait);
            assert!(!common.panicked.swap(false, Ordering::SeqCst), "a worker panicked");
        }
    }

    impl Drop for ThreadPool {
        fn drop(&mut self) {
            self.common.over.store(true, Ordering::SeqCst);
            self.common.parkers.iter().for_each(Parker::wake);
            for thread in self.threads.drain(..) {
                // A thread catches its panics.
                let _ = thread.join();
            }
        }
    }

    impl Common {
        /// Takes a piece of the job for a worker, if any is left.
        fn take(&self, worker: usize) -> Option<usize> {
            self.shares[worker].take_first().or_else(|| self.shares.iter().find_map(Share::take_last))
        }

        fn work(&self, number: usize) {
            // Before anybody can see it asleep.
            self.parkers[number].thread.get_or_init(thread::current);
            self.undone.fetch_sub(1, Ordering::SeqCst);
            while !self.over.load(Ordering::SeqCst) {
                wait(&self.parkers[number].asleep, || {
                    !self.shares.iter().all(Share::is_empty) || self.over.load(Ordering::SeqCst)
                });
                while let Some(piece) = self.take(number) {
                    // SAFETY: a piece was taken, so the job was written before, and it stays until this piece is done.
                    let Some(job) = (unsafe { (*self.job.get()).clone() }) else { return };
                    // SAFETY: this piece is not done, so `deal` has not returned, and what `call` points to is still
                    // borrowed.
                    let run = || unsafe { (*job.call)(number, piece) };
                    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
                        self.panicked.store(true, Ordering::SeqCst);
                    }
                    let is_last = self.undone.fetch_sub(1, Ordering::SeqCst) == 1;
                    if is_last && self.asleep.swap(false, Ordering::SeqCst) {
                        job.caller.unpark();
                    }
                }
            }
        }
    }

    impl core::fmt::Debug for Common {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            f.debug_struct("Common").field("parkers", &self.parkers.len()).finish_non_exhaustive()
        }
    }
}
