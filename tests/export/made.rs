//! Builds boxes in this process, from generated images, and from an init and a kernel without code.

use std::fs;
use std::path::{Path, PathBuf};

use box_cache::Store;
use box_contract::ComponentName;
use box_contract::Platform;
use box_digest::Blake3Digest;
use box_inspect::export::Export;
use box_inspect::opened::OpenBox;
use boxbuild::output::{self, Form};
use boxbuild::{InputFile, Pins, Request};
use download::fetch::FetchOptions;
use testkit::images::Compression;
use testkit::small_init;

use crate::specimens::Specimen;

/// A box in a temporary directory.
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
        fs::write(made.path("program"), small_init::bytes()).unwrap();
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
        output::write(&store, &built.sealed, &self.bundle(), Form::Whole).unwrap();
    }

    /// Returns the path `name` beside the box.
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

    /// Returns an export of the whole box.
    pub(crate) fn whole(&self) -> Export {
        Export::whole(&self.opened()).unwrap()
    }

    /// Returns an export of a component's root.
    pub(crate) fn component(&self, name: ComponentName) -> Export {
        Export::component(&self.opened(), name).unwrap()
    }

    /// Returns the sorted names in the temporary directory, to find leftovers.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.directory.path())
    }
}

/// Returns the sorted names in a directory.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|it| it.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}
