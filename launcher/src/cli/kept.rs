//! The directories and files of this host that boxlaunch and boxbuild trust. A share through which a box could write to them is
//! refused. So is a share of boxlaunch's state, even a read-only one.
//!
//! A box that can write to them controls later actions of the host: the image or box that a registry name resolves to, the files
//! that count as verified, the content of another box's volume. A box that can read boxlaunch's state sees the logs and the
//! volumes of other boxes. A read-only share of a directory above the state is allowed, with a notice. So are read-only shares of
//! the store, the configuration and the kernels, because these contain no secrets.
//!
//! Boxes must not write to the installed programs, to the files that environment variables name, such as the init, and to the
//! credentials of registries, either. A box must not even read the credentials, not even through a share of a directory above
//! them.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use box_contract::KernelName;
use boxlaunch::mounts::files::FileCopy;
use boxlaunch::mounts::shares::HostShare;
use boxlaunch::mounts::sockets::SharedSocket;
use host_fs::own::{self, OwnFile, Purpose};
use safe_text::shown;
use vmm::runtime_dir::is_name_of_one;

use super::error::{Failure, usage};
use super::image;
use super::paths;
use super::run::RunArgs;

/// A protected directory: the programs trust its content.
struct ProtectedDirectory {
    path: PathBuf,
    /// The program that owns the directory.
    program: &'static str,
    /// Whether a box must not even read the directory.
    is_private: bool,
}

