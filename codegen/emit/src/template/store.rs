//! The store from which streamed weights are read, and the loads of a frame.
//!
//! `store.bin` holds them as tiles, one after another. A frame begins to read a tile into its block of the arena as
//! soon as the plan lets the load start, and waits for the tile before it is used. Before that, the bytes are compared
//! with a checksum, so that no wrong byte makes a wrong output.
#![allow(unsafe_code, reason = "a store writes into blocks of the arena while kernels use other bytes of it")]
#![allow(dead_code, reason = "without `std` no thread reads, and only stages go on from frame to frame")]

use core::ptr::NonNull;

use crate::arena::{Memory, Part, Ring};
use crate::kernels::arch::Isa;
use crate::kernels::checksum::crc32c;
use crate::kernels::span::Span;
use crate::weights::WeightsError;
use crate::{LOADS_AT_ONCE, STORE_BYTES, STORE_HASH};

/// What went wrong with a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Not all of its bytes could be read. The number is the system's or the store's own, 0 if there is none.
    Read(i32),
    /// The bytes that were read are not the content of `store.bin`.
    Checksum,
}

/// Why a frame ended early. The model can run the next frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreError {
    /// Where the bytes that did not come begin in `store.bin`.
    pub at: u64,
    /// How many they are.
    pub bytes: usize,
    /// What went wrong.
    pub fault: Fault,
}

impl core::fmt::Display for StoreError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let StoreError { at, bytes, fault } = self;
        write!(f, "{bytes} bytes at {at} of the store of the weights ")?;
        match fault {
            Fault::Read(0) => f.write_str("cannot be read"),
            Fault::Read(code) => write!(f, "cannot be read: error {code}"),
            Fault::Checksum => f.write_str("are not those of this model"),
        }
    }
}

impl core::error::Error for StoreError {}

/// Bytes of `store.bin` that are to be read into a block of the arena.
#[derive(Debug)]
pub struct Load {
    at: u64,
    block: NonNull<u8>,
    bytes: usize,
    checksum: u32,
}

// SAFETY: nobody but the load uses its block until it has ended (`# Safety` of `Store::start`), so it may do so from
// any thread.
unsafe impl Send for Load {}

impl Load {
    /// Where the bytes begin in `store.bin`.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// How many they are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where they go: the first byte of the block.
    pub fn block(&self) -> *mut u8 {
        self.block.as_ptr()
    }

    /// The same bytes as a slice, for a store that reads at once.
    fn room(&mut self) -> &mut [u8] {
        // SAFETY: nobody but the load uses its block, which has `bytes` bytes: `# Safety` of `Store::start`. They are
        // initialised, as all of the arena is.
        unsafe { core::slice::from_raw_parts_mut(self.block(), self.bytes) }
    }
}

/// A store reads weights into blocks of the arena while kernels run, for instance by DMA. At most [`LOADS_AT_ONCE`]
/// loads are begun and not waited for.
///
/// # Safety
/// A store writes nothing but the blocks of loads, and no block after [`Store::wait`] has returned for its load, or after
/// the store is dropped.
pub unsafe trait Store: Send {
    /// Whether `wait` compares what it has read with the checksum.
    const VERIFIES: bool = false;

    /// Begins a load. Loads may be read in any order.
    ///
    /// # Safety
    /// Until `wait` has returned for the load, nobody else reads or writes its block.
    unsafe fn start(&mut self, load: Load);

    /// Waits for the end of a load: the first of those that were begun and not yet waited for.
    ///
    /// # Errors
    /// When not all of its bytes could be read.
    fn wait(&mut self) -> Result<(), Fault>;

    /// Bytes of `store.bin` that need not be read, since they lie where kernels can reach them. They must begin at a
    /// multiple of 4. If a store has some bytes in place, it must have all of them in place: then no load is begun.
    fn in_place(&self, at: u64, bytes: usize) -> Option<&[u8]> {
        let _ = (at, bytes);
        None
    }
}

