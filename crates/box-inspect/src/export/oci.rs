//! The form `oci`: a component's root as an image of one layer (OCI image-spec v1.1).
//!
//! The layer is the archive of the form `tar`, uncompressed: compressed bytes have no canonical
//! form. The config says how the component runs: program, environment, directory and user. It says
//! neither who made the image nor when.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use box_digest::Digest;
use box_image::manifest::{OCI_INDEX_TYPE, OCI_MANIFEST_TYPE};
use box_image::{ComponentName, ComponentPlan, Descriptor, Index, OciLayout};
use box_tree::{Meta, Tree, entries};
use boxfile_spec::Platform;
use serde::Serialize;

use super::error::{io_at, lossy};
use super::member::{Flag, Member};
use super::{Export, ExportError, Written, place, tar};
use crate::opened::OpenBox;

const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";
/// The annotation that holds an image's tag, and the tag.
const REF_NAME: (&str, &str) = ("org.opencontainers.image.ref.name", "latest");
const BLOBS: &str = "blobs/sha256";

/// Returns the component that an image is made of: the one that is named, or the only one.
///
/// # Errors
/// [`ExportError::WhichComponent`] where there are two and none is named.
pub fn component_of(
    opened: &OpenBox,
    named: Option<ComponentName>,
) -> Result<ComponentName, ExportError> {
    match named {
        Some(named) => Ok(named),
        None if opened.config.plan.business.is_none() => Ok(ComponentName::Agent),
        None => Err(ExportError::WhichComponent),
    }
}

/// A component's image, ready to be written.
#[derive(Debug)]
pub struct OciImage<'a> {
    export: &'a Export,
    layer: Written,
    /// Config and manifest.
    documents: [Vec<u8>; 2],
}

impl<'a> OciImage<'a> {
    /// Makes the image of a component; all its data are read once for its digest.
    ///
    /// # Errors
    /// [`ExportError`]; of a whole box, [`ExportError::WhichComponent`].
    pub fn of(export: &'a Export) -> Result<Self, ExportError> {
        let plan = export.plan.as_ref().ok_or(ExportError::WhichComponent)?;
        check_names(&export.tree)?;
        let layer = export.tar(&mut std::io::sink())?;
        let config = serde_json::to_vec(&ImageConfig::new(plan, layer.digest))?;
        let manifest = ImageManifest {
            schema_version: 2,
            media_type: OCI_MANIFEST_TYPE,
            config: descriptor(CONFIG_TYPE, Written::of(&config)),
            layers: [descriptor(LAYER_TYPE, layer)],
        };
        Ok(Self { export, layer, documents: [config, serde_json::to_vec(&manifest)?] })
    }

    /// Returns digest and size of the manifest: the image's identity.
    pub fn manifest(&self) -> Written {
        Written::of(&self.documents[1])
    }

    /// Writes the image layout into a directory, which must not be there.
    ///
    /// # Errors
    /// [`ExportError`]; nothing is left behind then.
    pub fn write_directory(&self, to: &Path) -> Result<(), ExportError> {
        let draft = place::directory(to, 0o777)?;
        let failed = || io_at("write", to);
        fs::create_dir_all(draft.path().join(BLOBS)).map_err(failed())?;
        for (name, bytes) in self.files()? {
            fs::write(draft.path().join(name), bytes).map_err(failed())?;
        }
        let layer = draft.path().join(BLOBS).join(self.layer.digest.hex());
        let file = File::create_new(layer).map_err(failed())?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        self.write_layer(&mut out).map_err(|error| error.writing(to))?;
        out.flush().map_err(failed())?;
        Ok(draft.finish_new()?)
    }

