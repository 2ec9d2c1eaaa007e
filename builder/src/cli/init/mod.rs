//! `boxbuild init`: writes a first Boxfile for existing images.

mod known;
mod scaffold;
mod waiting;

use std::path::{Path, PathBuf};

use box_contract::rules::NAME_FORM;
use box_contract::{ComponentName, ErrorCode};
use box_contract::{ImageRef, Platform};
use box_inspect::entry::with_fields;
use box_inspect::export::{ExportError, file};
use box_layout::Documents;
use boxbuild::compose::ImageConfig;
use boxbuild::project::NAMES;
use boxbuild::{BuildError, Cause};
use checkout::skill::is_skill;
use diagnostics::in_quotes;
use diagnostics::{Source, Spanned, Syntax};
use host_fs::FileError;
use host_fs::checkout::replace;
use host_fs::publish::PublishError;
use oci_image::{Access, Config, Form, Registries, SourceError};
use safe_text::shell_word;
use safe_text::shown;
use serde_json::{Value, json};

use super::failure::{Failure, chain};
use super::options::{RegistryOptions, StoreOption};
use super::{locate, registries, terminal};
use crate::cli::stored::PROGRAM;
use known::Known;
use scaffold::{Found, Scaffold};
pub(super) use waiting::{SLEEP, lacks_program, waiting_box};

/// Writes a first Boxfile: for images, or for an agent that people use.
///
/// Inspects the images that are named. If none is named, uses the ones in . and ./images: OCI image layouts, and archives
/// (*.tar) of OCI layouts or of `docker save`. An image is the business application's if its label `a3s.type` is `business`,
/// or if it has no such label and `business` is a word of its name, as in `web-business`. Any other image is the agent's.
/// docs/images.md lists all forms of a reference.
///
/// If an agent's image exposes no port, as most base images, the box only waits, so that commands can run in it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild init                                     from the images in ./images\n  \
    boxbuild init oci:images/agent oci:images/app     name the agent and the business image\n  \
    boxbuild init python:3.12                         an image of a registry; docker.io is the default\n  \
    boxbuild init --agent claude-code                 Claude Code, whose image the Boxfile's first comment makes\n  \
    boxbuild init --toml --name my-agent docker-archive:agent.tar")]
pub(crate) struct Args {
    /// The agent's image
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    /// The business application's image
    #[arg(value_name = "BUSINESS")]
    business: Option<String>,
    /// Write the Boxfile of an agent that people use. Its first comment has the commands that make the image
    #[arg(
        long = "agent",
        value_name = "NAME",
        value_enum,
        conflicts_with_all = ["agent", "business", "name", "entrypoint", "toml"]
    )]
    known: Option<Known>,
    /// The box's name [default: the name of this directory]
    #[arg(long)]
    name: Option<String>,
    /// The agent's program, if its image declares none
    #[arg(long, value_name = "PROGRAM")]
    entrypoint: Option<String>,
    /// Write Boxfile.toml instead of Boxfile
    #[arg(long)]
    toml: bool,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    store: StoreOption,
    #[command(flatten)]
    registries: RegistryOptions,
}

/// A first Boxfile.
struct First {
    text: String,
    /// The name and the text of a program beside the Boxfile, which declares it.
    program: Option<(&'static str, &'static str)>,
    /// The report of the command as JSON, without the paths of the files.
    report: Value,
    /// What the user does next.
    next: &'static str,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let file = if args.toml { "Boxfile.toml" } else { "Boxfile" };
    check_free(Path::new(file), args.force)?;
    let First { text, program, report, next } = match args.known {
        Some(known) => known.first()?,
        None => of_images(file, args)?,
    };
    // If the program exists, no Boxfile is written either.
    if let Some((name, text)) = program {
        write(Path::new(name), text, args.force)?;
    }
    write(Path::new(file), &text, args.force)?;
    let program = program.map(|(name, _)| name);
    if args.json {
        let files = [("file", json!(file)), ("program", json!(program))];
        terminal::json(&with_fields(report, files).to_string());
    } else {
        let program = program.map(|name| format!("{name} and ")).unwrap_or_default();
        terminal::note(&format!("wrote {program}{file}; {next}"));
    }
    Ok(())
}

