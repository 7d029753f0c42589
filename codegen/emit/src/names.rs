//! Names of models, layers and tensors as Rust identifiers.

use std::collections::BTreeSet;

/// Words of Rust, which no identifier may be.
const TAKEN: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// Words of C and C++ that an identifier of Rust may be.
pub(super) const C_WORDS: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bool",
    "case",
    "catch",
    "char",
    "class",
    "constexpr",
    "default",
    "delete",
    "double",
    "explicit",
    "export",
    "float",
    "friend",
    "goto",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "nullptr",
    "operator",
    "or",
    "private",
    "protected",
    "public",
    "register",
    "requires",
    "restrict",
    "short",
    "signed",
    "sizeof",
    "switch",
    "template",
    "this",
    "throw",
    "typedef",
    "typename",
    "union",
    "unsigned",
    "using",
    "void",
    "volatile",
    "xor",
];

/// Identifiers given so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    given: BTreeSet<String>,
}

impl Names {
    /// Identifiers that are none of these words.
    pub fn except(words: &[&str]) -> Self {
        Names { given: words.iter().map(|word| (*word).to_owned()).collect() }
    }

    /// A `snake_case` identifier for this name, unlike all given before.
    pub fn give(&mut self, name: &str) -> String {
        let base = snake(name);
        let mut candidate = base.clone();
        let mut number = 2;
        while TAKEN.contains(&candidate.as_str()) || !self.given.insert(candidate.clone()) {
            candidate = format!("{base}_{number}");
            number += 1;
        }
        candidate
    }
}

/// A name in `snake_case`: letters and digits, all else as single underscores.
pub(super) fn snake(name: &str) -> String {
    let mut snake = String::new();
    let mut after_lower = false;
    for c in name.chars() {
        match c {
            'A'..='Z' => {
                if after_lower {
                    snake.push('_');
                }
                snake.push(c.to_ascii_lowercase());
            }
            'a'..='z' | '0'..='9' => snake.push(c),
            _ if !snake.is_empty() && !snake.ends_with('_') => snake.push('_'),
            _ => {}
        }
        after_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    let snake = snake.trim_end_matches('_');
    match snake.chars().next() {
        None => "unnamed".into(),
        Some('0'..='9') => format!("n{snake}"),
        Some(_) => snake.into(),
    }
}

/// Whether a text names this type or function as a whole word: to construct the type, to call one of its functions, or to
/// call the function.
pub(super) fn is_named(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let follows = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let rest = &text[at + name.len()..];
        !text[..at].ends_with(follows) && [" {", "::", "("].iter().any(|next| rest.starts_with(next))
    })
}

/// Whether this is a word of Rust.
pub(super) fn is_word(name: &str) -> bool {
    TAKEN.contains(&name)
}

/// A name of the plan in which no line ends.
pub(super) fn one_line(name: &str) -> String {
    name.replace(char::is_control, " ")
}

/// A name in `snake_case` as one in `CamelCase`.
pub(super) fn camel(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect::<String>()
    };
    name.split('_').map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_and_differ() {
        let mut names = Names::except(&["y"]);
        let given: Vec<String> = ["Conv__37", "conv/37:0", "7x7", "ReLU", "match", "", "…", "y", "conv__37"]
            .map(|name| names.give(name))
            .into();
        let expected =
            ["conv_37", "conv_37_0", "n7x7", "re_lu", "match_2", "unnamed", "unnamed_2", "y_2", "conv_37_2"];
        assert_eq!(given, expected);
    }

    #[test]
    fn what_is_named_is_named_by_itself() {
        let text =
            "f(RowShape::dense(1)); let x = Rows { a }; ElementsMut {}; rows::Dims::new(); share_rows(x)";
        let names = ["RowShape", "Rows", "ElementsMut", "share_rows", "Elements", "RowsMut", "Dims"];
        let expected = [true, true, true, true, false, false, false];
        assert_eq!(names.map(|name| is_named(text, name)), expected);
    }
}
