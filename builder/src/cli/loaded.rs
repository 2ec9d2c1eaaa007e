//! A Boxfile that a command has read, with its profiles, lock and warnings.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use box_cache::Store;
use box_contract::ErrorCode;
use box_contract::Platform;
use box_digest::Blake3Digest;
use boxbuild::compose::merged::Unused;
use boxbuild::project::lock::Lock;
use boxbuild::project::{
    Checkout, Declarations, LockFile, LockFileError, LockPlace, Project, Target,
};
use boxbuild::{BuildError, InputFile, Pins, Report, Request, Variant};
use boxfile_spec::{Boxfile, Document};
use diagnostics::{Diagnostic, Source, Sources};
use download::fetch::FetchOptions;
use oci_registry::Registry;

use super::failure::Failure;
use super::options::{InputOptions, ProjectOptions};
use super::warnings::Warnings;
use super::{installed, registries, search, terminal};
use crate::cli::stored::PROGRAM;

/// A Boxfile without errors, with at most one of its profiles applied.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) project: Project,
    pub(crate) sources: Sources,
    /// The Boxfile without a profile.
    without: Arc<Boxfile>,
    /// The Boxfile with each of its profiles. All values that [`variants`](Self::variants) returns share this list.
    profiles: Arc<[(String, Boxfile)]>,
    /// The index of the chosen profile.
    chosen: Option<usize>,
    /// The warnings about the Boxfile's text.
    warnings: Arc<[Diagnostic]>,
}

impl Loaded {
    /// Reads the Boxfile that the options name, with `profile` applied.
    pub(crate) fn read(options: &ProjectOptions, profile: Option<&str>) -> Result<Self, Failure> {
        let project =
            search::project(options.file.as_deref(), options.checkout.directory.as_deref())?;
        let Document { sources, boxfile, found, variants: profiles, .. } = project.read(None)?;
        let chosen = profiles.iter().position(|(name, _)| Some(name.as_str()) == profile);
        // Reads the Boxfile again with the profile, to tell an unknown profile from an error in the file.
        if profile.is_some()
            && chosen.is_none()
            && let Some(unknown) = project.read(profile)?.unknown_profile
        {
            let help = unknown.help().unwrap_or_default().to_owned();
            return Err(Failure::new((ErrorCode::Usage, help), unknown.message()));
        }
        let Some(without) = boxfile else {
            if Lock::is_lock(&sources.as_slice()[0].text) {
                return Err(no_boxfile(&project.file));
            }
            return Err(Failure::of_diagnostics(ErrorCode::BoxfileInvalid, &found, &sources));
        };
        let (without, profiles) = (Arc::new(without), profiles.into());
        Ok(Self { project, sources, without, profiles, chosen, warnings: found.into() })
    }

    /// Reads `text` as a Boxfile that is in no file. Its relative paths begin in the current directory.
    pub(crate) fn of_text(text: Source) -> Result<Self, Failure> {
        let file = PathBuf::from(&text.name);
        let checkout = Checkout::own(Path::new("."), search::search().homes);
        let project = Project::within(&file, checkout);
        let Document { sources, boxfile, found, .. } = project.read_as(text, None);
        let Some(without) = boxfile else {
            return Err(Failure::of_diagnostics(ErrorCode::BoxfileInvalid, &found, &sources));
        };
        let (without, profiles) = (Arc::new(without), Arc::new([]));
        Ok(Self { project, sources, without, profiles, chosen: None, warnings: found.into() })
    }

    /// Returns the Boxfile with the chosen profile.
    pub(crate) fn boxfile(&self) -> &Boxfile {
        self.chosen.map_or(&self.without, |index| &self.profiles[index].1)
    }

    /// Returns the Boxfile without a profile, and then with each profile.
    pub(crate) fn variants(&self) -> Vec<Self> {
        let indices = std::iter::once(None).chain((0..self.profiles.len()).map(Some));
        indices.map(|chosen| Self { chosen, ..self.clone() }).collect()
    }

