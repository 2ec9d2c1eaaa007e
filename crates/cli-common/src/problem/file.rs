//! Explanations for the errors of the operating system.

use std::io::{self, ErrorKind};

use box_contract::ErrorCode::*;
use host_fs::read::ReadError;

use super::Explanation;

impl From<&io::Error> for Explanation {
    fn from(error: &io::Error) -> Self {
        let help = match error.kind() {
            ErrorKind::FileTooLarge => return TooLarge.into(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                return (DiskFull, "free some space, or write to another file system").into();
            }
            ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
                "correct the path: a part of it is a file and not a directory"
            }
            ErrorKind::PermissionDenied => {
                "change its owner or permissions, or those of a directory above it"
            }
            _ if error.get_ref().is_some_and(|it| it.is::<ReadError>()) => {
                "put a regular file there, or correct the path"
            }
            _ => return Io.into(),
        };
        (Io, help).into()
    }
}
