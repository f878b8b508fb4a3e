//! The text of the library that a host loads.

/// The bundle written by `cargo xtask codegen`.
const BUNDLE: &str = include_str!("library.lua");

/// The format of the stored data. A store records its format beside its partition counts; without a record it is format
/// 1.
pub const FORMAT: u32 = 3;

/// Why a store with these fields in its partition record cannot be read; `None` if it can.
#[must_use]
pub fn format_refusal<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Option<String> {
    let (mut is_store, mut format) = (false, 1);
    for (field, value) in fields {
        match field {
            b"executions" => is_store = true,
            b"format" => format = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(0),
            _ => {}
        }
    }
    (is_store && format != FORMAT).then(|| {
        format!(
            "the store has format {format} and this version reads format {FORMAT}: neither the store nor an export of it can be read \
             by this version; start with an empty store, or with the version that made this one"
        )
    })
}

/// A library that a host can load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// The library's name, from its first line.
    pub name: &'static str,
    /// Rises with every change. A host replaces only a library with a lower number.
    pub number: u32,
    /// The digest of the text. The same number with another digest fails.
    pub hash: String,
    /// The text for FUNCTION LOAD.
    pub text: String,
}

impl Library {
    /// The library of servers and workers.
    #[must_use]
    pub fn shipped() -> Self {
        let facts = line(BUNDLE);
        Self {
            name: "flowfabric",
            number: between(facts, "number = ", ",").parse().expect("codegen writes the number"),
            hash: between(facts, "hash = \"", "\"").to_owned(),
            text: BUNDLE.to_owned(),
        }
    }

    /// The same functions under another library name, with the time taken from the call; never shipped in a server.
    ///
    /// Function names are global to a server, so a store holds only one of the two.
    #[must_use]
    pub fn test() -> Self {
        let shipped = Self::shipped();
        let facts = line(BUNDLE);
        let text = BUNDLE.replacen("#!lua name=flowfabric\n", "#!lua name=flowfabric_test\n", 1).replacen(
            facts,
            &facts.replacen(" }", ", test = true }", 1),
            1,
        );
        Self { name: "flowfabric_test", text, ..shipped }
    }
}

/// The line with number and hash.
fn line(text: &str) -> &str {
    text.lines().find(|line| line.starts_with("local LIBRARY = {")).expect("codegen writes the LIBRARY line")
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    text.split_once(before)
        .and_then(|(_, rest)| rest.split_once(after))
        .map(|(found, _)| found)
        .expect("codegen writes number and hash")
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_hash_is_the_digest_of_the_text_without_it() {
        let library = Library::shipped();
        let bare = library.text.replacen(&library.hash, "", 1);
        assert_eq!(hex::encode(Sha256::digest(bare)), library.hash);
        assert!(library.number >= 1);
    }

    #[test]
    fn a_store_of_another_format_is_refused_and_no_store_is_not() {
        assert_eq!(format_refusal([]), None);
        assert_eq!(format_refusal([(&b"executions"[..], &b"4"[..]), (b"format", b"3")]), None);
        let refused = format_refusal([(&b"executions"[..], &b"16"[..])]).unwrap();
        assert!(refused.contains("has format 1") && refused.contains("reads format 3"), "{refused}");
        let refused = format_refusal([(&b"executions"[..], &b"16"[..]), (b"format", b"4")]).unwrap();
        assert!(refused.contains("has format 4"), "{refused}");
    }

    #[test]
    fn the_test_library_differs_in_its_first_lines_only() {
        let (shipped, test) = (Library::shipped(), Library::test());
        assert!(test.text.starts_with("#!lua name=flowfabric_test\n"));
        assert!(line(&test.text).ends_with(", test = true }"), "{}", line(&test.text));
        assert!(!shipped.text.contains("test = true"));
        let different = shipped.text.lines().zip(test.text.lines()).filter(|(a, b)| a != b).count();
        assert_eq!((different, shipped.text.lines().count()), (2, test.text.lines().count()));
    }
}
