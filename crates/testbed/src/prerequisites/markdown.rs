//! A reader of Markdown, from the Python index.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Say;
use super::pypi::{Platform, python_packages};
use crate::{KitError, Result, Workspace, program};

/// The reader, and what it needs to find links in plain text, as GitHub does.
const REQUIREMENTS: &str = "\
markdown-it-py==4.3.0 --hash=sha256:7aa1511a46c39138de78d9eba92ce47e63124d8003fc98b3a351909e04239efa
mdurl==0.1.2 --hash=sha256:84008a41e51615a49fc9966191ff91509e3c40b939176e643fd50a5c2196b8f8
linkify-it-py==2.2.0 --hash=sha256:3adc40eb5af300b2605fcfdb968c24e1d780a90f1f2221af7c15e5111e94d443
uc-micro-py==2.0.0 --hash=sha256:3603a3859af53e5a39bc7677713c78ea6589ff188d70f4fee165db88e22b242c
";
const PROGRAM: &str = include_str!("markdown.py");

/// A reader of [GitHub's Markdown](https://github.github.com/gfm/).
#[derive(Debug, Clone)]
pub struct MarkdownReader {
    folder: PathBuf,
}

/// A Markdown document as a browser shows it.
#[derive(Debug, Clone)]
pub struct Markdown {
    /// The HTML elements.
    pub tags: BTreeSet<String>,
    /// The text outside of code.
    pub text: String,
    /// The text of all code.
    pub code: String,
}

impl MarkdownReader {
    /// Reads a document.
    ///
    /// # Errors
    /// The reader fails.
    pub fn read(&self, document: &Path) -> Result<Markdown> {
        let mut python = Command::new("python3");
        python.env("PYTHONPATH", &self.folder).args(["-c", PROGRAM]).arg(document);
        let output = program::run(&mut python)?;
        let malformed =
            |error: serde_json::Error| KitError::malformed("the reader's answer", error);
        let all: serde_json::Value = serde_json::from_slice(&output).map_err(malformed)?;
        let text = |name: &str| all[name].as_str().unwrap_or_default().to_owned();
        let tags = all["tags"].as_array().into_iter().flatten();
        let tags = tags.filter_map(|it| it.as_str()).map(str::to_owned).collect();
        Ok(Markdown { tags, text: text("text"), code: text("code") })
    }
}

/// Returns the reader. If it is missing, it is downloaded into the cache of the checks first, without installing it.
///
/// # Errors
/// The reader cannot be downloaded, or has another digest.
pub fn markdown(workspace: &Workspace, say: Say<'_>) -> Result<MarkdownReader> {
    python_packages(workspace, ("markdown", Platform::Any), REQUIREMENTS, say)
        .map(|folder| MarkdownReader { folder })
}
