//! Wrong sizes, options and files are refused, and the file stays unchanged.

use std::fs::OpenOptions;

use ext4_image::{Error, MAX_SIZE, MIN_SIZE, MIN_SIZE_WITH_JOURNAL, Options, format};
use tempfile::NamedTempFile;

use crate::tools::{BLOCK, MIB, options};

fn refused(size: u64, options: &Options) -> Error {
    let file = NamedTempFile::new().unwrap();
    let error = format(file.as_file(), size, options).unwrap_err();
    assert_eq!(file.as_file().metadata().unwrap().len(), 0);
    error
}

#[test]
fn sizes_out_of_range() {
    for (size, journal, expected) in [
        (MIN_SIZE - 1, false, "needs at least 1048576 bytes"),
        (MIN_SIZE_WITH_JOURNAL - 1, true, "needs at least 8388608 bytes"),
        (0, false, "needs at least"),
        (MAX_SIZE + BLOCK, false, "it can have 17592186040320 bytes"),
        (u64::MAX, true, "it can have"),
    ] {
        let error = refused(size, &options(journal)).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn options_out_of_range() {
    let error = refused(MIB, &Options { uuid: [0; 16], ..options(false) });
    assert!(matches!(error, Error::NilUuid));
    let error = refused(MIB, &Options { root_mode: 0o10000, ..options(false) });
    assert!(error.to_string().contains("0o10000"), "{error}");
}

#[test]
fn a_file_with_something_in_it() {
    let file = NamedTempFile::new().unwrap();
    file.as_file().set_len(5).unwrap();
    let error = format(file.as_file(), MIB, &options(false)).unwrap_err();
    assert!(matches!(error, Error::NotEmpty { length: 5 }));
    assert_eq!(file.as_file().metadata().unwrap().len(), 5);
}

#[test]
fn a_file_that_cannot_be_written() {
    let file = NamedTempFile::new().unwrap();
    let read_only = OpenOptions::new().read(true).open(file.path()).unwrap();
    let error = format(&read_only, MIB, &options(false)).unwrap_err();
    assert!(matches!(error, Error::Write(_)));
}
