//! Reads images as the builder does: `hostile-probe WORK` opens each OCI layout in `WORK/layouts`,
//! decodes its layers into a store of its own below `WORK/stores`, puts them on each other, and
//! bakes a rootfs of what comes out.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "it is a part of tests")]

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use box_cache::{KeyHasher, Store};
use box_image::ComponentName;
use box_tree as tree;
use box_tree::erofs::image_builder;
use boxbuild::pack::{ContentMap, Pack};
use boxfile_spec::{ImageRef, Platform};
use oci_image::{Access, Image, open};
use oci_layer::{LayerError, LayerIndex, Limits, decode, flatten};

mod outcome;
mod seen;

use outcome::{Outcome, Report};

/// A tree of more entries is only counted.
const LISTED: usize = 1000;

fn main() {
    let work = PathBuf::from(std::env::args().nth(1).expect("usage: hostile-probe WORK"));
    let mut layouts: Vec<_> =
        fs::read_dir(work.join("layouts")).unwrap().map(|entry| entry.unwrap().path()).collect();
    layouts.sort();
    let outcomes = layouts.iter().map(|layout| probe(layout, &work.join("stores"))).collect();
    let report = Report { outcomes, peak: peak() };
    println!("{}", serde_json::to_string(&report).unwrap());
}

/// The layouts' paths are absolute, and no registry is asked.
fn access() -> Access<'static> {
    Access { base: Path::new(""), registries: None }
}

fn probe(layout: &Path, stores: &Path) -> Outcome {
    let name = layout.file_name().unwrap().to_string_lossy().into_owned();
    let place = stores.join(&name);
    let mut outcome = Outcome { name, ..Outcome::default() };
    let path = layout.display().to_string();
    let reference = ImageRef::OciLayout { path, tag: None, digest: None };
    let packs = match open(&reference, None, Platform::LinuxAmd64, &access()) {
        Ok(image) => build(&image, &Store::open(&place).unwrap(), &mut outcome),
        Err(error) => {
            outcome.kind = format!("{error:?}");
            outcome.text = error.to_string();
            0
        }
    };
    let files = |part| files(&place.join(part));
    outcome.left = files("blobs") + (files("data") - packs) + files("tmp") + files("actions");
    outcome
}

/// Decodes, flattens and bakes, and returns how many packs belong in the store.
fn build(image: &Image, store: &Store, outcome: &mut Outcome) -> usize {
    let mut packs = BTreeSet::new();
    let mut indexes: Vec<LayerIndex> = Vec::new();
    let mut contents = ContentMap::default();
    for layer in &image.layers {
        let blob = image.open_layer(layer, &access()).unwrap();
        let mut data = store.data_writer().unwrap();
        match decode(layer, blob, &mut data, &Limits::default()) {
            Ok(index) => {
                let key = KeyHasher::new("probe", 1).part(layer.digest.as_bytes()).finish();
                data.commit(&key).unwrap();
                contents.add(Pack::Layer(key), &index.contents);
                packs.insert(layer.digest);
                indexes.push(index);
            }
            Err(error) => {
                refused(&error, outcome);
                return packs.len();
            }
        }
    }
    let layers = image.layers.iter().map(|layer| layer.digest).zip(&indexes);
    match flatten(ComponentName::Agent, layers) {
        Ok(tree) => {
            let count = tree::entries(&tree).count();
            let list = if count > LISTED { vec![count.to_string()] } else { seen::of_tree(&tree) };
            outcome.tree = Some(list);
            drop(indexes);
            let image = image_builder(&tree).unwrap();
            image.write(&mut io::sink(), &mut contents.reader(store)).unwrap();
        }
        Err(error) => refused(&error, outcome),
    }
    packs.len()
}

fn refused(error: &LayerError, outcome: &mut Outcome) {
    outcome.kind = box_image::text::with_causes(&*error.kind);
    outcome.text = error.to_string();
    outcome.layer = error.layer.to_string();
    let shown = |path: &Vec<u8>| path.escape_ascii().to_string();
    outcome.entry = error.entry.as_ref().map(|(path, offset)| (shown(path), *offset));
}

fn files(directory: &Path) -> usize {
    fs::read_dir(directory).map_or(0, Iterator::count)
}

/// Returns the most memory that this process has had, in KiB (proc_pid_status(5)).
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}
