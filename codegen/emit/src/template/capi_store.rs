
/// A store whose functions are written in C.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CStore {
    context: *mut c_void,
    start: Option<unsafe extern "C" fn(*mut c_void, u64, *mut u8, usize)>,
    wait: Option<unsafe extern "C" fn(*mut c_void) -> i32>,
}

// SAFETY: the header says that a model is used by one thread at a time, which need not be the one that created it.
unsafe impl Send for CStore {}

// SAFETY: the header asks that the functions write nothing but the block of a load, and that not after `wait` has
// returned for it.
unsafe impl crate::Store for CStore {
    unsafe fn start(&mut self, load: crate::Load) {
        if let Some(start) = self.start {
            // SAFETY: the function is called with its own context, as the header says, and nobody else uses the block
            // of the load: `# Safety` of `Store::start`.
            unsafe { start(self.context, load.at(), load.block(), load.bytes()) };
        }
    }

    fn wait(&mut self) -> Result<(), crate::Fault> {
        // SAFETY: the function is called with its own context, as the header says.
        match self.wait.map_or(0, |wait| unsafe { wait(self.context) }) {
            0 => Ok(()),
            code => Err(crate::Fault::Read(code)),
        }
    }
}

/// The stores that the caller hands over. Each must have both functions.
///
/// # Safety
/// `given` is null, or leads to `N` stores that are initialised.
unsafe fn stores_of<const N: usize>(given: *const CStore) -> Result<[CStore; N], Status> {
    // SAFETY: `given` is null, or leads to `N` stores: `# Safety` of this function.
    let stores = *unsafe { read(given.cast::<[CStore; N]>()) }?;
    let is_whole = |store: &CStore| store.start.is_some() && store.wait.is_some();
    if stores.iter().all(is_whole) { Ok(stores) } else { Err(Status::Null) }
}
