//! Holds docs/errors against the codes there are: one page for each, with its status, whether asking again helps, and what it means.

use std::collections::BTreeSet;
use std::path::PathBuf;

use axum::http::StatusCode;
use ff_api::problem::OWN;
use ff_core::ErrorCode;
use ff_core::error::EngineError;

/// A server that stops serves nothing again, whatever its status says.
fn retryable(code: &'static str, status: StatusCode) -> bool {
    code != "closed" && ff_api::Problem::new(status.as_u16(), code, "").is_retryable()
}

fn pages() -> PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors")
}

fn page(code: &str) -> String {
    std::fs::read_to_string(pages().join(format!("{code}.md")))
        .unwrap_or_else(|error| panic!("docs/errors/{code}.md: {error}; write a page about the code"))
}

/// How a page begins.
fn head(code: &str, status: u64, retryable: bool, meaning: &str) -> String {
    let again = if retryable { "asking again may succeed" } else { "asking again changes nothing" };
    format!("# {code}\n\n**{status}, {again}.** {meaning}")
}

#[test]
fn every_code_of_the_library_has_a_page_that_says_what_it_means() {
    let index = page("README");
    for &code in ErrorCode::ALL {
        let detail = [("lifecycle_phase", "terminal"), ("key", "k"), ("field", "f")];
        let detail = detail.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let problem = ff_api::Problem::from(EngineError::from_refusal(code, detail));
        let status = u64::from(problem.status());
        let head = head(code.as_str(), status, problem.is_retryable(), code.doc());
        assert!(
            page(code.as_str()).starts_with(&format!("{head}\n")),
            "docs/errors/{code}.md does not begin with\n{head}"
        );
        let row = format!("| [{code}]({code}.md) | {} |\n", code.doc());
        assert!(index.contains(&row), "docs/errors/README.md has no row\n{row}");
    }
}

#[test]
fn every_code_of_the_server_has_a_page() {
    let index = page("README");
    for &(code, status, meaning) in OWN {
        let status = StatusCode::from_u16(status).expect("a status of HTTP");
        let head = head(code, status.as_u16().into(), retryable(code, status), meaning);
        assert!(page(code).starts_with(&format!("{head}\n")), "docs/errors/{code}.md does not begin with\n{head}");
        let row = format!("| [{code}]({code}.md) | {meaning} |\n");
        assert!(index.contains(&row), "docs/errors/README.md has no row\n{row}");
    }
}

#[test]
fn every_page_is_about_a_code() {
    let library = ErrorCode::ALL.iter().map(|code| code.as_str());
    let known: BTreeSet<&str> = library.chain(OWN.iter().map(|(code, _, _)| *code)).chain(["README"]).collect();
    for entry in std::fs::read_dir(pages()).expect("the pages are there") {
        let name = entry.expect("an entry").file_name().into_string().expect("text");
        assert!(known.contains(name.trim_end_matches(".md")), "docs/errors/{name} is about no code there is");
    }
}
