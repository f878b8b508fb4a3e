//! Tokens of Lua text, as far as the lint needs them.

/// A token and its line.
pub struct Token<'a> {
    pub line: usize,
    pub kind: Kind<'a>,
}

/// The kind of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind<'a> {
    /// A name or a keyword.
    Name(&'a str),
    /// The content of a short string, with its escapes.
    Text(&'a str),
    /// Any other character. A number is a sequence of them.
    Mark(char),
}

/// The tokens of valid Lua text, without comments.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut list = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let start = at;
        let rest = &text[at..];
        let byte = bytes[at];
        if let Some(len) =
            rest.strip_prefix("--").and_then(long_bracket).map(|len| len + 2).or_else(|| long_bracket(rest))
        {
            at += len;
        } else if rest.starts_with("--") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if byte == b'"' || byte == b'\'' {
            at += 1;
            while bytes[at] != byte {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            list.push(Token { line, kind: Kind::Text(&text[start + 1..at]) });
            at += 1;
        } else if byte.is_ascii_alphabetic() || byte == b'_' {
            while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
                at += 1;
            }
            list.push(Token { line, kind: Kind::Name(&text[start..at]) });
        } else {
            let mark = rest.chars().next().expect("the text goes on");
            if !mark.is_whitespace() {
                list.push(Token { line, kind: Kind::Mark(mark) });
            }
            at += mark.len_utf8();
        }
        line += text[start..at].matches('\n').count();
    }
    list
}

/// The length of `[[...]]` or `[==[...]==]` at the start of the text.
fn long_bracket(text: &str) -> Option<usize> {
    let level = text.strip_prefix('[')?.bytes().take_while(|byte| *byte == b'=').count();
    text[1 + level..].strip_prefix('[')?;
    let end = format!("]{}]", "=".repeat(level));
    text.find(&end).map(|at| at + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_vanish_and_strings_stay_whole() {
        let text = "local a = 'it''s' -- os.time\n--[[ io\n]] b.c(\"x\\\"y\")\n[==[ load ]==]";
        let kinds: Vec<_> = tokens(text).iter().map(|token| (token.line, token.kind)).collect();
        assert_eq!(
            kinds,
            vec![
                (1, Kind::Name("local")),
                (1, Kind::Name("a")),
                (1, Kind::Mark('=')),
                (1, Kind::Text("it")),
                (1, Kind::Text("s")),
                (3, Kind::Name("b")),
                (3, Kind::Mark('.')),
                (3, Kind::Name("c")),
                (3, Kind::Mark('(')),
                (3, Kind::Text("x\\\"y")),
                (3, Kind::Mark(')')),
            ]
        );
    }
}
