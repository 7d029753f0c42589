//! Finds where an item of an app file stands in its text, for errors that are found after parsing.
//!
//! RON's parser states positions only for what it refuses. So the locator reads the text once more, with a tokenizer
//! that accepts anything. Where the text is not as expected, it finds nothing, and the message goes without a label.

use std::ops::Range;

/// One step from an item of an app file to an item inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// The value of a field of a struct, or of a key of a map.
    Field(String),
    /// An element of a list, from 0.
    Index(usize),
    /// The key itself of a field or map entry; the last step of a path.
    Key(String),
}

impl From<&str> for PathStep {
    fn from(name: &str) -> Self {
        PathStep::Field(name.into())
    }
}

impl From<usize> for PathStep {
    fn from(index: usize) -> Self {
        PathStep::Index(index)
    }
}

/// The bytes of the item at `path` from the top of the file, if it can be found.
pub fn locate(text: &str, path: &[PathStep]) -> Option<Range<usize>> {
    let tokens = tokens(text);
    let mut at = skip_attributes(&tokens);
    for (depth, segment) in path.iter().enumerate() {
        let entry = enter(&tokens, at)?;
        match segment {
            PathStep::Index(index) => at = nth(&tokens, entry, *index)?,
            PathStep::Field(name) => at = key(&tokens, text, entry, name)? + 2,
            PathStep::Key(name) => {
                let key = key(&tokens, text, entry, name)?;
                return (depth + 1 == path.len()).then(|| tokens[key].range.clone());
            }
        }
    }
    let start = tokens.get(at)?.range.start;
    let last = end_of_value(&tokens, at).checked_sub(1)?;
    (last >= at).then(|| start..tokens[last].range.end)
}

/// The byte offset of a line and a column, both counted from 1. Columns count characters. If the text is shorter, the
/// result is the end of the text.
pub fn offset(text: &str, line: usize, column: usize) -> usize {
    let mut start = 0;
    for _ in 1..line {
        match text[start..].find('\n') {
            Some(end) => start += end + 1,
            None => return text.len(),
        }
    }
    let column = column.saturating_sub(1);
    text[start..].char_indices().nth(column).map_or(text.len(), |(i, _)| start + i)
}

struct Token {
    kind: TokenKind,
    range: Range<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Open,
    Close,
    Comma,
    Colon,
    Hash,
    Text,
    Word,
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        let kind = match c {
            _ if c.is_whitespace() => continue,
            '/' if text[start..].starts_with("//") => {
                while chars.next_if(|(_, c)| *c != '\n').is_some() {}
                continue;
            }
            '/' if text[start..].starts_with("/*") => {
                skip_block_comment(&mut chars);
                continue;
            }
            '(' | '[' | '{' => TokenKind::Open,
            ')' | ']' | '}' => TokenKind::Close,
            ',' => TokenKind::Comma,
            ':' => TokenKind::Colon,
            '#' | '!' => TokenKind::Hash,
            '"' => {
                skip_string(&mut chars);
                TokenKind::Text
            }
            'r' if text[start + 1..].trim_start_matches('#').starts_with('"') => {
                skip_raw_string(text, start, &mut chars);
                TokenKind::Text
            }
            _ => {
                let is_word = |c: &char| !c.is_whitespace() && !"()[]{},:\"#!/".contains(*c);
                while chars.next_if(|(_, c)| is_word(c)).is_some() {}
                TokenKind::Word
            }
        };
        let end = chars.peek().map_or(text.len(), |(i, _)| *i);
        tokens.push(Token { kind, range: start..end });
    }
    tokens
}

type Chars<'a> = std::iter::Peekable<std::str::CharIndices<'a>>;

/// Block comments nest. The `/` has been read.
fn skip_block_comment(chars: &mut Chars) {
    chars.next();
    let (mut depth, mut before) = (1, ' ');
    for (_, c) in chars {
        (depth, before) = match (before, c) {
            ('*', '/') => (depth - 1, ' '),
            ('/', '*') => (depth + 1, ' '),
            _ => (depth, c),
        };
        if depth == 0 {
            return;
        }
    }
}

/// The opening quote has been read.
fn skip_string(chars: &mut Chars) {
    while let Some((_, c)) = chars.next() {
        match c {
            '"' => return,
            '\\' => {
                chars.next();
            }
            _ => {}
        }
    }
}

/// `r#"…"#`, from its `r`, which has been read.
fn skip_raw_string(text: &str, start: usize, chars: &mut Chars) {
    let hashes = text[start + 1..].bytes().take_while(|b| *b == b'#').count();
    let inner = start + 1 + hashes + 1;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = text[inner..].find(&close).map_or(text.len(), |i| inner + i + close.len());
    while chars.next_if(|(i, _)| *i < end).is_some() {}
}

/// The first token after the attributes `#![…]` at the top.
fn skip_attributes(tokens: &[Token]) -> usize {
    let mut at = 0;
    while tokens.get(at).is_some_and(|token| token.kind == TokenKind::Hash) {
        at += 1;
        if tokens.get(at).is_some_and(|token| token.kind == TokenKind::Open) {
            at = end_of_value(tokens, at);
        }
    }
    at
}

