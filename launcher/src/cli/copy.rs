//! `boxlaunch cp`: copies files between a running box and this host.

use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal as _, stdout};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::rc::Rc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use box_contract::wire::Follow;
use box_contract::{ComponentName, ErrorCode};
use box_copy::CopyEnd;
use boxlaunch::boxes::{Boxes, is_entry_name};
use boxlaunch::client::copy::{Inside, archive_from_box, archive_to_box, from_box, to_box};
use boxlaunch::client::{Client, ClientError};
use boxlaunch::streams::input::Input;
use serde_json::{Value, json};
use vmm::signals::StopSignals;

use super::command::{component, own_input, user};
use super::error::Failure;
use super::screen::Screen;
use super::terminal::{is_quiet, json_line};
use super::{given_file, paths};

/// The path that stands for standard input or standard output.
const STREAM: &str = "-";

/// Copies a file or a directory between a running box and this host.
///
/// One of SOURCE and DESTINATION is NAME:PATH. The copy arrives in DESTINATION if that is a directory, else as DESTINATION.
/// If SOURCE ends with `/.`, copies what is in the directory. Merges directories, and replaces files.
///
/// Copies symbolic links as links, and out of a box only links whose target is within the copy. Leaves out devices, pipes and
/// sockets. The copies belong to the user who writes them. An archive must be in the GNU tar format.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch cp ./input.csv hello:/tmp
  boxlaunch cp --component agent hello:/agent/out ./out
  boxlaunch cp hello:/workspace/. - | tar -t")]
pub(crate) struct CopyArgs {
    /// The path to copy, or `-` for a tar archive from standard input.
    #[arg(value_name = "SOURCE")]
    from: OsString,
    /// The path to copy to, or `-` for a tar archive on standard output.
    #[arg(value_name = "DESTINATION")]
    to: OsString,
    /// The component whose files are copied [default: business if the box has one, else agent].
    #[arg(long, visible_alias = "in", value_parser = cli_common::component_name(), value_name = "COMPONENT")]
    component: Option<ComponentName>,
    /// The user that reads or writes the files in the box: a name of the component, or a number [default: the component's].
    #[arg(short, long, value_name = "USER[:GROUP]", value_parser = user)]
    user: Option<String>,
    /// Print one JSON object: from, to, and the note about what was left out.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn copy(args: &CopyArgs) -> Result<u8, Failure> {
    let signals = Rc::new(StopSignals::block()?);
    // Raw, because an archive on standard output must not change.
    let screen = Screen::new(&signals, true)?;
    let code = match copied(args, &signals, &screen) {
        Ok(text) if args.json => {
            let note = Some(text).filter(|it| !it.is_empty());
            screen.print(&json_line(&report(args, note))?);
            0
        }
        Ok(text) if text.is_empty() || is_quiet() => 0,
        Ok(text) => {
            screen.notice(&format!("boxlaunch: {text}\n"));
            0
        }
        Err(error) => screen.report(&error, args.json),
    };
    Ok(screen.close(code))
}

/// Returns the report of a copy. A path that is not UTF-8 is also there with all its bytes.
fn report(args: &CopyArgs, note: Option<String>) -> Value {
    let mut report = json!({
        "from": args.from.to_string_lossy(),
        "to": args.to.to_string_lossy(),
        "note": note,
    });
    for (name, path) in [("from_base64", &args.from), ("to_base64", &args.to)] {
        if path.to_str().is_none() {
            report[name] = json!(BASE64_STANDARD.encode(path.as_bytes()));
        }
    }
    report
}

fn copied(args: &CopyArgs, signals: &StopSignals, screen: &Screen) -> Result<String, Failure> {
    let (from, to) = (args.from.as_os_str(), args.to.as_os_str());
    let ((Some((name, path)), None) | (None, Some((name, path)))) = (in_box(from), in_box(to))
    else {
        return Err(misplaced(from, to));
    };
    if to == STREAM && args.json {
        return Err(Failure::usage("standard output has the archive, and no room for --json"));
    }
    if to == STREAM && stdout().is_terminal() {
        let help = "redirect it, as to `| tar -t`";
        return Err(Failure::new((ErrorCode::Usage, help), "an archive is not for a terminal"));
    }
    let end = host_end(from, to)?;
    let record = Boxes::new(&paths::state()?).find(name)?;
    let component = component(args.component, |name| record.components.contains(&name))?;
    let mut client = Client::connect(&record, Follow::Nothing, signals)?;
    let inside = Inside { component, user: args.user.clone(), path };
    let copied = match end {
        HostEnd::Output => archive_from_box(&mut client, &inside, screen.program_stdout()),
        HostEnd::Input => archive_to_box(&mut client, Input::new(own_input()?), &inside),
        HostEnd::To(place) => from_box(&mut client, &inside, place),
        HostEnd::From(place) => to_box(&mut client, place, &inside),
    };
    copied.map_err(Failure::from)
}

