//! The files of a changed box that its environment hides: what programs have written to the root stays on top of it.

use std::error::Error;
use std::time::Duration;

use box_contract::ComponentName;
use box_contract::plan::system_path;
use box_contract::wire::{Follow, HiddenFiles, ImageFile, MAX_HIDDEN};
use box_inspect::diff::{Change, Side, compare};
use box_inspect::opened::{Documents, OpenError};
use box_tree::{Field, Inode};
use boxlaunch::boxes::Record;
use boxlaunch::client::{Client, ClientError, hidden_files};
use safe_text::shown;
use vmm::signals::StopSignals;

use super::listed;
use crate::cli::error::Failure;
use crate::cli::terminal::notice;

/// How many changed files are looked for, and the sum of the lengths of their paths. A base image has some 10,000 files.
const MAX_FILES: usize = 200_000;
const MAX_PATHS: usize = 16 << 20;
/// How long a box may take to answer. Its programs can stop the command.
const PATIENCE: Duration = Duration::from_secs(30);
/// The fields of a file that do not decide what a program reads from it.
const IGNORED: [Field; 6] =
    [Field::Mode, Field::Uid, Field::Gid, Field::Xattrs, Field::Mtime, Field::HardLinks];

/// Says which changed files the programs of an environment do not see. A failure is no error, because the environment runs.
pub(super) fn tell(record: &Record, before: &Documents, now: &Documents) -> Result<(), Failure> {
    let signals = StopSignals::block()?;
    for (component, _) in now.config.plan.components() {
        let hidden = match changed(before, now, component) {
            Ok(files) if files.is_empty() => continue,
            Ok(files) => look(record, component, &files, &signals),
            Err(error) => {
                notice(&unknown(&error));
                continue;
            }
        };
        match hidden {
            Ok(hidden) if hidden.count > 0 => notice(&line(&hidden)),
            Err(error @ ClientError::Stopped(_)) => return Err(error.into()),
            Err(error) => notice(&unknown(&error)),
            Ok(_) => {}
        }
    }
    Ok(())
}

fn look(
    record: &Record,
    component: ComponentName,
    files: &[ImageFile],
    signals: &StopSignals,
) -> Result<HiddenFiles, ClientError> {
    let mut client = Client::connect(record, Follow::Nothing, signals)?;
    client.give_up_after(PATIENCE);
    hidden_files(&mut client, component, files)
}

/// Returns the files of a component that a box has and the one before it has not, or has with another content.
fn changed(
    before: &Documents,
    now: &Documents,
    component: ComponentName,
) -> Result<Vec<ImageFile>, OpenError> {
    let side = |it| Side::of_box(it, Some(component));
    let (before, now) = (side(before)?, side(now)?);
    let new = compare(&before, &now, b"/", &IGNORED).filter_map(|it| match it.change {
        Change::Added(now) | Change::Changed(_, _, now) => image_file(it.path, now.inode),
        Change::Removed(_) => None,
    });
    // What the box itself has above a file of the image, such as `/etc/hosts`, is not what a program has written.
    let system = system_path(component);
    let covers = |it: &ImageFile| {
        let above = now.listing.tree.reach(format!("{system}{}", it.path).as_bytes());
        above.is_ok_and(|id| now.listing.tree.inode(id).names().is_none())
    };
    let new = new.filter(|it| !covers(it));
    let mut room = MAX_PATHS;
    let fits = |it: &ImageFile| {
        room = room.saturating_sub(it.path.len());
        room > 0
    };
    Ok(new.take(MAX_FILES).take_while(fits).collect())
}

/// Returns a regular file or a symbolic link.
fn image_file(path: Vec<u8>, inode: &Inode) -> Option<ImageFile> {
    let size = match (inode.content(), inode.target()) {
        (Some(content), _) => content.size,
        (None, Some(target)) => u64::try_from(target.len()).ok()?,
        (None, None) => return None,
    };
    Some(ImageFile { path: String::from_utf8(path).ok()?, size, mtime: inode.meta.mtime })
}

/// Returns the notice about a question that was not answered.
fn unknown(error: &dyn Error) -> String {
    let reason = shown(&error.to_string());
    format!(
        "boxlaunch: the box has changed, and files that were written in this environment may hide those of the box: {reason}\n"
    )
}

/// Returns the notice about hidden files.
fn line(hidden: &HiddenFiles) -> String {
    let paths = listed(hidden.paths.iter(), hidden.count, MAX_HIDDEN);
    let (files, hide) = match hidden.count {
        1 => ("a file", "that was written or removed in this environment hides that of the box"),
        _ => ("files", "that were written or removed in this environment hide those of the box"),
    };
    format!(
        "boxlaunch: the box has changed, but {files} {hide}: {paths}; `boxlaunch reset` shows the box as it is\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notice_names_the_first_paths() {
        let mut hidden = HiddenFiles::default();
        hidden.add("/etc/motd".to_owned());
        let text = line(&hidden);
        assert!(
            text.contains("a file that") && text.contains("of the box: /etc/motd; `"),
            "{text}"
        );
        (0..9).for_each(|it| hidden.add(format!("/bin/{it}\u{1b}")));
        let text = line(&hidden);
        assert!(text.contains("files that were") && text.contains("and 2 more; `"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}
