//! Constructs that the library must not use, because the hosts differ or a store breaks; and the maximum line width.

use super::commands;
use super::source::{Module, Source};
use super::tokens::{Kind, Token, tokens};

/// The longest line of the library in characters, so that a reader need not scroll sideways.
pub const COLUMNS_MAX: usize = 120;

/// Names that must not be used alone.
const BANNED: [&str; 14] = [
    "cjson",
    "coroutine",
    "load",
    "loadstring",
    "loadfile",
    "dofile",
    "setfenv",
    "getfenv",
    "os",
    "io",
    "debug",
    "print",
    "collectgarbage",
    "newproxy",
];

/// Fields of builtin tables that must not be used.
const BANNED_FIELDS: [(&str, &str); 8] = [
    ("math", "random"),
    ("math", "randomseed"),
    ("redis", "setresp"),
    ("redis", "log"),
    ("redis", "sha1"),
    ("redis", "error_reply"),
    ("redis", "status_reply"),
    ("string", "dump"),
];

/// Every use of a banned name, with file and line.
pub fn complaints(source: &Source) -> Vec<String> {
    source.modules.iter().flat_map(of_module).collect()
}

fn of_module(module: &Module) -> Vec<String> {
    let list = tokens(&module.text);
    let mut found: Vec<(usize, String)> = Vec::new();
    for at in 0..list.len() {
        if let Some(problem) = problem(&list, at) {
            found.push((list[at].line, problem));
        }
    }
    for (line, word) in commands::unknown(module) {
        found.push((line, format!("command {word} is not one both hosts have")));
    }
    for (at, line) in module.text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > COLUMNS_MAX {
            found.push((at + 1, format!("{columns} columns, at most {COLUMNS_MAX}")));
        }
    }
    found.sort();
    found.into_iter().map(|(line, problem)| format!("{}:{line}: {problem}", module.path())).collect()
}

fn problem(list: &[Token<'_>], at: usize) -> Option<String> {
    let kind = |offset: usize| list.get(at + offset).map(|token| token.kind);
    let before = |offset: usize| at.checked_sub(offset).map(|index| list[index].kind);
    match list[at].kind {
        Kind::Name("error")
            if kind(1) == Some(Kind::Mark('{'))
                || (kind(1), kind(2)) == (Some(Kind::Mark('(')), Some(Kind::Mark('{'))) =>
        {
            Some("error with a table: return a refusal instead".to_owned())
        }
        Kind::Name(name) => {
            let is_field = matches!(before(1), Some(Kind::Mark('.' | ':')));
            let is_key = kind(1) == Some(Kind::Mark('=')) && kind(2) != Some(Kind::Mark('='));
            if !is_field && !is_key && BANNED.contains(&name) {
                return Some(format!("{name} is not for the library"));
            }
            let (Some(Kind::Mark('.')), Some(Kind::Name(field))) = (kind(1), kind(2)) else {
                return None;
            };
            (!is_field && BANNED_FIELDS.contains(&(name, field)))
                .then(|| format!("{name}.{field} is not for the library"))
        }
        Kind::Text(text) => {
            let formats = before(1) == Some(Kind::Mark('(')) && before(2) == Some(Kind::Name("format"));
            if formats {
                ["%q", "%a"]
                    .iter()
                    .find(|form| text.contains(*form))
                    .map(|form| format!("format {form} differs between hosts"))
            } else {
                text.contains("%g").then(|| "pattern %g is unknown to Lua 5.1".to_owned())
            }
        }
        Kind::Mark(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints_about(text: &str) -> Vec<String> {
        of_module(&Module { name: "a.b".to_owned(), text: text.to_owned() })
    }

    #[test]
    fn banned_uses_are_found_with_their_line() {
        for (text, complaint) in [
            ("error({ err = 1 })", "error with a table: return a refusal instead"),
            ("error{ err = 1 }", "error with a table: return a refusal instead"),
            ("local x = cjson.encode(y)", "cjson is not for the library"),
            ("local t = os.time()", "os is not for the library"),
            ("local n = math.random(3)", "math.random is not for the library"),
            ("redis.setresp(3)", "redis.setresp is not for the library"),
            ("string.format(\"%q\", s)", "format %q differs between hosts"),
            ("string.find(s, \"^%g+$\")", "pattern %g is unknown to Lua 5.1"),
            ("redis.call(\"KEYS\", \"*\")", "command KEYS is not one both hosts have"),
        ] {
            assert_eq!(complaints_about(&format!("\n{text}")), [format!("lua/a/b.lua:2: {complaint}")], "{text}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_found() {
        let fits = format!("-- {}", "─".repeat(COLUMNS_MAX - 3));
        assert!(complaints_about(&fits).is_empty());
        assert_eq!(complaints_about(&format!("\n{fits}─")), ["lua/a/b.lua:2: 121 columns, at most 120"]);
    }

    #[test]
    fn names_that_only_look_banned_pass() {
        for text in [
            "record.load(tx, id)",
            "local t = { load = 1, os = 2 }",
            "-- os.time, cjson",
            "local doc = \"loads os.time\"",
            "error(\"bug\")",
            "string.format(\"%.17g\", n)",
            "redis.call(\"TIME\")",
        ] {
            assert!(complaints_about(text).is_empty(), "{text}: {:?}", complaints_about(text));
        }
    }
}
