//! `boxbuild build --image`: a box of an image, without a Boxfile.

use std::path::Path;

use box_cache::{Owner, Store};
use box_contract::rules::MAX_NAME;
use box_contract::{DEFAULT_TAG, ErrorCode, HUB, HUB_LIBRARY, ImageRef};
use box_digest::Digest;
use boxbuild::BuildError;
use boxbuild::history::History;
use boxbuild::project::lock::Lock;
use diagnostics::Source;

use crate::cli::failure::Failure;
use crate::cli::init::{SLEEP, lacks_program, named, waiting_box};
use crate::cli::loaded::Loaded;

/// The name of the text that stands for a Boxfile, in messages.
const TEXT: &str = "--image";
/// The number of hexadecimal digits that tell apart two boxes of the same name.
const DIGITS: usize = 8;

/// The image to build a box of, instead of a Boxfile.
#[derive(Debug, clap::Args)]
pub(super) struct ImageOptions {
    /// Build a box of this image, without a Boxfile: its agent only waits, so that `boxlaunch run NAME -- CMD` runs a command
    /// in the image. It has no network. `boxlaunch run --image IMAGE -- CMD` builds it by itself
    #[arg(id = "image", long = "image", value_name = "IMAGE")]
    #[arg(conflicts_with_all = ["file", "checkout", "name", "locked", "lock_file"])]
    pub(super) reference: Option<String>,
    /// Ask the registry again which image the tag of --image names. By default, only the first build asks, and later ones take
    /// the same image
    #[arg(long, requires = "image", conflicts_with = "offline")]
    pull: bool,
    /// `boxlaunch run` and `up` do this: they start the box themselves, so it needs no name and no directory
    #[arg(long, hide = true, conflicts_with_all = ["name", "output", "push"])]
    pub(super) for_start: bool,
}

impl ImageOptions {
    /// Returns the image that the command line names.
    pub(super) fn image(&self) -> Result<Option<Image>, Failure> {
        let image = |it: &String| {
            let (is_pulled, is_for_start) = (self.pull, self.for_start);
            Ok(Image { reference: named(it)?, is_pulled, is_for_start })
        };
        self.reference.as_ref().map(image).transpose()
    }
}

/// The image of which a box is built.
pub(super) struct Image {
    reference: ImageRef,
    /// Whether the registry is asked again which image the tag names.
    is_pulled: bool,
    /// Whether `boxlaunch run --image` builds the box.
    is_for_start: bool,
}

impl Image {
    /// Returns the Boxfile of the box.
    pub(super) fn loaded(&self) -> Result<Loaded, Failure> {
        let text = waiting_box(&self.name(), &self.reference.to_string());
        Loaded::of_text(Source::new(TEXT, text))
    }

    /// Returns the pins of the last build. `None` if there was none, or if they do not apply: an image of this host is looked at
    /// each time.
    pub(super) fn pins(&self, store: &Store) -> Result<Option<Lock>, Failure> {
        if self.is_pulled || !self.reference.is_in_registry() {
            return Ok(None);
        }
        let history = History::read(store, Path::new(&self.reference.to_string()), None)?;
        Ok(history.and_then(|it| it.last.pins()))
    }

    /// Returns the failure of a build: `failure`, unless the image lacks the program of the box, or the failure names an option
    /// that `boxlaunch run` does not have.
    pub(super) fn failure(&self, error: &BuildError, failure: Failure) -> Failure {
        if self.is_for_start && failure.has(ErrorCode::Offline) {
            return self.not_pulled();
        }
        if !lacks_program(error) {
            return failure;
        }
        let help = "`boxbuild init IMAGE --entrypoint PROGRAM` begins a Boxfile for a program of the image that keeps running";
        let message = format!(
            "the image {} has no `{SLEEP}` in its PATH, with which a box of --image waits",
            self.reference
        );
        Failure::new((ErrorCode::ProgramInvalid, help), message)
    }

    /// Returns the failure of a run with `--pull never`, for which boxlaunch passes on `--offline`.
    fn not_pulled(&self) -> Failure {
        let help = "`--pull missing`, the default, fetches what the store lacks";
        let message =
            format!("the store has no complete {}, and --pull never was given", self.reference);
        Failure::new((ErrorCode::Offline, help), message)
    }

    /// Returns the owner of the box's name.
    pub(super) fn owner(&self) -> Owner {
        Owner::Image(self.reference.to_string())
    }

    /// Returns the box's name in the store: its own name, with digits at its end if that is the name of another box.
    pub(super) fn free_name(&self, store: &Store) -> Result<String, Failure> {
        let name = self.name();
        let is_free = store.is_free_for(&name, &self.owner())?;
        Ok(if is_free { name } else { self.with_digits(&name) })
    }

