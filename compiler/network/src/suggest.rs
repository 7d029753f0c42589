//! Near misses: finds the known name that a user may have meant, and formats names for messages.
//!
//! ```
//! use csdfc_network::suggest::{help, nearest};
//!
//! let names = ["conv1", "relu1", "pool1"];
//! assert_eq!(nearest("cnov1", names), Some("conv1"));
//! assert_eq!(nearest("softmax", names), None);
//! assert_eq!(help("cnov1", "layers", names), "did you mean `conv1`? layers: conv1, relu1, pool1");
//! ```

/// Longest text that a message shows whole, in characters.
const SHOWN: usize = 60;

/// Maximum number of names that a message lists.
const LISTED: usize = 16;

/// A text on one line and of bearable length.
pub fn clip(text: &str) -> String {
    clip_to(text, SHOWN)
}

/// A text on one line, of at most `length` characters.
pub fn clip_to(text: &str, length: usize) -> String {
    let mut shown: String = text.chars().take(length).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(length).is_some() {
        shown.push('…');
    }
    shown
}

/// The candidate nearest to `name`, if one is near enough to have been meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length > SHOWN {
        return None;
    }
    let lower = name.to_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= 2 * SHOWN)
        .map(|candidate| (strsim::osa_distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| {
            *distance < length && *distance <= (length.max(candidate.chars().count()) / 3).max(1)
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// A sentence that helps with an unknown name. It has the near miss, if there is one, and the known names.
pub fn help<'a>(name: &str, what: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let near = match nearest(name, candidates.iter().copied()) {
        Some(near) => format!("did you mean `{}`? ", clip(near)),
        None => String::new(),
    };
    format!("{near}{what}: {}", list(&candidates))
}

fn list(names: &[&str]) -> String {
    let mut text: Vec<String> = names.iter().take(LISTED).map(|name| clip(name)).collect();
    if names.is_empty() {
        text.push("none".into());
    } else if names.len() > LISTED {
        text.push(format!("and {} more", names.len() - LISTED));
    }
    text.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_found_and_strangers_are_not() {
        let names = ["model", "name", "partitions", "precision", "precisions"];
        for (name, expected) in [
            ("modle", Some("model")),
            ("Name", Some("name")),
            ("partition", Some("partitions")),
            ("precison", Some("precision")),
            ("x", None),
            ("nam", Some("name")),
            ("banana", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, names), expected, "{name}");
        }
        assert_eq!(nearest(&"m".repeat(1_000_000), names), None);
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..40).map(|i| format!("layer_{i}")).collect();
        let text = help("layr_7", "layers", names.iter().map(String::as_str));
        assert!(text.starts_with("did you mean `layer_7`? layers: layer_0, "), "{text}");
        assert!(text.ends_with("layer_15, and 24 more"), "{text}");
        assert_eq!(clip("a\nb"), "a b");
        assert_eq!(clip(&"é".repeat(100)).chars().count(), SHOWN + 1);
    }
}
