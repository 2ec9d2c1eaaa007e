//! `boxlaunch run --image`: starts boxbuild, which makes a box of an image, before the box is run by its digest.
//!
//! boxlaunch contains no builder. boxbuild decides everything about images: what a short name means, which image a tag names, and
//! whether the store has the box already.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use box_contract::ErrorCode;
use box_digest::Digest;
use boxlaunch::host::programs;
use cli_common::store::StoreOption;
use cli_registry::RegistryOptions;
use host_fs::trust::Trusted;
use safe_text::shown;

use super::error::Failure;
use super::paths;
use super::pull::{PullPolicy, helper};
use super::run::RunArgs;
use super::terminal::is_quiet;

/// The program that makes boxes.
const BUILDER: &str = "boxbuild";
/// The command after which [`own_words`] adds an option.
const RUN: &str = "run";
/// The fields of boxbuild's reports with the digests of a box and of a declaration.
const BOX: &str = "box";
const DECLARED: &str = "declared";
/// The hidden option with the digest of the box that was made.
const BUILT: &str = "--built";

/// Makes a box of the image that the command line names, or takes it from the store. Returns the arguments that run that box by
/// its digest, or the exit code of boxbuild if it has failed and printed its error. `None` without `--image`.
pub(super) fn before(args: &RunArgs) -> Result<Option<Result<RunArgs, u8>>, Failure> {
    let Some(image) = &args.image else { return Ok(None) };
    let digest = match args.built {
        Some(digest) => digest,
        None => match build(image, args)? {
            Ok(digest) => digest,
            Err(code) => return Ok(Some(Err(code))),
        },
    };
    let subject = args.subject.sibling(Path::new(&digest.to_string()));
    Ok(Some(Ok(RunArgs { subject, built: Some(digest), ..args.clone() })))
}

/// Returns the words of this command line, without the program, and with the digest of the box that was made of an image.
pub(super) fn own_words(built: Option<Digest>) -> Vec<OsString> {
    with_built(env::args_os().skip(1), built)
}

fn with_built(words: impl Iterator<Item = OsString>, built: Option<Digest>) -> Vec<OsString> {
    let mut words: Vec<_> = words.collect();
    let has_built = words.iter().take_while(|it| *it != "--").any(|it| is_built(it));
    let Some(built) = built.filter(|_| !has_built) else { return words };
    if let Some(at) = words.iter().position(|it| it == RUN) {
        words.insert(at + 1, format!("{BUILT}={built}").into());
    }
    words
}

fn is_built(word: &OsStr) -> bool {
    word.to_str().is_some_and(|it| it.starts_with(BUILT))
}

/// Starts boxbuild, and returns the digest that it prints, or its exit code.
fn build(image: &str, args: &RunArgs) -> Result<Result<Digest, u8>, Failure> {
    let help = format!(
        "install boxbuild, which makes boxes of images; or start a box that is built: `boxlaunch pull \
         HOST/NAME:TAG` fetches one from a registry, and `boxbuild build --image {image}` makes one on another host"
    );
    let mut build = Command::new(builder(&help)?);
    build.args(["build", "--for-start"]).arg(format!("--image={image}"));
    let pull = match args.pull {
        Some(PullPolicy::Always) => Some("--pull"),
        Some(PullPolicy::Never) => Some("--offline"),
        Some(PullPolicy::Missing) | None => None,
    };
    build.args(pull).args(args.json.then_some("--json")).args(is_quiet().then_some("--quiet"));
    let output = printed(build, (&args.subject.store, &args.registries))?;
    output.map_or_else(|code| Ok(Err(code)), |it| found_in(&it, BOX).map(Ok))
}

/// A Boxfile of which boxbuild makes a box.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoxfileSource<'a> {
    pub(super) path: &'a Path,
    /// The only directory from which the box gets files. `None` for the checkout of the Boxfile.
    pub(super) checkout: Option<&'a Path>,
    pub(super) store: &'a StoreOption,
    pub(super) registries: &'a RegistryOptions,
    /// Whether errors are JSON on standard output.
    pub(super) as_json: bool,
}

