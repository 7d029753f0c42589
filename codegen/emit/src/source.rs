//! Rust text under construction: lines with indentation.

/// Longest line, as in the `rustfmt.toml` of the emitted crate.
pub(super) const WIDTH: usize = 110;

/// Longest element of an array that shares its line with others.
const SHORT: usize = 10;

/// A file of Rust.
#[derive(Debug, Default)]
pub(super) struct Source {
    text: String,
    depth: usize,
}

impl Source {
    /// Adds a line.
    pub fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if !line.is_empty() {
            self.text.extend(std::iter::repeat_n("    ", self.depth));
            self.text.push_str(line);
        }
        self.text.push('\n');
    }

    /// Adds an empty line.
    pub fn gap(&mut self) {
        self.line("");
    }

    /// Adds a line after which lines stand deeper.
    pub fn open(&mut self, line: impl AsRef<str>) {
        self.line(line);
        self.depth += 1;
    }

    /// Adds a line that closes the block of the last open line.
    pub fn close(&mut self, line: impl AsRef<str>) {
        self.depth -= 1;
        self.line(line);
    }

    /// Adds a comment, broken into lines, each with this mark (`//`, `///`, `//!`) before it.
    pub fn comment(&mut self, mark: &str, text: &str) {
        let room = WIDTH.saturating_sub(self.depth * 4 + mark.len() + 1);
        let mut line = String::new();
        for word in text.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
                self.line(format!("{mark} {line}"));
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(format!("{mark} {line}"));
    }

    /// Returns to the indentation before the last open line.
    pub fn dedent(&mut self) {
        self.depth -= 1;
    }

    /// Whether a line fits the width.
    pub fn fits(&self, line: &str) -> bool {
        self.depth * 4 + line.chars().count() <= WIDTH
    }

    /// Adds `head(items…)tail`, on one line if it fits and otherwise with one item per line, as rustfmt does.
    pub fn list(&mut self, head: &str, items: &[String], tail: &str) {
        let (end, spaced) = match head.chars().last() {
            Some('(') => (")", ""),
            Some('[') => ("]", ""),
            _ => ("}", " "),
        };
        let one = format!("{head}{spaced}{}{spaced}{end}{tail}", items.join(", "));
        if self.fits(&one) {
            self.line(one);
            return;
        }
        let assigned = one.split_once(" = ").filter(|(_, value)| self.fits(&format!("    {value}")));
        if let Some((place, value)) = assigned {
            self.open(format!("{place} ="));
            self.line(value);
            self.dedent();
        } else {
            self.open(head);
            let short = end == "]" && items.iter().all(|item| item.len() <= SHORT);
            let room = WIDTH - self.depth * 4;
            let mut line = String::new();
            for item in items {
                // Short elements of an array share lines.
                if !line.is_empty() && (!short || line.len() + 2 + item.len() >= room) {
                    self.line(std::mem::take(&mut line));
                }
                line += if line.is_empty() { "" } else { " " };
                line += &format!("{item},");
            }
            self.line(line);
            self.close(format!("{end}{tail}"));
        }
    }

    /// Opens a function: `head` and `tail` with parameters between, one per line if they do not fit on one.
    pub fn head(&mut self, head: &str, parameters: &[String], tail: &str) {
        let one = format!("{head}{}){tail}", parameters.join(", "));
        if self.fits(&one) {
            self.open(one);
            return;
        }
        self.open(head);
        parameters.iter().for_each(|parameter| self.line(format!("{parameter},")));
        self.depth -= 1;
        self.open(format!("){tail}"));
    }

    /// The text.
    pub fn finish(self) -> String {
        self.text
    }
}
