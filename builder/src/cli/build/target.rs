//! The directory and the name of a built box.

use std::path::{Path, PathBuf};

use box_cache::{Named, Owner, Publishing, Store};
use box_contract::manifest::documents;
use box_digest::Digest;
use box_layout::{Documents, blob_path};
use boxbuild::Sealed;
use boxbuild::history::{History, Made};
use boxbuild::output::{self, Form};
use host_fs::FileError;
use host_fs::publish::{Swap, create_directories, parent_of};
use safe_text::{shell_path, shown};

use super::Args;
use super::image::Image;
use crate::cli::failure::{Failure, chain};
use crate::cli::loaded::Loaded;
use crate::cli::terminal;
use crate::cli::warnings::Warnings;

/// The directory and the name that a build gives its box, for example `hello.box` and `hello`.
pub(super) struct Target {
    /// The name in the Boxfile.
    pub(super) declared: String,
    /// The box's name in the store.
    pub(super) name: Option<String>,
    /// The owner of that name.
    owner: Owner,
    /// The directory. `None` for a box of an image that the command line names: it is only in the store.
    pub(super) directory: Option<PathBuf>,
    pub(super) form: Form,
}

impl Target {
    /// Returns the target of a Boxfile's build, or of the build of an `image`, whose name must be free in the store.
    pub(super) fn new(
        args: &Args,
        loaded: &Loaded,
        image: Option<(&Image, &Store)>,
    ) -> Result<Self, Failure> {
        let declared = loaded.boxfile().name.clone();
        let chosen = args.stored_as.clone();
        let form = if args.output.is_some() { Form::Whole } else { Form::Thin };
        if let Some((image, store)) = image {
            let name = match &args.output {
                None if chosen.is_none() => Some(image.free_name(store)?),
                _ => chosen,
            };
            let (owner, directory) = (image.owner(), args.output.clone());
            return Ok(Self { declared, name, owner, directory, form });
        }
        let boxfile = loaded.project.identity();
        let boxfile = boxfile.map_err(FileError::of("find", &loaded.project.file))?;
        if args.image.for_start {
            // The caller starts the box by its digest.
            let owner = Owner::Boxfile(boxfile);
            return Ok(Self { declared, name: None, owner, directory: None, form: Form::Thin });
        }
        let by_default = args.output.is_none().then(|| declared.clone());
        let called = chosen.as_ref().unwrap_or(&declared);
        let default = || PathBuf::from(format!("{called}.box"));
        let directory = Some(args.output.clone().unwrap_or_else(default));
        let owner = match &chosen {
            Some(_) => Owner::Tagged(boxfile),
            None => Owner::Boxfile(boxfile),
        };
        Ok(Self { declared, name: chosen.or(by_default), owner, directory, form })
    }

    /// Returns whether the box may stay in the registry to which it is pushed: nobody has asked for a directory or a name, and no
    /// earlier box has the default ones, which would then be out of date.
    pub(super) fn may_be_elsewhere(&self, args: &Args, store: &Store) -> Result<bool, Failure> {
        if args.output.is_some() || args.stored_as.is_some() {
            return Ok(false);
        }
        let is_named = store.named(&self.declared)?.is_some();
        let is_there = |it: &PathBuf| it.symlink_metadata().is_ok();
        Ok(!is_named && !self.directory.as_ref().is_some_and(is_there))
    }

    /// Checks that the box may get the name, before the lock and the directory are written.
    pub(super) fn check_name(&self, store: &Store, sealed: &Sealed) -> Result<(), Failure> {
        let Some(name) = &self.name else { return Ok(()) };
        Ok(store.check_name(name, &self.named(sealed))?)
    }

    /// Records the build for `boxbuild why`, and for the next build of the same image. The box is complete, so a failure here is only
    /// a detail.
    pub(super) fn record(&self, store: &Store, loaded: &Loaded, made: Made) {
        let source = self.owner.boxfile().or_else(|| self.owner.image().map(Path::new));
        let Some(source) = source else { return };
        if let Err(error) = History::add(store, source, loaded.profile_name(), made) {
            terminal::detail("not recorded", chain(&error));
        }
    }

    fn named(&self, sealed: &Sealed) -> Named {
        Named { digest: sealed.manifest, owner: self.owner.clone() }
    }

