//! What it would take to meet constraints, as a table with a command in each line.
//!
//! ```
//! use csdfc_plan::remedy::Remedy;
//! use csdfc_planner::explain::remedies;
//!
//! let remedy = Remedy {
//!     means: "half precision".into(),
//!     options: ["--precision", "half"].map(String::from).to_vec(),
//!     total: 51_072,
//!     fps: [("resnet8".to_owned(), 80.0)].into(),
//!     met: true,
//! };
//! let words = ["csdfc", "plan", "builtin:resnet8", "--mem", "60kB"].map(String::from);
//! let text = remedies::text(&[remedy], &words);
//! assert!(text.ends_with("51 072  80.0  yes  csdfc plan builtin:resnet8 --mem 60kB --precision half\n"), "{text}");
//! ```

use csdfc_input::units::grouped;
use csdfc_plan::remedy::Remedy;

use super::table::table;

/// The remedies, one a line, below their heads; nothing if there are none. `words` are those of the command whose constraints
/// are not met.
pub fn text(remedies: &[Remedy], words: &[String]) -> String {
    if remedies.is_empty() {
        return String::new();
    }
    let head = ["what can be done", "bytes", "fps", "met", "command"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for remedy in remedies {
        let fps: Vec<String> = remedy.fps.values().map(|fps| format!("{fps:.1}")).collect();
        rows.push(vec![
            remedy.means.clone(),
            grouped(remedy.total),
            fps.join(" / "),
            if remedy.met { "yes" } else { "no" }.into(),
            remedy.command(words),
        ]);
    }
    table(&rows, &[1, 2])
}
