//! `boxlaunch ls`: lists a directory of a running box.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use box_contract::wire::{Follow, ListedEntry, ListedKind, Listing};
use box_contract::{ComponentName, ErrorCode, exit};
use boxlaunch::boxes::{Boxes, is_entry_name};
use boxlaunch::client::Client;
use boxlaunch::client::copy::Inside;
use boxlaunch::client::files::list_directory;
use safe_text::shown;
use serde_json::{Value, json};
use vmm::signals::StopSignals;

use super::command::{component, user};
use super::environment::record_or_tip;
use super::error::Failure;
use super::paths;
use super::terminal::{is_quiet, json_line, notice, print};

/// Lists a directory of a running box. The box needs no program for it.
///
/// A directory has `/` behind its name, and a symbolic link its target.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch ls hello:/workspace
  boxlaunch ls --component agent hello
  boxlaunch ls --json hello:/tmp | jq '.entries[] | {name, size}'")]
pub(crate) struct LsArgs {
    /// The box and the directory, for example hello:/tmp. Without a path, the component's working directory.
    #[arg(value_name = "NAME[:PATH]")]
    place: OsString,
    /// The component whose directory is listed [default: business if the box has one, else agent].
    #[arg(long, visible_alias = "in", value_parser = cli_common::component_name(), value_name = "COMPONENT")]
    component: Option<ComponentName>,
    /// The user that reads the directory: a name of the component, or a number [default: the component's].
    #[arg(short, long, value_name = "USER[:GROUP]", value_parser = user)]
    user: Option<String>,
    /// Print one JSON object with the entries.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn ls(args: &LsArgs) -> Result<u8, Failure> {
    let (name, path) = place(&args.place)?;
    let boxes = Boxes::new(&paths::state()?);
    let record = record_or_tip(&boxes, Some(name), |word| format!("boxlaunch ls .:{word}"))?;
    let component = component(args.component, |name| record.components.contains(&name))?;
    let signals = StopSignals::block()?;
    let mut client = Client::connect(&record, Follow::Nothing, &signals)?;
    let inside = Inside { component, user: args.user.clone(), path };
    let listing = list_directory(&mut client, &inside)?;
    if args.json {
        print(&json_line(&report(path, &listing))?)?;
    } else {
        print(&listing.entries.iter().map(|it| line(it) + "\n").collect::<String>())?;
        if listing.truncated && !is_quiet() {
            notice("boxlaunch: the directory has more entries\n");
        }
    }
    Ok(exit::DONE)
}

/// Splits `NAME[:PATH]`. The default path is the working directory.
fn place(word: &OsStr) -> Result<(&str, &OsStr), Failure> {
    let mut parts = word.as_bytes().splitn(2, |it| *it == b':');
    let name = parts.next().and_then(|it| str::from_utf8(it).ok());
    let path = parts.next().map_or(OsStr::new("."), OsStr::from_bytes);
    match name.filter(|it| is_entry_name(it) || *it == ".") {
        Some(name) if !path.is_empty() => Ok((name, path)),
        _ => {
            let help = "write NAME or NAME:PATH: `boxlaunch ps` lists the boxes that run";
            let message = format!("{} names no directory of a box", shown(&word.to_string_lossy()));
            Err(Failure::new((ErrorCode::Usage, help), message))
        }
    }
}

/// Returns the listing of the directory `path` as JSON.
fn report(path: &OsStr, listing: &Listing) -> Value {
    let entries: Vec<_> = listing.entries.iter().map(object).collect();
    json!({ "path": path.to_string_lossy(), "entries": entries, "truncated": listing.truncated })
}

/// Returns an entry as JSON.
pub(super) fn object(entry: &ListedEntry) -> Value {
    let mut object = json!({
        "name": entry.name,
        "type": entry.kind,
        "size": entry.size,
        "mode": format!("{:04o}", entry.mode),
        "mtime": entry.mtime,
    });
    if let Some(bytes) = &entry.name_bytes {
        object["name_base64"] = json!(BASE64_STANDARD.encode(bytes));
    }
    if let Some(target) = &entry.target {
        object["target"] = json!(target);
    }
    object
}

fn line(entry: &ListedEntry) -> String {
    let name = shown(&entry.name);
    match (entry.kind, &entry.target) {
        (ListedKind::Directory, _) => name + "/",
        (ListedKind::Symlink, Some(target)) => format!("{name} -> {}", shown(target)),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_box_and_perhaps_a_path() {
        let read = |word| place(OsStr::new(word)).ok();
        assert_eq!(read("hello"), Some(("hello", OsStr::new("."))));
        assert_eq!(read("hello:/a:b"), Some(("hello", OsStr::new("/a:b"))));
        assert_eq!(read(".:tmp"), Some((".", OsStr::new("tmp"))));
        for bad in ["", ":", "hello:", "/tmp", "a/b:c"] {
            assert!(read(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_name_does_not_move_the_cursor() {
        let entry = |kind, target: Option<&str>| ListedEntry {
            name: "a\u{1b}[2J".to_owned(),
            name_bytes: None,
            kind,
            size: 3,
            mode: 0o644,
            mtime: 7,
            target: target.map(str::to_owned),
        };
        assert_eq!(line(&entry(ListedKind::File, None)), "a�[2J");
        assert_eq!(line(&entry(ListedKind::Directory, None)), "a�[2J/");
        assert_eq!(line(&entry(ListedKind::Symlink, Some("b\nc"))), "a�[2J -> b�c");
        let object = object(&ListedEntry {
            name_bytes: Some(vec![0xFF]),
            ..entry(ListedKind::CharDevice, None)
        });
        assert_eq!(
            object,
            json!({
                "name": "a\u{1b}[2J", "name_base64": "/w==", "type": "char-device",
                "size": 3, "mode": "0644", "mtime": 7,
            })
        );
    }
}
