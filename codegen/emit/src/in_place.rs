//! Layers whose output ring shares bytes with a ring that they read: the rows from which each of their rows is made.

use std::ops::Range;

use super::model::Model;
use super::source::Source;
use super::stream;

/// The rows of an operand that row `y` of the output is made from.
pub(super) struct Window {
    /// The tensor read.
    pub tensor: usize,
    /// Name of the variable that holds them.
    pub name: String,
    /// By row of the output.
    rows: Vec<Range<u32>>,
    /// Rows of the tensor.
    height: u64,
}

/// The windows of the tensors whose rings share bytes with the ring that a layer writes; none for most layers.
pub(super) fn windows(model: &Model<'_>, layer: usize) -> Vec<Window> {
    let allocations = model.allocations();
    let Some(&own) = model.written(layer).first() else { return Vec::new() };
    let held = model.resolved.rates[model.c][layer].iter();
    let follows = held.filter(|held| {
        model
            .read(layer, held.tensor)
            .is_some_and(|allocation| allocations[allocation].overlaps(&allocations[own]))
    });
    let mut windows: Vec<Window> = follows
        .map(|held| Window {
            tensor: held.tensor,
            name: "rows".into(),
            rows: held.rows.clone(),
            height: model.cnn().layers[held.tensor].rows(),
        })
        .collect();
    if windows.len() > 1 {
        windows.iter_mut().enumerate().for_each(|(i, window)| window.name = format!("rows_{}", i + 1));
    }
    windows
}

impl Window {
    /// Name of the variable that holds them as the kernel counts them, if the layer works along the time of a stream.
    pub fn counted(&self) -> String {
        format!("{}_{}", self.name, stream::COUNTED)
    }

    fn write(&self, source: &mut Source) {
        let Window { name, rows, height, .. } = self;
        if let Some(text) = formula(rows, *height) {
            source.line(format!("let {name} = {text};"));
            return;
        }
        let constant = name.to_uppercase();
        let table: Vec<String> = rows.iter().map(|rows| format!("({}, {})", rows.start, rows.end)).collect();
        source.list(&format!("const {constant}: [(usize, usize); {}] = [", table.len()), &table, ";");
        source.line(format!("let {name} = {constant}[y].0..{constant}[y].1;"));
    }
}

/// Writes the variables, and row `y` as a range.
pub(super) fn write(source: &mut Source, model: &Model<'_>, layer: usize, windows: &[Window]) {
    let over_time = model.cnn().is_over_time(layer);
    for window in windows {
        window.write(source);
        if over_time {
            stream::write_existing(source, model, window.tensor, &window.name);
            let counted = stream::counted(model, window.tensor, &window.name);
            source.line(format!("let {} = {counted};", window.counted()));
        }
    }
    source.line("let y = y..y + 1;");
    if over_time {
        source.line(format!("let {} = {};", stream::COUNTED, stream::counted(model, layer, "y")));
    }
}

/// `stride · y − before .. stride · y + after`, cut off where the tensor ends, if the windows have this form.
fn formula(rows: &[Range<u32>], height: u64) -> Option<String> {
    let height = u32::try_from(height).ok()?;
    let (first, second) = (rows.first()?, rows.get(1)?);
    let at = |y: usize, stride: u32, before: u32, after: u32| {
        let middle = (y as u32).checked_mul(stride)?;
        Some(middle.saturating_sub(before).min(height)..middle.checked_add(after)?.min(height))
    };
    // The first window begins with the tensor, so that what lies before it is seen later.
    let after = first.end;
    let stride = second.end.checked_sub(after)?;
    let (late, begin) =
        rows.iter().enumerate().find(|(_, rows)| rows.start > 0).map(|(y, r)| (y, r.start))?;
    let before = (late as u32).checked_mul(stride)?.checked_sub(begin)?;
    let fits = |(y, rows): (usize, &Range<u32>)| at(y, stride, before, after).as_ref() == Some(rows);
    if stride == 0 || !rows.iter().enumerate().all(fits) {
        return None;
    }
    let middle = if stride == 1 { "y".to_owned() } else { format!("{stride} * y") };
    let last = rows.len() as u32 - 1;
    // The compiler does not know the type of `y` yet at this place.
    let start = match before {
        0 => middle.clone(),
        before => format!("usize::saturating_sub({middle}, {before})"),
    };
    let end = match after {
        0 => middle,
        after => format!("{middle} + {after}"),
    };
    let cut = |text: String, most: u32| match most <= height {
        true => text,
        false => format!("usize::min({text}, {height})"),
    };
    let start = cut(start, (last * stride).saturating_sub(before));
    let end = cut(end, last * stride + after);
    Some(format!("{start}..{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_formulas_where_they_can_be() {
        let check = |rows: &[(u32, u32)], height, expected: Option<&str>| {
            let rows: Vec<Range<u32>> = rows.iter().map(|&(start, end)| start..end).collect();
            assert_eq!(formula(&rows, height).as_deref(), expected, "{rows:?}");
        };
        check(&[(0, 1), (1, 2), (2, 3)], 3, Some("y..y + 1"));
        check(
            &[(0, 2), (0, 3), (1, 4), (2, 4)],
            4,
            Some("usize::saturating_sub(y, 1)..usize::min(y + 2, 4)"),
        );
        check(&[(0, 2), (1, 4), (3, 6)], 6, Some("usize::saturating_sub(2 * y, 1)..2 * y + 2"));
        check(&[(0, 2), (2, 4)], 4, Some("2 * y..2 * y + 2"));
        check(
            &[(0, 0), (0, 1), (1, 1), (1, 1)],
            1,
            Some("usize::min(usize::saturating_sub(y, 1), 1)..usize::min(y, 1)"),
        );
        // Rows that are read twice, and rows at the end that nothing reads.
        check(&[(0, 1), (0, 1), (1, 2), (1, 2)], 2, None);
        check(&[(0, 1), (1, 2), (2, 5)], 5, None);
    }
}