/// The source or the destination of a copy, whichever is on this host.
#[derive(Debug)]
enum HostEnd {
    Input,
    Output,
    From(CopyEnd),
    To(CopyEnd),
}

/// Opens the source or destination on this host once, so that a running box cannot redirect the copy afterwards.
fn host_end(from: &OsStr, to: &OsStr) -> Result<HostEnd, Failure> {
    Ok(match in_box(from) {
        Some(_) if to == STREAM => HostEnd::Output,
        Some(_) => HostEnd::To(CopyEnd::destination(Path::new(to), directory)?),
        None if from == STREAM => HostEnd::Input,
        None => HostEnd::From(CopyEnd::source(Path::new(from), directory)?),
    })
}

/// Opens a directory of this host.
fn directory(path: &Path) -> Result<OwnedFd, Failure> {
    let failed = |error| ClientError::Copy(box_copy::at_path(path, error).to_string()).into();
    given_file::directory(path, failed)
}

/// Returns the error if none or both of the paths are in a box.
fn misplaced(from: &OsStr, to: &OsStr) -> Failure {
    let without =
        |word: &OsStr| word.to_str().and_then(|it| it.strip_suffix(':')).is_some_and(is_entry_name);
    let (message, help) = if in_box(from).is_some() {
        ("both paths are in a box", "copy to this host first")
    } else if without(from) || without(to) {
        (
            "the path after the box's name is missing",
            "`NAME:.` is the component's working directory, `NAME:/tmp` an absolute path",
        )
    } else {
        (
            "neither path is in a box",
            "write one of them as NAME:PATH; a path of this host with a colon is ./PATH",
        )
    };
    Failure::new((ErrorCode::Usage, help), message)
}

