//! Writes a run into docs/benchmarks.md, README.md and docs/images/rivals.svg.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::super::page;
use super::chart;
use super::figures::FIGURES;
use super::report::Report;

/// A run is not published if other programs took more of the CPU than this.
const OTHERS_MAX: f64 = 0.1;
/// The lines around the table in README.md.
const BEGIN: &str = "<!-- Written by `cargo xtask bench rivals --publish`. -->";
const END: &str = "<!-- Written up to here. -->";
/// The alternative text of the chart.
const ALT: &str = "How much better FlowFabric is than BullMQ and Restate; the table has the figures";
/// The text above the chart in README.md.
const INTRODUCTION: &str = "Beside BullMQ and Restate, measured in one run by `cargo xtask bench rivals`. Above 1 × FlowFabric is better: \
                            more per second, or less time or CPU.";

pub fn publish(root: &Path, report: &Report) -> Result<()> {
    let others = report.others();
    // An unknown share counts as too much.
    anyhow::ensure!(
        others <= OTHERS_MAX,
        "not published: processes outside the run took {} of the CPU, {} is the most",
        page::percent(others),
        page::percent(OTHERS_MAX)
    );
    let image = root.join("docs/images/rivals.svg");
    fs::create_dir_all(root.join("docs/images")).context("cannot create docs/images")?;
    fs::write(&image, chart::svg(report)).with_context(|| format!("cannot write {}", image.display()))?;
    println!("wrote {}", image.display());

    let markdown = format!("![{ALT}](images/rivals.svg)\n\n{}", report.markdown());
    page::publish(&root.join("docs/benchmarks.md"), "rivals", &markdown)?;

    let readme = root.join("README.md");
    let text = fs::read_to_string(&readme).with_context(|| format!("cannot read {}", readme.display()))?;
    let headlines = FIGURES.iter().filter(|figure| figure.headline);
    let table = format!("{INTRODUCTION}\n\n![{ALT}](docs/images/rivals.svg)\n\n{}", report.ratios(headlines, false));
    let text = replaced(&text, &table).context("README.md has no place for the table")?;
    fs::write(&readme, text).with_context(|| format!("cannot write {}", readme.display()))?;
    println!("wrote {}", readme.display());
    Ok(())
}

/// The page with this text between its two lines.
fn replaced(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", table.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_between_the_lines_is_replaced() {
        let page = format!("before\n\n{BEGIN}\n\nold\n\n{END}\n\nafter\n");
        assert_eq!(replaced(&page, "new\n"), Some(format!("before\n\n{BEGIN}\n\nnew\n\n{END}\n\nafter\n")));
        assert_eq!(replaced("no place\n", "new\n"), None);
    }
}
