//! A plugin of QEMU's user mode that counts the instructions that a program of one thread executes:
//!
//! ```text
//! qemu-aarch64 -plugin libcsdfc_count.so,out=counts.txt PROGRAM
//! ```
//!
//! At the end of the program, the file has a line for each block that was executed, `TIMES INSTRUCTIONS CODE FUNCTION`: how
//! often, how many instructions it has, their bytes in hexadecimal digits, and in which function it begins (`?` where there is
//! no symbol). A block is what QEMU translates at once: it ends with a branch at the latest.
//!
//! QEMU's header is not packaged with it, so what is used of it is declared here, as version 1 of its interface has it
//! (QEMU 4.2 to 8.2: `include/qemu/qemu-plugin.h`).

#![allow(unsafe_code, reason = "QEMU calls and is called through C")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

/// The version of the interface. QEMU refuses a plugin whose version it does not offer.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 1;

/// A block, while it is translated.
#[repr(C)]
pub struct TranslatedBlock {
    _opaque: [u8; 0],
}

/// An instruction of a block.
#[repr(C)]
pub struct Instruction {
    _opaque: [u8; 0],
}

/// `QEMU_PLUGIN_INLINE_ADD_U64`, the only operation there is.
const ADD_U64: c_int = 0;

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(plugin: u64, call: extern "C" fn(u64, *mut TranslatedBlock));
    fn qemu_plugin_register_atexit_cb(plugin: u64, call: extern "C" fn(u64, *mut c_void), data: *mut c_void);
    fn qemu_plugin_register_vcpu_tb_exec_inline(
        block: *mut TranslatedBlock,
        operation: c_int,
        to: *mut c_void,
        by: u64,
    );
    fn qemu_plugin_tb_n_insns(block: *const TranslatedBlock) -> usize;
    fn qemu_plugin_tb_vaddr(block: *const TranslatedBlock) -> u64;
    fn qemu_plugin_tb_get_insn(block: *const TranslatedBlock, index: usize) -> *mut Instruction;
    fn qemu_plugin_insn_symbol(instruction: *const Instruction) -> *const c_char;
    fn qemu_plugin_insn_data(instruction: *const Instruction) -> *const u8;
    fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize;
}

/// A block that was translated.
struct Block {
    function: String,
    code: Vec<u8>,
    /// QEMU's code adds to it. It is never freed, so its address stays.
    times: &'static AtomicU64,
}

/// The blocks by address and number of instructions. One that is translated again goes on with its counter.
static BLOCKS: Mutex<BTreeMap<(u64, usize), Block>> = Mutex::new(BTreeMap::new());

/// Where the counts are written.
static OUT: OnceLock<String> = OnceLock::new();

/// Called when the plugin is loaded. Its argument is `out=FILE`.
///
/// # Safety
/// `arguments` points to `count` C strings, which live while the call does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    plugin: u64,
    _info: *const c_void,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the caller promises it.
    let arguments = (0..count).map(|at| unsafe { CStr::from_ptr(*arguments.add(at)) }.to_string_lossy());
    let Some(out) = arguments.filter_map(|argument| argument.strip_prefix("out=").map(str::to_owned)).last()
    else {
        eprintln!("csdfc-count: the argument out=FILE is missing");
        return 1;
    };
    OUT.get_or_init(|| out);
    // SAFETY: both functions can be called as long as the process lives.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(plugin, translated);
        qemu_plugin_register_atexit_cb(plugin, ended, std::ptr::null_mut());
    }
    0
}

/// Called for each block that is translated.
extern "C" fn translated(_plugin: u64, block: *mut TranslatedBlock) {
    // SAFETY: the block and its instructions live while this call does. A symbol is a C string or null, and an instruction
    // has as many bytes as it says.
    let (address, instructions, function, code) = unsafe {
        let instructions = qemu_plugin_tb_n_insns(block);
        let symbol = qemu_plugin_insn_symbol(qemu_plugin_tb_get_insn(block, 0));
        let function = if symbol.is_null() { "?".into() } else { CStr::from_ptr(symbol).to_string_lossy() };
        let mut code = Vec::new();
        for at in 0..instructions {
            let instruction = qemu_plugin_tb_get_insn(block, at);
            let size = qemu_plugin_insn_size(instruction);
            code.extend_from_slice(std::slice::from_raw_parts(qemu_plugin_insn_data(instruction), size));
        }
        (qemu_plugin_tb_vaddr(block), instructions, function.into_owned(), code)
    };
    let Ok(mut blocks) = BLOCKS.lock() else { return };
    let new = || Block { function, code, times: Box::leak(Box::default()) };
    let times = blocks.entry((address, instructions)).or_insert_with(new).times;
    // SAFETY: the counter is never freed, and the program's one thread is the only one that adds to it.
    unsafe { qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_U64, times.as_ptr().cast(), 1) };
}

/// Called at the end of the program.
extern "C" fn ended(_plugin: u64, _data: *mut c_void) {
    let (Ok(blocks), Some(out)) = (BLOCKS.lock(), OUT.get()) else { return };
    let mut lines = String::new();
    for ((_, instructions), block) in &*blocks {
        let times = block.times.load(Ordering::Relaxed);
        if times > 0 {
            let code: String = block.code.iter().map(|byte| format!("{byte:02x}")).collect();
            lines += &format!("{times} {instructions} {code} {}\n", block.function);
        }
    }
    if let Err(error) = std::fs::write(out, lines) {
        eprintln!("csdfc-count: {out}: {error}");
    }
}
