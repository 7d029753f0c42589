//! Columns of text.
//!
//! ```
//! use csdfc_planner::explain::table::table;
//!
//! let row = |layer: &str, bytes: &str| vec![layer.to_owned(), bytes.to_owned()];
//! let text = table(&[row("layer", "bytes"), row("C1", "672")], &[1]);
//! assert_eq!(text, "layer  bytes\nC1       672\n");
//! ```

/// Maximum number of characters of a name in a line of text. TFLite joins the names of fused operators, of hundreds of
/// characters.
const MAX_WORD_LEN: usize = 48;

/// Formats rows as lines of columns. Each column is as wide as its widest cell, and columns are two spaces apart. The
/// cells of the `right` columns are aligned to the right. Of a long name the middle is left out.
pub fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| shortened(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let padding = " ".repeat(widths[column] - cell.chars().count());
            let (before, after) =
                if right.contains(&column) { (padding.as_str(), "") } else { ("", padding.as_str()) };
            line.push_str(before);
            line.push_str(cell);
            line.push_str(after);
            line.push_str("  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A cell of several words, or of one [`short`] one.
fn shortened(cell: &str) -> String {
    if cell.contains(' ') { cell.to_owned() } else { short(cell) }
}

/// A name, of which the middle is left out if it is too long for a line of text.
pub fn short(name: &str) -> String {
    let length = name.chars().count();
    if length <= MAX_WORD_LEN {
        return name.to_owned();
    }
    let start: String = name.chars().take(MAX_WORD_LEN / 2).collect();
    let end: String = name.chars().skip(length - (MAX_WORD_LEN - 1) / 2).collect();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn long_names_lose_their_middle() {
        let row = |name: &str| vec![name.to_owned(), "12".to_owned()];
        let long = "model/block/conv/BiasAdd;".repeat(9);
        let sentence = "a sentence that is as long as it needs to be, since it is no name";
        let shown = "model/block/conv/BiasAdd…del/block/conv/BiasAdd;";
        let expected = format!("relu{:44}  12\n{shown}  12\n", "");
        assert_eq!(table(&[row("relu"), row(&long)], &[1]), expected);
        assert_eq!(table(&[row(sentence)], &[]), format!("{sentence}  12\n"));
    }
}
