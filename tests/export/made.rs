//! Boxes made in this process, of declared images and an init and a kernel without code.

use std::fs;
use std::path::{Path, PathBuf};

use box_cache::Store;
use box_digest::Blake3Digest;
use box_image::ComponentName;
use box_image::wire::INIT_MARK;
use box_inspect::export::Export;
use box_inspect::opened::OpenBox;
use boxbuild::{InputFile, Pins, Request, output};
use boxfile_spec::Platform;
use download::fetch::FetchOptions;
use testkit::images::Compression;

use crate::specimens::Specimen;

/// A box in a directory of its own.
pub(crate) struct Made {
    directory: tempfile::TempDir,
}

impl Made {
    /// Builds the box of a specimen.
    pub(crate) fn of(specimen: &Specimen) -> Self {
        let made = Self { directory: tempfile::tempdir().unwrap() };
        for (name, image) in &specimen.images {
            image.write_layout(&made.path(name), "latest", Compression::None).unwrap();
        }
        fs::create_dir(made.path("greet")).unwrap();
        fs::write(made.path("greet/SKILL.md"), "---\nname: greet\ndescription: Greets.\n---\n")
            .unwrap();
        fs::write(made.path("program"), program()).unwrap();
        made.build(specimen.boxfile);
        made
    }

    fn build(&self, boxfile: &str) {
        let boxfile = boxfile_spec::parse(boxfile).unwrap();
        let request = Request {
            boxfile: &boxfile,
            base: self.directory.path(),
            checkout: self.directory.path().into(),
            platform: Platform::LinuxAmd64,
            pins: Pins::default(),
            fetch: FetchOptions { offline: true, ..FetchOptions::default() },
            remote: None,
            init: InputFile::found(self.path("program")),
            kernel: InputFile::found(self.path("program")),
            builder: Blake3Digest::from_bytes([0; 32]),
        };
        let store = Store::open(&self.path("store")).unwrap();
        let built = boxbuild::resolve(&request, &store).unwrap().build().unwrap();
        output::write(&store, &built.sealed, &self.bundle()).unwrap();
    }

    /// Returns a path beside the box.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the box's directory.
    pub(crate) fn bundle(&self) -> PathBuf {
        self.path("made.box")
    }

    /// Opens the box.
    pub(crate) fn opened(&self) -> OpenBox {
        box_inspect::opened::open(&self.bundle()).unwrap()
    }

    /// Takes the whole box.
    pub(crate) fn whole(&self) -> Export {
        Export::whole(&self.opened()).unwrap()
    }

    /// Takes a component's root.
    pub(crate) fn component(&self, name: ComponentName) -> Export {
        Export::component(&self.opened(), name).unwrap()
    }

    /// Returns the files of a blob's kind: the largest is the rootfs.
    pub(crate) fn blob(&self, digest: &box_digest::Digest) -> PathBuf {
        self.bundle().join("blobs/sha256").join(digest.hex())
    }

    /// Lists what is beside the box, for leftovers.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.directory.path())
    }
}

/// Lists a directory, sorted.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|it| it.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// An ELF file for x86-64 of one segment, which holds no code and the mark of box-init: nothing here is
/// ever started.
fn program() -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // ET_EXEC, EM_X86_64.
    file.extend([2u16, 62].into_iter().flat_map(u16::to_le_bytes));
    file.extend(1u32.to_le_bytes());
    file.extend([0x40_0000u64, 64, 0].into_iter().flat_map(u64::to_le_bytes));
    file.extend(0u32.to_le_bytes());
    file.extend([64u16, 56, 1, 64, 0, 0].into_iter().flat_map(u16::to_le_bytes));
    // PT_LOAD, readable and executable.
    file.extend([1u32, 5].into_iter().flat_map(u32::to_le_bytes));
    file.extend([120u64, 0x40_0000, 0, 4, 4, 1].into_iter().flat_map(u64::to_le_bytes));
    file.extend(b"code");
    file.extend(INIT_MARK.as_bytes());
    file
}