    /// Gives the box its name, and writes the directory. For a whole directory, `published` is dropped first.
    pub(super) fn write(
        &self,
        (store, published): (&Store, Publishing<'_>),
        sealed: &Sealed,
        warnings: &mut Warnings,
    ) -> Result<Option<Swap>, Failure> {
        let documents = documents(sealed.manifest, sealed.manifest_size);
        store.keep_box(&published, &sealed.manifest, &documents)?;
        store.note_built(&published, &sealed.manifest)?;
        if let Some(name) = &self.name
            && let Some(before) = store.name_box(name, &self.named(sealed))?
        {
            warn_of_renaming(name, &before, &sealed.manifest, warnings);
        }
        let Some(directory) = &self.directory else { return Ok(None) };
        if self.form == Form::Thin {
            // The root is added before the directory exists, so that the store keeps the blobs that the directory
            // lacks.
            store.add_root(&real(directory)?)?;
            return Ok(output::write(store, sealed, directory, self.form)?);
        }
        drop(published);
        Ok(output::write(store, sealed, directory, self.form)?)
    }
}

/// Returns the path of a directory without symbolic links. Creates the parent directory; the directory itself may be absent.
fn real(directory: &Path) -> Result<PathBuf, Failure> {
    let parent = parent_of(directory);
    create_directories(parent, 0o777).map_err(FileError::of("make the directory", parent))?;
    let parent = parent.canonicalize().map_err(FileError::of("find", parent))?;
    Ok(parent.join(directory.file_name().unwrap_or_default()))
}

/// Warns that a build took a name from another box.
fn warn_of_renaming(name: &str, before: &Named, now: &Digest, warnings: &mut Warnings) {
    let Named { digest, owner } = before;
    if digest == now {
        return;
    }
    let gone = owner.boxfile().map_or("", |_| ", which is gone");
    let owner = shown(&owner.to_string());
    warnings.add_message(&format!(
        "the name {name} belongs to this box now; before, it named {digest}, {owner}{gone}"
    ));
}

/// Notes that the build replaced something unexpected in the directory: a box of another name, a whole box, a box of another
/// profile (all profiles share the default directory), or a changed copy of the same box.
pub(super) fn note_replaced(
    before: &Before,
    now: &Digest,
    args: &Args,
    loaded: &Loaded,
    (target, directory): (&Target, &Path),
) {
    let (name, digest) = (&before.documents.config.plan.name, before.documents.digest);
    let replaced = format!("note: replaced {}, which was", directory.display());
    if digest == *now && before.is_whole == (target.form == Form::Whole) {
        let changed = "this box with files that were changed, damaged or linked elsewhere";
        terminal::note(&format!("{replaced} {changed}"));
    } else if before.is_whole && target.form == Form::Thin {
        let (shown, word) = (directory.display(), shell_path(directory));
        terminal::note(&format!(
            "note: {shown} points to the store now; to write the whole box there, use `--output {word}`"
        ));
    } else if digest != *now && *name != loaded.boxfile().name {
        terminal::note(&format!("{replaced} the box {name:?}, {digest}"));
    } else if digest != *now && args.output.is_none() && !loaded.profile_names().is_empty() {
        terminal::note(&format!(
            "{replaced} {digest}; each profile is written there: --name NAME keeps both"
        ));
    }
}

/// The box in a directory before a build replaces it.
pub(super) struct Before {
    documents: Documents,
    /// Whether the directory contains blobs.
    is_whole: bool,
}

impl Before {
    pub(super) fn of(directory: &Path) -> Option<Self> {
        let documents = Documents::read(directory).ok()?;
        let is_there = |digest| blob_path(directory, digest).exists();
        let is_whole = documents.manifest.layers.iter().any(|it| is_there(&it.digest));
        Some(Self { documents, is_whole })
    }
}

/// Warns if the box was not replaced atomically.
pub(super) fn warn_of_swap(swap: Swap, directory: &Path, warnings: &mut Warnings) {
    if swap == Swap::InSteps {
        warnings.add_message(&format!(
            "the file system of {} cannot exchange two directories: a build that is killed \
             while it replaces a box there may leave none",
            directory.display()
        ));
    }
}
