//! The forms of images, and the descriptions of paths that are no image.

use std::fmt;

use box_contract::ImageRef;
use box_contract::named_enum;

/// The description of a Git LFS pointer.
pub const LFS_POINTER: &str = "a pointer of Git LFS, not the file itself";

named_enum! {
    /// A form in which images are stored.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Form {
        /// An OCI image layout in a directory.
        Layout "an OCI image layout",
        /// An OCI image layout in an archive.
        OciArchive "an archive of an OCI image layout",
        /// An archive of `docker save`.
        DockerArchive "an archive of `docker save`",
        /// A repository of a registry.
        Registry "a repository",
    }
}

impl Form {
    /// Returns the prefix of references to images of this form, such as `oci:`.
    pub const fn prefix(self) -> &'static str {
        // `PREFIXES` has the order of the variants.
        ImageRef::PREFIXES[self as usize]
    }

    /// Returns the syntax of a reference with a tag to an image of this form.
    pub fn reference(self) -> String {
        let place = match self {
            Self::Layout | Self::OciArchive => "PATH",
            Self::DockerArchive => "FILE:NAME",
            Self::Registry => "HOST/NAME",
        };
        format!("{}{place}:TAG", self.prefix())
    }
}

/// What is at a path instead of the expected image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants describe their fields")]
pub enum Found {
    /// The path does not exist.
    Nothing,
    /// A file instead of a directory.
    File,
    /// A directory instead of an archive.
    Directory,
    /// A directory or an archive without the file of this name.
    Lacks(&'static str),
    /// A compressed file. `what` describes its format, and `program` decompresses it.
    Compressed { what: &'static str, program: &'static str },
    /// An empty file.
    Empty,
    /// A file that is not a tar archive.
    NoArchive,
    /// A file of another type, which the text describes.
    Other(&'static str),
    /// A Git LFS pointer.
    LfsPointer,
    /// A `dir:` directory of skopeo.
    SkopeoDirectory,
    /// An archive of an OCI image layout.
    OciArchive,
    /// An archive of `docker save`.
    DockerArchive,
    /// An archive that docker before 1.10 saved.
    OldDockerArchive,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "it does not exist",
            Self::File => "it is a file",
            Self::Directory => "it is a directory",
            Self::Lacks(name) => return write!(f, "it has no file {name:?}"),
            Self::Compressed { what, .. } => return write!(f, "it is {what}"),
            Self::Empty => "it is empty",
            Self::NoArchive => "it does not begin like a tar archive",
            Self::Other(what) => return write!(f, "it is {what}"),
            Self::LfsPointer => return write!(f, "it is {LFS_POINTER}"),
            Self::SkopeoDirectory => "it looks like a skopeo `dir:` directory",
            Self::OciArchive => "it is an archive of an OCI image layout",
            Self::DockerArchive => "`docker save` wrote it",
            Self::OldDockerArchive => "a docker older than 1.10 saved it",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_has_its_own_prefix() {
        let expected = [
            "oci:PATH:TAG",
            "oci-archive:PATH:TAG",
            "docker-archive:FILE:NAME:TAG",
            "docker://HOST/NAME:TAG",
        ];
        assert_eq!(Form::ALL.map(Form::reference), expected);
    }
}