/// A reader reads bytes of `store.bin`, and returns when they are there.
pub trait ReadAt: Send {
    /// Fills the block with the bytes from `at` on.
    ///
    /// # Errors
    /// When not all could be read.
    fn read_at(&mut self, at: u64, block: &mut [u8]) -> Result<(), Fault>;

    /// Another reader of the same bytes. If there is one, and reading keeps the processor busy, a `Loader` reads with
    /// two threads at the same time whenever the model would only wait.
    fn another(&self) -> Option<Self>
    where
        Self: Sized + 'static,
    {
        None
    }
}

/// A store that reads a load as soon as it begins, and returns when the load has ended.
#[derive(Debug)]
pub struct Blocking<R> {
    reader: R,
    /// Loads begun, and waited for.
    begun: usize,
    waited: usize,
    /// The first load that failed, and how; the frame ends at it.
    failed: Option<(usize, Fault)>,
}

impl<R: ReadAt> Blocking<R> {
    /// The store of this reader.
    pub fn new(reader: R) -> Self {
        Blocking { reader, begun: 0, waited: 0, failed: None }
    }
}

// SAFETY: `read_at` gets nothing to write but the block, and has returned when `start` does.
unsafe impl<R: ReadAt> Store for Blocking<R> {
    unsafe fn start(&mut self, mut load: Load) {
        let number = self.begun;
        self.begun += 1;
        if let Err(fault) = self.reader.read_at(load.at, load.room()) {
            self.failed.get_or_insert((number, fault));
        }
    }

    fn wait(&mut self) -> Result<(), Fault> {
        let number = self.waited;
        self.waited += 1;
        self.failed.take_if(|(failed, _)| *failed == number).map_or(Ok(()), |(_, fault)| Err(fault))
    }
}

/// A store whose bytes lie where kernels can reach them, for instance in flash. Nothing is read or copied.
#[derive(Debug)]
pub struct InPlace<'w>(&'w [u8]);

impl<'w> InPlace<'w> {
    /// The content of `store.bin`, at a multiple of 4 bytes.
    ///
    /// # Errors
    /// When it is something else.
    pub fn new(bytes: &'w [u8]) -> Result<Self, WeightsError> {
        if bytes.len() as u64 != STORE_BYTES {
            return Err(WeightsError::Length);
        }
        if !bytes.as_ptr().cast::<f32>().is_aligned() {
            return Err(WeightsError::Alignment);
        }
        if crate::hash::hash(bytes) == STORE_HASH { Ok(InPlace(bytes)) } else { Err(WeightsError::Hash) }
    }
}

// SAFETY: it writes nothing at all.
unsafe impl Store for InPlace<'_> {
    unsafe fn start(&mut self, _: Load) {}

    fn wait(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    fn in_place(&self, at: u64, bytes: usize) -> Option<&[u8]> {
        let start = usize::try_from(at).ok()?;
        self.0.get(start..start.checked_add(bytes)?)
    }
}

/// Some of a layer's weights in `store.bin`.
#[derive(Debug)]
pub(crate) struct Tile {
    /// Where they begin.
    pub at: u64,
    /// How many bytes they are.
    pub bytes: usize,
    /// Their CRC-32C.
    pub checksum: u32,
}

