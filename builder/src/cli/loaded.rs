//! A Boxfile that was read for a command, and what commands ask of it.

use std::path::{Path, PathBuf};

use box_cache::Store;
use box_digest::Blake3Digest;
use box_image::ErrorCode;
use boxbuild::project::{Declarations, LockFile, LockFileError, Project, Target};
use boxbuild::{Pins, Report, Request, Variant};
use boxfile_spec::{Boxfile, Diagnostic, Document, Lock, Platform, Sources, Syntax};
use download::fetch::FetchOptions;
use oci_registry::Registry;

use super::failure::{Advice, Failure};
use super::options::{InputOptions, ProjectOptions};
use super::{locate, terminal};

/// A Boxfile without errors, as one of its profiles makes it.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) project: Project,
    pub(crate) sources: Sources,
    pub(crate) boxfile: Boxfile,
    /// The chosen profile, and the Boxfile without it.
    pub(crate) profile: Option<(String, Box<Boxfile>)>,
    /// The Boxfile with each of its profiles.
    profiles: Vec<(String, Boxfile)>,
    /// What is worth a look in it.
    pub(crate) warnings: Vec<Diagnostic>,
}

impl Loaded {
    /// Reads the Boxfile that the options name, with a profile if one is given.
    pub(crate) fn read(options: &ProjectOptions, profile: Option<&str>) -> Result<Self, Failure> {
        let project = Project::of(&locate::boxfile(options.file.as_deref())?);
        let read = |profile| project.read(profile);
        let Document { sources, boxfile, found, variants, .. } = read(None)?;
        let chosen = variants.iter().find(|(name, _)| Some(name.as_str()) == profile);
        let chosen = chosen.map(|(_, boxfile)| boxfile.clone());
        if profile.is_some() && chosen.is_none() {
            // Read with it, the Boxfile says whether that is its name or something in the file.
            if let Some(unknown) = read(profile)?.unknown_profile {
                return Err(Failure::usage(unknown));
            }
        }
        let Some(without) = boxfile else {
            return Err(Failure::diagnostics(ErrorCode::BoxfileInvalid, &found, &sources));
        };
        let (boxfile, profile) = match (profile, chosen) {
            (Some(name), Some(chosen)) => (chosen, Some((name.to_owned(), Box::new(without)))),
            _ => (without, None),
        };
        Ok(Self { project, sources, boxfile, profile, profiles: variants, warnings: found })
    }

    /// Returns the same Boxfile without a profile and with each, in this order.
    pub(crate) fn variants(&self) -> Vec<Self> {
        let without = self.profile.as_ref().map_or(&self.boxfile, |(_, without)| without);
        let plain = Self { boxfile: without.clone(), profile: None, ..self.clone() };
        let with = |(name, boxfile): &(String, Boxfile)| Self {
            boxfile: boxfile.clone(),
            profile: Some((name.clone(), Box::new(without.clone()))),
            ..self.clone()
        };
        std::iter::once(plain).chain(self.profiles.iter().map(with)).collect()
    }

    /// Returns the names of the profiles, sorted.
    pub(crate) fn profile_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.profiles.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// Returns the chosen profile's name.
    pub(crate) fn profile_name(&self) -> Option<&str> {
        self.profile.as_ref().map(|(name, _)| name.as_str())
    }

