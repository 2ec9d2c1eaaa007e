//! Explanations for the errors of finding a box and of its store.

use crate::store::named;
use box_cache::StoreError;
use box_contract::ErrorCode::*;
use box_find::FindError;
use safe_text::{shell_path, shell_word};

use super::Explanation;
use host_fs::own::STORE_RO;

/// Returns whether a name could be the beginning of a digest.
pub fn is_cut_digest(name: &str) -> bool {
    name.len() >= 8 && name.bytes().all(|it| it.is_ascii_hexdigit())
}

impl From<&FindError> for Explanation {
    fn from(error: &FindError) -> Self {
        match error {
            FindError::NotAName { text, is_here: true } => {
                (Usage, format!("if you mean the directory {text} in the current directory: ./{text}")).into()
            }
            FindError::NotAName { .. } => (
                Usage,
                "write a directory as ./DIR or NAME.box, a box of the store by its name, or sha256:...",
            )
                .into(),
            FindError::BadDigest(_) => (
                Usage,
                "write sha256: and all 64 lower-case hexadecimal digits, as `boxbuild build` and `boxlaunch images --json` \
                 print them",
            )
                .into(),
            FindError::NoName { name, is_here: true, .. } => {
                (BoxNotFound, format!("if you mean the directory {name} in the current directory: ./{name}")).into()
            }
            FindError::NoName { name, .. } if is_cut_digest(name) => (
                BoxNotFound,
                "a digest is written whole, as sha256:... with 64 digits: `boxlaunch images --json` prints it",
            )
                .into(),
            FindError::NoName { name, store, is_named, .. } => {
                let option = format!(" {}", named(store));
                let option = if *is_named { option } else { String::new() };
                let text = format!("`boxlaunch images{option}` lists the names; a directory is written ./{name}");
                (BoxNotFound, text).into()
            }
            FindError::Image { text } => {
                let word = shell_word(text);
                let text = format!(
                    "`boxlaunch run --image {word} -- CMD` runs a command in it, and `boxbuild init {word}` begins a box from it"
                );
                (BoxNotFound, text).into()
            }
            FindError::File(path) => (
                BoxNotFound,
                format!("`boxlaunch load {}` puts the boxes of the file into the store", shell_word(path)),
            )
                .into(),
            FindError::NoHost { text } => (
                Usage,
                format!(
                    "a box of a registry is named with the host, such as ghcr.io/acme/hello:v1; a directory is written ./{text}; \
                     `boxlaunch run --image {} -- CMD` runs a command in an image",
                    shell_word(text)
                ),
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
                (BoxNotFound, "`boxlaunch images --all` lists what is there; pull, load or build the box").into()
            }
            FindError::OtherBox { .. } => (
                DigestMismatch,
                "it is another box, or another build of it; `boxlaunch inspect BOX` shows what it is",
            )
                .into(),
            FindError::Store(error) => error.into(),
            FindError::Base(error) => {
                let row = Self::from(error);
                (
                    row.code,
                    format!(
                        "{STORE_RO} names it, and only root and you may be able to write there (chown, chmod go-w); without that \
                         variable, your own store alone is used"
                    ),
                )
                    .into()
            }
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
            StoreError::NotADirectory(_) | StoreError::NotAStore { .. } => {
                (StoreInvalid, "name another directory with --store").into()
            }
            StoreError::Shared(_) => {
                (StoreInvalid, "make sure that only you own it and can write to it (chown, chmod go-w)").into()
            }
            StoreError::Replaceable { above, .. } => (
                StoreInvalid,
                format!(
                    "name a directory with --store that is below directories of yours or root's; or let nobody else write: \
                     `chmod go-w {}`",
                    above.iter().map(shell_path).collect::<Vec<_>>().join(" ")
                ),
            )
                .into(),
            StoreError::NameTaken { .. } => (
                NameTaken,
                "give this box another name with `--name NAME`, write it without one with `-o DIR`, or change `box` in its \
                 Boxfile",
            )
                .into(),
            StoreError::Attachment { .. } => {
                (TooLarge, "sign the box once with each key; a box that is built or pulled again begins without attachments").into()
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_the_help_lists_the_store_that_was_searched() {
        let help_of = |store: &str, is_named| {
            let (name, store) = ("hello".to_owned(), store.into());
            let error = FindError::NoName { name, store, is_here: false, is_named };
            Explanation::from(&error).help.unwrap()
        };
        let help = |is_named| help_of("other", is_named);
        assert!(help_of("-x", true).starts_with("`boxlaunch images --store ./-x` lists"));
        assert!(help(true).starts_with("`boxlaunch images --store other` lists the names;"));
        assert!(help(false).starts_with("`boxlaunch images` lists the names;"));
    }
}
