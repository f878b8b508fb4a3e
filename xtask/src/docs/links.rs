//! Links between pages: each must lead to an existing file and heading, and every page must be reachable by links.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

/// The broken links of these pages.
pub fn broken(root: &Path, pages: &[PathBuf]) -> Result<Vec<String>> {
    let texts = read(root, pages)?;
    let anchors: BTreeMap<&PathBuf, BTreeSet<String>> =
        texts.iter().map(|(page, text)| (page, anchors(text))).collect();
    let mut broken = Vec::new();
    for (page, text) in &texts {
        for (line, link) in links(text) {
            let Some((target, anchor)) = target(page, link) else { continue };
            if !root.join(&target).exists() {
                broken.push(format!("{}:{line}: {link} leads nowhere", page.display()));
            } else if !anchor.is_empty() && anchors.get(&target).is_some_and(|known| !known.contains(anchor)) {
                broken.push(format!("{}:{line}: {} has no heading #{anchor}", page.display(), target.display()));
            }
        }
    }
    Ok(broken)
}

/// Pages that cannot be reached by links from the first one.
pub fn lost(root: &Path, pages: &[PathBuf]) -> Result<Vec<String>> {
    let texts = read(root, pages)?;
    let mut found = BTreeSet::new();
    let mut left: Vec<PathBuf> = pages.first().cloned().into_iter().collect();
    while let Some(page) = left.pop() {
        let Some(text) = texts.get(&page).filter(|_| found.insert(page.clone())) else { continue };
        left.extend(links(text).into_iter().filter_map(|(_, link)| Some(target(&page, link)?.0)));
    }
    let lost = pages.iter().filter(|page| !found.contains(*page));
    Ok(lost
        .map(|page| format!("{}: no page that is found from {} links to it", page.display(), pages[0].display()))
        .collect())
}

fn read(root: &Path, pages: &[PathBuf]) -> Result<BTreeMap<PathBuf, String>> {
    let read = |page: &PathBuf| {
        let text =
            std::fs::read_to_string(root.join(page)).with_context(|| format!("cannot read {}", page.display()))?;
        Ok((page.clone(), text))
    };
    pages.iter().map(read).collect()
}

/// The file and the heading of a link on a page; `None` if it leads outside.
fn target<'a>(page: &Path, link: &'a str) -> Option<(PathBuf, &'a str)> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let from = page.parent().unwrap_or(Path::new(""));
    Some((if path.is_empty() { page.to_owned() } else { joined(from, path) }, anchor))
}

/// A path with `..` resolved.
fn joined(from: &Path, path: &str) -> PathBuf {
    let mut joined = PathBuf::new();
    for part in from.join(path).components() {
        match part {
            Component::ParentDir => drop(joined.pop()),
            Component::CurDir => {}
            part => joined.push(part),
        }
    }
    joined
}

/// Targets of `[text](target)` outside of code, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = !inside;
        }
        if inside {
            continue;
        }
        let mut rest = line;
        while let Some(at_bracket) = rest.find("](") {
            let target = &rest[at_bracket + 2..];
            let Some(end) = target.find(')') else { break };
            // Text between backquotes is code.
            if !rest[..at_bracket].matches('`').count().is_multiple_of(2) {
                rest = target;
                continue;
            }
            found.push((at + 1, &target[..end]));
            rest = &target[end..];
        }
    }
    found
}

/// The anchors of a page's headings, as code hosts generate them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = !inside;
        }
        let Some(heading) = line.strip_prefix('#').filter(|_| !inside) else { continue };
        let heading = heading.trim_start_matches('#').trim();
        let anchor: String = heading
            .to_lowercase()
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || matches!(c, '-' | '_') => Some(c),
                _ => None,
            })
            .collect();
        let mut unique = anchor.clone();
        let mut copies = 0;
        while !known.insert(unique.clone()) {
            copies += 1;
            unique = format!("{anchor}-{copies}");
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_become_anchors() {
        let found = anchors("# One: two\n\n## `lane_full`\n\n```sh\n# a comment\n```\n\n## One: two\n");
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["lane_full", "one-two", "one-two-1"]);
    }

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "see [a](a.md) and [b](../b.md#x), not `[c](c.md)`\n```\n[d](d.md)\n```\n";
        assert_eq!(links(text), [(1, "a.md"), (1, "../b.md#x")]);
        assert_eq!(joined(Path::new("docs/guides"), "../errors/README.md"), Path::new("docs/errors/README.md"));
    }
}
