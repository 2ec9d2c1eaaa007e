//! The archive of a release, and the compressed archives in its Debian package.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};
use testbed::{KitError, Result};

use super::install;

/// The time of all files in seconds since 1970: the first day of 1980. A time of 1970 is taken for a mistake by some programs.
const TIME: u64 = 315_532_800;

/// Writes the files below `root` to `to`, a gzip-compressed tar archive. All paths in it begin with `name`, and
/// `tar -xzf FILE --strip-components=1` removes that part. The bytes depend only on the names, modes and contents of the files.
///
/// # Errors
/// A file cannot be read or written.
pub(super) fn write(root: &Path, name: &str, to: &Path) -> Result<()> {
    let file = File::create(to).map_err(KitError::file("create", to))?;
    pack(root, name, file).map(drop)
}

/// Writes the files below `root` to `out`, as [`write()`] does, and returns `out`.
///
/// # Errors
/// As [`write()`].
pub(super) fn pack<W: Write>(root: &Path, name: &str, out: W) -> Result<W> {
    let mut archive = Builder::new(compressor(out, Compression::default()));
    for path in install::sorted(root)? {
        let inside = Path::new(name).join(path.strip_prefix(root).unwrap_or(&path));
        append(&mut archive, &path, &inside).map_err(KitError::file("pack", &path))?;
    }
    let finished = archive.into_inner().and_then(GzEncoder::finish);
    finished.map_err(KitError::file("pack", root))
}

/// Returns a compressor whose header has neither a name nor a time
/// ([RFC 1952](https://www.rfc-editor.org/rfc/rfc1952), section 2.3.1).
pub(super) fn compressor<W: Write>(out: W, level: Compression) -> GzEncoder<W> {
    GzBuilder::new().mtime(0).write(out, level)
}

/// Appends a file or a directory, which belongs to root.
fn append(archive: &mut Builder<impl Write>, path: &Path, inside: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    let mut header = Header::new_gnu();
    header.set_uid(0);
    header.set_gid(0);
    header.set_username("root")?;
    header.set_groupname("root")?;
    header.set_mtime(TIME);
    // The other bits depend on the umask of whoever makes the release.
    let is_executable = metadata.is_dir() || metadata.permissions().mode() & 0o100 != 0;
    header.set_mode(if is_executable { 0o755 } else { 0o644 });
    if metadata.is_dir() {
        header.set_entry_type(EntryType::Directory);
        return archive.append_data(&mut header, inside, io::empty());
    }
    header.set_size(metadata.len());
    archive.append_data(&mut header, inside, File::open(path)?)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::process::Command;

    use testbed::program;

    use super::*;

    fn tree(names: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for name in names {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, name).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        }
        root
    }

    #[test]
    fn the_order_of_the_files_and_their_times_do_not_change_the_bytes() {
        let out = tempfile::tempdir().unwrap();
        let archives = [["bin/a", "bin/b", "lib/c"], ["lib/c", "bin/b", "bin/a"]].map(|names| {
            let (root, to) = (tree(&names), out.path().join(names[0].replace('/', "-")));
            write(root.path(), "boxbuild-1", &to).unwrap();
            fs::read(to).unwrap()
        });
        assert_eq!(archives[0], archives[1]);
    }

    #[test]
    fn tar_unpacks_it_without_its_first_directory() {
        let (root, out) = (tree(&["bin/a"]), tempfile::tempdir().unwrap());
        let archive = out.path().join("archive.tar.gz");
        write(root.path(), "boxbuild-1", &archive).unwrap();
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(&archive).arg("-C").arg(out.path()).arg("--strip-components=1");
        program::run(&mut tar).unwrap();
        let unpacked = out.path().join("bin/a");
        assert_eq!(fs::read_to_string(&unpacked).unwrap(), "bin/a");
        assert_eq!(fs::metadata(unpacked).unwrap().permissions().mode() & 0o777, 0o755);
    }
}
