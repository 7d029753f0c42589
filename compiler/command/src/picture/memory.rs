//! The memory map of a plan as a picture that needs no script: what lies where in the arena, and when. The page of
//! `csdfc report` draws the same map with more about each block.

use csdfc_input::units::{self, grouped};
use csdfc_plan::timeline::{Life, Place, PlaceKind, Timeline};

use super::svg::{Anchor, Rect, Svg};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 360.0;
/// Room around the map: left, top, right, bottom.
const ROOM: [f64; 4] = [84.0, 34.0, 16.0, 36.0];
/// A block narrower or lower than this, in pixels, has no room for its name.
const NAMED: [f64; 2] = [60.0, 13.0];
/// Width of a letter of a name, in pixels.
const LETTER: f64 = 6.2;

/// The map of an arena of `bytes` bytes as SVG: time from left to right, addresses from the bottom up. Each block says
/// what it is where the pointer rests on it.
pub fn map(title: &str, bytes: u64, timeline: &Timeline) -> String {
    let [left, top, right, below] = ROOM;
    let bottom = HEIGHT - below;
    // A plan without buffers has neither bytes nor blocks.
    let x = |ns: f64| left + ns / timeline.ns.max(1.0) * (WIDTH - left - right);
    let y = |address: u64| bottom - address as f64 / bytes.max(1) as f64 * (bottom - top);
    let mut svg = Svg::new(WIDTH, HEIGHT);
    svg.text([WIDTH / 2.0, 20.0], 14.0, Anchor::Middle, title);
    for life in &timeline.lives {
        let Some(place) = timeline.places.get(life.place) else { continue };
        svg.begin_group(&format!("fill=\"{}\" stroke=\"white\" stroke-width=\"0.5\"", color(place.kind)));
        svg.title(&said(place, life));
        for offset in &place.offsets {
            for step in life.steps.windows(2) {
                let [(from, rows), (to, _)] = step else { continue };
                if rows.is_empty() {
                    continue;
                }
                let [low, high] = [rows.start, rows.end].map(|row| y(offset + row * place.row_bytes));
                let block = Rect { x: x(*from), y: high, width: x(*to) - x(*from), height: low - high };
                svg.rect(block, "");
            }
        }
        svg.end_group();
    }
    // Names lie above all blocks.
    for life in &timeline.lives {
        let (Some(place), Some([from, to])) = (timeline.places.get(life.place), ends(life)) else { continue };
        let Some(offset) = place.offsets.first() else { continue };
        let (width, end) = (x(to) - x(from), offset + place.rows * place.row_bytes);
        if width < NAMED[0] || y(*offset) - y(end) < NAMED[1] || place.kind == PlaceKind::Whole && thins(life)
        {
            continue;
        }
        let name: String = place.name.chars().take((width / LETTER) as usize).collect();
        let middle = [(x(from) + x(to)) / 2.0, (y(*offset) + y(end)) / 2.0 + 4.0];
        svg.text(middle, 11.0, Anchor::Middle, &name);
    }
    svg.line([left, bottom], [WIDTH - right, bottom], "stroke=\"#222\"");
    svg.line([left, top], [left, bottom], "stroke=\"#222\"");
    svg.text([left - 6.0, bottom], 11.0, Anchor::End, "0");
    svg.text([left - 6.0, top + 8.0], 11.0, Anchor::End, &grouped(bytes));
    svg.text([left - 6.0, (top + bottom) / 2.0], 11.0, Anchor::End, "bytes");
    svg.text([left, bottom + 18.0], 11.0, Anchor::Start, "0");
    svg.text([WIDTH - right, bottom + 18.0], 11.0, Anchor::End, &format!("{:.4} ms", timeline.ns / 1e6));
    svg.finish()
}

/// When a place is in use: the first and the last moment, in nanoseconds.
fn ends(life: &Life) -> Option<[f64; 2]> {
    Some([life.steps.first()?.0, life.steps.last()?.0])
}

/// Whether fewer rows than at its fullest are in use for a part of a life: a name could lie beside the block.
fn thins(life: &Life) -> bool {
    let rows = || life.steps.iter().rev().skip(1).map(|(_, rows)| rows.end - rows.start);
    rows().min() != rows().max()
}

/// What a block is, in words.
fn said(place: &Place, life: &Life) -> String {
    let [from, to] = ends(life).unwrap_or_default().map(|ns| ns / 1e6);
    let offsets: Vec<String> = place.offsets.iter().map(|offset| grouped(*offset)).collect();
    format!(
        "{}: {}, {} at {}, from {from:.4} to {to:.4} ms",
        place.name,
        place.kind.name(),
        units::bytes(place.bytes()),
        offsets.join(" and ")
    )
}

/// The colours of the page.
fn color(kind: PlaceKind) -> &'static str {
    match kind {
        PlaceKind::Whole => "#6ea0dc",
        PlaceKind::Wraps => "#4fb3a3",
        PlaceKind::Cut => "#b18ad6",
        PlaceKind::State => "#c9bd3e",
        PlaceKind::Workspace => "#e8a94c",
        PlaceKind::Block => "#e07f86",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_life_is_a_block_with_its_name() {
        let place = |name: &str, offset| Place {
            name: name.into(),
            kind: PlaceKind::Wraps,
            cnn: 0,
            layer: 0,
            readers: vec![1],
            offsets: vec![offset],
            rows: 4,
            row_bytes: 25,
        };
        let life = |place, from, to| Life { place, frame: 0, steps: vec![(from, 0..4), (to, 0..0)] };
        let timeline = Timeline {
            places: vec![place("net/a<b", 0), place("net/c", 100)],
            lives: vec![life(0, 0.0, 5e6), life(1, 2e6, 1e7)],
            ns: 1e7,
            ..Timeline::default()
        };
        let svg = map("net", 200, &timeline);
        assert_eq!((svg.matches("<title>").count(), svg.matches("<rect").count()), (2, 3));
        assert!(
            svg.contains("<title>net/a&lt;b: ring of rows, 100 bytes at 0, from 0.0000 to 5.0000 ms<"),
            "{svg}"
        );
        assert!(svg.contains(">net/c</text>"), "{svg}");
    }

    #[test]
    fn an_empty_arena_divides_by_nothing() {
        assert!(!map("none", 0, &Timeline::default()).contains("NaN"));
    }
}