/// Returns all protected directories. `store` is the store of the command line, and `variable` returns the value of an
/// environment variable. A directory need not exist yet.
fn kept(
    state: &Path,
    store: Option<&Path>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Vec<ProtectedDirectory> {
    let readable = |program| move |path| ProtectedDirectory { path, program, is_private: false };
    let stores =
        [own::store(None, &variable), store.map(Path::to_owned), own::base_store(&variable)];
    let of_builder =
        stores.into_iter().chain([own::configuration(&variable), own::data(&variable)]);
    // The administrator's policy decides which boxes root starts, too.
    let of_builder = of_builder.chain([Path::new(own::POLICY).parent().map(Path::to_owned)]);
    let of_builder = of_builder.flatten().map(readable("boxbuild"));
    let of_launcher =
        [virtual_host::kernel::cache(&variable), own::launcher_configuration(&variable)];
    let of_launcher = of_launcher.into_iter().flatten().map(readable("boxlaunch"));
    let state =
        ProtectedDirectory { path: state.to_owned(), program: "boxlaunch", is_private: true };
    [state].into_iter().chain(of_builder).chain(of_launcher).collect()
}

/// Returns the protected files: the installed programs, the paths at which `run --image` would find a boxbuild to start, the user's
/// files that influence `boxbuild build`, and the credentials of registries. `program` is the path of this program, and `variable` returns the value of an environment variable.
fn files(program: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> Vec<OwnFile> {
    let is_word = |it: &OwnFile| {
        it.purpose == Purpose::Kernel && it.path.to_str().and_then(KernelName::of).is_some()
    };
    let installed = program.map(own::installed).unwrap_or_default();
    let builders = image::places(program, &variable("PATH").unwrap_or_default()).into_iter();
    let builders = builders.map(|path| OwnFile { purpose: Purpose::Program, path, named_by: None });
    let all = installed.into_iter().chain(builders).chain(own::files(variable));
    all.filter(|it| !is_word(it)).collect()
}

/// Checks that a box can write neither to `own`, the directory of the box, nor to a protected file or directory. Checks that it
/// can read neither credentials nor boxlaunch's state, which contains the logs and volumes of other boxes.
///
/// # Errors
/// The first share that would allow such an access, and the alternative.
pub(super) fn check(
    shares: &[HostShare],
    args: &RunArgs,
    own: &Path,
    state: &Path,
) -> Result<(), Failure> {
    if shares.is_empty() {
        return Ok(());
    }
    let store = args.subject.store.store.as_deref();
    let kept = kept(state, store, |name| env::var_os(name));
    let files = files(env::current_exe().ok().as_deref(), |name| env::var_os(name));
    shares.iter().try_for_each(|share| {
        kept.iter().try_for_each(|it| check_kept(share, it))?;
        files.iter().try_for_each(|it| check_file(share, it))?;
        check_runtime(share, &paths::runtime_base())?;
        check_box(share, own, args.names_digest())
    })
}

/// Returns the directory in which boxlaunch keeps its files, if a file of the host is in it. The directory of a run is recognised by
/// its name, because another boxlaunch may have other directories. A file whose place is not known counts as one in `state`.
fn own_directory(host: &Path, state: &Path, is_in_state: io::Result<bool>) -> Option<PathBuf> {
    let of_run = host.ancestors().find(|it| is_name_of_one(it)).map(Path::to_owned);
    of_run.or_else(|| is_in_state.unwrap_or(true).then(|| state.to_owned()))
}

/// Checks that a box gets no copy of a file of the credentials of registries, or of boxlaunch's own files.
///
/// # Errors
/// The first such file.
pub(super) fn check_copies(copies: &[FileCopy], state: &Path) -> Result<(), Failure> {
    let credentials = || {
        let all = own::files(|name| env::var_os(name)).into_iter();
        all.filter(|it| it.purpose == Purpose::Credentials)
    };
    let reason = |copy: &FileCopy| {
        if let Some(own) = own_directory(copy.host(), state, copy.is_inside(state)) {
            return Some(format!("boxlaunch keeps its files in {}", own.display()));
        }
        let is_one = credentials().any(|it| copy.is_at(&it.path));
        is_one.then(|| "it has the credentials of registries".to_owned())
    };
    let refused = copies.iter().find_map(|it| Some((it.host(), reason(it)?)));
    let Some((host, reason)) = refused else { return Ok(()) };
    let message = format!("a box must not read {}: {reason}", host.display());
    Err(usage(&message, "share a file that only has what the box needs"))
}

/// Checks that a box connects to no socket of boxlaunch, through which it could command boxes.
///
/// # Errors
/// The first such socket.
pub(super) fn check_sockets(sockets: &[SharedSocket], state: &Path) -> Result<(), Failure> {
    let own = |socket: &SharedSocket| own_directory(socket.host(), state, socket.is_inside(state));
    let found = sockets.iter().find_map(|it| Some((it, own(it)?)));
    let Some((socket, own)) = found else { return Ok(()) };
    let (host, own) = (socket.host().display(), own.display());
    let message = format!("a box must not connect to {host}: boxlaunch keeps its files in {own}");
    Err(usage(&message, "share a socket of another program"))
}

/// Checks a share against a protected directory. A box may read a share that contains the protected directory, because that is
/// only a small part of the share.
fn check_kept(share: &HostShare, kept: &ProtectedDirectory) -> Result<(), Failure> {
    let ProtectedDirectory { path, program, is_private } = kept;
    if (share.is_writable() || *is_private) && share.is_inside(path) {
        return Err(refused(share, program, path, &outside_of(path)));
    }
    if share.is_writable() && share.contains_path(path) {
        return Err(refused(share, program, path, &without(path)));
    }
    Ok(())
}

/// Checks a share against a protected file. A box may read the file, unless it contains credentials.
fn check_file(share: &HostShare, file: &OwnFile) -> Result<(), Failure> {
    let is_secret = file.purpose == Purpose::Credentials && file.path.exists();
    if !(share.is_writable() || is_secret) || !share.contains_path(&file.path) {
        return Ok(());
    }
    let what = match file.purpose {
        Purpose::Program => "the programs of boxbuild",
        Purpose::Init => "the init that boxbuild puts into boxes",
        Purpose::Kernel => "the kernel that boxbuild puts into boxes",
        Purpose::Registries => "the configuration of registries",
        Purpose::Certificates => "the certificates that boxbuild trusts",
        Purpose::Credentials => "the credentials of registries",
    };
    let named = file.named_by.map_or_else(String::new, |it| format!(", which {it} names"));
    let (refusal, path) = (refusal(share), file.path.display());
    let message = format!("{refusal}, which contains {what}: {path}{named}");
    let elsewhere = file.named_by.map_or_else(String::new, |it| {
        format!("; or move that file elsewhere, and set {it} to its new path")
    });
    Err(usage(&message, &(without(&file.path) + &elsewhere)))
}

/// Checks a share against the directories of runs in `base`. Other programs use `base`, too, so a run's directory is recognised
/// by its name. A writable share must not contain `base` itself.
fn check_runtime(share: &HostShare, base: &Path) -> Result<(), Failure> {
    if let Some(of_run) = runs(base).find(|it| share.is_inside(it)) {
        return Err(refused(share, "boxlaunch", &of_run, &outside_of(&of_run)));
    }
    if share.is_writable() && share.contains_path(base) {
        return Err(refused(share, "boxlaunch", base, &without(base)));
    }
    Ok(())
}

/// Lists the directories of runs in `base`.
fn runs(base: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    entries.map(|it| it.path()).filter(|it| is_name_of_one(it))
}

/// Returns the error of a share of `path`, in which `program` keeps its files.
fn refused(share: &HostShare, program: &str, path: &Path, help: &str) -> Failure {
    let (refusal, path) = (refusal(share), path.display());
    usage(&format!("{refusal}: {program} keeps its files in {path}"), help)
}

/// Returns what a box must not do with a share.
fn refusal(share: &HostShare) -> String {
    let may = if share.is_writable() { "write to" } else { "read" };
    format!("a box must not {may} {}", share.host().display())
}

fn outside_of(path: &Path) -> String {
    format!("share a directory outside of {}", path.display())
}

fn without(path: &Path) -> String {
    format!("share a directory that does not have {} in it", path.display())
}

/// Checks that a box cannot replace its files in `own` by another box. Allows every share if the command line names the digest,
/// because a later run then refuses such a replacement.
fn check_box(share: &HostShare, own: &Path, names_digest: bool) -> Result<(), Failure> {
    if names_digest || !share.is_writable() || !(share.contains_path(own) || share.is_inside(own)) {
        return Ok(());
    }
    let host = share.host().display();
    let message = format!(
        "the box's files are in {host}, which the box may write to: it could replace itself"
    );
    let help = "start the box by its name in the store, which `boxlaunch images` shows; or say which one you mean, by \
                BOX@sha256:…, which `boxbuild build` prints; or share another directory";
    Err(usage(&message, help))
}

/// What homes have that is nobody else's: keys, credentials and the profiles of browsers.
const PRIVATE: [&str; 14] = [
    ".ssh",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".kube",
    ".netrc",
    ".gnupg",
    ".password-store",
    ".config/gh",
    ".npmrc",
    ".git-credentials",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
];

/// Returns a notice for each read-only share that contains boxlaunch's state, as a home does. It names what is private there.
pub(super) fn notices(shares: &[HostShare], state: &Path) -> impl Iterator<Item = String> {
    let around = shares.iter().filter(|it| !it.is_writable() && it.contains_path(state));
    around.map(|share| {
        let (host, state) = (share.host().display(), state.display());
        let text = format!(
            "boxlaunch: the box can read the logs and volumes of other boxes: {host} contains {state}{}",
            private(share.host())
        );
        shown(&text) + "\n"
    })
}

/// Returns the end of a notice, with what is private in a directory.
fn private(directory: &Path) -> String {
    let found = PRIVATE.into_iter().filter(|it| directory.join(it).symlink_metadata().is_ok());
    let found = found.collect::<Vec<_>>().join(", ");
    if found.is_empty() { found } else { format!(", and {found}") }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use box_contract::{Access, Scope};
    use vmm::runtime_dir::RuntimeDir;

    use super::*;

    #[test]
    fn what_is_private_in_a_home_is_named() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(private(home.path()), "");
        fs::create_dir_all(home.path().join(".config/gh")).unwrap();
        fs::write(home.path().join(".netrc"), "").unwrap();
        assert_eq!(private(home.path()), ", and .netrc, .config/gh");
    }

    #[test]
    fn no_box_gets_a_copy_of_what_others_have_left() {
        let state = tempfile::tempdir().unwrap();
        fs::write(state.path().join("log"), "x").unwrap();
        let copy = |path: &Path| {
            let path = path.canonicalize().unwrap();
            FileCopy::read(fs::File::open(&path).unwrap(), path, "/x", Scope::Both).unwrap()
        };
        let error = check_copies(&[copy(&state.path().join("log"))], state.path()).unwrap_err();
        assert!(error.text().contains(": boxlaunch keeps its files in "), "{}", error.text());
        assert!(check_copies(&[copy(Path::new("Cargo.toml"))], state.path()).is_ok());
    }

    #[test]
    fn no_box_connects_to_what_commands_boxes() {
        let dir = tempfile::tempdir().unwrap();
        let of_run = RuntimeDir::create(dir.path()).unwrap();
        for path in ["state/boxes", "other"] {
            fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        let check = |directory: &Path| {
            let path = directory.canonicalize().unwrap().join("socket");
            let _listener = UnixListener::bind(&path).unwrap();
            let socket = SharedSocket::new(path, "/s", Scope::Both).unwrap();
            check_sockets(&[socket], &dir.path().join("state")).map_err(|it| it.text())
        };
        for directory in [&dir.path().join("state/boxes"), of_run.path()] {
            let error = check(directory).unwrap_err();
            assert!(error.contains("/socket: boxlaunch keeps its files in "), "{error}");
        }
        assert_eq!(check(&dir.path().join("other")), Ok(()));
    }

    /// Shares each directory below a home directory, read-only and writable.
    #[test]
    fn no_box_changes_what_the_programs_trust_or_reads_what_others_have_left() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        let state = at(".local/state/boxbuild");
        let variable = |name: &str| match name {
            "HOME" => Some(home.path().into()),
            own::STORE_RO => Some(at("machine").into()),
            _ => None,
        };
        let all = kept(&state, Some(&at("own/store")), variable);
        let paths: Vec<_> = all.iter().map(|it| &it.path).collect();
        let others = [
            ".cache/boxbuild",
            "own/store",
            "machine",
            ".config/boxbuild",
            ".local/share/boxbuild",
            ".cache/boxbuild/virtual-host",
            ".config/boxlaunch",
        ];
        let mut others = others.map(at).to_vec();
        others.insert(5, "/etc/boxbuild".into());
        assert_eq!(paths, [&state].into_iter().chain(&others).collect::<Vec<_>>());
        let may = |path: &str| {
            fs::create_dir_all(at(path)).unwrap();
            let is_allowed = |access| {
                let share = HostShare::new(&at(path), "/a", access, Scope::Both).unwrap();
                all.iter().all(|it| check_kept(&share, it).is_ok())
            };
            (is_allowed(Access::ReadOnly), is_allowed(Access::ReadWrite))
        };
        // A directory that does not exist yet is protected, too, because a box could create it.
        assert_eq!(may(".config"), (true, false));
        for path in [".local/state/boxbuild", ".local/state/boxbuild/boxes/a"] {
            assert_eq!(may(path), (false, false), "{path}");
        }
        for path in [
            "",
            ".local",
            ".config/boxbuild",
            ".config/boxlaunch",
            ".cache",
            ".cache/boxbuild/sha256",
            ".local/share/boxbuild",
            "own",
            "own/store/names",
            "machine/blobs",
        ] {
            assert_eq!(may(path), (true, false), "{path}");
        }
        for path in ["project", ".config/nvim", ".local/share/other", ".cache/boxbuilder"] {
            assert_eq!(may(path), (true, true), "{path}");
        }
    }

    /// Shares, read-only and writable, the directory of each file, the directory above that, and an unrelated directory.
    #[test]
    fn no_box_changes_the_files_that_decide_what_is_built_or_reads_credentials() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        for path in ["work/target", "work/link", "docker", "other", ".docker"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        symlink("../../other/init", at("work/link/init")).unwrap();
        let may = |path: &str, files: &[OwnFile]| {
            let is_allowed = |access| {
                let share = HostShare::new(&at(path), "/a", access, Scope::Both).unwrap();
                files.iter().all(|it| check_file(&share, it).is_ok())
            };
            (is_allowed(Access::ReadOnly), is_allowed(Access::ReadWrite))
        };
        let named = |name: &'static str, path: &str| {
            let path = at(path);
            files(None, move |it| (it == name).then(|| path.clone().into()))
        };
        for variable in [own::INIT, own::KERNEL, own::REGISTRIES, own::CERTIFICATES] {
            let file = named(variable, "work/target/file");
            assert_eq!(may("work", &file), (true, false), "{variable}");
            assert_eq!(may("work/target", &file), (true, false), "{variable}");
            assert_eq!(may("other", &file), (true, true), "{variable}");
        }
        // `work` contains the link and `other` contains its target. A box must not write to either.
        let linked = named(own::INIT, "work/link/init");
        assert_eq!((may("work", &linked), may("other", &linked)), ((true, false), (true, false)));
        for (variable, value, file) in [
            (own::AUTH_FILE, "docker/auth.json", "docker/auth.json"),
            (own::DOCKER, "docker", "docker/config.json"),
            ("HOME", "", ".docker/config.json"),
        ] {
            let directory = Path::new(file).parent().unwrap().to_str().unwrap();
            let found = named(variable, value);
            // While the file does not exist, a box may read the directory, but must not create the file.
            assert_eq!(may(directory, &found), (true, false), "{variable}");
            fs::write(at(file), "{}").unwrap();
            assert_eq!(may(directory, &found), (false, false), "{variable}");
            assert_eq!(may("", &found), (false, false), "{variable}");
            assert_eq!(may("other", &found), (true, true), "{variable}");
        }
        assert!(files(None, |it| (it == own::KERNEL).then(|| "lean".into())).is_empty());
    }

    /// Shares the directories above the installed programs and their init, and above cargo's target directory.
    #[test]
    fn no_box_changes_the_programs_or_their_init() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        let may_write = |path: &str, program: &str| {
            fs::create_dir_all(at(path)).unwrap();
            let share = HostShare::new(&at(path), "/a", Access::ReadWrite, Scope::Both).unwrap();
            let files = files(Some(&at(program)), |_| None);
            files.iter().all(|it| check_file(&share, it).is_ok())
        };
        for path in ["", ".local", ".local/bin", ".local/lib", ".local/lib/boxbuild"] {
            assert!(!may_write(path, ".local/bin/boxlaunch"), "{path}");
        }
        for path in [".local/share", ".local/lib/other", "project"] {
            assert!(may_write(path, ".local/bin/boxlaunch"), "{path}");
        }
        let built = "src/target/x86_64-unknown-linux-musl/release";
        assert!(may_write(built, "src/target/release/boxlaunch"));
        fs::write(at("src/target/.rustc_info.json"), "").unwrap();
        assert!(!may_write(built, "src/target/release/boxlaunch"));
        assert!(may_write("src/docs", "src/target/release/boxlaunch"));
    }

    #[test]
    fn a_file_that_is_refused_is_named_with_what_to_do() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("init"), "").unwrap();
        fs::create_dir(home.path().join(".docker")).unwrap();
        fs::write(home.path().join(".docker/config.json"), "").unwrap();
        let real = home.path().canonicalize().unwrap();
        let refused = |variable: &'static str, value: &str, access| {
            let value = home.path().join(value);
            let files = files(None, move |it| (it == variable).then(|| value.clone().into()));
            let share = HostShare::new(home.path(), "/a", access, Scope::Both).unwrap();
            let error = files.iter().find_map(|it| check_file(&share, it).err()).unwrap();
            error.text().replace(&real.display().to_string(), "HOME")
        };
        let texts =
            refused(own::INIT, "init", Access::ReadWrite) + &refused("HOME", "", Access::ReadOnly);
        insta::assert_snapshot!(texts, @"
        error: a box must not write to HOME, which contains the init that boxbuild puts into boxes: HOME/init, which BOXBUILD_INIT names
          = help: share a directory that does not have HOME/init in it; or move that file elsewhere, and set BOXBUILD_INIT to its new path
        error: a box must not read HOME, which contains the credentials of registries: HOME/.docker/config.json
          = help: share a directory that does not have HOME/.docker/config.json in it
        ");
    }

    #[test]
    fn the_directory_of_a_run_is_not_shared() {
        let base = tempfile::tempdir().unwrap();
        let of_run = base.path().join("boxlaunch-0123456789abcdef");
        fs::create_dir_all(of_run.join("vmm")).unwrap();
        fs::create_dir(base.path().join("project")).unwrap();
        let may = |path: &Path| {
            let is_allowed = |access| {
                let share = HostShare::new(path, "/a", access, Scope::Both).unwrap();
                check_runtime(&share, base.path()).is_ok()
            };
            (is_allowed(Access::ReadOnly), is_allowed(Access::ReadWrite))
        };
        assert_eq!(may(base.path()), (true, false));
        assert_eq!(may(&of_run), (false, false));
        assert_eq!(may(&of_run.join("vmm")), (false, false));
        // Outside `base`, such a name does not mark a run's directory.
        let inner = base.path().join("project/boxlaunch-0123456789abcdef");
        fs::create_dir(&inner).unwrap();
        assert_eq!(may(&inner), (true, true));
        assert_eq!(may(&base.path().join("project")), (true, true));
    }

    #[test]
    fn who_shows_the_state_to_read_with_what_is_around_it_is_told() {
        let home = tempfile::tempdir().unwrap();
        let state = home.path().join("state");
        let output = |access| {
            let share = HostShare::new(home.path(), "/a", access, Scope::Both).unwrap();
            notices(&[share], &state).collect::<String>()
        };
        let expected = format!(
            "boxlaunch: the box can read the logs and volumes of other boxes: {} contains {}\n",
            home.path().canonicalize().unwrap().display(),
            state.display()
        );
        assert_eq!(output(Access::ReadOnly), expected);
        assert_eq!(output(Access::ReadWrite), "");
    }
}
