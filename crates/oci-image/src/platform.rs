//! Selects the manifests of an [index](https://github.com/opencontainers/image-spec/blob/v1.1.1/image-index.md) by platform.

use box_contract::Platform;
use oci_spec::image::{self, Arch, Descriptor, Os};

/// The platform that builders write for a manifest that is not an image.
const UNKNOWN: &str = "unknown";
/// The annotation with which builders declare the type of such a manifest.
const REFERENCE_TYPE: &str = "vnd.docker.reference.type";

/// Returns whether an entry of an index is an attestation about an image, such as its provenance or SBOM.
pub(super) fn is_attestation(named: &Descriptor) -> bool {
    let unknown = |it: &image::Platform| {
        *it.os() == Os::from(UNKNOWN) && *it.architecture() == Arch::from(UNKNOWN)
    };
    let annotations = named.annotations().as_ref();
    annotations.is_some_and(|it| it.contains_key(REFERENCE_TYPE))
        || named.platform().as_ref().is_some_and(unknown)
}

/// Returns whether an image for `named` runs on `platform`. A variant above the base line needs a CPU that the platform does not
/// guarantee.
pub(super) fn fits(named: &image::Platform, platform: Platform) -> bool {
    let base = match platform {
        Platform::LinuxAmd64 => "v1",
        Platform::LinuxArm64 => "v8",
    };
    let architecture = architecture(&named.architecture().to_string());
    named.os().to_string().eq_ignore_ascii_case(platform.os())
        && architecture == platform.architecture()
        && named.variant().as_deref().map(variant).is_none_or(|it| it.is_empty() || it == base)
}

/// Returns Go's name of an architecture, which images should use. Some use the name of `uname`, or upper case
/// ([`platforms.Normalize`](https://pkg.go.dev/github.com/containerd/platforms#Normalize) of containerd).
fn architecture(text: &str) -> String {
    match &*text.to_ascii_lowercase() {
        "x86_64" | "x86-64" => "amd64".to_owned(),
        "aarch64" => "arm64".to_owned(),
        other => other.to_owned(),
    }
}

/// Returns a variant with the `v` that some programs omit.
fn variant(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    if text.starts_with(|first: char| first.is_ascii_digit()) { format!("v{text}") } else { text }
}

/// Returns the sorted list of platforms for messages, without duplicates.
pub(super) fn listed<'a>(platforms: impl Iterator<Item = &'a image::Platform>) -> String {
    let mut texts: Vec<String> = platforms.map(shown).collect();
    texts.sort();
    texts.dedup();
    texts.join(", ")
}

fn shown(platform: &image::Platform) -> String {
    let (os, architecture) = (platform.os(), platform.architecture());
    match platform.variant().as_deref() {
        None | Some("") => format!("{os}/{architecture}"),
        Some(variant) => format!("{os}/{architecture}/{variant}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn platform(text: &str) -> image::Platform {
        let mut parts = text.split('/');
        let mut platform = image::Platform::default();
        platform.set_os(parts.next().unwrap().into());
        platform.set_architecture(parts.next().unwrap().into());
        platform.set_variant(parts.next().map(str::to_owned));
        platform
    }

    #[test]
    fn the_base_line_of_a_platform_fits() {
        for (text, amd64, arm64) in [
            ("linux/amd64", true, false),
            ("linux/amd64/", true, false),
            ("linux/amd64/v1", true, false),
            ("linux/amd64/v3", false, false),
            ("linux/arm64", false, true),
            ("linux/arm64/v8", false, true),
            ("linux/arm64/v9", false, false),
            ("linux/arm64/8", false, true),
            ("linux/x86_64", true, false),
            ("Linux/AMD64/V1", true, false),
            ("linux/aarch64/v8", false, true),
            ("linux/aarch64/v9", false, false),
            ("linux/arm/v7", false, false),
            ("windows/amd64", false, false),
            ("unknown/unknown", false, false),
        ] {
            let found =
                [Platform::LinuxAmd64, Platform::LinuxArm64].map(|it| fits(&platform(text), it));
            assert_eq!(found, [amd64, arm64], "{text}");
        }
    }

    #[test]
    fn each_platform_is_listed_once() {
        let list = ["linux/s390x", "linux/arm/v7", "linux/s390x/"].map(platform);
        assert_eq!(listed(list.iter()), "linux/arm/v7, linux/s390x");
    }
}
