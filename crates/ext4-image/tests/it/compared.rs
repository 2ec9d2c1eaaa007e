//! With the same features, `mke2fs` makes a file system with the same groups.

use tempfile::NamedTempFile;

use crate::tools::{BLOCK, GIB, GROUP, MIB, UUID, header, made, options, run, value};

/// The starts of the lines that differ: times, the seed of hashes, the checksum over them, and the version of `dumpe2fs`.
const DIFFERENT: [&str; 7] = [
    "Filesystem created:",
    "Last write time:",
    "Last checked:",
    "Lifetime writes:",
    "Directory Hash Seed:",
    "Checksum:",
    "dumpe2fs ",
];

#[test]
fn every_group_is_that_of_mke2fs() {
    for size in
        [MIB, 64 * MIB, GROUP, GROUP + 2 * MIB, 2 * GROUP + 3 * MIB, GIB, 20 * GIB + 5 * MIB]
    {
        assert_eq!(dump(&made(size, &options(false))), dump(&theirs(size)), "{size}");
    }
}

#[test]
fn a_short_last_group_is_left_out_as_by_mke2fs() {
    for blocks in (200..900).step_by(10) {
        let size = 2 * GROUP + blocks * BLOCK;
        let [ours, theirs] =
            [made(size, &options(false)), theirs(size)].map(|it| header(it.path()));
        assert_eq!(value(&ours, "Block count"), value(&theirs, "Block count"), "{blocks}");
    }
}

fn theirs(size: u64) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    file.as_file().set_len(size).unwrap();
    let features = "none,ext_attr,dir_index,sparse_super2,filetype,extent,sparse_super,large_file,\
                    huge_file,dir_nlink,extra_isize,metadata_csum";
    let options = "num_backup_sb=1,lazy_itable_init=0,nodiscard";
    let mut arguments = vec!["-F", "-q", "-b", "4096", "-I", "256", "-i", "16384", "-m", "0"];
    arguments.extend(["-U", UUID, "-O", features, "-E", options]);
    let mut arguments: Vec<_> = arguments.into_iter().map(AsRef::as_ref).collect();
    arguments.push(file.path().as_os_str());
    run("mke2fs", &arguments);
    file
}

/// Returns the output of `dumpe2fs` for all groups, without the expected differences.
fn dump(image: &NamedTempFile) -> String {
    let text = run("dumpe2fs", &[image.path().as_os_str()]);
    let same = |line: &&str| !DIFFERENT.iter().any(|start| line.starts_with(start));
    let without_checksum = |line: &str| match line.split_once(") csum ") {
        Some((group, rest)) => format!("{group}) {}\n", &rest["0x0000".len()..]),
        None => line.to_owned() + "\n",
    };
    text.lines().filter(same).map(without_checksum).collect()
}
