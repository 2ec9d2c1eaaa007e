//! The files of the component's image that its programs do not see, because they have written other files at the paths, or removed them.

use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::path::Path;

use box_contract::wire::{HiddenFiles, ImageFile};
use rustix::fs::{AtFlags, CWD, Statx, StatxFlags, statx};
use rustix::io::Errno;

use super::system;

/// Reads an [`ImageFile`] from each line, and writes the [`HiddenFiles`].
///
/// # Errors
/// The reason, as text.
pub(super) fn report(files: impl BufRead, mut answer: impl Write) -> Result<(), String> {
    let root = mounts_of_root().map_err(|error| error.to_string())?;
    let mut hidden = HiddenFiles::default();
    for line in files.lines() {
        let line = line.map_err(|error| error.to_string())?;
        let file: ImageFile = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        if is_hidden(&file, &root) {
            hidden.add(file.path);
        }
    }
    let answered = serde_json::to_vec(&hidden).map_err(|error| error.to_string())?;
    answer.write_all(&answered).map_err(|error| error.to_string())
}

/// Returns the ids of the mounts of the component's root: of `/`, and of its parts that are mounts because the system is read-only.
fn mounts_of_root() -> Result<BTreeSet<u64>, Errno> {
    let root = look(Path::new("/"))?.stx_mnt_id;
    // A user who may not list the root has no mounts but the root.
    let parts = system::parts_of_root().unwrap_or_default();
    let parts = parts.iter().filter_map(|it| Some(look(it).ok()?.stx_mnt_id));
    Ok(parts.chain([root]).collect())
}

/// Returns whether the component sees another file than that of the image. What is on another mount than the root, such as a volume, is
/// not what programs have written to the root.
fn is_hidden(file: &ImageFile, root: &BTreeSet<u64>) -> bool {
    let path = Path::new(&file.path);
    match look(path) {
        Ok(seen) => {
            let is_same = (seen.stx_size, seen.stx_mtime.tv_sec) == (file.size, file.mtime);
            root.contains(&seen.stx_mnt_id) && !is_same
        }
        Err(Errno::NOENT | Errno::NOTDIR) => {
            let mut above = path.ancestors().skip(1).filter_map(|it| look(it).ok());
            above.next().is_some_and(|it| root.contains(&it.stx_mnt_id))
        }
        Err(_) => false,
    }
}

fn look(path: &Path) -> Result<Statx, Errno> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_that_differ_or_are_gone_are_hidden() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        fs::write(at("same"), "12").unwrap();
        fs::write(at("larger"), "123").unwrap();
        let mnt = look(dir.path()).unwrap().stx_mnt_id;
        let mtime = look(Path::new(&at("same"))).unwrap().stx_mtime.tv_sec;
        let own = BTreeSet::from([mnt]);
        let is = |name: &str, mtime| is_hidden(&ImageFile { path: at(name), size: 2, mtime }, &own);
        assert!(!is("same", mtime) && is("same", mtime - 1));
        assert!(is("larger", mtime) && is("gone", mtime) && is("same/below", mtime));
        // On another mount.
        let elsewhere = |name| ImageFile { path: at(name), size: 2, mtime };
        let own = BTreeSet::from([mnt + 1]);
        assert!(!is_hidden(&elsewhere("larger"), &own) && !is_hidden(&elsewhere("gone"), &own));
    }

    #[test]
    fn the_answer_has_the_number_and_the_first_paths() {
        let line = |i: u32| format!("{{\"path\":\"/nowhere/{i}\",\"size\":1,\"mtime\":0}}\n");
        let (lines, mut answer) = ((0..20).map(line).collect::<String>(), Vec::new());
        report(lines.as_bytes(), &mut answer).unwrap();
        let hidden: HiddenFiles = serde_json::from_slice(&answer).unwrap();
        assert_eq!((hidden.count, hidden.paths.len()), (20, box_contract::wire::MAX_HIDDEN));
        assert_eq!(hidden.paths[0], "/nowhere/0");
        report(&b"{}"[..], Vec::new()).unwrap_err();
    }
}
