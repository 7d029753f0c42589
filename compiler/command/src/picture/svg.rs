//! A small writer of SVG. Coordinates are in pixels. Numbers are printed with at most two decimals, so that a picture
//! has the same bytes on every machine.

use std::fmt::Write;

/// Where a text is anchored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rect {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

/// A picture under way.
#[derive(Debug, Clone)]
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    /// An empty picture of this size, on white.
    pub fn new(width: f64, height: f64) -> Self {
        let mut svg = Svg { width, height, body: String::new() };
        svg.rect(Rect { x: 0.0, y: 0.0, width, height }, "fill=\"white\"");
        svg
    }

    /// A rectangle with these attributes.
    pub fn rect(&mut self, rect: Rect, attributes: &str) {
        let [x, y, width, height] = [rect.x, rect.y, rect.width, rect.height].map(number);
        self.line_of(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {attributes}/>"
        ));
    }

    /// A straight line.
    pub fn line(&mut self, from: [f64; 2], to: [f64; 2], attributes: &str) {
        let [x1, y1, x2, y2] = [from[0], from[1], to[0], to[1]].map(number);
        self.line_of(&format!("<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" {attributes}/>"));
    }

    /// A line through points.
    pub fn polyline(&mut self, points: &[[f64; 2]], attributes: &str) {
        let points: Vec<String> =
            points.iter().map(|[x, y]| format!("{},{}", number(*x), number(*y))).collect();
        self.line_of(&format!("<polyline points=\"{}\" fill=\"none\" {attributes}/>", points.join(" ")));
    }

    /// A circle.
    pub fn circle(&mut self, [x, y]: [f64; 2], radius: f64, attributes: &str) {
        let [x, y, radius] = [x, y, radius].map(number);
        self.line_of(&format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" {attributes}/>"));
    }

    /// A line of text of this height.
    pub fn text(&mut self, [x, y]: [f64; 2], size: f64, anchor: Anchor, text: &str) {
        self.text_with([x, y], size, anchor, "fill=\"#222\"", text);
    }

    /// A line of text with attributes of its own.
    pub fn text_with(&mut self, [x, y]: [f64; 2], size: f64, anchor: Anchor, attributes: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let [x, y, size] = [x, y, size].map(number);
        self.line_of(&format!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" text-anchor=\"{anchor}\" {attributes}>{}</text>",
            escaped(text)
        ));
    }

    /// Begins a group of elements, which [`Svg::end_group`] ends.
    pub fn begin_group(&mut self, attributes: &str) {
        self.line_of(&format!("<g {attributes}>"));
    }

    /// What the group is that has begun. Browsers show it where the pointer rests on the group.
    pub fn title(&mut self, text: &str) {
        self.line_of(&format!("<title>{}</title>", escaped(text)));
    }

    /// Ends a group.
    pub fn end_group(&mut self) {
        self.line_of("</g>");
    }

    /// The picture as a file's text.
    pub fn finish(self) -> String {
        let [width, height] = [self.width, self.height].map(number);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\">\n{}</svg>\n",
            self.body
        )
    }

    fn line_of(&mut self, element: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{element}");
    }
}

/// A number with at most two decimals.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A text as XML holds it.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // XML has no place for most control characters.
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_plain_text() {
        let mut svg = Svg::new(10.0, 5.5);
        svg.begin_group("opacity=\"0.5\"");
        svg.rect(Rect { x: 1.0 / 3.0, y: -0.001, width: 2.0, height: 1.5 }, "fill=\"red\"");
        svg.end_group();
        svg.polyline(&[[0.0, 1.0], [2.25, 3.0]], "stroke=\"black\"");
        svg.text([1.0, 2.0], 4.0, Anchor::Middle, "a<b\"&\u{7}");
        let expected = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"10\" height=\"5.5\" \
            viewBox=\"0 0 10 5.5\" font-family=\"sans-serif\">\n\
            <rect x=\"0\" y=\"0\" width=\"10\" height=\"5.5\" fill=\"white\"/>\n\
            <g opacity=\"0.5\">\n\
            <rect x=\"0.33\" y=\"0\" width=\"2\" height=\"1.5\" fill=\"red\"/>\n\
            </g>\n\
            <polyline points=\"0,1 2.25,3\" fill=\"none\" stroke=\"black\"/>\n\
            <text x=\"1\" y=\"2\" font-size=\"4\" text-anchor=\"middle\" fill=\"#222\">a&lt;b&quot;&amp; </text>\n\
            </svg>\n";
        assert_eq!(svg.finish(), expected);
    }
}