/// Makes the Boxfile for images: those that are named, or else those that are found.
fn of_images(file: &str, args: &Args) -> Result<First, Failure> {
    let look = |component, reference: &String| inspect(component, reference, args);
    let (agent, business) = match &args.agent {
        Some(agent) => {
            let agent = look(ComponentName::Agent, agent)?;
            let business = args.business.as_ref();
            (agent, business.map(|it| look(ComponentName::Business, it)).transpose()?)
        }
        None => discover()?,
    };
    let waits = args.entrypoint.is_none()
        && agent.may_only_wait()
        && waiting::can_wait(&agent.reference, args).unwrap_or(agent.program.is_some());
    if agent.program.is_none() && args.entrypoint.is_none() && !waits {
        let help = "name a program of the image: --entrypoint /path/to/program";
        let message = format!("the image {} has no program for the agent", agent.reference);
        return Err(Failure::new((ErrorCode::ImageUnusable, help), message));
    }
    let name = match &args.name {
        Some(name) => checked_name(name)?,
        None => locate::directory_name(),
    };
    let report = report(&name, &agent, business.as_ref());
    let (entrypoint, skills) = (args.entrypoint.clone(), has_skills());
    let scaffold = Scaffold { name, agent, business, entrypoint, waits, skills };
    let text = if args.toml { scaffold.toml() } else { scaffold.kdl() };
    check_text(file, &text)?;
    Ok(First { text, program: None, report, next: "look at it, then run `boxbuild build`" })
}

/// Returns the report of the command as JSON.
fn report(name: &str, agent: &Found, business: Option<&Found>) -> Value {
    let image = |component: ComponentName, image: &Found| json!({ "component": component, "image": image.reference });
    let agent = image(ComponentName::Agent, agent);
    let business = business.map(|it| image(ComponentName::Business, it));
    let images: Vec<Value> = [Some(agent), business].into_iter().flatten().collect();
    json!({ "name": name, "images": images })
}

/// Checks that a text is a valid Boxfile, because it contains foreign names.
fn check_text(file: &str, text: &str) -> Result<(), Failure> {
    let none = |_: &str| Err(String::new());
    let document = boxfile_spec::read(Source::new(file, text), None, none);
    if document.found.is_empty() {
        return Ok(());
    }
    Err(Failure::of_diagnostics(ErrorCode::BoxfileInvalid, &document.found, &document.sources))
}

/// Returns whether there is a directory `skills` with a skill in it.
fn has_skills() -> bool {
    let entries = std::fs::read_dir("skills").into_iter().flatten().flatten();
    entries.into_iter().any(|entry| is_skill(&entry.path()))
}

/// Parses a reference and opens the image. Refuses an image for another component, as a build would.
fn inspect(component: ComponentName, reference: &str, args: &Args) -> Result<Found, Failure> {
    let process = open_named(reference, args)?;
    let config = ImageConfig { component, process: &process };
    config.check_type().map_err(|error| match (component, config.declared_type()) {
        (ComponentName::Agent, Some(Ok(ComponentName::Business))) => {
            let word = shell_word(reference);
            let help = format!("name the agent's image before it: `boxbuild init AGENT {word}`");
            Failure::new((ErrorCode::ImageUnusable, help), error)
        }
        _ => error.into(),
    })?;
    Ok(Found::new(reference, &process))
}

/// Opens the image of a reference, and returns its process configuration.
fn open_named(reference: &str, args: &Args) -> Result<Config, Failure> {
    let parsed = named(reference)?;
    if !parsed.is_in_registry() {
        return Ok(open(&parsed, None)?);
    }
    let store = args.store.open(&PROGRAM)?;
    let remote = registries::client(&args.registries, args.json)?;
    let registries = Registries { store: &store, remote: &remote, offline: false };
    open(&parsed, Some(registries)).map_err(|error| unread(reference, &parsed, error))
}

/// Parses the reference of an image on a command line. Refuses a path without a prefix, and a box.
pub(super) fn named(reference: &str) -> Result<ImageRef, Failure> {
    let path = Path::new(reference.strip_prefix(Form::Layout.prefix()).unwrap_or(reference));
    if is_box(path) {
        return Err(Cause::IsBox(path.to_owned()).into());
    }
    let parsed = parse(reference).map_err(|failure| misnamed(reference).unwrap_or(failure))?;
    let is_registry = parsed.is_in_registry();
    match is_registry.then(|| misnamed(reference).or_else(|| no_registry(reference))).flatten() {
        Some(failure) => Err(failure),
        None => Ok(parsed),
    }
}

