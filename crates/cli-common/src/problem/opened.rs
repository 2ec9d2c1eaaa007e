//! Explanations for the errors of opening a box.

use std::io::ErrorKind;

use box_contract::ErrorCode::*;
use box_layout::OpenError;

use super::Explanation;

impl From<&OpenError> for Explanation {
    fn from(error: &OpenError) -> Self {
        let (code, help) = match error {
            OpenError::OtherArtifact { found: None, .. } => (
                BoxNotFound,
                "a box is what `boxbuild build` writes, such as NAME.box; `boxbuild init oci:DIR` \
                 begins one from this image, and `boxbuild diff` reads it as oci:DIR",
            ),
            OpenError::NotALayout(_) | OpenError::OtherArtifact { .. } => (
                BoxNotFound,
                "name a box by its directory, such as NAME.box, or by its name: `boxlaunch images`",
            ),
            OpenError::Manifests { .. } => (
                BoxNotFound,
                "copy or build the box again; `boxbuild build -o DIR` writes a layout with one box",
            ),
            OpenError::Boxes { .. } => (
                BoxNotFound,
                "`boxlaunch load DIR` puts all of them into the store; or copy the one that you mean into a directory of its own: \
                 `skopeo copy oci:DIR:TAG oci:ONE.box`",
            ),
            OpenError::File { error, .. } if error.kind() == ErrorKind::NotFound => (
                BoxDamaged,
                "build the box again; to copy one, write it whole: `boxbuild build -o DIR`",
            ),
            OpenError::Absent { .. } => (
                BoxDamaged,
                "fetch, load or build the box again: `boxlaunch pull`, `boxlaunch load` or `boxbuild build`; or name the store that \
                 has the rest with --store or BOXBUILD_STORE_RO. A directory that can be copied: `boxbuild build -o DIR`",
            ),
            OpenError::Different { .. } => (
                BoxDamaged,
                "the file was damaged or changed after the build; build or copy the box again",
            ),
            OpenError::NotRegular(_) => {
                (BoxDamaged, "copy the box with its files, not with links to them")
            }
            OpenError::RootfsPlan { .. } | OpenError::Superblock { .. } => {
                (BoxDamaged, "the box was changed after the build: do not use it")
            }
            OpenError::Epoch { .. } => {
                (BoxEpoch, "use the version that built the box, or build it again")
            }
            OpenError::File { error, .. } if error.kind() == ErrorKind::FileTooLarge => {
                return TooLarge.into();
            }
            OpenError::File { error, .. } if error.kind() == ErrorKind::PermissionDenied => {
                (Io, "change the owner or the permissions of the box")
            }
            OpenError::File { .. } => return Io.into(),
            OpenError::Malformed(_) => {
                (BoxMalformed, "build the box again with this version of boxbuild")
            }
        };
        (code, help).into()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_missing_file_damages_a_box_and_an_unreadable_one_does_not() {
        let failed = |kind: ErrorKind| {
            let error = io::Error::from(kind);
            Explanation::from(&OpenError::File { action: "open", path: "a".into(), error })
        };
        assert_eq!(failed(ErrorKind::NotFound).code, BoxDamaged);
        assert_eq!(failed(ErrorKind::PermissionDenied).code, Io);
        assert_eq!(failed(ErrorKind::FileTooLarge), TooLarge.into());
    }
}
