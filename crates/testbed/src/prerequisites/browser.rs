//! A browser without a window.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::{Package, Say, packages};
use crate::{KitError, Result, program};

const PROGRAM: &str = include_str!("browser.py");

/// What happened when a browser showed a page with a map, and a person clicked on the map.
#[derive(Debug, Clone, Deserialize)]
pub struct Shown {
    /// The ids of the visible levels of the map, before the click.
    pub before: Vec<String>,
    /// The ids of the visible levels after the click.
    pub after: Vec<String>,
    /// The addresses that were requested, the page's among them.
    pub requests: Vec<String>,
    /// The messages of the browser's console, as JSON.
    pub messages: Vec<String>,
    /// The document as the browser has it.
    pub html: String,
}

/// Shows a page in a browser, with or without scripts, and clicks on its map.
///
/// # Errors
/// The browser is missing and cannot be installed, or fails.
pub fn browser(page: &Path, scripts: bool, say: Say<'_>) -> Result<Shown> {
    packages(&[Package::Chromium, Package::Python], say)?;
    let mut python = Command::new("python3");
    python.args(["-c", PROGRAM]).arg(Package::Chromium.path()?).arg(page);
    python.args([if scripts { "on" } else { "off" }, "light", "1200"]);
    let output = program::run(&mut python)?;
    serde_json::from_slice(&output).map_err(|it| KitError::malformed("the browser's answer", it))
}