/// Splits `NAME:PATH`. Returns `None` for a path of this host.
fn in_box(word: &OsStr) -> Option<(&str, &OsStr)> {
    let mut parts = word.as_bytes().splitn(2, |it| *it == b':');
    let name = str::from_utf8(parts.next()?).ok().filter(|it| is_entry_name(it))?;
    let path = parts.next().filter(|it| !it.is_empty())?;
    Some((name, OsStr::from_bytes(path)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use box_copy::{Author, pack, unpack};
    use rustix::fs::{CWD, RenameFlags, renameat_with};

    use super::*;

    fn end(from: &str, to: &str) -> Result<HostEnd, Failure> {
        host_end(OsStr::new(from), OsStr::new(to))
    }

    #[test]
    fn a_box_is_named_before_a_colon_and_a_path_of_the_host_has_a_slash_there() {
        let in_box = |word: &'static str| in_box(OsStr::new(word));
        assert_eq!(in_box("hello:/tmp/a:b"), Some(("hello", OsStr::new("/tmp/a:b"))));
        assert_eq!(in_box("hello:out"), Some(("hello", OsStr::new("out"))));
        let bytes = OsStr::from_bytes(b"hello:\xFF");
        assert_eq!(super::in_box(bytes), Some(("hello", OsStr::from_bytes(b"\xFF"))));
        for path in ["./a:b", "/a:b", "a", "hello:", ":a", "-"] {
            assert_eq!(in_box(path), None, "{path}");
        }
    }

    /// Creates the repository `project`, with links that a box may have created, and the directory `keys` beside it.
    fn scene() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for path in ["project/.git", "project/inner", "keys"] {
            fs::create_dir_all(home.path().join(path)).unwrap();
        }
        fs::write(home.path().join("keys/key"), "canary").unwrap();
        symlink("../keys", home.path().join("project/out")).unwrap();
        symlink("inner", home.path().join("project/in")).unwrap();
        home
    }

    fn refused(from: &str, to: &str, home: &Path) -> String {
        let text = end(from, to).unwrap_err().text();
        text.replace(&home.canonicalize().unwrap().display().to_string(), "HOME")
    }

    #[test]
    fn no_link_that_a_box_left_leads_a_copy_elsewhere() {
        let home = scene();
        let at = |path: &str| format!("{}/{path}", home.path().display());
        let expected = "error: HOME/project/out is a link: the path leads to HOME/keys, which is not among the files of HOME/project\n  \
                        = help: a box may have put it there; if you mean that directory, name it: HOME/keys";
        for to in ["project/out/new", "project/out/", "project/out/.", "project/out/../keys/"] {
            assert_eq!(refused("box:/x", &at(to), home.path()).trim_end(), expected, "{to}");
        }
        for from in ["project/out/key", "project/out/.", "project/inner/../out/key"] {
            assert_eq!(refused(&at(from), "box:/x", home.path()).trim_end(), expected, "{from}");
        }
        for path in ["project/inner/a", "project/in/a", "project/in/", "project/in/.", "project"] {
            assert!(matches!(end("box:/x", &at(path)), Ok(HostEnd::To(_))), "{path}");
            assert!(matches!(end(&at(path), "box:/x"), Ok(HostEnd::From(_))), "{path}");
        }
        for path in ["/tmp", "/tmp/", "/var/run/none", "/var/run/", ".", "..", "/"] {
            assert!(matches!(end("box:/x", path), Ok(HostEnd::To(_))), "{path}");
            assert!(matches!(end(path, "box:/x"), Ok(HostEnd::From(_))), "{path}");
        }
    }

    /// Imitates a running box that has `project` as a writable share and replaces `project/inner` during the copy.
    #[test]
    fn a_copy_stays_where_its_place_was_found() {
        let home = scene();
        let at = |path: &str| home.path().join(path);
        fs::write(at("project/inner/key"), "own").unwrap();
        let inner = at("project/inner/key").display().to_string();
        let HostEnd::From(from) = end(&inner, "box:/x").unwrap() else { panic!() };
        let HostEnd::To(to) = end("box:/key", &at("project/inner/").display().to_string()).unwrap()
        else {
            panic!()
        };
        fs::rename(at("project/inner"), at("project/moved")).unwrap();
        symlink("../keys", at("project/inner")).unwrap();
        let mut archive = Vec::new();
        pack(&from, &mut archive).unwrap();
        fs::remove_file(at("project/moved/key")).unwrap();
        unpack(archive.as_slice(), to, Author::Box(Path::new("/key"))).unwrap();
        assert_eq!(fs::read_to_string(at("project/moved/key")).unwrap(), "own");
        assert_eq!(fs::read_to_string(at("keys/key")).unwrap(), "canary");
    }

    /// Imitates a running box that exchanges `project/inner` with a link all the time, also while the destination is found.
    #[test]
    fn whoever_exchanges_the_destination_leads_no_copy_out() {
        let home = scene();
        let at = |path: &str| home.path().join(path);
        let mut archive = Vec::new();
        fs::write(at("new"), "new").unwrap();
        let HostEnd::From(from) = end(&at("new").display().to_string(), "box:/x").unwrap() else {
            panic!()
        };
        pack(&from, &mut archive).unwrap();
        let to = at("project/inner/").display().to_string();
        let (one, other, done) = (at("project/inner"), at("project/out"), AtomicBool::new(false));
        let exchange = || {
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        };
        let deadline = Instant::now() + Duration::from_secs(1);
        thread::scope(|scope| {
            scope.spawn(exchange);
            for _ in (0..20_000).take_while(|_| Instant::now() < deadline) {
                let Ok(HostEnd::To(to)) = end("box:/new", &to) else { continue };
                unpack(archive.as_slice(), to, Author::Box(Path::new("/new"))).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        let left: Vec<_> =
            fs::read_dir(at("keys")).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(left, ["key"], "a copy has left the project");
    }

    #[test]
    fn what_is_not_there_is_named() {
        for (path, place) in [("/none/x", "/none"), ("/dev/full/x", "/dev/full")] {
            let error = end("box:/x", path).unwrap_err();
            assert_eq!(error.exit, 1);
            assert!(
                error.text().starts_with(&format!("error: cannot copy: {place}: N")),
                "{}",
                error.text()
            );
        }
    }
}
