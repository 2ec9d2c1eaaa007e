//! SLSA provenance.

use std::collections::BTreeMap;

use box_digest::AnyDigest;
use serde::Serialize;

/// The build type of boxes: a URI that names the meaning of the external parameters. docs/trust.md describes them.
pub const BUILD_TYPE: &str = "https://boxbuild.invalid/build/v1";

/// How a box was built: [SLSA provenance v1](https://slsa.dev/spec/v1.1/provenance). It has no times, so that the same build has the
/// same provenance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// The path of the Boxfile in its checkout, such as `agents/Boxfile`.
    pub boxfile: String,
    /// The profile that the user selected.
    pub profile: Option<String>,
    /// Everything that the build has read: the Boxfile, its lock, images, programs, skills and files.
    pub inputs: Vec<Input>,
    /// The URI of the system that ran the build. It implies everything about the system that its users have to trust.
    pub builder: String,
    /// The version of boxbuild.
    pub version: String,
}

/// An input of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The input's URI or path, such as `docker://docker.io/library/debian:13`.
    pub uri: String,
    /// The digest of its content.
    pub digest: AnyDigest,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Predicate<'p> {
    build_definition: Definition<'p>,
    run_details: Run<'p>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Definition<'p> {
    build_type: &'p str,
    external_parameters: Parameters<'p>,
    resolved_dependencies: Vec<Dependency<'p>>,
}

#[derive(Serialize)]
struct Parameters<'p> {
    boxfile: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<&'p str>,
}

#[derive(Serialize)]
struct Dependency<'p> {
    uri: &'p str,
    digest: BTreeMap<&'p str, String>,
}

#[derive(Serialize)]
struct Run<'p> {
    builder: Builder<'p>,
}

#[derive(Serialize)]
struct Builder<'p> {
    id: &'p str,
    version: BTreeMap<&'p str, &'p str>,
}

impl Provenance {
    /// Returns the predicate of the statement.
    pub(crate) fn predicate<'p>(&'p self) -> Predicate<'p> {
        let dependency = |input: &'p Input| {
            let (name, hex) = match input.digest {
                AnyDigest::Sha256(digest) => ("sha256", digest.hex()),
                AnyDigest::Blake3(digest) => ("blake3", digest.hex()),
            };
            Dependency { uri: &input.uri, digest: BTreeMap::from([(name, hex)]) }
        };
        Predicate {
            build_definition: Definition {
                build_type: BUILD_TYPE,
                external_parameters: Parameters {
                    boxfile: &self.boxfile,
                    profile: self.profile.as_deref(),
                },
                resolved_dependencies: self.inputs.iter().map(dependency).collect(),
            },
            run_details: Run {
                builder: Builder {
                    id: &self.builder,
                    version: BTreeMap::from([("boxbuild", self.version.as_str())]),
                },
            },
        }
    }
}
