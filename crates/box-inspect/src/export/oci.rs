//! The form `oci`: a component's root as an [OCI
//! image](https://github.com/opencontainers/image-spec/blob/v1.1.0/spec.md) of one layer.
//!
//! The layer is the archive of the form `tar`, uncompressed, because compressed bytes have no
//! canonical form. The config has the component's program, environment, directory and user, but
//! neither an author nor a time.

use std::io::{BufWriter, Write};
use std::path::Path;

use box_contract::Platform;
use box_contract::manifest::{BLOBS, INDEX_FILE, LAYOUT_FILE, LAYOUT_VERSION, blob_name};
use box_contract::{ComponentName, ComponentPlan, DEFAULT_TAG};
use box_digest::Digest;
use box_tree::path::lossy;
use box_tree::{Meta, Tree, entries};
use host_fs::FileError;
use host_fs::publish::{new_directories, new_file};
use oci_spec::OciSpecError;
use oci_spec::image::{
    ANNOTATION_REF_NAME, Arch, Config, Descriptor, ImageConfiguration, ImageIndex, ImageManifest,
    ImageManifestBuilder, MediaType, OciLayoutBuilder, Os, RootFs, SCHEMA_VERSION,
};

use super::member::{Flag, Member};
use super::{Export, ExportError, Written, place, tar};
use crate::opened::OpenBox;

/// Returns the component to export: `named`, or the only component of the box.
///
/// # Errors
/// [`ExportError::WhichComponent`] if the box has two components and none is named.
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
    /// The config and the manifest, as JSON.
    documents: [Vec<u8>; 2],
}

impl<'a> OciImage<'a> {
    /// Makes the image of a component. All its data are read once to compute the layer's digest.
    ///
    /// # Errors
    /// [`ExportError`], for a whole box [`ExportError::WhichComponent`].
    pub fn of(export: &'a Export) -> Result<Self, ExportError> {
        let plan = export.plan.as_ref().ok_or(ExportError::WhichComponent)?;
        check_names(&export.tree)?;
        let layer = export.tar(&mut std::io::sink())?;
        let config = config(plan, layer.digest).to_string()?;
        let manifest = manifest(Written::of(config.as_bytes()), layer)?.to_string()?;
        Ok(Self { export, layer, documents: [config, manifest].map(String::into_bytes) })
    }

    /// Returns digest and size of the manifest, which identify the image.
    pub fn manifest(&self) -> Written {
        Written::of(&self.documents[1])
    }

    /// Writes the image layout into a new directory.
    ///
    /// # Errors
    /// [`ExportError`]. Nothing is left behind.
    pub fn write_directory(&self, to: &Path) -> Result<(), ExportError> {
        let draft = place::directory(to, 0o777)?;
        let failed = || FileError::of("write", to);
        let blobs = new_directories(&draft, BLOBS).map_err(failed())?;
        let create = |name: &str| match name.rsplit_once('/') {
            Some((_, blob)) => new_file(&blobs, blob, 0o666),
            None => new_file(&draft, name, 0o666),
        };
        for (name, bytes) in self.files()? {
            create(&name).and_then(|mut file| file.write_all(&bytes)).map_err(failed())?;
        }
        let file = create(&blob_name(&self.layer.digest)).map_err(failed())?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        self.write_layer(&mut out).map_err(|error| error.writing(failed()))?;
        out.flush().map_err(failed())?;
        Ok(draft.finish_new()?)
    }

    /// Writes the image layout as a tar archive.
    ///
    /// # Errors
    /// [`ExportError`]. `out` then has an incomplete archive.
    pub fn write_archive(&self, out: &mut dyn Write) -> Result<Written, ExportError> {
        Written::count(out, |out| {
            for directory in ["blobs", BLOBS] {
                put(&format!("{directory}/"), Flag::Directory, 0, out)?;
            }
            for (name, bytes) in self.files()? {
                put(&name, Flag::File, bytes.len() as u64, out)?;
                out.write_all(&bytes).map_err(ExportError::Write)?;
                tar::fill_up(bytes.len() as u64, out)?;
            }
            let name = blob_name(&self.layer.digest);
            put(&name, Flag::File, self.layer.size, out)?;
            self.write_layer(out)?;
            tar::fill_up(self.layer.size, out)?;
            tar::finish(out)
        })
    }