    /// Returns the chosen profile as the lock knows it.
    pub(crate) fn variant(&self) -> Option<Variant<'_>> {
        self.profile.as_ref().map(|(name, without)| Variant { name, without })
    }

    /// Returns everything that the lock is for.
    pub(crate) fn declarations(&self) -> Declarations<'_> {
        let without = self.profile.as_ref().map_or(&self.boxfile, |(_, without)| without);
        Declarations { without, profiles: &self.profiles, base: &self.project.base }
    }

    /// Returns what of the declarations is built for a platform.
    pub(crate) fn target(&self, platform: Platform) -> Target<'_> {
        Target { profile: self.profile_name(), platform }
    }

    /// Shows what is worth a look, in the Boxfile and in further texts.
    pub(crate) fn show_warnings(&self, further: &[Report]) {
        let own = Report::new(self.sources.clone(), self.warnings.clone());
        for report in own.iter().chain(further) {
            terminal::note(&report.render());
        }
    }

    /// Reads the lock.
    pub(crate) fn lock_file(&self, options: &InputOptions) -> Result<LockFile, LockFileError> {
        LockFile::read(&self.lock_path(options))
    }

    /// Returns where the lock is.
    pub(crate) fn lock_path(&self, options: &InputOptions) -> PathBuf {
        options.lock_file.clone().unwrap_or_else(|| self.project.lock_path())
    }

    /// Returns the platform to build for: as named, which must be one that the Boxfile has, or the
    /// first that it has.
    pub(crate) fn platform(&self, named: Option<Platform>) -> Result<Platform, Failure> {
        let declared: Vec<Platform> = self.boxfile.platforms.iter().map(|it| it.value).collect();
        match named {
            None => Ok(declared.first().copied().unwrap_or(Platform::LinuxAmd64)),
            Some(platform) if declared.contains(&platform) => Ok(platform),
            Some(platform) => Err(self.undeclared(&declared, platform)),
        }
    }

    fn undeclared(&self, declared: &[Platform], platform: Platform) -> Failure {
        let names: Vec<&str> = declared.iter().map(|it| it.as_str()).collect();
        let all: Vec<String> =
            names.iter().chain([&platform.as_str()]).map(|it| format!("\"{it}\"")).collect();
        let line = match self.sources.as_slice()[0].syntax {
            Syntax::Kdl => format!("platform {}", all.join(" ")),
            Syntax::Toml => format!("platform = [{}]", all.join(", ")),
        };
        let names = names.join(" and ");
        let help = format!("to have it for {platform} too, write `{line}` in the Boxfile");
        let advice = Advice::new(ErrorCode::PlatformUnsupported, help);
        Failure::new(advice, format!("the Boxfile is for {names}, not for {platform}"))
    }
}

/// What a build reads beside the Boxfile, found.
pub(crate) struct Tools {
    pub(crate) store: Store,
    init: PathBuf,
    kernel: PathBuf,
    builder: Blake3Digest,
    offline: bool,
}

impl Tools {
    /// Finds what a build of the Boxfile needs.
    pub(crate) fn find(options: &InputOptions, loaded: &Loaded) -> Result<Self, Failure> {
        let store = locate::store(options.store.store.as_deref())?;
        Ok(Self {
            store: Store::open(&store)?,
            init: locate::init(options.init.as_deref())?,
            kernel: locate::kernel(
                options.kernel.as_deref(),
                &loaded.boxfile,
                &loaded.project.base,
            )?,
            builder: builder_identity()?,
            offline: options.offline,
        })
    }

    /// Makes the request to build the Boxfile for a platform.
    pub(crate) fn request<'a>(
        &'a self,
        loaded: &'a Loaded,
        checkout: &'a Path,
        platform: Platform,
        lock: Option<&'a Lock>,
        refresh: &'a [String],
        remote: &'a Registry<'_>,
    ) -> Request<'a> {
        Request {
            boxfile: &loaded.boxfile,
            base: &loaded.project.base,
            checkout,
            platform,
            pins: Pins { lock, profile: loaded.variant(), refresh },
            fetch: FetchOptions {
                offline: self.offline,
                network: remote.network(),
                ..FetchOptions::default()
            },
            remote: Some(remote),
            init: &self.init,
            kernel: &self.kernel,
            builder: self.builder,
        }
    }
}

/// Identifies this very program, so that a changed builder builds anew.
fn builder_identity() -> Result<Blake3Digest, Failure> {
    let program = std::fs::read("/proc/self/exe").map_err(|error| {
        Failure::new(ErrorCode::Io, format!("cannot read this program itself: {error}"))
    })?;
    Ok(Blake3Digest::of(&program))
}
