//! The lock's entries for what a build reads.

use box_digest::{AnyDigest, Digest};
use box_image::manifest::FORMAT_EPOCH;
use boxfile_spec::lock::{LockEntry, PinKind};
use boxfile_spec::{Lock, Span};
use oci_image::Image;

use super::Inputs;
use crate::BuildError;
use crate::pipeline::request::Request;
use crate::project::pins;

/// Writes down what was read.
pub(super) fn lock(inputs: &Inputs, request: &Request<'_>) -> Lock {
    let mut lock = Lock::new(FORMAT_EPOCH);
    let declared = pins::declared(request.boxfile);
    let mut set = |name: &str, source: &str, kind: PinKind, content: Content| {
        lock.set(LockEntry {
            name: request.pins.name(name, source),
            kind,
            source: source.to_owned(),
            platform: kind.has_platform().then_some(request.platform),
            digest: content.digest,
            size: content.size,
            layers: content.layers,
        });
    };
    let source = |name: &str| declared.get(name).map(|(_, source)| source.as_str()).unwrap_or("");
    for (component, image) in &inputs.images {
        let name = component.name();
        set(name, source(name), PinKind::Image, Content::image(image));
    }
    if let (Some(binary), Some((kind, source))) = (&inputs.binary, declared.get("binary")) {
        set("binary", source, *kind, Content::plain(binary.sha256, binary.content.size));
    }
    for file in &inputs.env_files {
        let content = Content::plain(file.digest, file.size);
        set(&format!("env:{}", file.path), &file.path, PinKind::EnvFile, content);
    }
    for skill in &inputs.skills {
        let digest = skill.skill.tree.digest().into();
        let content = Content { digest, size: skill.skill.size(), layers: Vec::new() };
        set(&format!("skill:{}", skill.name), &skill.source, PinKind::Skill, content);
    }
    for (name, kind, tool) in
        [("kernel", PinKind::Kernel, &inputs.kernel), ("init", PinKind::Init, &inputs.init)]
    {
        // Of a platform that cannot be built there is neither.
        if !tool.bytes.is_empty() {
            let content = Content::plain(tool.sha256, tool.bytes.len() as u64);
            set(name, source(name), kind, content);
        }
    }
    lock
}

/// What an entry says of a content.
struct Content {
    digest: AnyDigest,
    size: u64,
    layers: Vec<AnyDigest>,
}

impl Content {
    fn plain(digest: Digest, size: u64) -> Self {
        Self { digest: digest.into(), size, layers: Vec::new() }
    }

    fn image(image: &Image) -> Self {
        let layers = image.layers.iter();
        Self {
            digest: image.manifest.into(),
            size: image.size(),
            layers: layers.map(|layer| layer.digest.into()).collect(),
        }
    }
}

/// Returns the digest that an entry pins an image to.
pub(super) fn image_digest(entry: &LockEntry, span: Span) -> Result<Digest, BuildError> {
    match entry.digest {
        AnyDigest::Sha256(digest) => Ok(digest),
        AnyDigest::Blake3(_) => Err(mismatch(entry, span, "it names the image by a blake3")),
    }
}

/// Checks that an entry says of an image what is so.
pub(super) fn check_image(entry: &LockEntry, image: &Image, span: Span) -> Result<(), BuildError> {
    let content = Content::image(image);
    if entry.digest != content.digest {
        return Err(mismatch(entry, span, "the Boxfile names another digest"));
    }
    if entry.size != content.size {
        return Err(mismatch(entry, span, "the image has another size"));
    }
    if entry.layers != content.layers {
        return Err(mismatch(entry, span, "the image has other layers"));
    }
    Ok(())
}

fn mismatch(entry: &LockEntry, span: Span, what: &'static str) -> BuildError {
    BuildError::PinMismatch { span, name: entry.name.clone(), what }
}
