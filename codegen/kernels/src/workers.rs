//! Workers that share one firing.
//!
//! A kernel deals out its rows, or its output channels, to threads that wait for work as long as there are
//! [`Workers`]. Only convolutions are shared. Nothing is allocated once the threads are there. Without feature `std`
//! there is one worker, the caller, whatever the number asked for. The bytes are the same for every number.
#![allow(unsafe_code, reason = "threads borrow what their caller waits for; each block says why it is sound")]

#[cfg(any(test, feature = "std"))]
extern crate std;

/// The caller and the threads that work for it.
#[derive(Debug, Default)]
pub struct Workers {
    #[cfg(any(test, feature = "std"))]
    crew: Option<std::boxed::Box<crew::Crew>>,
}

impl Workers {
    /// `count` workers, the caller among them; fewer where there are no more threads.
    pub fn new(count: usize) -> Self {
        #[cfg(any(test, feature = "std"))]
        return Workers { crew: (count > 1).then(|| std::boxed::Box::new(crew::Crew::new(count - 1))) };
        #[cfg(not(any(test, feature = "std")))]
        {
            let _ = count;
            Workers {}
        }
    }

    /// How many there are, the caller among them.
    pub fn count(&self) -> usize {
        #[cfg(any(test, feature = "std"))]
        return 1 + self.crew.as_ref().map_or(0, |crew| crew.threads());
        #[cfg(not(any(test, feature = "std")))]
        1
    }

    /// Does `job(worker)` for every worker, at the same time, and waits for all.
    ///
    /// # Panics
    /// If one of them does.
    pub fn each(&mut self, job: &(dyn Fn(usize) + Sync)) {
        #[cfg(any(test, feature = "std"))]
        if let Some(crew) = &mut self.crew {
            return crew.each(job);
        }
        job(0);
    }
}

#[cfg(any(test, feature = "std"))]
mod crew {
    use super::std;

    use core::cell::UnsafeCell;
    use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::boxed::Box;
    use std::sync::{Arc, OnceLock};
    use std::thread::{self, JoinHandle, Thread};
    use std::vec::Vec;

    /// What is to be done; it lives as long as the caller waits.
    type Job = *const (dyn Fn(usize) + Sync);

    /// Threads that wait for work.
    #[derive(Debug)]
    pub struct Crew {
        common: Arc<Common>,
        threads: Vec<JoinHandle<()>>,
    }

    #[derive(Debug)]
    struct Common {
        /// What is to be done, and who waits for it. Written by the caller while no thread works.
        job: UnsafeCell<Option<(Job, Thread)>>,
        /// Jobs so far.
        turn: AtomicUsize,
        /// Threads that are not done with the job.
        busy: AtomicUsize,
        panicked: AtomicBool,
        over: AtomicBool,
        /// Whether the caller sleeps, or is about to.
        asleep: AtomicBool,
        /// One for each thread.
        seats: Box<[Seat]>,
    }

    /// Where somebody waits.
    #[derive(Debug, Default)]
    #[repr(align(64))]
    struct Seat {
        asleep: AtomicBool,
        thread: OnceLock<Thread>,
    }

    // SAFETY: the job is written before `turn` says so and while `busy` is zero, and read between the two; what it
    // points to is `Sync`.
    unsafe impl Send for Common {}
    // SAFETY: as above.
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

    impl Seat {
        fn wake(&self) {
            if self.asleep.swap(false, Ordering::SeqCst)
                && let Some(thread) = self.thread.get()
            {
                thread.unpark();
            }
        }
    }

