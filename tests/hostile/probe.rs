//! Reads images as the builder does. `hostile-probe WORK` opens each OCI layout `WORK/layouts/NAME`, decodes its layers into
//! the store `WORK/stores/NAME`, flattens them, and bakes a rootfs of the resulting tree.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "it is a part of tests")]

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use box_cache::{ActionKey, KeyHasher, Store};
use box_contract::ComponentName;
use box_contract::{ImageRef, Platform};
use box_digest::Digest;
use box_tree as tree;
use box_tree::erofs::image_builder;
use boxbuild::pack::{ContentMap, Pack, Segment, SegmentWriter};
use oci_image::{Access, Image, open};
use oci_layer::{LayerError, LayerIndex, LayerSource, Limits, decode, flatten};

mod outcome;
mod seen;

use outcome::{Outcome, Report};

/// The largest number of entries to list. Of a larger tree only the number is reported.
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

/// Returns access to layouts by absolute paths, and to no registry.
fn access() -> Access<'static> {
    Access { base: Path::new(""), registries: None }
}

fn probe(layout: &Path, stores: &Path) -> Outcome {
    let name = layout.file_name().unwrap().to_string_lossy().into_owned();
    let place = stores.join(&name);
    let mut outcome = Outcome { name, ..Outcome::default() };
    let path = layout.display().to_string();
    let reference = ImageRef::OciLayout { path, tag: None, digest: None };
    let kept = match open(&reference, None, Platform::LinuxAmd64, &access()) {
        Ok(image) => build(&image, &Store::open(&place).unwrap(), &mut outcome),
        Err(error) => {
            outcome.kind = format!("{error:?}");
            outcome.text = error.to_string();
            KeptFile::default()
        }
    };
    let files = |part| files(&place.join(part));
    let left = [files("blobs") - kept.segments.len(), files("data") - kept.packs.len()];
    outcome.left = left.iter().sum::<usize>() + files("tmp") + files("actions");
    outcome
}

/// The files that belong in the store: those of complete layers.
#[derive(Default)]
struct KeptFile {
    packs: BTreeSet<Digest>,
    segments: BTreeSet<Digest>,
}

/// Decodes a layer into the store.
fn decode_into(
    store: &Store,
    key: &ActionKey,
    layer: &LayerSource,
    blob: impl io::Read + Send,
) -> Result<(LayerIndex, Option<Segment>), LayerError> {
    std::thread::scope(|scope| {
        let (mut data, mut segment) =
            (store.data_writer().unwrap(), SegmentWriter::new(store, scope));
        let index = decode(layer, blob, &mut data, &mut segment, &Limits::default())?;
        data.commit(key).unwrap();
        Ok((index, segment.commit().unwrap()))
    })
}

/// Decodes, flattens and bakes an image, and returns the files that belong in the store.
fn build(image: &Image<'_>, store: &Store, outcome: &mut Outcome) -> KeptFile {
    let mut kept = KeptFile::default();
    let mut indexes: Vec<LayerIndex> = Vec::new();
    let mut contents = ContentMap::default();
    for layer in &image.layers {
        let blob = image.open_layer(layer).unwrap();
        let key = KeyHasher::new("probe", 1).part(layer.digest.as_bytes()).finish();
        match decode_into(store, &key, layer, blob) {
            Ok((index, segment)) => {
                contents.add(Pack::Layer(key), &index.contents);
                kept.packs.insert(layer.digest);
                if let Some(segment) = segment {
                    contents.add(Pack::Segment { segment, layer: Some(key) }, &index.segment);
                    kept.segments.insert(segment.blob);
                }
                indexes.push(index);
            }
            Err(error) => {
                refused(&error, outcome);
                return kept;
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
    kept
}

fn refused(error: &LayerError, outcome: &mut Outcome) {
    outcome.kind = safe_text::with_causes(&*error.kind);
    outcome.text = error.to_string();
    outcome.layer = error.layer.to_string();
    let shown = |path: &Vec<u8>| path.escape_ascii().to_string();
    outcome.entry = error.entry.as_ref().map(|(path, offset)| (shown(path), *offset));
}

fn files(directory: &Path) -> usize {
    fs::read_dir(directory).map_or(0, Iterator::count)
}

/// Returns this process's peak memory, in KiB (proc_pid_status(5)).
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}