impl BoxfileSource<'_> {
    /// Builds the box, without a name and a directory. Returns its digest and that of its [declaration](Self::declaration) as it was
    /// built, or the exit code of boxbuild. With `declared`, a Boxfile with another declaration is refused.
    pub(super) fn build(
        self,
        declared: Option<Digest>,
    ) -> Result<Result<(Digest, Digest), u8>, Failure> {
        let mut build = self.command()?;
        build.arg("--report-declared");
        build.args(declared.map(|it| format!("--expect-declared={it}")));
        Ok(match printed(build, (self.store, self.registries))? {
            Ok(output) => Ok((found_in(&output, BOX)?, found_in(&output, DECLARED)?)),
            Err(code) => Err(code),
        })
    }

    /// Returns the digest of all that decides what the box gets from outside of its checkout, and with which rights: the Boxfile,
    /// those that it extends, the pins of the lock, and the kernel. Or the exit code of boxbuild.
    pub(super) fn declaration(self) -> Result<Result<Digest, u8>, Failure> {
        let mut build = self.command()?;
        build.arg("--declared");
        let output = printed(build, (self.store, self.registries))?;
        output.map_or_else(|code| Ok(Err(code)), |it| found_in(&it, DECLARED).map(Ok))
    }

    /// Returns the [declaration](Self::declaration), or `None` if it cannot be read. Prints nothing.
    pub(super) fn declaration_if_any(self) -> Option<Digest> {
        let output = self.command().ok()?.arg("--declared").stdin(Stdio::null()).output().ok()?;
        digest_in(&output.stdout, DECLARED)
    }

    fn command(self) -> Result<Command, Failure> {
        let help = "install boxbuild, which builds the Boxfile of a project; or name a box: `boxlaunch up --box BOX`";
        let mut build = Command::new(builder(help)?);
        build.args(["build", "--for-start"]).arg("--file").arg(self.path);
        if let Some(checkout) = self.checkout {
            build.arg("--checkout").arg(checkout);
        }
        build.args(self.as_json.then_some("--json")).args(is_quiet().then_some("--quiet"));
        Ok(build)
    }
}

/// Runs a command of boxbuild, and returns what it prints, or its exit code.
fn printed(
    build: Command,
    given: (&StoreOption, &RegistryOptions),
) -> Result<Result<Vec<u8>, u8>, Failure> {
    helper(build, given, "the process that builds the box")
}

/// Returns a digest that boxbuild has printed.
fn found_in(output: &[u8], field: &str) -> Result<Digest, Failure> {
    digest_in(output, field).ok_or_else(|| {
        let help = "install boxbuild and boxlaunch of the same version";
        Failure::new((ErrorCode::Internal, help), "boxbuild has printed no digest of a box")
    })
}

/// Returns the digest that boxbuild has printed as a field of JSON, or as text: that of the box first, that of the declaration last.
fn digest_in(output: &[u8], field: &str) -> Option<Digest> {
    let text = String::from_utf8_lossy(output);
    let mut words = text.split_whitespace();
    let report: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    match report {
        Some(report) => report[field].as_str()?.parse().ok(),
        None if field == BOX => words.next()?.parse().ok(),
        None => words.next_back()?.parse().ok(),
    }
}

/// Returns the boxbuild to start. `help` is for a host without one.
fn builder(help: &str) -> Result<PathBuf, Failure> {
    let own = env::current_exe().ok();
    let (found, refused) = find(own.as_deref(), &paths::programs());
    found.ok_or_else(|| {
        let mut help = help;
        let message = match refused {
            None => "there is no boxbuild beside boxlaunch or in PATH".to_owned(),
            Some(reason) => {
                help = "make sure that only you and root can change it and its directory";
                format!("boxbuild is not started: {reason}")
            }
        };
        Failure::new((ErrorCode::Usage, shown(help)), shown(&message))
    })
}