    impl Crew {
        pub fn new(threads: usize) -> Self {
            let common = Arc::new(Common {
                job: UnsafeCell::new(None),
                turn: AtomicUsize::new(0),
                busy: AtomicUsize::new(threads),
                panicked: AtomicBool::new(false),
                over: AtomicBool::new(false),
                asleep: AtomicBool::new(false),
                seats: (0..threads).map(|_| Seat::default()).collect(),
            });
            let spawn = |number: usize| {
                let common = common.clone();
                thread::Builder::new().name("worker".into()).spawn(move || common.work(number)).ok()
            };
            let spawned: Vec<JoinHandle<()>> = (0..threads).map_while(spawn).collect();
            common.busy.fetch_sub(threads - spawned.len(), Ordering::SeqCst);
            // What threads allocate, they do before their work begins.
            while common.busy.load(Ordering::SeqCst) > 0 {
                thread::yield_now();
            }
            Crew { common, threads: spawned }
        }

        pub fn threads(&self) -> usize {
            self.threads.len()
        }

        pub fn each(&mut self, job: &(dyn Fn(usize) + Sync)) {
            /// Waits for the others, also where the caller's share panics: they borrow from it.
            struct Wait<'c>(&'c Common);

            impl Drop for Wait<'_> {
                fn drop(&mut self) {
                    wait(&self.0.asleep, || self.0.busy.load(Ordering::SeqCst) == 0);
                }
            }

            let common = &*self.common;
            // SAFETY: a borrow for any time, of which nothing is left when this returns: the threads are done then.
            let job = unsafe {
                core::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(job)
            };
            // SAFETY: no thread works, and this is the only caller.
            unsafe { *common.job.get() = Some((job, thread::current())) };
            common.busy.store(self.threads.len(), Ordering::SeqCst);
            common.turn.fetch_add(1, Ordering::SeqCst);
            let wait = Wait(common);
            common.seats.iter().for_each(Seat::wake);
            job(self.threads.len());
            drop(wait);
            assert!(!common.panicked.swap(false, Ordering::SeqCst), "a worker panicked");
        }
    }

    impl Drop for Crew {
        fn drop(&mut self) {
            self.common.over.store(true, Ordering::SeqCst);
            self.common.turn.fetch_add(1, Ordering::SeqCst);
            self.common.seats.iter().for_each(Seat::wake);
            for thread in self.threads.drain(..) {
                // A thread catches its panics.
                let _ = thread.join();
            }
        }
    }

    impl Common {
        fn work(&self, number: usize) {
            // Before anybody can see it asleep.
            self.seats[number].thread.get_or_init(thread::current);
            self.busy.fetch_sub(1, Ordering::SeqCst);
            let mut turn = 0;
            loop {
                wait(&self.seats[number].asleep, || self.turn.load(Ordering::SeqCst) != turn);
                turn = self.turn.load(Ordering::SeqCst);
                if self.over.load(Ordering::SeqCst) {
                    return;
                }
                // SAFETY: the job was written before its turn, and stays until this thread is no longer busy.
                let Some((job, caller)) = (unsafe { (*self.job.get()).clone() }) else { return };
                // SAFETY: as above.
                let run = || unsafe { (*job)(number) };
                if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
                    self.panicked.store(true, Ordering::SeqCst);
                }
                let is_last = self.busy.fetch_sub(1, Ordering::SeqCst) == 1;
                if is_last && self.asleep.swap(false, Ordering::SeqCst) {
                    caller.unpark();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::vec::Vec;

    use super::*;

    #[test]
    fn every_worker_works_once_a_job() {
        for count in 1..5 {
            let mut workers = Workers::new(count);
            assert_eq!(workers.count(), count);
            let done: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            for _ in 0..1000 {
                workers.each(&|worker| {
                    done[worker].fetch_add(1, Ordering::Relaxed);
                });
            }
            assert!(done.iter().all(|done| done.load(Ordering::Relaxed) == 1000), "{done:?}");
        }
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let mut workers = Workers::new(3);
        for panics in 0..3 {
            let job = |worker: usize| assert!(worker != panics);
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| workers.each(&job)));
            assert!(ran.is_err(), "worker {panics}");
        }
        let done = AtomicUsize::new(0);
        workers.each(&|_| {
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(done.load(Ordering::Relaxed), 3);
    }
}
