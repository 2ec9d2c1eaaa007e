//! Which manifest of an index is for a platform (image-index.md).

use boxfile_spec::Platform;

use super::documents::{self, Descriptor};

/// What builders write as the platform of what is no image.
const UNKNOWN: &str = "unknown";
/// The annotation by which they say what it is instead.
const REFERENCE_TYPE: &str = "vnd.docker.reference.type";

impl Descriptor {
    /// Tells whether this is a statement about an image (provenance, an SBOM) that stands beside it.
    pub(super) fn is_attestation(&self) -> bool {
        let unknown = |it: &documents::Platform| it.os == UNKNOWN && it.architecture == UNKNOWN;
        self.annotations.contains_key(REFERENCE_TYPE) || self.platform.as_ref().is_some_and(unknown)
    }
}

/// Tells whether what is for `named` runs on a platform. A variant above the base line needs a CPU that
/// a platform does not promise.
pub(super) fn fits(named: &documents::Platform, platform: Platform) -> bool {
    let base = match platform {
        Platform::LinuxAmd64 => "v1",
        Platform::LinuxArm64 => "v8",
    };
    named.os == platform.os()
        && named.architecture == platform.architecture()
        && named.variant.as_deref().is_none_or(|it| it.is_empty() || it == base)
}

/// Lists platforms for people, each once.
pub(super) fn listed<'a>(platforms: impl Iterator<Item = &'a documents::Platform>) -> String {
    let mut texts: Vec<String> = platforms.map(shown).collect();
    texts.sort();
    texts.dedup();
    texts.join(", ")
}

fn shown(platform: &documents::Platform) -> String {
    let documents::Platform { os, architecture, variant } = platform;
    match variant.as_deref() {
        None | Some("") => format!("{os}/{architecture}"),
        Some(variant) => format!("{os}/{architecture}/{variant}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn platform(text: &str) -> documents::Platform {
        let mut parts = text.split('/').map(str::to_owned);
        let (os, architecture) = (parts.next().unwrap(), parts.next().unwrap());
        documents::Platform { os, architecture, variant: parts.next() }
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