    fn write_layer(&self, out: &mut dyn Write) -> Result<(), ExportError> {
        let again = self.export.tar(out)?;
        if again == self.layer {
            return Ok(());
        }
        Err(ExportError::damaged("it changes while it is read"))
    }

    /// Returns the files of the layout except the layer, by their paths.
    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, ExportError> {
        let mut named = descriptor(MediaType::ImageManifest, self.manifest())?;
        let tag = (ANNOTATION_REF_NAME.to_owned(), DEFAULT_TAG.to_owned());
        named.set_annotations(Some([tag].into()));
        let mut index = ImageIndex::default();
        index.set_media_type(Some(MediaType::ImageIndex)).set_manifests(vec![named]);
        let blob = |bytes: &Vec<u8>| (blob_name(&Written::of(bytes).digest), bytes.clone());
        let layout = OciLayoutBuilder::default().image_layout_version(LAYOUT_VERSION).build()?;
        let documents = [
            (LAYOUT_FILE.to_owned(), layout.to_string()?.into_bytes()),
            (INDEX_FILE.to_owned(), index.to_string()?.into_bytes()),
        ];
        Ok(documents.into_iter().chain(self.documents.iter().map(blob)).collect())
    }
}

/// Refuses names that start with `.wh.`, which [mark a
/// removal](https://github.com/opencontainers/image-spec/blob/main/layer.md#whiteouts) in a layer.
fn check_names(tree: &Tree) -> Result<(), ExportError> {
    let marked = entries(tree).find(|(path, _)| path.windows(5).any(|part| part == b"/.wh."));
    marked.map_or(Ok(()), |(path, _)| {
        Err(ExportError::NoPlace {
            path: lossy(&path),
            what: "a name that begins with `.wh.`",
            form: "a layer of an OCI image",
        })
    })
}

/// Writes the header of a file of the layout.
fn put(name: &str, flag: Flag, size: u64, out: &mut dyn Write) -> Result<(), ExportError> {
    let mode = if flag == Flag::Directory { 0o755 } else { 0o644 };
    let (path, meta) = (name.as_bytes(), &Meta::root_owned(mode));
    tar::put(Member { path, flag, target: b"", size, device: (0, 0), meta }, out)
}

/// Returns the image's [config](https://github.com/opencontainers/image-spec/blob/main/config.md).
fn config(plan: &ComponentPlan, layer: Digest) -> ImageConfiguration {
    let mut process = Config::default();
    process
        .set_user(Some(format!("{}:{}", plan.user.uid, plan.user.gid)))
        .set_exposed_ports(plan.port.map(|port| vec![format!("{port}/tcp")]))
        .set_env(Some(plan.env.clone()))
        .set_entrypoint(Some(plan.argv.clone()).filter(|argv| !argv.is_empty()))
        .set_working_dir(Some(plan.workdir.clone()));
    let mut rootfs = RootFs::default();
    rootfs.set_diff_ids(vec![layer.to_string()]);
    let mut config = ImageConfiguration::default();
    // Name this platform, because boxes are built for one platform only.
    let built = Platform::BUILT;
    config.set_architecture(Arch::from(built.architecture())).set_os(Os::from(built.os()));
    config.set_config(Some(process)).set_rootfs(rootfs);
    config
}

/// Returns the image's
/// [manifest](https://github.com/opencontainers/image-spec/blob/main/manifest.md).
fn manifest(config: Written, layer: Written) -> Result<ImageManifest, OciSpecError> {
    ImageManifestBuilder::default()
        .schema_version(SCHEMA_VERSION)
        .media_type(MediaType::ImageManifest)
        .config(descriptor(MediaType::ImageConfig, config)?)
        .layers([descriptor(MediaType::ImageLayer, layer)?])
        .build()
}

fn descriptor(media_type: MediaType, of: Written) -> Result<Descriptor, OciSpecError> {
    let digest = of.digest.to_string().parse::<oci_spec::image::Digest>()?;
    Ok(Descriptor::new(media_type, of.size, digest))
}
