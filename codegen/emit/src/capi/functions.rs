//! The functions for C: `src/capi.rs`, behind the feature `capi`.

use super::{Field, STATUSES, blocks, inputs, library, outputs, prefix};
use crate::model::Model;
use crate::names::camel;
use crate::source::Source;

/// The text of `src/capi.rs`.
pub fn write(name: &str, models: &[Model<'_>]) -> String {
    let library = library(name);
    let mut source = Source::default();
    source.gap();
    source.line("#[unsafe(no_mangle)]");
    source.open(format!("pub extern \"C\" fn {library}_status_text(status: c_int) -> *const c_char {{"));
    source.open("let text = match status {");
    for (status, (_, text)) in STATUSES.iter().enumerate() {
        source.line(format!("{status} => c{text:?},"));
    }
    source.line("_ => c\"it is no status\",");
    source.close("};");
    source.line("text.as_ptr()");
    source.close("}");
    for (name, found) in [
        ("newest", ".ok().and_then(|slots| newest(&slots)).map_or(-1, |(slot, _)| slot as c_int)"),
        ("oldest", ".map_or(-1, |slots| oldest(&slots) as c_int)"),
    ] {
        source.gap();
        source.line("#[unsafe(no_mangle)]");
        source.open(format!("pub unsafe extern \"C\" fn {library}_{name}(slots: *const Slot) -> c_int {{"));
        source.line("// SAFETY: the header asks for two slots.");
        source.line(format!("unsafe {{ contents(slots) }}{found}"));
        source.close("}");
    }
    for (number, model) in models.iter().enumerate() {
        write_model(&mut source, &prefix(name, models, model), models, number);
    }
    let store = match models.iter().any(Model::is_streamed) {
        true => include_str!("../template/capi_store.rs"),
        false => "",
    };
    include_str!("../template/capi.rs").to_owned() + store + &source.finish()
}

fn write_model(source: &mut Source, prefix: &str, models: &[Model<'_>], number: usize) {
    let model = &models[number];
    let module = &model.module;
    let streamed = model.is_streamed();
    let model_type = format!("crate::{module}::Model<'static{}>", if streamed { ", CStore" } else { "" });
    for (kind, pointer, fields) in [("Inputs", "*const", inputs(model)), ("Outputs", "*mut", outputs(model))]
    {
        source.gap();
        source.line("#[repr(C)]");
        source.open(format!("pub struct {}{kind} {{", camel(prefix)));
        for field in fields {
            source.line(format!("pub {}: {pointer} {},", field.name, field.element[0]));
            source.line(format!("pub {}_elements: usize,", field.name));
        }
        source.close("}");
    }
    let function = |source: &mut Source, feature: &str, name: &str, arguments: &[&str]| {
        source.gap();
        if !feature.is_empty() {
            source.line(format!("#[cfg(feature = {feature:?})]"));
        }
        source.line("#[unsafe(no_mangle)]");
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        source.head(&format!("pub unsafe extern \"C\" fn {prefix}_{name}("), &arguments, " -> Status {");
    };
    let blocks = blocks(models);
    let each =
        blocks.iter().flat_map(|name| [format!("{name}: *mut c_void"), format!("{name}_bytes: usize")]);
    let place: Vec<String> = ["place: *mut Place".to_owned()].into_iter().chain(each).collect();
    let place: Vec<&str> = place.iter().map(String::as_str).collect();
    let given: Vec<String> = blocks.iter().map(|name| format!("({name}, {name}_bytes)")).collect();
    let weights = ["weights: *const u8", "weight_bytes: usize"];
    let store: &[&str] = if streamed { &["store: *const CStore"] } else { &[] };
    let stored = if streamed { ", store" } else { "" };
    let pattern = if model.streamed_stages().len() > 1 { "store" } else { "[store]" };
    let take = |source: &mut Source, name: &str, made: &str| {
        source.line("// SAFETY: the header asks that pointers lead to as many elements as are stated.");
        source.open(format!("let {name} = match unsafe {{ {made} }} {{"));
        source.line(format!("Ok({name}) => {name},"));
        source.line("Err(status) => return status,");
        source.close("};");
    };
    let make = |source: &mut Source, weights: &str| {
        source.list("let given = [", &given, ";");
        source.open("let make = |memory| {");
        source.line(format!("let weights = {weights};"));
        source.line(format!("Ok(crate::{module}::Model::on(memory, weights{stored}))"));
        source.close("};");
        source.line(
            "// SAFETY: the header asks for a place of zeros, and for an arena of the model's own or of models in turn.",
        );
        source.line(format!("unsafe {{ create({number}, place, given, make) }}"));
        source.close("}");
    };
    function(source, "weights", "create", &[&place[..], store].concat());
    if streamed {
        take(source, pattern, "stores_of(store)");
    }
    make(source, "crate::weights::embedded()");
    function(source, "", "create_with_weights", &[&place[..], &weights[..], store].concat());
    take(source, "weights", "bytes(weights, weight_bytes)");
    if streamed {
        take(source, pattern, "stores_of(store)");
    }
    make(source, "crate::weights::verify(weights).map_err(refused)?");
    let update = ["update: *const u8", "update_bytes: usize"];
    function(source, "", "create_with_update", &[&place[..], &update[..], store].concat());
    take(source, "update", "bytes(update, update_bytes)");
    if streamed {
        take(source, pattern, "stores_of(store)");
    }
    make(source, "crate::update::Update::read(update).map_err(no_update)?.weights()");

    let camel = camel(prefix);
    let (inputs_type, outputs_type) =
        (format!("inputs: *const {camel}Inputs"), format!("outputs: *const {camel}Outputs"));
    function(source, "", "infer", &["place: *mut Place", &inputs_type, &outputs_type]);
    source.open("let infer = || {");
    source.line("// SAFETY: the header asks for a place of zeros or a model, and stated lengths.");
    source.open("unsafe {");
    source.line(format!("let model: &mut {model_type} = created({number}, place)?;"));
    source.line("let (inputs, outputs) = (read(inputs)?, read(outputs)?);");
    for (kind, from, fields) in [("Inputs", "frame", inputs(model)), ("Outputs", "room", outputs(model))] {
        let owner = kind.to_lowercase();
        let fields: Vec<String> = fields
            .iter()
            .map(|Field { name, .. }| format!("{name}: {from}({owner}.{name}, {owner}.{name}_elements)?"))
            .collect();
        source.list(&format!("let {owner} = crate::{module}::{kind} {{"), &fields, ";");
    }
    if streamed {
        source.line("model.infer(inputs, outputs).map_err(|_| Status::Store)");
        source.close("}");
    } else {
        source.line("model.infer(inputs, outputs);");
        source.close("}");
        source.line("Ok(())");
    }
    source.close("};");
    source.line("status(infer())");
    source.close("}");

    write_rows(source, prefix, model);
    let (inputs_type, outputs_type) =
        (format!("inputs: *const {camel}InputRows"), format!("outputs: *const {camel}OutputRows"));
    let arguments = ["place: *mut Place", &inputs_type, &outputs_type, "context: *mut c_void"];
    function(source, "", "infer_rows", &arguments);
    source.line("let lacks = Cell::new(false);");
    source.open("let infer = || {");
    source.line("// SAFETY: the header asks for a place of zeros or a model, and stated lengths.");
    source.open("unsafe {");
    source.line(format!("let model: &mut {model_type} = created({number}, place)?;"));
    source.line("let (inputs, outputs) = (read(inputs)?, read(outputs)?);");
    for field in model.inputs.iter().filter(|field| !field.by_rows) {
        let (name, element) = (&field.name, field.element());
        let elements = model.cnn().layers[field.layer].tensor.shape.elements();
        source.line(format!("frame::<{element}, {elements}>(inputs.{name}, inputs.{name}_elements)?;"));
    }
    let by_rows = model.inputs.iter().filter(|field| field.by_rows);
    let functions = by_rows.map(|field| format!("inputs.{}.is_none()", field.name));
    let functions =
        functions.chain(model.outputs.iter().map(|field| format!("outputs.{}.is_none()", field.name)));
    for is_none in functions {
        source.open(format!("if {is_none} {{"));
        source.line("return Err(Status::Null);");
        source.close("}");
    }
    source.line("let inputs = Rows { functions: inputs, context, lacks: &lacks };");
    source.line("let outputs = Rows { functions: outputs, context, lacks: &lacks };");
    source.line(match streamed {
        true => "model.infer_rows(inputs, outputs).map_err(|_| Status::Store)?;",
        false => "model.infer_rows(inputs, outputs);",
    });
    source.close("}");
    source.line("if lacks.get() { Err(Status::Null) } else { Ok(()) }");
    source.close("};");
    source.line("status(infer())");
    source.close("}");

    if model.keeps_state() {
        function(source, "", "reset", &["place: *mut Place"]);
        source.line("// SAFETY: the header asks for a place of zeros or a model that nobody else uses.");
        source.line(format!("let model = unsafe {{ created::<{model_type}>({number}, place) }};"));
        source.line("status(model.map(|model| model.reset()))");
        source.close("}");
        for (name, pointer, from) in [("save", "*mut u8", "room"), ("restore", "*const u8", "frame")] {
            let state = format!("state: {pointer}");
            function(source, "", name, &["place: *mut Place", &state, "state_bytes: usize"]);
            source.open(format!("let {name} = || {{"));
            source.line("// SAFETY: the header asks for a place of zeros or a model, and stated lengths.");
            source.open("unsafe {");
            source.line(format!("let model: &mut {model_type} = created({number}, place)?;"));
            source.line(format!("model.{name}({from}(state, state_bytes)?);"));
            source.close("}");
            source.line("Ok(())");
            source.close("};");
            source.line(format!("status({name}())"));
            source.close("}");
        }
    }

    function(source, "", "destroy", &["place: *mut Place"]);
    source.line("// SAFETY: the header asks for a place of zeros or a model that nobody else uses.");
    source.line(format!("unsafe {{ destroy::<{model_type}>({number}, place) }}"));
    source.close("}");
}

/// Writes the functions by which a model takes and returns rows.
fn write_rows(source: &mut Source, prefix: &str, model: &Model<'_>) {
    let (camel, module) = (camel(prefix), &model.module);
    source.gap();
    source.line("#[repr(C)]");
    source.open(format!("pub struct {camel}InputRows {{"));
    for field in &model.inputs {
        let name = &field.name;
        let function = match (field.by_rows, field.element(), field.planar()) {
            (false, element, _) => {
                source.line(format!("pub {name}: *const {element},"));
                source.line(format!("pub {name}_elements: usize,"));
                continue;
            }
            (true, "f32", _) => "fn(*mut c_void, usize, *mut f32)",
            (true, element, false) => &format!("fn(*mut c_void, usize) -> *const {element}"),
            (true, element, true) => &format!("fn(*mut c_void, usize, usize) -> *const {element}"),
        };
        source.line(format!("pub {name}: Option<unsafe extern \"C\" {function}>,"));
    }
    source.close("}");
    source.gap();
    source.open(format!("impl crate::{module}::InputRows for Rows<'_, {camel}InputRows> {{"));
    for (i, field) in model.inputs.iter().enumerate() {
        if i > 0 {
            source.gap();
        }
        let (name, shape) = (&field.name, &model.cnn().layers[field.layer].tensor.shape);
        source.open(format!("{} {{", field.signature(shape)));
        if field.by_rows {
            let arguments = match (field.element(), field.planar()) {
                ("f32", _) => "y, row.as_mut_ptr()",
                (_, false) => "y",
                (_, true) => "y, channel",
            };
            source.line(
                "// SAFETY: the function is called with its own context and for rows as the header says.",
            );
            let call = |function: &str| format!("unsafe {{ {function}(self.context, {arguments}) }}");
            if field.element() == "f32" {
                source.open(format!("if let Some(fill) = self.functions.{name} {{"));
                source.line(format!("{};", call("fill")));
                source.close("}");
            } else {
                source.line(format!(
                    "let row = self.functions.{name}.map_or(ptr::null(), |row| {});",
                    call("row")
                ));
                source.line("// SAFETY: the header asks for null or a whole row.");
                let elements =
                    shape.row_elements() / if field.planar() { shape.channels().max(1) } else { 1 };
                source.line(format!("unsafe {{ self.bytes(row, &[0; {elements}]) }}"));
            }
        } else {
            source.line("// SAFETY: the frame was checked before it was handed on.");
            source.line(format!("unsafe {{ &*self.functions.{name}.cast() }}"));
        }
        source.close("}");
    }
    source.close("}");
    source.gap();
    source.line("#[repr(C)]");
    source.open(format!("pub struct {camel}OutputRows {{"));
    for (field, Field { name, element: [element, _], .. }) in model.outputs.iter().zip(outputs(model)) {
        let function = match model.written(field.layer).is_empty() {
            true => format!("fn(*mut c_void, usize, usize) -> *mut {element}"),
            false => format!("fn(*mut c_void, usize, *const {element})"),
        };
        source.line(format!("pub {name}: Option<unsafe extern \"C\" {function}>,"));
    }
    source.close("}");
    source.gap();
    source.open(format!("impl crate::{module}::OutputRows for Rows<'_, {camel}OutputRows> {{"));
    for (o, field) in model.outputs.iter().enumerate() {
        if o > 0 {
            source.gap();
        }
        let (name, row) = (&field.name, model.cnn().layers[field.layer].tensor.shape.row_elements());
        source.open(format!("{} {{", model.output_signature(field)));
        let called =
            "// SAFETY: the function is called with its own context and for rows as the header says.";
        if model.written(field.layer).is_empty() {
            source.line(format!("let room = self.functions.{name}.map_or(ptr::null_mut(), |room| {{"));
            source.line(format!("    {called}"));
            source.line("    unsafe { room(self.context, y.start, y.len()) }");
            source.line("});");
            source.line("// SAFETY: the header asks for room for these rows.");
            source.line(format!("unsafe {{ self.room(room, y, {row}) }}"));
        } else {
            source.open(format!("if let Some(take) = self.functions.{name} {{"));
            source.line(called);
            source.line("unsafe { take(self.context, y, row.as_ptr()) };");
            source.close("}");
        }
        source.close("}");
    }
    source.close("}");
}
