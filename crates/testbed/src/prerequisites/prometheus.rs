//! The Prometheus project's parser of its text format, from the Python index.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::Say;
use super::pypi::{Platform, python_packages};
use crate::{KitError, Result, Workspace, program};

/// The parser, which is part of the client library without dependencies.
const REQUIREMENTS: &str = "\
prometheus-client==0.23.1 --hash=sha256:dd1913e6e76b59cfe44e7a4b83e01afc9873c1bdfd2ed8739f1e76aeca115f99
";
const PROGRAM: &str = include_str!("prometheus.py");

/// The Prometheus project's parser of its text format.
#[derive(Debug, Clone)]
pub struct PrometheusParser {
    folder: PathBuf,
}

/// A value of a series.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Sample {
    /// The type of the family: `counter` or `gauge`, or `unknown` for a series without a type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The name of the series.
    pub name: String,
    /// The values of the labels, by name.
    pub labels: BTreeMap<String, String>,
    /// The value.
    pub value: f64,
}

impl PrometheusParser {
    /// Parses a document.
    ///
    /// # Errors
    /// The document cannot be parsed.
    pub fn parse(&self, document: &Path) -> Result<Vec<Sample>> {
        let mut python = Command::new("python3");
        python.env("PYTHONPATH", &self.folder).args(["-c", PROGRAM]).arg(document);
        let output = program::run(&mut python)?;
        let malformed =
            |error: serde_json::Error| KitError::malformed("the parser's answer", error);
        serde_json::from_slice(&output).map_err(malformed)
    }
}

/// Returns the parser. If it is missing, it is downloaded into the cache of the checks first, without installing it.
///
/// # Errors
/// The parser cannot be downloaded, or has another digest.
pub fn prometheus_parser(workspace: &Workspace, say: Say<'_>) -> Result<PrometheusParser> {
    python_packages(workspace, ("prometheus", Platform::Any), REQUIREMENTS, say)
        .map(|folder| PrometheusParser { folder })
}
