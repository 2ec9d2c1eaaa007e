//! Shares with more files than the VM can have open, or with files that the box cannot read.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::thread;

use box_contract::manifest::MAX_SEGMENTS;
use boxlaunch::mounts::shares::HostShare;
use nix::unistd::geteuid;
use safe_text::{shell_path, shown};
use vmm::jail::most_files;

/// The number of open files that the VM needs in addition to the files of shares. The largest rootfs is `MAX_SEGMENTS` segments
/// and the metadata, and each of these files is open twice.
const OWN_FILES: u64 = 1024 + 2 * (MAX_SEGMENTS as u64 + 1);

/// Calls `say` with a warning for each share that has more files than the VM can have open, or files that the box cannot read. The
/// VM keeps one file open for each file that the guest has looked up. Looking at the files can take long, so each share has a
/// thread, which is not joined.
pub(in crate::cli) fn look_through(
    shares: &[HostShare],
    say: impl Fn(&str) + Copy + Send + 'static,
) {
    let most = most_files().saturating_sub(OWN_FILES);
    for share in shares {
        let host = share.host().to_owned();
        let look = move || warnings(&host, most).iter().for_each(|it| say(it));
        // If the thread cannot be started, there is no warning.
        thread::Builder::new().spawn(look).ok();
    }
}

/// Returns the warnings for a directory, of which `most` files can be open.
fn warnings(host: &Path, most: u64) -> Vec<String> {
    let found = HostShare::survey(host, user_of(host), most);
    let large = (found.entries > most).then(|| {
        format!(
            "{} has more than {most} files, and the box fails with \"too many open files\" once it has opened as many; \
             share less of it, or raise the limit (`ulimit -Hn`)",
            host.display()
        )
    });
    let hidden = found.hidden.map(|it| hidden(host, &it));
    let texts = large.into_iter().chain(hidden);
    texts.map(|it| shown(&format!("boxlaunch: warning: {it}")) + "\n").collect()
}

/// Returns the user as whom the VM's process reads a share: the caller or, if root calls, the owner of the directory.
fn user_of(host: &Path) -> u32 {
    let caller = geteuid();
    let owner = host.metadata().map(|it| it.uid());
    if caller.is_root() { owner.unwrap_or_default() } else { caller.as_raw() }
}

/// Returns the text about a file of a share that the box cannot read.
fn hidden(host: &Path, file: &Path) -> String {
    format!(
        "the box cannot read {}, which belongs to another user; to give this file to the owner of the directory: \
         chown --reference={} {}",
        file.display(),
        shell_path(host),
        shell_path(file),
    )
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_directory_with_more_files_than_a_machine_has_is_named() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(warnings(dir.path(), 3), [""; 0]);
        let [warning] = &warnings(dir.path(), 2)[..] else { panic!("one warning") };
        let name = dir.path().file_name().unwrap().to_str().unwrap();
        assert!(warning.contains(&format!("{name} has more than 2 files")), "{warning}");
        assert!(warning.contains("ulimit -Hn"), "{warning}");
    }

    #[test]
    fn a_file_that_only_another_user_can_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        for (name, mode) in [("open", 0o604), ("key", 0o640)] {
            let path = dir.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        let found = HostShare::survey(dir.path(), geteuid().as_raw() + 1, 9);
        let file = found.hidden.unwrap();
        assert_eq!(file, dir.path().join("key"));
        assert_eq!(HostShare::survey(dir.path(), geteuid().as_raw(), 9).hidden, None);
        let text = hidden(Path::new("/a b"), Path::new("/a b/key"));
        let help = "chown --reference='/a b' '/a b/key'";
        assert!(
            text.starts_with("the box cannot read /a b/key, ") && text.ends_with(help),
            "{text}"
        );
    }
}