/// Returns the failure of an image of a registry. It has the name that a short reference stands for.
fn unread(reference: &str, parsed: &ImageRef, error: SourceError) -> Failure {
    let name = parsed.to_string();
    let name = name.strip_prefix("docker://").unwrap_or(&name);
    if reference.contains(name) {
        return error.into();
    }
    let what = format!("the image {reference} ({name}) cannot be read");
    BuildError::Unusable { what, span: None, source: Box::new(error.into()) }.into()
}

/// Returns the failure of an existing path without a prefix, which would be read as a name of Docker Hub.
fn no_registry(reference: &str) -> Option<Failure> {
    let metadata = Path::new(reference).metadata().ok()?;
    let path = shell_word(reference);
    let (what, other) = match metadata.is_dir() {
        true => ("directory", "oci:DIR for a directory with an image".to_owned()),
        false => ("file", format!("docker-archive:{path} for the image in it")),
    };
    let message = format!("{reference} is a {what} here, and not the name of an image");
    let help = format!("write {other}, or docker://{path} for an image of a registry");
    Some(Failure::new((ErrorCode::ImageNotFound, help), message))
}

/// Returns whether there is a box in a directory.
fn is_box(directory: &Path) -> bool {
    Documents::read(directory).is_ok()
}

/// Returns the failure of a path without a prefix, if there is an image at the path.
pub(super) fn misnamed(reference: &str) -> Option<Failure> {
    let prefix = oci_image::form_of(Path::new(reference))?.prefix();
    let message = format!("`{reference}` does not say of which kind the image is");
    let path = shell_word(reference);
    let help = format!("write {prefix}{path}; an image of a registry is docker://NAME");
    Some(Failure::new((ErrorCode::ImageNotFound, help), message))
}

/// Opens an image, with paths relative to the working directory, and returns its process
/// configuration.
fn open(reference: &ImageRef, registries: Option<Registries<'_>>) -> Result<Config, SourceError> {
    let access = Access { base: Path::new(""), registries };
    Ok(oci_image::open(reference, None, Platform::BUILT, &access)?.process)
}

/// Parses a reference by the rules of the Boxfile language.
pub(super) fn parse(reference: &str) -> Result<ImageRef, Failure> {
    let image = in_quotes(Syntax::Kdl, reference);
    let text = format!("box \"x\"\nagent {{ image {image}; }}\n");
    let read = boxfile_spec::read(Source::new("reference", text), None, |_| Err(String::new()));
    let image = read.boxfile.and_then(|boxfile| boxfile.agent.component.image);
    let code = ErrorCode::ImageNotFound;
    match (image, read.found.first()) {
        (Some(Spanned { value, .. }), None) => Ok(value),
        (_, None) => Err(Failure::new(code, "no image")),
        (_, Some(wrong)) => {
            let failure = |help: &str| Failure::new((code, help.to_owned()), wrong.message());
            Err(wrong.help().map_or_else(|| Failure::new(code, wrong.message()), failure))
        }
    }
}

/// Finds the images in the working directory and in `images`.
fn discover() -> Result<(Found, Option<Found>), Failure> {
    let (mut agents, mut businesses) = (Vec::new(), Vec::new());
    for (form, path) in images() {
        match look_at(form, &path) {
            Ok((found, true)) => businesses.push(found),
            Ok((found, false)) => agents.push(found),
            Err(reason) => terminal::note(&format!("warning: skipped: {}", shown(&reason))),
        }
    }
    match (agents.len(), businesses.len()) {
        (1, 0 | 1) => Ok((agents.remove(0), businesses.pop())),
        (0, _) => {
            let help = "copy one there: skopeo copy docker://NAME oci:images/agent:latest\n\
                        or say where it is: boxbuild init oci:PATH/OF/AGENT";
            let message = "no agent's image was found in . and ./images";
            Err(Failure::new((ErrorCode::ImageNotFound, help), message))
        }
        _ => {
            let names = agents.iter().chain(&businesses).map(|it| it.reference.as_str());
            let names: Vec<&str> = names.collect();
            let help = "name them: boxbuild init oci:PATH/OF/AGENT oci:PATH/OF/BUSINESS";
            let message = format!("it is not clear which image is which: {}", names.join(", "));
            Err(Failure::new((ErrorCode::ImageAmbiguous, help), message))
        }
    }
}

