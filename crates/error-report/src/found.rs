//! The rows of the errors from finding a box, and of the store that it is in, which both programs read.

use box_cache::StoreError;
use box_find::FindError;
use box_image::ErrorCode::*;

use crate::Explanation;

impl From<&FindError> for Explanation {
    fn from(error: &FindError) -> Self {
        match error {
            FindError::NotAName { text, is_here: true } => {
                (Usage, format!("if you mean the directory {text} that is here: ./{text}")).into()
            }
            FindError::NotAName { .. } => (
                Usage,
                "write a directory as ./DIR or NAME.box, a box of the store by its name, or sha256:...",
            )
                .into(),
            FindError::BadDigest(_) => (
                Usage,
                "write sha256: and all 64 lower-case hexadecimal digits, as `boxbuild build` and `boxlaunch images --all -q` \
                 print them",
            )
                .into(),
            FindError::NoName { name, is_here: true, .. } => {
                (BoxNotFound, format!("if you mean the directory {name} that is here: ./{name}")).into()
            }
            FindError::NoName { name, .. } => (
                BoxNotFound,
                format!("`boxlaunch images` lists the names; a directory is written ./{name}"),
            )
                .into(),
            FindError::BadRemote { .. } => (
                Usage,
                "write HOST/NAME:TAG, such as ghcr.io/acme/agent:v1; a directory begins with ./",
            )
                .into(),
            FindError::NotPulled(name) => {
                (BoxNotFound, format!("fetch it: `boxlaunch pull {name}`")).into()
            }
            FindError::NoStore => (StoreInvalid, "name one with --store, or set HOME").into(),
            FindError::NoBox(_) => {
                (BoxNotFound, "`boxlaunch images` lists what is there; `boxbuild build` makes it").into()
            }
            FindError::OtherBox { .. } => (
                DigestMismatch,
                "it is another box, or another build of it; `boxlaunch inspect BOX` shows what it is",
            )
                .into(),
            FindError::Store(error) => error.into(),
            FindError::Open(error) => error.into(),
        }
    }
}

impl From<&StoreError> for Explanation {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::File(_) => {
                (Io, "name another directory with --store, one that you can use").into()
            }
            StoreError::Full(_) | StoreError::NoRoom { .. } => {
                (DiskFull, "free some space there, or name another directory with --store").into()
            }
            StoreError::NotAStore { .. } => {
                (StoreInvalid, "name another directory with --store").into()
            }
            StoreError::Shared(_) => {
                (StoreInvalid, "make it yours alone (chown, chmod go-w)").into()
            }
            StoreError::NameTaken { .. } => (
                NameTaken,
                "give this box another name with `--name NAME`, write it without one with `-o DIR`, or change `box` in its \
                 Boxfile",
            )
                .into(),
            StoreError::Busy(_) => {
                (Io, "try again when it has ended; a directory that `build -o` wrote needs no store").into()
            }
            StoreError::NoRoots(_) => (
                StoreInvalid,
                "nothing was removed; if it is the right directory and has nothing that you need, remove it whole",
            )
                .into(),
            StoreError::Missing(_) => StoreDamaged.into(),
            StoreError::Damaged { path, .. } => {
                (StoreDamaged, format!("remove {} and build again", path.display())).into()
            }
        }
    }
}