    /// Returns the names of the profiles, sorted.
    pub(crate) fn profile_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.profiles.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// Returns the chosen profile in the form that the lock needs.
    pub(crate) fn variant(&self) -> Option<Variant<'_>> {
        self.chosen.map(|index| Variant { name: &self.profiles[index].0, without: &self.without })
    }

    /// Returns the name of the chosen profile.
    pub(crate) fn profile_name(&self) -> Option<&str> {
        self.variant().map(|it| it.name)
    }

    /// Returns all declarations that the lock pins.
    pub(crate) fn declarations(&self) -> Declarations<'_> {
        let Self { without, profiles, project, .. } = self;
        Declarations { without, profiles, base: &project.base }
    }

    /// Returns the target of a build: the chosen profile for `platform`.
    pub(crate) fn target(&self, platform: Platform) -> Target<'_> {
        Target { profile: self.profile_name(), platform }
    }

    /// Prints the warnings about the Boxfile and further files.
    pub(crate) fn show_warnings(&self, further: &[Report]) {
        self.add_warnings(further, &mut Warnings::default());
    }

    /// Adds the warnings about the Boxfile and further files to a command's warnings.
    pub(crate) fn add_warnings(&self, further: &[Report], to: &mut Warnings) {
        let own = Report::new(&self.sources, &self.warnings);
        own.iter().chain(further).for_each(|report| to.add(report));
    }

    /// Adds a warning for each unused policy to a command's warnings.
    pub(crate) fn add_unused(&self, unused: &[Unused], to: &mut Warnings) {
        self.add(unused.iter().filter_map(|unused| unused.warning(self.boxfile())), to);
    }

    /// Adds warnings with spans in the Boxfile to a command's warnings.
    pub(crate) fn add(&self, found: impl IntoIterator<Item = Diagnostic>, to: &mut Warnings) {
        let found: Vec<Diagnostic> = found.into_iter().collect();
        let report = Report::new(&self.sources, &found);
        report.iter().for_each(|report| to.add(report));
    }

    /// Reads the lock of the Boxfile.
    pub(crate) fn lock_file(&self, options: &InputOptions) -> Result<LockFile, LockFileError> {
        let path = self.lock_path(options)?;
        terminal::detail("lock", path.path().display());
        LockFile::read(path)
    }

    /// Returns the path of the lock. Unless the command line names the lock, it must not be a symbolic link out of its
    /// directory.
    pub(crate) fn lock_path(&self, options: &InputOptions) -> Result<LockPlace, LockFileError> {
        if let Some(named) = &options.lock_file {
            return Ok(named.into());
        }
        let path = self.project.lock_path();
        Project::check_unnamed(&path)?;
        Ok(LockPlace::found(path, self.project.beside()))
    }

    /// Returns the platform to build for: the named one, which the Boxfile must declare, or else the first
    /// one in the Boxfile. [`Platform::BUILT`] if the Boxfile declares none.
    pub(crate) fn platform(&self, named: Option<Platform>) -> Result<Platform, Failure> {
        let declared: Vec<Platform> = self.boxfile().platforms.iter().map(|it| it.value).collect();
        match named {
            None => Ok(declared.first().copied().unwrap_or(Platform::BUILT)),
            Some(platform) if declared.contains(&platform) => Ok(platform),
            Some(platform) if platform != Platform::BUILT => {
                Err(BuildError::Platform { platform }.into())
            }
            Some(platform) => {
                let message = format!("the Boxfile is not for {platform}");
                let help = format!("add \"{platform}\" to its `platform`");
                Err(Failure::new((ErrorCode::PlatformUnsupported, help), message))
            }
        }
    }
}

/// Returns the error for a user who named a lock where a Boxfile belongs.
pub(super) fn no_boxfile(lock: &Path) -> Failure {
    let help = "name the Boxfile that it was written for: boxbuild alone writes locks";
    let message = format!("{} is a lock, not a Boxfile, and was not changed", lock.display());
    Failure::new((ErrorCode::BoxfileInvalid, help), message)
}

/// What a command needs to build a box: the store, the client for registries, the init, and this program's digest.
pub(crate) struct Tools<'a> {
    pub(crate) store: Store,
    /// Whether the command prints JSON.
    pub(crate) as_json: bool,
    options: &'a InputOptions,
    init: InputFile,
    builder: Blake3Digest,
    remote: Registry,
}

impl<'a> Tools<'a> {
    /// Finds the tools. With `as_json`, no progress is printed.
    pub(crate) fn find(options: &'a InputOptions, as_json: bool) -> Result<Self, Failure> {
        let store = options.store.root(&PROGRAM)?;
        terminal::detail("store", store.display());
        Self::with_store(|| Ok(options.store.open(&PROGRAM)?), options, as_json)
    }

    /// Finds the tools like [`Self::find`], for a build in the store that `open` returns.
    pub(crate) fn with_store(
        open: impl FnOnce() -> Result<Store, Failure>,
        options: &'a InputOptions,
        as_json: bool,
    ) -> Result<Self, Failure> {
        let init = installed::init(options.init.as_deref())?;
        terminal::detail("init", init.path.display());
        Ok(Self {
            store: open()?,
            as_json,
            options,
            init,
            builder: builder_identity()?,
            remote: registries::client(&options.registries, as_json)?,
        })
    }

    /// Returns the client for registries.
    pub(crate) const fn registry(&self) -> &Registry {
        &self.remote
    }

    /// Returns the request to build a Boxfile for a platform.
    pub(crate) fn request<'r>(
        &'r self,
        loaded: &'r Loaded,
        platform: Platform,
        lock: Option<&'r Lock>,
        refresh: &'r [String],
    ) -> Result<Request<'r>, Failure> {
        let (boxfile, base) = (loaded.boxfile(), &loaded.project.base);
        let kernel = installed::kernel(self.options.kernel.as_deref(), boxfile, base)?;
        terminal::detail("kernel", kernel.path.display());
        Ok(Request {
            boxfile,
            base,
            checkout: loaded.project.checkout(),
            platform,
            pins: Pins { lock, profile: loaded.variant(), refresh },
            fetch: FetchOptions {
                offline: self.options.offline,
                network: self.remote.network(),
                ..FetchOptions::default()
            },
            remote: Some(&self.remote),
            init: self.init.clone(),
            kernel,
            builder: self.builder,
        })
    }
}

/// Returns the digest of this program, so that a changed builder does not use the results of an older
/// one.
fn builder_identity() -> Result<Blake3Digest, Failure> {
    let read = File::open("/proc/self/exe").and_then(Blake3Digest::of_reader);
    read.map(|(digest, _)| digest).map_err(|error| {
        Failure::new(ErrorCode::Io, format!("cannot read this program itself: {error}"))
    })
}
