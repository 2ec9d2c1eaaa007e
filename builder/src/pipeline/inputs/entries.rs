//! The lock's entries for the inputs of a build.

use crate::project::lock::Lock;
use crate::project::lock::{LockEntry, PinKind};
use box_contract::manifest::FORMAT_EPOCH;
use box_digest::{AnyDigest, Digest};
use diagnostics::Span;
use oci_image::Image;

use super::{Inputs, SkillInput};
use crate::BuildError;
use crate::compose::Baked;
use crate::pipeline::request::Request;
use crate::project::pins::{self, ENV_FILE, FILE, SKILL};

/// Returns a lock that pins the inputs.
pub(in crate::pipeline) fn lock(inputs: &Inputs<'_>, request: &Request<'_>) -> Lock {
    let mut lock = Lock::new(FORMAT_EPOCH);
    let declared = pins::declared(request.boxfile);
    let mut set = |name: &str, source: &str, kind: PinKind, digest, size, layers| {
        lock.set(LockEntry {
            name: request.pins.name(name, source),
            kind,
            source: source.to_owned(),
            platform: kind.has_platform().then_some(request.platform),
            digest,
            size,
            layers,
        });
    };
    let source = |name: &str| declared.get(name).map(|(_, source)| source.as_str()).unwrap_or("");
    for (component, image) in &inputs.images {
        let name = component.name();
        let digest = image.manifest.into();
        set(name, source(name), PinKind::Image, digest, image.size(), layers(image));
    }
    if let (Some(binary), Some((kind, source))) = (&inputs.binary, declared.get("binary")) {
        set("binary", source, *kind, binary.sha256.into(), binary.content.size, Vec::new());
    }
    for file in &inputs.env_files {
        let name = format!("{ENV_FILE}{}", file.path);
        set(&name, &file.path, PinKind::EnvFile, file.digest.into(), file.size, Vec::new());
    }
    for Baked { declared, source, .. } in &inputs.baked {
        let path = &declared.path.value;
        let (name, digest) = (format!("{FILE}{path}"), source.files.tree.digest().into());
        set(&name, path, PinKind::File, digest, source.files.size(), Vec::new());
    }
    for SkillInput { name, source, skill, .. } in &inputs.skills {
        let (name, digest) = (format!("{SKILL}{name}"), skill.files.tree.digest().into());
        set(&name, source, PinKind::Skill, digest, skill.files.size(), Vec::new());
    }
    for (name, kind, tool) in
        [("kernel", PinKind::Kernel, &inputs.kernel), ("init", PinKind::Init, &inputs.init)]
    {
        // Kernel and init were not read if the platform cannot be built.
        if !tool.bytes.is_empty() {
            let size = tool.bytes.len() as u64;
            set(name, source(name), kind, tool.sha256.into(), size, Vec::new());
        }
    }
    lock
}

/// Returns the digests of an image's layers, as an entry lists them.
fn layers(image: &Image<'_>) -> Vec<Digest> {
    image.layers.iter().map(|layer| layer.digest).collect()
}

/// Returns the digest to which an entry pins an image.
pub(super) fn image_digest(entry: &LockEntry, span: Span) -> Result<Digest, BuildError> {
    match entry.digest {
        AnyDigest::Sha256(digest) => Ok(digest),
        AnyDigest::Blake3(_) => Err(mismatch(entry, span, "it names the image by a blake3")),
    }
}

/// Checks that an entry matches the image that it pins.
pub(super) fn check_image(
    entry: &LockEntry,
    image: &Image<'_>,
    span: Span,
) -> Result<(), BuildError> {
    let differs = if entry.digest != image.manifest.into() {
        "the Boxfile names another digest"
    } else if entry.size != image.size() {
        "the image has another size"
    } else if entry.layers != layers(image) {
        "the image has other layers"
    } else {
        return Ok(());
    };
    Err(mismatch(entry, span, differs))
}

fn mismatch(entry: &LockEntry, span: Span, what: &'static str) -> BuildError {
    BuildError::PinMismatch { span, name: entry.name.clone(), what }
}