/// Opens the only image in a directory or file. Also returns `true` if the image is for the business application.
fn look_at(form: Form, path: &Path) -> Result<(Found, bool), String> {
    let reference = format!("{}{}", form.prefix(), path.display());
    // A Boxfile would read a colon in the path as the start of a tag.
    let named = parse(&reference).ok().filter(|parsed| parsed.to_string() == reference);
    let named = named.filter(|_| path.to_str().is_some_and(|path| !path.contains(':')));
    let Some(named) = named else {
        return Err(format!("a Boxfile cannot name {}: rename it", path.display()));
    };
    let process = open(&named, None).map_err(|error| chain(&error))?;
    let config = ImageConfig { component: ComponentName::Agent, process: &process };
    let is_business = match config.declared_type() {
        Some(Ok(component)) => component == ComponentName::Business,
        Some(Err(other)) => {
            return Err(format!("{} has the label a3s.type={other:?}", path.display()));
        }
        None => path.file_stem().is_some_and(|name| says_business(&name.to_string_lossy())),
    };
    Ok((Found::new(&reference, &process), is_business))
}

/// Returns whether `business` is a word of a file's name, as in `web-business`.
fn says_business(name: &str) -> bool {
    name.split(|c: char| !c.is_ascii_alphanumeric()).any(|it| it.eq_ignore_ascii_case("business"))
}

/// Returns the images in the working directory and in `images`, sorted by path, each with its form.
fn images() -> Vec<(Form, PathBuf)> {
    let mut found: Vec<_> = [".", "images"]
        .iter()
        .filter_map(|directory| std::fs::read_dir(directory).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .map(|path| path.strip_prefix(".").map(Path::to_owned).unwrap_or(path))
        .filter(|path| !is_box(path))
        .filter_map(|path| Some((oci_image::form_of(&path)?, path)))
        .collect();
    found.sort_by(|(_, one), (_, other)| one.cmp(other));
    found
}

fn checked_name(name: &str) -> Result<String, Failure> {
    if box_contract::rules::is_name(name) {
        return Ok(name.to_owned());
    }
    let message = format!("{name:?} is not a valid name");
    Err(Failure::new((ErrorCode::BoxfileInvalid, NAME_FORM), message))
}

/// Refuses a directory with a Boxfile, unless `force` allows to replace it.
fn check_free(file: &Path, force: bool) -> Result<(), Failure> {
    let mut there = NAMES.iter().map(Path::new).filter(|path| path.exists());
    match there.find(|path| !force || *path != file) {
        Some(other) => Err(already_there(other, file)),
        None => Ok(()),
    }
}

/// Writes a file atomically. The file may already exist only with `force`.
fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    if force {
        return Ok(replace(path, text).map_err(FileError::of("write", path))?);
    }
    let written = file(path, |out| out.write_all(text.as_bytes()).map_err(ExportError::Write));
    written.map_err(|error| match error {
        ExportError::Publish(PublishError::Exists { .. }) => already_there(path, path),
        error => error.into(),
    })
}

/// Returns the failure of an existing file. `file` is the path to write, which is the only one that `--force` replaces.
fn already_there(path: &Path, file: &Path) -> Failure {
    let name = path.display();
    let message = format!("{name} exists already; it was not changed");
    let help = if path == file {
        "to replace it, add `--force`".to_owned()
    } else {
        format!("remove {name} first: a directory has one Boxfile")
    };
    Failure::new((ErrorCode::OutputExists, help), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn business_is_a_word_of_a_name() {
        for name in ["business", "web-business", "business_v2", "my.Business"] {
            assert!(says_business(name), "{name}");
        }
        for name in ["agent", "agribusiness", "businesslike", ""] {
            assert!(!says_business(name), "{name}");
        }
    }
}
