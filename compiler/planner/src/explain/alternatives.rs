//! What it would take to meet constraints, as a table with a command in each line.
//!
//! ```
//! use csdfc_plan::alternative::Alternative;
//! use csdfc_planner::explain::alternatives;
//!
//! let alternative = Alternative {
//!     means: "half precision".into(),
//!     options: ["--precision", "half"].map(String::from).to_vec(),
//!     total: 51_072,
//!     fps: [("resnet8".to_owned(), 80.0)].into(),
//!     met: true,
//! };
//! let words = ["csdfc", "plan", "builtin:resnet8", "--mem", "60kB"].map(String::from);
//! let text = alternatives::text(&[alternative], &words);
//! assert!(text.ends_with("51 072  80.0  yes  csdfc plan builtin:resnet8 --mem 60kB --precision half\n"), "{text}");
//! ```

use csdfc_input::units::grouped;
use csdfc_plan::alternative::Alternative;

use super::table::table;

/// The alternatives, one a line, below their heads; nothing if there are none. `words` are those of the command whose constraints
/// are not met.
pub fn text(alternatives: &[Alternative], words: &[String]) -> String {
    if alternatives.is_empty() {
        return String::new();
    }
    let head = ["what can be done", "bytes", "fps", "met", "command"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for alternative in alternatives {
        let fps: Vec<String> = alternative.fps.values().map(|fps| format!("{fps:.1}")).collect();
        rows.push(vec![
            alternative.means.clone(),
            grouped(alternative.total),
            fps.join(" / "),
            if alternative.met { "yes" } else { "no" }.into(),
            alternative.command(words),
        ]);
    }
    table(&rows, &[1, 2])
}