    /// Writes the image layout as a tar archive.
    ///
    /// # Errors
    /// [`ExportError`]; what was written then is no archive.
    pub fn write_archive(&self, out: &mut dyn Write) -> Result<Written, ExportError> {
        Written::count(out, |out| {
            for directory in ["blobs/", "blobs/sha256/"] {
                put(directory, Flag::Directory, 0, out)?;
            }
            for (name, bytes) in self.files()? {
                put(&name, Flag::File, bytes.len() as u64, out)?;
                out.write_all(&bytes).map_err(ExportError::Write)?;
                tar::fill_up(bytes.len() as u64, out)?;
            }
            let name = format!("{BLOBS}/{}", self.layer.digest.hex());
            put(&name, Flag::File, self.layer.size, out)?;
            self.write_layer(out)?;
            tar::fill_up(self.layer.size, out)?;
            tar::finish(out)
        })
    }

    fn write_layer(&self, out: &mut dyn Write) -> Result<(), ExportError> {
        let again = self.export.tar(out)?;
        if again == self.layer { Ok(()) } else { Err(ExportError::DamagedRootfs) }
    }

    /// Returns the files of the layout but the layer, by their paths in it.
    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, ExportError> {
        let mut named = descriptor(OCI_MANIFEST_TYPE, self.manifest());
        named.annotations.insert(REF_NAME.0.to_owned(), REF_NAME.1.to_owned());
        let (media_type, manifests) = (OCI_INDEX_TYPE.to_owned(), vec![named]);
        let index = Index { schema_version: 2, media_type, manifests };
        let blob = |bytes: &Vec<u8>| {
            (format!("{BLOBS}/{}", Written::of(bytes).digest.hex()), bytes.clone())
        };
        let documents = [
            ("oci-layout".to_owned(), serde_json::to_vec(&OciLayout::default())?),
            ("index.json".to_owned(), serde_json::to_vec(&index)?),
        ];
        Ok(documents.into_iter().chain(self.documents.iter().map(blob)).collect())
    }
}

/// Refuses names that mean a removal in a layer.
fn check_names(tree: &Tree) -> Result<(), ExportError> {
    let marked = entries(tree).find(|(path, _)| path.windows(5).any(|part| part == b"/.wh."));
    marked.map_or(Ok(()), |(path, _)| {
        Err(ExportError::NoPlace {
            path: lossy(&path),
            what: "a name that begins with `.wh.`",
            form: "a layer of an OCI image",
            advice: "export the component with `--format tar`",
        })
    })
}

fn descriptor(media_type: &str, of: Written) -> Descriptor {
    Descriptor::new(media_type, of.digest, of.size)
}

/// Writes what stands before a file of the layout.
fn put(name: &str, flag: Flag, size: u64, out: &mut dyn Write) -> Result<(), ExportError> {
    let mode = if flag == Flag::Directory { 0o755 } else { 0o644 };
    let (path, meta) = (name.as_bytes(), &Meta::root_owned(mode));
    tar::put(Member { path, flag, target: b"", size, device: (0, 0), meta }, out)
}

/// manifest.md.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ImageManifest {
    schema_version: u32,
    media_type: &'static str,
    config: Descriptor,
    layers: [Descriptor; 1],
}

/// config.md.
#[derive(Serialize)]
struct ImageConfig<'a> {
    architecture: &'static str,
    os: &'static str,
    config: Process<'a>,
    rootfs: RootFs,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Process<'a> {
    user: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    exposed_ports: BTreeMap<String, Empty>,
    env: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    entrypoint: &'a [String],
    working_dir: &'a str,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct RootFs {
    r#type: &'static str,
    diff_ids: [Digest; 1],
}

impl<'a> ImageConfig<'a> {
    fn new(plan: &'a ComponentPlan, layer: Digest) -> Self {
        let port = plan.port.iter().map(|port| (format!("{port}/tcp"), Empty {}));
        Self {
            // No box is built for another platform.
            architecture: Platform::LinuxAmd64.architecture(),
            os: "linux",
            config: Process {
                user: format!("{}:{}", plan.user.uid, plan.user.gid),
                exposed_ports: port.collect(),
                env: &plan.env,
                entrypoint: &plan.argv,
                working_dir: &plan.workdir,
            },
            rootfs: RootFs { r#type: "layers", diff_ids: [layer] },
        }
    }
}