/// Returns the boxbuild beside `own`, this program's file, or else the first one in `path`, without those that another user could
/// change. Also returns why the first of these is not used.
pub(super) fn find(own: Option<&Path>, path: &OsStr) -> (Option<PathBuf>, Option<String>) {
    let beside = own.and_then(Path::parent).map(|it| it.as_os_str().to_owned());
    let beside = beside.iter().flat_map(|it| programs::all(BUILDER, it));
    let mut refused = None;
    let found = beside.chain(programs::all(BUILDER, path)).find(|file| {
        let reason = match Trusted::this_user().untrusted_user_on_path(file) {
            Ok(None) => return true,
            Ok(Some(stranger)) => stranger.to_string(),
            Err(error) => error.to_string(),
        };
        refused.get_or_insert(format!("{}: {reason}", file.display()));
        false
    });
    (found, refused)
}

/// Returns the paths at which [`find`] looks until it finds a boxbuild. A box that could write to one of them could put its own
/// program there.
pub(super) fn places(own: Option<&Path>, path: &OsStr) -> Vec<PathBuf> {
    let (found, _) = find(own, path);
    let beside = own.and_then(Path::parent).map(|it| it.join(BUILDER));
    if found.is_some() && found == beside {
        return found.into_iter().collect();
    }
    let in_path = env::split_paths(path).filter(|it| it.is_absolute()).map(|it| it.join(BUILDER));
    let mut places: Vec<_> = beside.into_iter().chain(in_path).collect();
    let last = places.iter().position(|it| Some(it) == found.as_ref());
    places.truncate(last.map_or(usize::MAX, |at| at + 1));
    places
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_boxbuild_beside_boxlaunch_is_taken_and_none_that_others_can_change() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let set =
            |path: &str, mode| fs::set_permissions(at(path), Permissions::from_mode(mode)).unwrap();
        for directory in ["own", "open", "closed"] {
            fs::create_dir(at(directory)).unwrap();
            fs::write(at(directory).join(BUILDER), "").unwrap();
            set(&format!("{directory}/{BUILDER}"), 0o755);
            set(directory, 0o755);
        }
        let path = env::join_paths([at("open"), at("closed")]).unwrap();
        let own = at("own/boxlaunch");
        let find = || find(Some(&own), &path);
        let places = || places(Some(&own), &path);
        assert_eq!(find(), (Some(at("own/boxbuild")), None));
        assert_eq!(places(), [at("own/boxbuild")]);
        fs::remove_file(at("own/boxbuild")).unwrap();
        assert_eq!(find().0, Some(at("open/boxbuild")));
        assert_eq!(places(), [at("own/boxbuild"), at("open/boxbuild")]);
        set("open", 0o777);
        assert_eq!(places().len(), 3, "a box must put none into the first two");
        let (found, refused) = find();
        assert_eq!(found, Some(at("closed/boxbuild")));
        assert!(refused.unwrap().contains("everybody can write to"));
        set("closed/boxbuild", 0o757);
        assert_eq!(find().0, None);
        set("closed/boxbuild", 0o644);
        assert_eq!(super::find(None, at("closed").as_os_str()), (None, None), "not executable");
    }

    #[test]
    fn a_continued_run_knows_the_box_and_its_command_is_not_changed() {
        let digest = Digest::of(b"box");
        let with = |line: &str| {
            let words = with_built(line.split(' ').map(OsString::from), Some(digest));
            words.join(OsStr::new(" ")).into_string().unwrap()
        };
        let expected = format!("-q run --built={digest} --image i -d -- run --image");
        assert_eq!(with("-q run --image i -d -- run --image"), expected);
        assert_eq!(with(&expected), expected, "the supervisor of a run with secrets");
        let words = with("run --image i -- cc --built-in");
        assert_eq!(words, format!("run --built={digest} --image i -- cc --built-in"));
        assert_eq!(with_built(["run".into()].into_iter(), None), ["run"]);
    }
}
