//! The types of messages of the official Python package for the Model Context Protocol, from the Python index.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Say;
use super::pypi::{Platform, python_packages};
use crate::{Result, Workspace, program};

/// The package, of which only the module of types is loaded, and what that module needs. One package is not plain Python, so it has a
/// digest for each version of Python from 3.11 to 3.13.
const REQUIREMENTS: &str = "\
mcp==1.12.4 --hash=sha256:7aa884648969fab8e78b89399d59a683202972e12e6bc9a1c88ce7eda7743789
annotated-types==0.8.0 --hash=sha256:f072f4d804ea359e4eaf198b1af7a8b0943881a87f31bb764f8bf219bb9419e0
pydantic==2.14.4 --hash=sha256:653a2ad9f6d8858529c77c72717d0ea991d6c6837fe683246b2f4b2bbfc3fadc
pydantic-core==2.50.5 \
--hash=sha256:488319076ec92908b91fc6265ce761f1d78748f69f85518564fd16bf333e1b70 \
--hash=sha256:470bbc2495367f60d3ca849a8039e4c164701d10637e7743f4427d92651bdb6d \
--hash=sha256:cbfde3ad127786f1dea1a6cd89a5eb824a16203f24743ad2b4e07506f43bc844
typing-extensions==4.16.0 --hash=sha256:481caa481374e813c1b176ada14e97f1f67a4539ce9cfeb3f350d78d6370c2e8
typing-inspection==0.4.5 --hash=sha256:bc210535442b39e1bf2805e0c7a17dfd6a4ace760c84c7f7d16245d23a6b1c39
";
const PROGRAM: &str = include_str!("mcp.py");

/// The official types of messages.
#[derive(Debug, Clone)]
pub struct McpTypes {
    folder: PathBuf,
}

impl McpTypes {
    /// Checks the messages of a client and of a server, one on each line of two files: that each is a message of the protocol, and each
    /// answer the one that its request asks for.
    ///
    /// # Errors
    /// A message is not one, with what is wrong with it.
    pub fn check(&self, requests: &Path, answers: &Path) -> Result<()> {
        let mut python = Command::new("python3");
        python.args(["-c", PROGRAM]).args([self.folder.as_path(), requests, answers]);
        program::run(python.env("PYTHONPATH", &self.folder)).map(drop)
    }
}

/// Returns the types. If they are missing, they are downloaded into the cache of the checks first, without installing them.
///
/// # Errors
/// They cannot be downloaded, or have other digests.
pub fn mcp_types(workspace: &Workspace, say: Say<'_>) -> Result<McpTypes> {
    python_packages(workspace, ("mcp", Platform::ThisPython), REQUIREMENTS, say)
        .map(|folder| McpTypes { folder })
}
