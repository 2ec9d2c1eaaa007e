//! The schemas of the files of CI systems, from the Python index.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::Say;
use super::pypi::{Platform, python_packages};
use crate::{KitError, Result, Workspace, program};

/// The package with the schemas, a reader of YAML, and the last jsonschema that is plain Python.
const REQUIREMENTS: &str = "\
check-jsonschema==0.39.0 --hash=sha256:14ce5c94871c551268ea948ffe21e9f1464dc48fb20bf9a4c13deeaaf756cf9b
ruamel.yaml==0.19.1 --hash=sha256:27592957fedf6e0b62f281e96effd28043345e0e66001f97683aa9a40c667c93
jsonschema==4.17.3 --hash=sha256:a870ad254da1a8ca84b6a2905cac29d265f805acc57af304784962a2aa6508f6
attrs==26.1.0 --hash=sha256:c647aa4a12dfbad9333ca4e71fe62ddc36f4e63b2d260a37a8b83d2f043ac309
pyrsistent==0.20.0 --hash=sha256:c55acc4733aad6560a7f5f818466631f07efc001fd023f34a6c203f8b6df0f0b
";
const PROGRAM: &str = include_str!("workflows.py");

/// A kind of file of a CI system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkflowKind {
    /// [`action.yml`](https://docs.github.com/en/actions/reference/workflows-and-actions/metadata-syntax).
    Action,
    /// [A workflow](https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax).
    Workflow,
    /// [`.gitlab-ci.yml`](https://docs.gitlab.com/ci/yaml/).
    Gitlab,
}

/// A reader of files of CI systems.
#[derive(Debug, Clone)]
pub struct Workflows {
    folder: PathBuf,
}

impl Workflows {
    /// Reads a file, and checks it against the schema of its kind.
    ///
    /// # Errors
    /// The file does not fit the schema, or is no YAML.
    pub fn read(&self, kind: WorkflowKind, path: &Path) -> Result<Value> {
        let kind = match kind {
            WorkflowKind::Action => "github-actions",
            WorkflowKind::Workflow => "github-workflows",
            WorkflowKind::Gitlab => "gitlab-ci",
        };
        let mut python = Command::new("python3");
        python.env("PYTHONPATH", &self.folder).args(["-c", PROGRAM, kind]).arg(path);
        let output = program::run(&mut python)?;
        let malformed =
            |error: serde_json::Error| KitError::malformed("the reader's answer", error);
        serde_json::from_slice(&output).map_err(malformed)
    }
}

/// Returns the reader. If it is missing, it is downloaded into the cache of the checks first, without installing it.
///
/// # Errors
/// The reader cannot be downloaded, or has another digest.
pub fn workflows(workspace: &Workspace, say: Say<'_>) -> Result<Workflows> {
    python_packages(workspace, ("workflows", Platform::Any), REQUIREMENTS, say)
        .map(|folder| Workflows { folder })
}
