//! Boxes that only wait, so that commands can run in an image that has no program to start.

use std::env;

use box_contract::Platform;
use boxbuild::compose::{ComposeError, Unrunnable};
use boxbuild::{BuildError, Cause, resolve};
use diagnostics::{Source, Syntax, in_quotes};
use host_fs::own;

use super::Args;
use crate::cli::loaded::{Loaded, Tools};
use crate::cli::options::InputOptions;
use crate::cli::stages::Stages;

/// The program that waits.
pub(in crate::cli) const SLEEP: &str = "sleep";
/// Its argument.
pub(super) const FOREVER: &str = "infinity";

/// Returns the Boxfile, in KDL, of a box in which commands run, and which starts no program of the image.
pub(in crate::cli) fn waiting_box(name: &str, image: &str) -> String {
    let image = in_quotes(Syntax::Kdl, image);
    format!(
        "box \"{name}\"\nagent {{\n    image {image}\n    entrypoint \"{SLEEP}\" \"{FOREVER}\"\n    \
         health \"none\"\n    limits memory=\"1GiB\"\n}}\n"
    )
}

/// Returns whether a box cannot be built because its image lacks a program.
pub(in crate::cli) fn lacks_program(error: &BuildError) -> bool {
    match error {
        BuildError::Several(errors) => errors.iter().any(lacks_program),
        BuildError::Unusable { source, .. } => matches!(
            &**source,
            Cause::Compose(ComposeError::NoSuchProgram { reason: Unrunnable::Missing, .. })
        ),
        _ => false,
    }
}

/// Returns whether an image has the program that waits. Reads its layers, which a build needs, too. `None` if nobody can tell: for
/// example, without an installed init, or if a registry does not answer any more.
pub(super) fn can_wait(reference: &str, args: &Args) -> Option<bool> {
    let inputs = InputOptions {
        lock_file: None,
        init: env::var_os(own::INIT).map(Into::into),
        kernel: env::var_os(own::KERNEL).map(Into::into),
        store: args.store.clone(),
        offline: false,
        registries: args.registries.clone(),
    };
    let text = waiting_box(SLEEP, reference);
    let loaded = Loaded::of_text(Source::new("image", text)).ok()?;
    let tools = Tools::find(&inputs, args.json).ok()?;
    let request = tools.request(&loaded, Platform::BUILT, None, &[]).ok()?;
    let stages = Stages::new(args.json);
    stages.begin("reading the image");
    let resolved = resolve(&request, &tools.store).ok()?;
    let observer = stages.observer();
    match resolved.observed(&observer).root_tree() {
        Ok(_) => Some(true),
        Err(error) => lacks_program(&error).then_some(false),
    }
}