/// The loads of a frame. Dropping it waits for the loads that have begun.
pub(crate) struct Loads<'m, S: Store> {
    store: &'m mut S,
    /// Bytes that all frames have read.
    read: &'m mut u64,
    isa: Isa,
    /// Loads that have begun, and that have ended.
    begun: usize,
    ended: usize,
    /// Loads that have begun and not ended, by the number of loads that began before them, modulo [`LOADS_AT_ONCE`].
    open: [Option<(&'static Tile, NonNull<u8>)>; LOADS_AT_ONCE],
    failed: Option<StoreError>,
}

// SAFETY: it reaches the blocks of open loads alone, which nobody else uses, and they are not read before the loads
// have ended.
unsafe impl<S: Store> Send for Loads<'_, S> {}

impl<'m, S: Store> Loads<'m, S> {
    /// No load has begun yet.
    pub fn new(store: &'m mut S, read: &'m mut u64, isa: Isa) -> Self {
        Loads { store, read, isa, begun: 0, ended: 0, open: [const { None }; LOADS_AT_ONCE], failed: None }
    }

    /// Begins to read a tile into a block.
    ///
    /// # Panics
    /// If the block is too small, or too many loads are under way. In a plan that was checked neither happens.
    pub fn start<P: Part>(&mut self, memory: &mut Memory<'_, P>, block: Ring<P, u8>, tile: &'static Tile) {
        if self.store.in_place(tile.at, tile.bytes).is_some() {
            return;
        }
        let Tile { at, bytes, checksum } = *tile;
        assert!(self.begun - self.ended < LOADS_AT_ONCE);
        let block = memory.block(block, bytes);
        self.open[self.begun % LOADS_AT_ONCE] = Some((tile, block));
        self.begun += 1;
        // SAFETY: in a plan that was checked, nobody touches the block until `wait` has seen the load's end. `drop`
        // waits for all loads that are left, so the arena outlives the load.
        unsafe { self.store.start(Load { at, block, bytes, checksum }) };
    }

    /// Waits until a tile is in its block.
    ///
    /// # Errors
    /// When the tile, or one whose load began before, could not be read or had wrong bytes.
    pub fn wait(&mut self, tile: &'static Tile) -> Result<(), StoreError> {
        let waited = self.wait_for(tile);
        self.failed = waited.err();
        waited
    }

    fn wait_for(&mut self, tile: &'static Tile) -> Result<(), StoreError> {
        while self.is_open(tile) {
            let open = self.open[self.ended % LOADS_AT_ONCE].take();
            self.ended += 1;
            let ended = self.store.wait();
            let Some((&Tile { at, bytes, checksum, .. }, block)) = open else { continue };
            ended.map_err(|fault| StoreError { at, bytes, fault })?;
            if !S::VERIFIES {
                // SAFETY: the load has ended, so the store writes the block no more, and the layer that uses it waits
                // for this.
                let read = unsafe { core::slice::from_raw_parts(block.as_ptr(), bytes) };
                if crc32c(self.isa, read) != checksum {
                    return Err(StoreError { at, bytes, fault: Fault::Checksum });
                }
            }
            *self.read += bytes as u64;
        }
        Ok(())
    }

    /// Whether the load of a tile has begun, and nobody has waited for its end.
    fn is_open(&self, tile: &Tile) -> bool {
        let mut open = (self.ended..self.begun).map(|load| self.open[load % LOADS_AT_ONCE]);
        open.any(|load| load.is_some_and(|(load, _)| load.at == tile.at))
    }

    /// Why the last wait failed.
    pub fn failed(&self) -> Option<StoreError> {
        self.failed
    }

    /// Goes on to the next frame. All loads of this one have ended.
    pub fn end_frame(&mut self) {
        (self.begun, self.ended) = (0, 0);
    }

    /// The bytes of a tile that was waited for: in its block, unless they are read in place.
    pub fn weights<'b>(&'b self, tile: &Tile, block: Span<'b, u8>) -> &'b [u8] {
        self.store.in_place(tile.at, tile.bytes).unwrap_or_else(|| block.slice(0, tile.bytes))
    }
}

impl<S: Store> Drop for Loads<'_, S> {
    fn drop(&mut self) {
        while self.ended < self.begun {
            // The frame has ended with another error, or by a panic.
            let _ = self.store.wait();
            self.ended += 1;
        }
    }
}

#[cfg(feature = "std")]
pub use loader::Loader;

#[cfg(feature = "std")]
mod loader {
    use std::boxed::Box;
    use std::fs::File;
    use std::io;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
    use std::thread::JoinHandle;
    use std::time::{Duration, Instant};

    use super::{Fault, Isa, LOADS_AT_ONCE, Load, ReadAt, STORE_BYTES, Store, crc32c};

    /// For this time, a waiting thread looks again and again, and yields in between, before it sleeps: waking up takes
    /// longer than reading most tiles. The limit is a time, not a number of looks. Two threads that yield to each
    /// other on one processor may stay on it, but a thread that has slept is woken on an idle processor.
    const LOOKS: Duration = Duration::from_millis(1);

