//! A page of the docs as a list of fenced blocks.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Marks the place where the reader presses Ctrl-C in every other terminal.
const STOP: &str = "<!-- stop -->";
/// The first line of a block that is not run; the reason follows.
const NOT_RUN: &str = "# not run by the tests: ";

/// The starts of commands that run until they are told to end.
const GO_ON: [&str; 3] = ["ff server", "ff dev", "ff worker exec"];

#[derive(Debug)]
pub struct Page {
    /// Relative to the root.
    pub path: PathBuf,
    /// The steps of the page, in order.
    pub steps: Vec<Step>,
    /// Whether it contains Rust, which the doctests compile.
    pub has_rust: bool,
}

/// A step for the reader.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Run these commands.
    Run(Block),
    /// Leave this command running in another terminal.
    Background(Block),
    /// Save this as a file.
    File { name: String, block: Block },
    /// Python that is shown, but is not a program by itself.
    Fragment(Block),
    /// End the commands in other terminals.
    Stop,
}

/// The text of a block, its position, and its expected output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    pub line: usize,
    pub text: String,
    /// The block of output after it.
    pub output: Option<String>,
}

impl Block {
    /// The outputs that the comments of a block expect: `# → this`.
    pub fn remarks(&self) -> Vec<&str> {
        self.text.lines().filter_map(|line| Some(line.split_once("# → ")?.1)).collect()
    }
}

/// A fenced block of the page.
struct Fenced {
    line: usize,
    language: String,
    word: String,
    text: String,
}

impl Page {
    pub fn read(root: &Path, path: PathBuf) -> Result<Self> {
        let text =
            std::fs::read_to_string(root.join(&path)).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(path.clone(), &text).with_context(|| path.display().to_string())
    }

    fn parse(path: PathBuf, text: &str) -> Result<Self> {
        let mut page = Self { path, steps: Vec::new(), has_rust: false };
        let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
        // Output belongs to the block directly before it.
        let mut printed = false;
        while let Some((at, line)) = lines.next() {
            if line.trim() == STOP {
                page.steps.push(Step::Stop);
                printed = false;
                continue;
            }
            let Some(info) = line.strip_prefix("```") else { continue };
            let mut words = info.split_whitespace();
            let mut block = Fenced {
                line: at,
                language: words.next().unwrap_or_default().to_owned(),
                word: words.next().unwrap_or_default().to_owned(),
                text: String::new(),
            };
            loop {
                let Some((_, line)) = lines.next() else { bail!("line {at}: the block does not end") };
                if line == "```" {
                    break;
                }
                block.text.push_str(line);
                block.text.push('\n');
            }
            printed = page.take(block, printed)?;
        }
        Ok(page)
    }

    /// Adds a block. Returns true if the next one may be its output.
    fn take(&mut self, fenced: Fenced, printed: bool) -> Result<bool> {
        let Fenced { line, language, word, text } = fenced;
        let block = Block { line, text, output: None };
        match (language.as_str(), word.as_str()) {
            ("sh", "") => self.steps.push(Step::Run(block)),
            ("sh", "background") => {
                let commands = block.text.replace("\\\n", " ");
                if commands.trim().lines().count() != 1 {
                    bail!("line {line}: a block in the background is one command");
                }
                self.steps.push(Step::Background(block));
            }
            ("sh", "norun") => {
                if block.text.lines().next().and_then(|first| first.strip_prefix(NOT_RUN)).is_none() {
                    bail!("line {line}: a block that is not run says why: `{NOT_RUN}…` in its first line");
                }
                return Ok(false);
            }
            ("sh", word) => bail!("line {line}: `sh {word}` is neither `sh`, `sh background` nor `sh norun`"),
            ("console", _) => {
                self.steps.extend(transcript(&block)?);
                return Ok(false);
            }
            ("text" | "json", "") if printed => {
                let Some(Step::Run(last) | Step::Background(last)) = self.steps.last_mut() else { return Ok(false) };
                last.output = Some(block.text);
                return Ok(false);
            }
            ("python", "") => self.steps.push(Step::Fragment(block)),
            ("python" | "json" | "toml" | "bash" | "text", name) if !name.is_empty() => {
                self.steps.push(Step::File { name: name.to_owned(), block });
            }
            ("rust,ignore", _) => {}
            (language, _) if language == "rust" || language.starts_with("rust,") => self.has_rust = true,
            _ => {}
        }
        Ok(matches!(language.as_str(), "sh"))
    }