    /// Returns the box's own name. For example, `debian-13` for `docker.io/library/debian:13`.
    fn name(&self) -> String {
        let (place, tag) = match &self.reference {
            ImageRef::Registry { host, repository, tag, digest } => {
                let short = repository.strip_prefix(HUB_LIBRARY).unwrap_or(repository);
                let is_hub = host == HUB;
                let place = if is_hub { short.to_owned() } else { format!("{host}/{repository}") };
                let digest = digest.map(|it| it.hex()[..DIGITS].to_owned());
                (place, tag.clone().filter(|it| it != DEFAULT_TAG).or(digest))
            }
            ImageRef::OciLayout { path, tag, .. }
            | ImageRef::OciArchive { path, tag, .. }
            | ImageRef::DockerArchive { path, tag } => {
                let stem = Path::new(path).file_stem().unwrap_or_default();
                (stem.to_string_lossy().into_owned(), tag.clone())
            }
        };
        let name = hyphenated(&[place, tag.unwrap_or_default()].join("-"));
        match name.len() {
            0 => self.with_digits("image"),
            length if length > MAX_NAME => self.with_digits(&name),
            _ => name,
        }
    }

    /// Returns a name with digits at its end that depend on the reference.
    fn with_digits(&self, name: &str) -> String {
        let end = name.len().min(MAX_NAME - DIGITS - 1);
        let digest = Digest::of(self.reference.to_string().as_bytes()).hex();
        format!("{}-{}", name[..end].trim_end_matches('-'), &digest[..DIGITS])
    }
}

/// Returns the letters and digits of a text in lower case, with a hyphen between two that other characters separate.
fn hyphenated(text: &str) -> String {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|it| !it.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use box_cache::Named;
    use box_contract::rules::is_name;

    use super::*;

    fn image(reference: &str) -> Image {
        let reference = crate::cli::init::parse(reference).unwrap();
        Image { reference, is_pulled: false, is_for_start: false }
    }

    #[test]
    fn a_start_without_a_pull_is_explained_in_the_words_of_its_program() {
        let failure = Failure::new((ErrorCode::Offline, "without --offline"), "x");
        let error = BuildError::Platform { platform: box_contract::Platform::BUILT };
        let own = image("python:3");
        let kept = own.failure(&error, failure);
        assert!(kept.text().contains("--offline"));
        let failed = Image { is_for_start: true, ..own }.failure(&error, kept);
        insta::assert_snapshot!(failed.text(), @"
        error: the store has no complete docker://docker.io/library/python:3, and --pull never was given
          = help: `--pull missing`, the default, fetches what the store lacks
        ");
    }

    #[test]
    fn a_name_follows_from_the_reference() {
        for (reference, name) in [
            ("python:3.12", "python-3-12"),
            ("docker.io/library/python", "python"),
            ("python:latest", "python"),
            ("acme/tool:v1.2_b", "acme-tool-v1-2-b"),
            ("ghcr.io/acme/tool:V1", "ghcr-io-acme-tool-v1"),
            ("localhost:5000/a/b", "localhost-5000-a-b"),
            ("oci:images/agent:v1", "agent-v1"),
            ("docker-archive:image.tar", "image"),
        ] {
            assert_eq!(image(reference).name(), name, "{reference}");
        }
        let digest = Digest::of(b"").to_string();
        assert_eq!(image(&format!("python@{digest}")).name(), "python-e3b0c442");
        let long = image(&format!("ghcr.io/{}:v1", "a/".repeat(40) + "b")).name();
        assert!(is_name(&long) && long.len() > MAX_NAME - 3, "{long}");
        assert!(is_name(&image("oci:\u{e9}").name()), "no letter that a name may have");
    }

    #[test]
    fn a_name_of_another_box_is_not_taken() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("store")).unwrap();
        let name = |reference: &str| image(reference).free_name(&store).unwrap();
        let take = |reference: &str| {
            let named = Named { digest: Digest::of(b"x"), owner: image(reference).owner() };
            store.name_box(&name(reference), &named).unwrap();
        };
        take("a/b:1");
        assert_eq!(name("a/b:1"), "a-b-1");
        assert!(name("a-b:1").starts_with("a-b-1-"), "another image has the name");
        take("a-b:1");
        assert_eq!(name("a/b:1"), "a-b-1");
        let boxfile = directory.path().join("Boxfile");
        std::fs::write(&boxfile, "").unwrap();
        let named = Named { digest: Digest::of(b"y"), owner: Owner::Boxfile(boxfile) };
        store.name_box("a-b-1", &named).unwrap();
        assert!(name("a/b:1").starts_with("a-b-1-"), "a Boxfile has taken the name");
    }
}
