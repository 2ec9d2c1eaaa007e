//! Images in every supported form, and rejected images.

mod compressed;
mod damage;
mod forms;
mod indexes;
mod keys;
mod layers;
mod refused;
mod registry;

use std::io;
use std::path::Path;

use box_cache::Store;
use box_contract::ComponentName;
use box_contract::{ImageRef, Platform};
use box_digest::{Blake3Digest, Digest};
use diagnostics::Source;
use oci_layer::{LayerError, Limits, decode, flatten};
use testkit::images::{Config, Layer, LayerTar};

use super::{Access, Image, SourceError, open};

/// Returns a layer with one file.
fn layer(name: &str, content: &str) -> LayerTar {
    Layer::new().dir("/etc", 0o755).file(&format!("/etc/{name}"), 0o644, content).to_tar()
}

/// Returns an image whose middle layer occurs twice, and whose last layer is empty.
fn sample() -> testkit::images::Image {
    let (base, name) = (layer("base", "base"), layer("name", "sample"));
    let hidden = Layer::new().whiteout("/etc/base").to_tar();
    testkit::images::Image::new(Config { cmd: vec!["/bin/run".to_owned()], ..Config::default() })
        .with(base.clone())
        .with(name)
        .with(hidden)
        .with(base)
        .with(Layer::new().to_tar())
}

/// Parses a reference with the reader of Boxfiles.
fn reference(text: &str) -> ImageRef {
    let boxfile = format!("box \"x\"\nagent {{ image \"{text}\"; }}\n");
    let read = boxfile_spec::read(Source::new("Boxfile", boxfile), None, |_| Err(String::new()));
    assert_eq!(read.found, [], "{text}");
    read.boxfile.unwrap().agent.component.image.unwrap().value
}

/// Opens an image, whose path is relative to `base`.
fn opened<'a>(base: &'a Path, text: &str) -> Result<Image<'a>, SourceError> {
    let access = Access { base, registries: None };
    open(&reference(text), None, Platform::LinuxAmd64, &access)
}

/// Returns the error message for an image, without the directory's name and digests.
fn refusal(base: &Path, text: &str) -> String {
    let error = opened(base, text).unwrap_err();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    let text = text.replace(&format!("{}/", base.display()), "");
    let mut words = String::new();
    for word in text.split_inclusive(|it: char| !it.is_ascii_hexdigit()) {
        let hex = word.trim_end_matches(|it: char| !it.is_ascii_hexdigit());
        match hex.len() {
            64 => words.push_str(&word.replace(hex, "DIGEST")),
            _ => words.push_str(word),
        }
    }
    words
}

/// Reads all layers of an image, and returns the digest of the resulting tree.
fn tree(image: &Image<'_>) -> Result<Blake3Digest, LayerError> {
    let limits = Limits::default();
    let layers = image.layers.iter().map(|layer| {
        let blob = image.open_layer(layer).unwrap();
        decode(layer, blob, &mut io::sink(), &mut io::sink(), &limits)
            .map(|index| (layer.digest, index))
    });
    let layers = layers.collect::<Result<Vec<_>, _>>()?;
    let layers = layers.iter().map(|(digest, index)| (*digest, index));
    flatten(ComponentName::Agent, layers).map(|tree| tree.digest())
}