    /// The fewest bytes per nanosecond of a fast reader. It keeps the processor busy, so a second thread can help. If
    /// the reader is slower, the model just waits, so that it goes on as soon as it can.
    const FAST: u64 = 1;

    /// A store whose reader has a thread of its own, so that it reads while kernels run.
    pub struct Loader {
        shared: Arc<Shared>,
        thread: Option<JoinHandle<()>>,
        /// The reader for the model's thread, used if that thread would wait for the other thread and its fast reader.
        /// Nobody waits for the mutex. It is here so that a loader can be shared even if a reader cannot.
        second: Option<Mutex<Box<dyn ReadAt>>>,
        /// Loads begun, and waited for.
        begun: usize,
        waited: usize,
    }

    impl core::fmt::Debug for Loader {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            let Loader { begun, waited, .. } = self;
            f.debug_struct("Loader").field("begun", begun).field("waited", waited).finish_non_exhaustive()
        }
    }

    struct Shared {
        isa: Isa,
        queue: Mutex<Queue>,
        /// How often the queue has changed, for threads that look; and a signal that it has changed, for threads that
        /// sleep.
        changes: AtomicUsize,
        changed: Condvar,
    }

    struct Queue {
        /// The loads, by their numbers modulo [`LOADS_AT_ONCE`].
        loads: [State; LOADS_AT_ONCE],
        /// Loads that somebody has begun to read.
        taken: usize,
        /// Whether the last load was read by a fast reader.
        is_fast: bool,
        /// Threads that sleep until it has changed. If there are none, the system need not be called.
        sleepers: usize,
        is_closed: bool,
    }

    enum State {
        None,
        Due(Load),
        Reading,
        Ended(Result<(), Fault>),
    }

    impl Loader {
        /// Reads the file `store.bin`, or a copy of it.
        ///
        /// # Errors
        /// When it cannot be opened, or is of another length.
        pub fn open(path: &Path) -> io::Result<Self> {
            let file = File::open(path)?;
            let bytes = file.metadata()?.len();
            if bytes != STORE_BYTES {
                let why = std::format!("it has {bytes} bytes, and the model's store {STORE_BYTES}");
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            Loader::new(file)
        }

        /// A loader with another reader.
        ///
        /// # Errors
        /// When there is no thread for it.
        pub fn new(mut reader: impl ReadAt + 'static) -> io::Result<Self> {
            let second = reader.another().map(|reader| Mutex::new(Box::new(reader) as Box<dyn ReadAt>));
            let loads = [const { State::None }; LOADS_AT_ONCE];
            let shared = Arc::new(Shared {
                isa: crate::isa(),
                queue: Mutex::new(Queue { loads, taken: 0, is_fast: false, sleepers: 0, is_closed: false }),
                changes: AtomicUsize::new(0),
                changed: Condvar::new(),
            });
            let of_thread = shared.clone();
            let run = move || of_thread.serve(&mut reader);
            let thread = std::thread::Builder::new().name("weights".into()).spawn(run)?;
            Ok(Loader { shared, thread: Some(thread), second, begun: 0, waited: 0 })
        }
    }

    impl Queue {
        /// Takes the first load that nobody has taken, if it has begun.
        fn take(&mut self) -> Option<(usize, Load)> {
            let place = self.taken % LOADS_AT_ONCE;
            match std::mem::replace(&mut self.loads[place], State::Reading) {
                State::Due(load) => {
                    self.taken += 1;
                    Some((place, load))
                }
                other => {
                    self.loads[place] = other;
                    None
                }
            }
        }
    }

    impl Shared {
        fn lock(&self) -> MutexGuard<'_, Queue> {
            self.queue.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// Tells the other threads that the queue has changed.
        fn tell(&self, queue: MutexGuard<'_, Queue>) {
            self.changes.fetch_add(1, Ordering::Release);
            let is_heard = queue.sleepers > 0;
            drop(queue);
            if is_heard {
                self.changed.notify_all();
            }
        }

        /// Waits until the queue has changed.
        fn wait<'q>(&'q self, queue: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
            let seen = self.changes.load(Ordering::Relaxed);
            let is_same = || self.changes.load(Ordering::Acquire) == seen;
            drop(queue);
            let began = Instant::now();
            while is_same() && began.elapsed() < LOOKS {
                std::thread::yield_now();
            }
            let mut queue = self.lock();
            if is_same() {
                queue.sleepers += 1;
                let slept = self.changed.wait_while(queue, |_| is_same());
                queue = slept.unwrap_or_else(PoisonError::into_inner);
                queue.sleepers -= 1;
            }
            queue
        }

        /// Reads a load that was taken.
        fn read(&self, reader: &mut (impl ReadAt + ?Sized), place: usize, mut load: Load) {
            let (at, checksum) = (load.at, load.checksum);
            let began = Instant::now();
            let read = catch_unwind(AssertUnwindSafe(|| reader.read_at(at, load.room())));
            let is_fast = began.elapsed() < Duration::from_nanos(load.bytes as u64 / FAST);
            let mut result = read.unwrap_or(Err(Fault::Read(0)));
            if result.is_ok() && crc32c(self.isa, load.room()) != checksum {
                result = Err(Fault::Checksum);
            }
            let mut queue = self.lock();
            queue.loads[place] = State::Ended(result);
            queue.is_fast = is_fast;
            self.tell(queue);
        }

        /// Reads load after load, until there will be no more.
        fn serve(&self, reader: &mut impl ReadAt) {
            let mut queue = self.lock();
            loop {
                if let Some((place, load)) = queue.take() {
                    drop(queue);
                    self.read(reader, place, load);
                    queue = self.lock();
                } else if queue.is_closed {
                    return;
                } else {
                    queue = self.wait(queue);
                }
            }
        }
    }

    // SAFETY: whoever reads a load writes its block alone, and before it has ended. `wait` returns only then, and
    // dropping waits for the loads that are left.
    unsafe impl Store for Loader {
        const VERIFIES: bool = true;

        unsafe fn start(&mut self, load: Load) {
            let mut queue = self.shared.lock();
            queue.loads[self.begun % LOADS_AT_ONCE] = State::Due(load);
            self.begun += 1;
            self.shared.tell(queue);
        }

        fn wait(&mut self) -> Result<(), Fault> {
            let place = self.waited % LOADS_AT_ONCE;
            let mut queue = self.shared.lock();
            loop {
                match std::mem::replace(&mut queue.loads[place], State::None) {
                    State::Ended(result) => {
                        self.waited += 1;
                        return result;
                    }
                    // If there is no load, there is nothing to wait for.
                    State::None => return Ok(()),
                    other => queue.loads[place] = other,
                }
                let reader = self.second.as_mut().filter(|_| queue.is_fast);
                queue = match reader.and_then(|reader| Some((reader, queue.take()?))) {
                    Some((reader, (place, load))) => {
                        drop(queue);
                        let reader = reader.get_mut().unwrap_or_else(PoisonError::into_inner);
                        self.shared.read(&mut **reader, place, load);
                        self.shared.lock()
                    }
                    None => self.shared.wait(queue),
                };
            }
        }
    }

    impl Drop for Loader {
        fn drop(&mut self) {
            while self.waited < self.begun {
                let _ = self.wait();
            }
            let mut queue = self.shared.lock();
            queue.is_closed = true;
            self.shared.tell(queue);
            if let Some(thread) = self.thread.take() {
                // It catches the reader's panics, and has none of its own.
                let _ = thread.join();
            }
        }
    }

    impl ReadAt for File {
        fn read_at(&mut self, at: u64, block: &mut [u8]) -> Result<(), Fault> {
            #[cfg(unix)]
            let read = std::os::unix::fs::FileExt::read_exact_at(self, block, at);
            #[cfg(not(unix))]
            let read = {
                use std::io::{Read, Seek};
                self.seek(io::SeekFrom::Start(at)).and_then(|_| self.read_exact(block))
            };
            read.map_err(|error| Fault::Read(error.raw_os_error().unwrap_or(0)))
        }

        #[cfg(unix)]
        fn another(&self) -> Option<Self> {
            self.try_clone().ok()
        }
    }
}
