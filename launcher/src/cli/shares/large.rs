//! Shares with more files than the VM can have open.

use std::path::Path;
use std::thread;

use box_contract::manifest::MAX_SEGMENTS;
use boxlaunch::mounts::shares::HostShare;
use safe_text::shown;
use vmm::jail::most_files;

/// The number of open files that the VM needs in addition to the files of shares. The largest rootfs is `MAX_SEGMENTS` segments
/// and the metadata, and each of these files is open twice.
const OWN_FILES: u64 = 1024 + 2 * (MAX_SEGMENTS as u64 + 1);

/// Calls `say` with a warning for each share that has more files than the VM can have open. The VM keeps one file open for each
/// file that the guest has looked up. Counting the files can take long, so each share has a thread, which is not joined.
pub(in crate::cli) fn look_for_large(
    shares: &[HostShare],
    say: impl Fn(&str) + Copy + Send + 'static,
) {
    let most = most_files().saturating_sub(OWN_FILES);
    for share in shares {
        let host = share.host().to_owned();
        let look = move || too_many(&host, most).iter().for_each(|it| say(it));
        // If the thread cannot be started, there is no warning.
        thread::Builder::new().spawn(look).ok();
    }
}

/// Returns a warning if the directory has more than `most` files.
fn too_many(host: &Path, most: u64) -> Option<String> {
    (HostShare::count(host, most) > most).then(|| {
        let text = format!(
            "boxlaunch: warning: {} has more than {most} files, and the box fails with \"too many open files\" once it \
             has opened as many; share less of it, or raise the limit (`ulimit -Hn`)",
            host.display()
        );
        shown(&text) + "\n"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_with_more_files_than_a_machine_has_is_named() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(too_many(dir.path(), 3), None);
        let warning = too_many(dir.path(), 2).unwrap();
        let name = dir.path().file_name().unwrap().to_str().unwrap();
        assert!(warning.contains(&format!("{name} has more than 2 files")), "{warning}");
        assert!(warning.contains("ulimit -Hn"), "{warning}");
    }
}
