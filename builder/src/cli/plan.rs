//! `boxbuild plan`: shows the steps and the result of a build in advance.

use box_contract::Platform;
use box_contract::exit;
use box_contract::permissions;
use boxbuild::compose::MergeReport;
use boxbuild::compose::merged::PolicyUse;
use boxbuild::project::lock::Lock;
use boxbuild::{BuildError, Composition, LayerState, Preview, PreviewFile, PreviewImage};
use safe_text::readable;
use serde_json::{Value, json};

use super::failure::{Failure, of_build};
use super::loaded::{Loaded, Tools};
use super::locking::Fixed;
use super::options::{
    InputOptions, LockedOption, ProfileOption, ProjectOptions, lock_command, platform,
};
use super::preview::{self, Previewed};
use super::warnings::Warnings;
use super::{conflicts, locking, terminal};

/// Shows what a build will do, without making a box.
///
/// Reads everything that a build reads, decodes the layers into the store and composes the root. Shows each image, what the
/// store already contains, what both images share, what the box may do on its host, and with layout "merged" the result of
/// the merge. Exits with 1 if the images conflict. Writes neither a box nor the lock.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild plan                     what `boxbuild build` would do\n  \
    boxbuild plan --profile one-root  apply a profile of the Boxfile\n  \
    boxbuild plan --locked            only if the lock is up to date; else fail with exit code 3\n  \
    boxbuild plan --json              print it as JSON, with every conflict")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) project: ProjectOptions,
    #[command(flatten)]
    profile: ProfileOption,
    /// The platform to plan for, one that the Boxfile declares; only linux/amd64 is supported [default: its first]
    #[arg(long, value_name = "PLATFORM", value_parser = platform)]
    platform: Option<Platform>,
    #[command(flatten)]
    locked: LockedOption,
    #[command(flatten)]
    inputs: InputOptions,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let loaded = Loaded::read(&args.project, args.profile.name.as_deref())?;
    let platform = loaded.platform(args.platform)?;
    let locked = &args.locked;
    let lock_file = loaded.lock_file(&args.inputs).map_err(|error| locked.blame(error.into()))?;
    let command = lock_command(&args.project, &args.inputs);
    let fixed = Fixed { file: &lock_file, option: "--locked", command: &command };
    let fixed = locked.locked.then_some(&fixed);
    let tools = Tools::find(&args.inputs, args.project.json)?;
    let old = lock_file.lock.as_ref();
    let Previewed { preview, lock, warnings: found } =
        preview::preview(&loaded, &tools, platform, &lock_file, fixed)?;
    let changes = locking::describe(old, &lock);
    let mut warnings = Warnings::new(args.project.json);
    loaded.add_warnings(&found, &mut warnings);
    if args.project.json {
        let mut report = report(&loaded, platform, &preview, &changes);
        report["warnings"] = warnings.json();
        terminal::json(&report.to_string());
    } else {
        let lock = lock_text(old, &changes);
        terminal::result(text(&loaded, platform, &preview, &lock).trim_end());
    }
    match preview.root {
        Ok(_) => Ok(()),
        // The JSON report contains the conflicts.
        Err(_) if args.project.json => Err(Failure::reported(exit::FAILED)),
        Err(unmerged) => Err(of_build(&BuildError::Conflicts(unmerged), &loaded.sources)),
    }
}

fn lock_text(old: Option<&Lock>, changes: &[String]) -> String {
    match (old, changes) {
        (None, _) => "there is none; a build writes it".to_owned(),
        (Some(_), []) => "up to date".to_owned(),
        (Some(_), changes) => format!("a build updates it\n  {}", changes.join("\n  ")),
    }
}

