//! The memory regions of a board, in the crate of a plan that divides its arena among them.

use csdfc_plan::plan::{Plan, Region};

use super::names::{C_WORDS, Names};
use super::source::Source;

/// What no region is called, since the crate, its C interface or linker scripts give these names another meaning.
const TAKEN: [&str; 23] = [
    "arena", "bss", "data", "failed", "file", "heap", "inputs", "main", "noinit", "outputs", "place",
    "rodata", "stack", "start", "state", "store", "stores", "taken", "text", "unread", "update", "weight",
    "weights",
];

/// A region in which a crate has memory.
pub(super) struct NamedRegion<'p> {
    /// What the crate calls it; its section is called the same, with a dot before.
    pub name: String,
    pub region: &'p Region,
}

impl NamedRegion<'_> {
    /// The constant with its bytes.
    fn constant(&self) -> String {
        format!("{}_BYTES", self.name.to_uppercase())
    }
}

/// The regions that have a part of the arena; none if the board has one memory.
pub(super) fn of(plan: &Plan) -> Vec<NamedRegion<'_>> {
    let mut names = Names::except(&[&TAKEN, C_WORDS].concat());
    let used = plan.regions.iter().filter(|region| region.bytes > 0);
    used.map(|region| NamedRegion { name: names.give(&region.name), region }).collect()
}

/// The number of the region that an address of the arena lies in, and how far from its start.
pub(super) fn place(regions: &[NamedRegion<'_>], address: u64) -> (usize, u64) {
    let number = regions.iter().rposition(|named| named.region.offset <= address).unwrap_or(0);
    (number, address - regions.get(number).map_or(0, |named| named.region.offset))
}

/// Writes the constants with the bytes of each region.
pub(super) fn write_sizes(source: &mut Source, regions: &[NamedRegion<'_>]) {
    for named in regions {
        source.comment("///", &format!("Bytes of the arena in region `{}`.", named.region.name));
        source.line(format!("pub const {}: usize = {};", named.constant(), named.region.bytes));
        source.gap();
    }
}

/// The text of `src/arena.rs`.
pub(super) fn arena(regions: &[NamedRegion<'_>]) -> String {
    let common = include_str!("template/arena.rs");
    if regions.is_empty() {
        return common.to_owned() + include_str!("template/one_region.rs");
    }
    let mut source = Source::default();
    source.gap();
    source.line("/// Bytes of each region.");
    let sizes: Vec<String> = regions.iter().map(|named| format!("crate::{}", named.constant())).collect();
    source.list(&format!("pub(crate) const REGION_BYTES: [usize; {}] = [", regions.len()), &sizes, ";");
    source.gap();
    source.line("/// The memory of the application: buffers and workspace, in several regions of the board.");
    source.line("///");
    source.comment(
        "///",
        "A model borrows it for as long as the model lives. So no two models run in it at the same time, except those \
         that may. Its content between frames matters only to models that keep something from frame to frame.",
    );
    source.open("pub struct Arena {");
    for NamedRegion { name, region } in regions {
        source.comment("///", &format!("What lies in `{}`.", region.name));
        source.line(format!("pub {name}: &'static mut {},", region_type(name)));
    }
    source.close("}");
    source.gap();
    source.open("impl Arena {");
    write_take(&mut source, regions);
    source.gap();
    source.open("fn starts(&mut self) -> [*mut u8; REGIONS] {");
    let starts: Vec<String> =
        regions.iter().map(|named| format!("self.{}.bytes.as_mut_ptr()", named.name)).collect();
    source.list("[", &starts, "");
    source.close("}");
    source.close("}");
    common.to_owned() + &source.finish() + include_str!("template/several_regions.rs")
}

/// Writes `Arena::take`.
fn write_take(source: &mut Source, regions: &[NamedRegion<'_>]) {
    source.comment(
        "///",
        "The ready static arena, the first time; nothing after that. On a board without an operating system, each \
         region's memory lies in the section of its name. A processor that cannot swap a flag at once, such as a \
         Cortex-M0, has no ready arena.",
    );
    source.line("#[cfg(target_has_atomic = \"8\")]");
    source.open("pub fn take() -> Option<&'static mut Arena> {");
    for NamedRegion { name, .. } in regions {
        let (constant, kind) = (name.to_uppercase(), region_type(name));
        source.line(format!(
            "#[cfg_attr(target_os = \"none\", unsafe(link_section = {:?}))]",
            format!(".{name}")
        ));
        source.line(format!("static {constant}: Ready<{kind}> = Ready::new();"));
    }
    source.line("static ARENA: Ready<Arena> = Ready::new();");
    source.line("static TAKEN: AtomicBool = AtomicBool::new(false);");
    source.open("if TAKEN.swap(true, Ordering::AcqRel) {");
    source.line("return None;");
    source.close("}");
    source.comment(
        "//",
        "SAFETY: the flag was not set before, so nobody else uses these statics, and it stays set, so nobody else \
         will. They hold bytes, which the zeros initialise.",
    );
    source.open("unsafe {");
    let fields: Vec<String> = regions
        .iter()
        .map(|NamedRegion { name, .. }| format!("{name}: &mut *{}.cleared()", name.to_uppercase()))
        .collect();
    source.list("let arena = Arena {", &fields, ";");
    source.line("Some((*ARENA.0.get()).write(arena))");
    source.close("}");
    source.close("}");
}

fn region_type(name: &str) -> String {
    format!("Region<{{ crate::{}_BYTES }}>", name.to_uppercase())
}