    /// True if the page has steps.
    pub fn runs(&self) -> bool {
        self.steps.iter().any(|step| *step != Step::Stop)
    }

    /// Every text that a reader copies from it.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match step {
            Step::Run(block) | Step::Background(block) | Step::Fragment(block) | Step::File { block, .. } => {
                Some(block.text.as_str())
            }
            Step::Stop => None,
        })
    }
}

/// Commands after `$`, each with the output below it. Servers and workers keep running in a separate terminal.
fn transcript(block: &Block) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    for (at, line) in block.text.lines().enumerate() {
        if let Some(command) = line.strip_prefix("$ ") {
            let said = Block { line: block.line + at + 1, text: format!("{command}\n"), output: None };
            let goes_on = GO_ON.iter().any(|starts| command.starts_with(starts));
            steps.push(if goes_on { Step::Background(said) } else { Step::Run(said) });
        } else if let Some(Step::Run(last) | Step::Background(last)) = steps.last_mut() {
            let output = last.output.get_or_insert_default();
            output.push_str(line);
            output.push('\n');
        } else {
            bail!("line {}: a transcript begins with a command behind `$ `", block.line);
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Page> {
        Page::parse("p.md".into(), text)
    }

    #[test]
    fn output_belongs_to_the_commands_before_it() {
        let page = parsed(
            "# P\n\n```sh\nff list   # → none\n```\n\nprints\n\n```text\nnone\n```\n\n```text\na picture\n```\n",
        )
        .unwrap();
        let Step::Run(block) = &page.steps[0] else { panic!("{page:?}") };
        assert_eq!((block.line, block.output.as_deref()), (3, Some("none\n")));
        assert_eq!(block.remarks(), ["none"]);
        assert_eq!(page.steps.len(), 1);
    }

    #[test]
    fn files_background_commands_and_stops_are_steps() {
        let page =
            parsed("```python w.py\nx = 1\n```\n```sh background\nff server \\\n  --no-auth\n```\n<!-- stop -->\n")
                .unwrap();
        assert!(matches!(&page.steps[0], Step::File { name, .. } if name == "w.py"), "{page:?}");
        assert!(matches!(&page.steps[1..], [Step::Background(_), Step::Stop]), "{page:?}");
    }

    #[test]
    fn a_transcript_is_commands_with_their_output() {
        let page = parsed("```console\n$ ff server --no-auth\nlistening\n$ ff lane list\n```\n").unwrap();
        let [Step::Background(server), Step::Run(list)] = &page.steps[..] else { panic!("{page:?}") };
        assert_eq!((server.text.as_str(), server.output.as_deref()), ("ff server --no-auth\n", Some("listening\n")));
        assert_eq!((list.line, list.output.as_deref()), (4, None));
        assert!(parsed("```console\nlistening\n```\n").is_err());
    }

    #[test]
    fn what_is_not_run_says_why() {
        assert!(parsed("```sh norun\nrm -r /\n```\n").is_err());
        assert!(
            parsed("```sh norun\n# not run by the tests: it would be a pity\nrm -r /\n```\n").unwrap().steps.is_empty()
        );
        assert!(parsed("```sh bakground\nff server\n```\n").is_err());
        assert!(parsed("```sh\nff list\n").is_err(), "a block without an end");
        assert!(parsed("```sh background\nff server\nff list\n```\n").is_err());
    }
}