/// Returns a plan as text.
fn text(loaded: &Loaded, platform: Platform, preview: &Preview, lock: &str) -> String {
    let known = match &preview.known {
        Some(digest) => format!("the box is there: {digest}"),
        None => "the box is not there yet".to_owned(),
    };
    let mut lines = vec![
        ("box", format!("{} for {platform}", loaded.boxfile().name)),
        ("lock", lock.to_owned()),
        ("store", known),
    ];
    for PreviewImage { component, digest, layers } in &preview.images {
        lines.push((component.name(), digest.to_string()));
        for (number, LayerState { digest, size, decoded }) in (1..).zip(layers) {
            let state = if *decoded { "cached" } else { "decoded now" };
            lines.push(("", format!("layer {number} {digest}, {}, {state}", readable(*size))));
        }
    }
    lines.extend(preview.program.map(|program| ("program", program.to_string())));
    for skill in &preview.skills {
        let (mode, size) = (skill.mode.name(), readable(skill.bytes));
        lines.push(("skill", format!("{}, mode {mode}, {size}", skill.name)));
    }
    for PreviewFile { component, path, to, bytes } in &preview.files {
        let (of, size) = (component.name(), readable(*bytes));
        lines.push(("file", format!("{path}, at {to} of the {of}, {size}")));
    }
    // A single image has no other image to share a root with.
    if preview.images.len() > 1 {
        lines.extend(composition_lines(&preview.composition));
    }
    if let Ok((digest, entries)) = &preview.root {
        lines.push(("rootfs", format!("{entries} entries, {digest}")));
    }
    let titles = ["may do"].into_iter().chain(std::iter::repeat(""));
    lines.extend(titles.zip(permissions::lines(&preview.permissions)));
    lines.iter().map(|(title, value)| format!("{title:<9} {value}\n")).collect()
}

fn composition_lines(composition: &Composition) -> Vec<(&'static str, String)> {
    match composition {
        Composition::Split { shared_files, shared_bytes } => {
            let bytes = readable(*shared_bytes);
            vec![
                ("layout", "split: each image keeps its whole root".to_owned()),
                ("shared", format!("{shared_files} files in both images, {bytes} stored once")),
            ]
        }
        Composition::Merged(report) => {
            let MergeReport { agent, business, equal, policies, conflicts } = &**report;
            let entries = format!(
                "{agent} from the agent's image, {business} from the business image, {equal} the \
                 same in both"
            );
            let mut lines = vec![
                ("layout", "merged: both images are one root".to_owned()),
                ("entries", entries),
            ];
            lines.extend(policies.iter().map(|it| ("policy", policy_text(it))));
            let conflicts = match conflicts.count {
                0 => "none left".to_owned(),
                count => format!("{count} left, which no policy decides"),
            };
            lines.push(("conflicts", conflicts));
            lines
        }
    }
}

fn policy_text(policy: &PolicyUse) -> String {
    let (pattern, word) = (&policy.declared.pattern.value, policy.declared.policy.name());
    let paths = if policy.decides == 1 { "path" } else { "paths" };
    format!("\"{pattern}\" {word}: {} {paths}", policy.decides)
}

/// Returns a plan as JSON.
fn report(loaded: &Loaded, platform: Platform, preview: &Preview, changes: &[String]) -> Value {
    let boxfile = loaded.boxfile();
    let mut composition = json!(preview.composition);
    if let Composition::Merged(report) = &preview.composition {
        let conflicts = &report.conflicts;
        let syntax = loaded.sources.as_slice()[0].syntax;
        composition["conflict_count"] = conflicts.count.into();
        composition["conflicts"] = conflicts::all_json(conflicts, &preview.origins);
        composition["advice"] = conflicts::advice_json(conflicts, syntax);
    }
    let root = preview.root.as_ref().ok();
    json!({
        "name": boxfile.name,
        "platform": platform,
        "profile": loaded.profile_name(),
        "lock": changes,
        "box": preview.known,
        "images": preview.images,
        "program": preview.program,
        "skills": preview.skills,
        "files": preview.files,
        "layout": boxfile.layout,
        "composition": composition,
        "tree": root.map(|(digest, _)| digest),
        "entries": root.map(|(_, entries)| entries),
        "permissions": preview.permissions,
    })
}
