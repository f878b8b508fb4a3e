//! The text of the library as a host loads it.

/// The bundle written by `cargo xtask codegen`.
const BUNDLE: &str = include_str!("library.lua");

/// A library a host can load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// The library's name, from its first line.
    pub name: &'static str,
    /// Raised with every change; a host replaces only a lower number.
    pub number: u32,
    /// The digest of the text; the same number with another one is refused.
    pub hash: String,
    /// What FUNCTION LOAD takes.
    pub text: String,
}

impl Library {
    /// The library that servers and workers load.
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

    /// The same functions under another library name, taking the time from the call; never shipped in a server.
    ///
    /// Function names are global to a server, so a store holds one of the two.
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

/// The line that declares number and hash.
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
    fn the_test_library_differs_in_its_first_lines_only() {
        let (shipped, test) = (Library::shipped(), Library::test());
        assert!(test.text.starts_with("#!lua name=flowfabric_test\n"));
        assert!(line(&test.text).ends_with(", test = true }"), "{}", line(&test.text));
        assert!(!shipped.text.contains("test = true"));
        let different = shipped.text.lines().zip(test.text.lines()).filter(|(a, b)| a != b).count();
        assert_eq!((different, shipped.text.lines().count()), (2, test.text.lines().count()));
    }
}