/// The first token inside the struct, list or map that starts at token `at`, perhaps with a name before it.
fn enter(tokens: &[Token], at: usize) -> Option<usize> {
    let open = at + usize::from(tokens.get(at)?.kind == TokenKind::Word);
    (tokens.get(open)?.kind == TokenKind::Open).then_some(open + 1)
}

/// The token after the value that starts at token `at`: a comma or a closing bracket around it, or the end.
fn end_of_value(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0usize;
    for (i, token) in tokens.iter().enumerate().skip(at) {
        match token.kind {
            TokenKind::Open => depth += 1,
            TokenKind::Close if depth == 0 => return i,
            TokenKind::Close => {
                depth -= 1;
                if depth == 0 && tokens.get(at).is_some_and(|first| first.kind == TokenKind::Open) {
                    return i + 1;
                }
            }
            TokenKind::Comma if depth == 0 => return i,
            _ => {}
        }
    }
    tokens.len()
}

/// The start of each entry from token `at` up to the bracket that closes around it.
fn entries(tokens: &[Token], at: usize) -> impl Iterator<Item = usize> {
    let mut next = Some(at);
    std::iter::from_fn(move || {
        let entry = next.filter(|at| tokens.get(*at).is_some_and(|token| token.kind != TokenKind::Close))?;
        let mut end = end_of_value(tokens, entry);
        while tokens.get(end).is_some_and(|token| !matches!(token.kind, TokenKind::Comma | TokenKind::Close))
        {
            end = end_of_value(tokens, end).max(end + 1);
        }
        next = tokens.get(end).filter(|token| token.kind == TokenKind::Comma).map(|_| end + 1);
        Some(entry)
    })
}

fn nth(tokens: &[Token], at: usize, index: usize) -> Option<usize> {
    entries(tokens, at).nth(index)
}

/// The token of the key `name`, which a colon and a value follow.
fn key(tokens: &[Token], text: &str, at: usize, name: &str) -> Option<usize> {
    entries(tokens, at).find(|entry| {
        let written = text[tokens[*entry].range.clone()].trim_matches('"');
        written == name && tokens.get(entry + 1).is_some_and(|token| token.kind == TokenKind::Colon)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r##"#![enable(implicit_some)]
// cnns: "not here"
App(
  name: "a, (b", /* cnns: /* nested */ [] */
  cnns: [
    (name: "cnn1", model: r#"a"b.onnx"#),
    (name: "cnn2", partitions: [(name: "p2", upto: "relu2"), (name: "p3", schedule: [["l1"], ["l2", "l3"]])]),
  ],
  rows: {"cnn1/l3": 4},
  threads: 2
)"##;

    fn check(path: &[PathStep], expected: Option<&str>) {
        assert_eq!(locate(TEXT, path).map(|range| &TEXT[range]), expected, "{path:?}");
    }

    #[test]
    fn items_are_found_by_path() {
        let key = |name: &str| PathStep::Key(name.into());
        check(&["name".into()], Some("\"a, (b\""));
        check(&["cnns".into(), 0.into(), "model".into()], Some("r#\"a\"b.onnx\"#"));
        let partitions = ["cnns".into(), 1.into(), "partitions".into()];
        let inside = |path: &[PathStep]| [&partitions, path].concat();
        check(&inside(&[0.into(), "upto".into()]), Some("\"relu2\""));
        check(&inside(&[0.into(), key("upto")]), Some("upto"));
        check(&inside(&[1.into(), "schedule".into(), 1.into(), 1.into()]), Some("\"l3\""));
        check(&inside(&[1.into(), "schedule".into(), 0.into()]), Some("[\"l1\"]"));
        check(&inside(&[1.into(), "upto".into()]), None);
        check(&inside(&[2.into()]), None);
        check(&["rows".into(), "cnn1/l3".into()], Some("4"));
        check(&["rows".into(), key("cnn1/l3")], Some("\"cnn1/l3\""));
        check(&["threads".into()], Some("2"));
        check(&["threads".into(), 0.into()], None);
        check(&["nothing".into()], None);
    }

    #[test]
    fn anything_can_be_searched() {
        let path = ["cnns".into(), 1.into(), "partitions".into(), 0.into(), "upto".into()];
        for cut in 0..TEXT.len() {
            let _ = locate(&TEXT[..cut], &path);
            let _ = locate(&TEXT[cut..], &path);
        }
        for text in ["", ")", "(cnns", "(cnns:", "(cnns: [", "r#", "r\"", "\"\\", "/*", "#", "#!", "#!["] {
            assert_eq!(locate(text, &path), None, "{text}");
        }
        assert_eq!(locate(&"(".repeat(100_000), &path), None);
    }

    #[test]
    fn positions_count_characters() {
        let text = "é(\nöx: 1\n";
        for (line, column, expected) in
            [(1, 1, 0), (1, 2, 2), (2, 1, 4), (2, 2, 6), (9, 1, 11), (2, 99, 11), (0, 0, 0)]
        {
            assert_eq!(offset(text, line, column), expected, "{line}:{column}");
        }
    }
}
