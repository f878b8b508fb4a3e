//! A tree of lines, drawn with branches.

use std::fmt;

/// A line and what belongs under it.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    line: String,
    under: Vec<Tree>,
}

impl Tree {
    /// A line with nothing under it.
    pub(crate) fn new(line: impl Into<String>) -> Self {
        Self { line: line.into(), under: Vec::new() }
    }

    /// With one more thing under it.
    pub(crate) fn with(mut self, under: Tree) -> Self {
        self.under.push(under);
        self
    }

    /// With more things under it.
    pub(crate) fn with_all(mut self, under: impl IntoIterator<Item = Tree>) -> Self {
        self.under.extend(under);
        self
    }

    fn branches(&self, before: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, tree) in self.under.iter().enumerate() {
            let (branch, below) = if index + 1 == self.under.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            write!(f, "\n{before}{branch}{}", tree.line)?;
            tree.branches(&format!("{before}{below}"), f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)?;
        self.branches("", f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_end_where_nothing_follows() {
        let tree = Tree::new("a").with(Tree::new("b").with(Tree::new("c"))).with(Tree::new("d").with(Tree::new("e")));
        assert_eq!(tree.to_string(), "a\n├─ b\n│  └─ c\n└─ d\n   └─ e");
    }
}
