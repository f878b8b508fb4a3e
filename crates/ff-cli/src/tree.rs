//! A tree of lines, drawn with branches.

/// A line and what belongs under it.
#[derive(Debug, Default)]
pub struct Tree {
    line: String,
    under: Vec<Tree>,
}

impl Tree {
    /// A line with nothing under it.
    pub fn new(line: impl Into<String>) -> Self {
        Self { line: line.into(), under: Vec::new() }
    }

    /// With one more thing under it.
    pub fn with(mut self, under: Tree) -> Self {
        self.under.push(under);
        self
    }

    /// With more things under it.
    pub fn with_all(mut self, under: impl IntoIterator<Item = Tree>) -> Self {
        self.under.extend(under);
        self
    }

    /// The lines of the drawing.
    pub fn draw(&self) -> Vec<String> {
        let mut lines = vec![self.line.clone()];
        self.branches("", &mut lines);
        lines
    }

    fn branches(&self, before: &str, lines: &mut Vec<String>) {
        for (index, tree) in self.under.iter().enumerate() {
            let (branch, below) = if index + 1 == self.under.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            lines.push(format!("{before}{branch}{}", tree.line));
            tree.branches(&format!("{before}{below}"), lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_end_where_nothing_follows() {
        let tree = Tree::new("a").with(Tree::new("b").with(Tree::new("c"))).with(Tree::new("d").with(Tree::new("e")));
        assert_eq!(tree.draw(), ["a", "├─ b", "│  └─ c", "└─ d", "   └─ e"]);
    }
}
