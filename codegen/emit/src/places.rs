//! Where rings lie: a table for each part of a model that runs by itself, and a constant for each ring.

use csdfc_plan::check::RowOrder;
use csdfc_plan::format::Element;

use super::model::Model;
use super::regions;
use super::source::Source;
use super::streamed_layer::StreamedLayer;

/// Writes the module of a model's rings: those of the whole model, and of each stage of a pipeline.
pub(super) fn write(source: &mut Source, model: &Model<'_>) {
    let all: Vec<usize> = (0..model.allocations().len()).collect();
    source.line("/// Where rows lie in the arena.");
    source.open(if model.is_shared { "pub(crate) mod ring {" } else { "mod ring {" });
    let constants = if all.is_empty() { "" } else { ", Ring" };
    let write_imports = |source: &mut Source, allocations: &[usize]| {
        if allocations.iter().any(|&s| element(model, s) == Element::F16) {
            source.line("use crate::kernels::half::F16;");
        }
        source.gap();
    };
    if model.stages.is_empty() {
        source.line(format!("use crate::arena::{{Part, Place{constants}}};"));
        write_imports(source, &all);
        write_part(source, model, &all, "All rings of the model.", "Whole");
        write_constants(source, model, &all, "Whole");
    } else {
        source.line("use crate::arena::{Division, Part, Place};");
        source.gap();
        write_part(source, model, &all, "All rings of the model.", "Whole");
        source.gap();
        source.line("/// The stages, which run at the same time.");
        source.line("pub struct Stages;");
        source.gap();
        source.open("impl Division for Stages {");
        let parts = model.stages.iter().map(|stage| format!("{}::Stage::PLACES", stage.name));
        source.list("const PARTS: &'static [&'static [Place]] = &[", &parts.collect::<Vec<_>>(), ";");
        source.close("}");
        for stage in &model.stages {
            source.gap();
            source.comment("///", &format!("The rings of stage `{}`.", stage.label));
            source.open(format!("pub mod {} {{", stage.name));
            source.line("use crate::arena::{Part, Place, Ring};");
            write_imports(source, &stage.allocations);
            write_part(source, model, &stage.allocations, "All rings of the stage.", "Stage");
            write_constants(source, model, &stage.allocations, "Stage");
            source.close("}");
        }
    }
    source.close("}");
    source.gap();
}

/// Elements of a allocation.
fn element(model: &Model<'_>, s: usize) -> Element {
    let allocation = &model.allocations()[s];
    match allocation.kind {
        RowOrder::Workspace | RowOrder::Recurrent => Element::F32,
        RowOrder::Block(_) => Element::U8,
        _ => model.cnn().layers[allocation.tensor].tensor.format.element,
    }
}

/// The table of a part.
fn write_part(source: &mut Source, model: &Model<'_>, allocations: &[usize], what: &str, name: &str) {
    source.line(format!("/// {what}"));
    source.line(format!("pub struct {name};"));
    source.gap();
    source.open(format!("impl Part for {name} {{"));
    let place = |&s: &usize| {
        let allocation = &model.allocations()[s];
        let shared = model.links.iter().any(|link| link.allocation == s);
        let place = move |&base: &u64| {
            let (region, offset) = regions::place(&model.regions, base);
            let (rows, row_bytes) = (allocation.ring_rows, allocation.row_bytes);
            format!(
                "Place {{ region: {region}, offset: {offset}, rows: {rows}, row_bytes: {row_bytes}, shared: {shared} }}"
            )
        };
        allocation.bases.iter().map(place)
    };
    let places: Vec<String> = allocations.iter().flat_map(place).collect();
    match places.as_slice() {
        [] => source.line("const PLACES: &'static [Place] = &[];"),
        places => source.list("const PLACES: &'static [Place] = &[", places, ";"),
    }
    source.close("}");
}

/// A constant for each ring of a part.
fn write_constants(source: &mut Source, model: &Model<'_>, allocations: &[usize], part: &str) {
    let mut number = 0;
    for &s in allocations {
        let (allocation, name) = (&model.allocations()[s], &model.rings[s]);
        if let Some(StreamedLayer { streamed, .. }) =
            model.streamed[allocation.tensor].as_ref().filter(|_| allocation.begin().is_some())
        {
            // The blocks of a layer follow each other, and are one list.
            let blocks = &streamed.blocks;
            if blocks.first().is_some_and(|first| first.allocation == s) {
                let each: Vec<String> =
                    blocks.iter().map(|block| format!("{} bytes", block.range.len())).collect();
                let what = format!(
                    "Blocks of weights of `{}`: {}.",
                    model.methods[allocation.tensor],
                    each.join(", ")
                );
                let rings = (number..number + blocks.len()).map(|number| format!("Ring::of({number})"));
                source.gap();
                source.comment("///", &what);
                let head = format!("pub const {name}: [Ring<{part}, u8>; {}] = [", blocks.len());
                source.list(&head, &rings.collect::<Vec<String>>(), ";");
            }
            number += 1;
            continue;
        }
        let (stored, rows) = (allocation.ring_rows, model.cnn().layers[allocation.tensor].rows());
        let halves =
            if allocation.kind == RowOrder::Halves { ", for even frames and for odd ones" } else { "" };
        let what = if allocation.kind == RowOrder::Recurrent {
            "from hop to hop".into()
        } else if allocation.is_workspace() {
            "while it fires".into()
        } else if rows == 1 {
            "whole".into()
        } else {
            format!("{stored} of {rows} rows stored")
        };
        source.gap();
        let (region, _) = regions::place(&model.regions, allocation.bases[0]);
        let within = model.regions.get(region).map(|named| format!(" in `{}`", named.region.name));
        let within = within.unwrap_or_default();
        source.comment(
            "///",
            &format!("`{}`: {what}, {} bytes{halves}{within}.", allocation.name, allocation.ring_bytes()),
        );
        let rings: Vec<String> =
            (number..number + allocation.bases.len()).map(|number| format!("Ring::of({number})")).collect();
        number += allocation.bases.len();
        let ring_type = match element(model, s) {
            Element::F16 => format!("Ring<{part}, F16>"),
            Element::U8 => format!("Ring<{part}, u8>"),
            Element::F32 | Element::I64 => format!("Ring<{part}>"),
        };
        match rings.as_slice() {
            [ring] => source.line(format!("pub const {name}: {ring_type} = {ring};")),
            rings => {
                source.list(&format!("pub const {name}: [{ring_type}; {}] = [", rings.len()), rings, ";")
            }
        }
    }
}
