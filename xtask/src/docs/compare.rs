//! Compares printed output with a page: ids and times may differ, and `…` stands for any text.

/// Any text in a line; alone on a line, any number of lines.
const ANYTHING: &str = "…";

/// Compares the whole output line by line. The error is the first difference.
pub fn same(shown: &str, printed: &str) -> Result<(), String> {
    let (shown, printed) = (lines(shown), lines(printed));
    if fits(&shown, &printed) { Ok(()) } else { Err(first_difference(&shown, &printed)) }
}

/// Finds these lines in this order, with any others between them. The error is the first missing line.
pub fn in_order<'a>(shown: impl IntoIterator<Item = &'a str>, printed: &str) -> Result<(), String> {
    let printed = lines(printed);
    let mut left = printed.iter();
    for line in shown {
        let wanted = plain(line);
        if wanted != ANYTHING && !left.any(|line| line_fits(&wanted, line)) {
            return Err(format!("`{line}` is shown, and was not printed"));
        }
    }
    Ok(())
}

fn lines(text: &str) -> Vec<String> {
    text.trim_end().lines().map(plain).collect()
}

fn fits(shown: &[String], printed: &[String]) -> bool {
    match shown {
        [] => printed.is_empty(),
        [any, rest @ ..] if any.trim() == ANYTHING => (0..=printed.len()).any(|from| fits(rest, &printed[from..])),
        [line, rest @ ..] => printed.first().is_some_and(|first| line_fits(line, first)) && fits(rest, &printed[1..]),
    }
}

fn first_difference(shown: &[String], printed: &[String]) -> String {
    let same = shown.iter().zip(printed).take_while(|(shown, printed)| line_fits(shown, printed)).count();
    let nothing = "(nothing)".to_owned();
    format!("shown:   {}\n  printed: {}", shown.get(same).unwrap_or(&nothing), printed.get(same).unwrap_or(&nothing))
}

fn line_fits(shown: &str, printed: &str) -> bool {
    let mut parts = shown.split(ANYTHING);
    let first = parts.next().unwrap_or_default();
    let Some(mut left) = printed.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return left.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return left.ends_with(part);
        }
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    true
}

/// A line with every id and every time replaced by one placeholder.
fn plain(line: &str) -> String {
    let line = line.trim_end();
    let mut plain = String::new();
    let mut at = 0;
    while let Some(next) = line[at..].chars().next() {
        let (rest, before) = (&line[at..], line[..at].chars().next_back());
        let whole = !before.is_some_and(|c| c.is_ascii_alphanumeric());
        let known = PATTERNS.iter().find(|(_, pattern)| whole && starts_like(rest, pattern));
        match known {
            Some((name, pattern)) => {
                plain.push_str(name);
                at += pattern.len();
                // Milliseconds and a zone may follow a time of day.
                if *name == "<time>" {
                    at += line[at..]
                        .bytes()
                        .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'Z'))
                        .count();
                }
            }
            None => {
                plain.push(next);
                at += next.len_utf8();
            }
        }
    }
    plain
}

/// The forms of ids and times: `h` is a hex digit, `d` a digit.
const PATTERNS: [(&str, &str); 4] = [
    ("<id>", "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh"),
    ("<time>", "dddd-dd-ddTdd:dd:dd"),
    ("<time>", "dddd-dd-dd dd:dd:dd"),
    ("<ms>", "ddddddddddddd"),
];

fn starts_like(text: &str, pattern: &str) -> bool {
    let text = text.as_bytes();
    let is_like = |(byte, like): (&u8, u8)| match like {
        b'h' => byte.is_ascii_hexdigit(),
        b'd' => byte.is_ascii_digit(),
        exactly => *byte == exactly,
    };
    let ends = text.get(pattern.len()).is_none_or(|next| !next.is_ascii_alphanumeric());
    text.len() >= pattern.len() && text.iter().zip(pattern.bytes()).all(is_like) && (ends || pattern.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_times_may_be_others() {
        let shown = "0192f3a0-1111-7abc-8def-00112233aabb  at 2025-01-02 03:04:05.678, due 1735787045678\n";
        let printed = "01234567-89ab-cdef-0123-456789abcdef  at 2031-12-30 23:59:59.001, due 1999999999999";
        assert_eq!(same(shown, printed), Ok(()));
        assert!(same(shown, &printed.replace("due", "until")).is_err());
        assert!(same("12 of 1735787045678", "13 of 1735787045678").is_err());
    }

    #[test]
    fn an_ellipsis_is_anything() {
        assert_eq!(same("a … c\n…\nend", "a b b c\nx\ny\nend\n"), Ok(()));
        assert_eq!(same("…\nend", "end"), Ok(()));
        assert!(same("a … c", "a b d").is_err());
        assert!(same("a", "a\nb").is_err());
        assert_eq!(same("port 127.0.0.1:…, ok", "port 127.0.0.1:7433, ok"), Ok(()));
    }

    #[test]
    fn remarks_come_in_order() {
        assert_eq!(in_order(["one", "three"], "one\ntwo\nthree\n"), Ok(()));
        assert!(in_order(["three", "one"], "one\ntwo\nthree\n").is_err());
        assert!(in_order(["tw"], "one\ntwo\n").is_err(), "a line is shown whole");
    }
}
