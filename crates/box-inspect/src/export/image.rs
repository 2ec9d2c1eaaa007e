//! Writes an OCI image as an [image
//! layout](https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md), in a directory or in one archive.
//!
//! The layers are uncompressed archives, because compressed bytes have no canonical form: another version of a compressor
//! writes others. Clients of registries, such as docker, podman and skopeo, compress a layer when they push it. No layer is
//! held in memory: each is made twice, first for its digest and then for the output.

use std::io::{BufWriter, Write};
use std::path::Path;

use box_contract::manifest::{
    BLOBS, INDEX_FILE, LAYOUT_FILE, LAYOUT_VERSION, OCI_INDEX_TYPE, OCI_MANIFEST_TYPE, blob_name,
};
use box_contract::{DEFAULT_TAG, Descriptor as Named, Index};
use box_digest::Digest;
use box_tree::Meta;
use host_fs::FileError;
use host_fs::publish::{new_directories, new_file};
use oci_spec::OciSpecError;
use oci_spec::image::{
    ANNOTATION_REF_NAME, Descriptor, ImageManifest, ImageManifestBuilder, MediaType,
    OciLayoutBuilder, SCHEMA_VERSION,
};
use serde_json::json;

use super::container::Files;
use super::member::{Flag, Member};
use super::{Export, ExportError, Written, place, tar};

/// The annotation from which containerd takes an image's name.
const CONTAINERD_NAME: &str = "io.containerd.image.name";
/// The file of an archive that `docker load` reads if docker has no containerd image store
/// ([docker's form](https://github.com/moby/docker-image-spec/blob/v1.3.1/spec.md#combined-image-json--filesystem-changeset-format)).
const DOCKER_MANIFEST: &str = "manifest.json";

/// An image, ready to be written.
#[derive(Debug)]
pub struct OciImage<'a> {
    layers: Vec<(Layer<'a>, Written)>,
    config: Vec<u8>,
    manifest: Vec<u8>,
    /// The name that docker and containerd give to the image. Without one, they read no name from it.
    name: Option<String>,
}

/// The content of a layer.
#[derive(Debug)]
pub(super) enum Layer<'a> {
    /// The root of a component.
    Tree(&'a Export),
    /// Files of a container that runs a box.
    Files(Files<'a>),
}

impl Layer<'_> {
    fn write(&self, out: &mut dyn Write) -> Result<Written, ExportError> {
        match self {
            Self::Tree(export) => export.tar(out),
            Self::Files(files) => files.tar(out),
        }
    }
}

impl<'a> OciImage<'a> {
    /// Makes an image of layers. `config` returns the config for the digests of the layers.
    ///
    /// # Errors
    /// [`ExportError`].
    pub(super) fn new(
        layers: Vec<Layer<'a>>,
        name: Option<String>,
        config: impl FnOnce(&[Digest]) -> Result<Vec<u8>, ExportError>,
    ) -> Result<Self, ExportError> {
        let sized = |layer: Layer<'a>| {
            let written = layer.write(&mut std::io::sink())?;
            Ok::<_, ExportError>((layer, written))
        };
        let layers = layers.into_iter().map(sized).collect::<Result<Vec<_>, _>>()?;
        let digests: Vec<_> = layers.iter().map(|(_, it)| it.digest).collect();
        let config = config(&digests)?;
        let named = layers.iter().map(|(_, it)| *it);
        let manifest = manifest(Written::of(&config), named)?.to_string()?.into_bytes();
        Ok(Self { layers, config, manifest, name })
    }

    /// Returns digest and size of the manifest, which identify the image.
    pub fn manifest(&self) -> Written {
        Written::of(&self.manifest)
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
        for (layer, written) in &self.layers {
            let file = create(&blob_name(&written.digest)).map_err(failed())?;
            let mut out = BufWriter::with_capacity(1 << 20, file);
            write_again(layer, *written, &mut out).map_err(|error| error.writing(failed()))?;
            out.flush().map_err(failed())?;
        }
        Ok(draft.finish_new()?)
    }

    /// Writes the image layout as a tar archive.
    ///
    /// # Errors
    /// [`ExportError`]. `out` then has an incomplete archive.
    pub fn write_archive(&self, out: &mut dyn Write) -> Result<Written, ExportError> {
        Written::count(out, |out| {
            for directory in ["blobs", BLOBS] {
                put(&format!("{directory}/"), (Flag::Directory, 0o755), 0, out)?;
            }
            for (name, bytes) in self.files()? {
                put_file(&name, 0o644, &bytes, out)?;
            }
            for (layer, written) in &self.layers {
                put(&blob_name(&written.digest), (Flag::File, 0o644), written.size, out)?;
                write_again(layer, *written, out)?;
                tar::fill_up(written.size, out)?;
            }
            tar::finish(out)
        })
    }

    /// Returns the files of the layout except the layers, by their paths.
    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, ExportError> {
        let layout = OciLayoutBuilder::default().image_layout_version(LAYOUT_VERSION).build()?;
        let mut files = vec![
            (LAYOUT_FILE.to_owned(), layout.to_string()?.into_bytes()),
            (INDEX_FILE.to_owned(), serde_json::to_vec(&self.index()).map_err(OciSpecError::from)?),
        ];
        files.extend(self.docker_manifest().map(|it| (DOCKER_MANIFEST.to_owned(), it)));
        let documents = [&self.config, &self.manifest];
        files.extend(documents.map(|it| (blob_name(&Written::of(it).digest), it.clone())));
        Ok(files)
    }

    fn index(&self) -> Index {
        let Written { digest, size } = self.manifest();
        let mut named = Named::new(OCI_MANIFEST_TYPE, digest, size);
        let full = |name: &String| format!("docker.io/library/{name}:{DEFAULT_TAG}");
        let name = self.name.iter().map(|it| (CONTAINERD_NAME.to_owned(), full(it)));
        named.annotations = [(ANNOTATION_REF_NAME.to_owned(), DEFAULT_TAG.to_owned())].into();
        named.annotations.extend(name);
        let media_type = OCI_INDEX_TYPE.to_owned();
        Index { schema_version: SCHEMA_VERSION, media_type, manifests: vec![named] }
    }

    /// Returns [`DOCKER_MANIFEST`] for an image with a name.
    fn docker_manifest(&self) -> Option<Vec<u8>> {
        let name = self.name.as_ref()?;
        let layers: Vec<_> = self.layers.iter().map(|(_, it)| blob_name(&it.digest)).collect();
        let images = json!([{
            "Config": blob_name(&Written::of(&self.config).digest),
            "RepoTags": [format!("{name}:{DEFAULT_TAG}")],
            "Layers": layers,
        }]);
        Some(images.to_string().into_bytes())
    }
}

/// Writes a layer whose digest is known.
fn write_again(
    layer: &Layer<'_>,
    expected: Written,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    if layer.write(out)? == expected {
        return Ok(());
    }
    Err(ExportError::damaged("it changes while it is read"))
}

/// Writes the header of a file or directory that belongs to root and has no time.
pub(super) fn put(
    name: &str,
    (flag, mode): (Flag, u16),
    size: u64,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let (path, meta) = (name.as_bytes(), &Meta::root_owned(mode));
    tar::put(Member { path, flag, target: b"", size, device: (0, 0), meta }, out)
}

/// Writes a file that belongs to root and has no time.
pub(super) fn put_file(
    name: &str,
    mode: u16,
    bytes: &[u8],
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let size = bytes.len() as u64;
    put(name, (Flag::File, mode), size, out)?;
    out.write_all(bytes).map_err(ExportError::Write)?;
    tar::fill_up(size, out)
}

/// Returns the image's
/// [manifest](https://github.com/opencontainers/image-spec/blob/main/manifest.md).
fn manifest(
    config: Written,
    layers: impl Iterator<Item = Written>,
) -> Result<ImageManifest, OciSpecError> {
    let layers = layers.map(|it| descriptor(MediaType::ImageLayer, it));
    ImageManifestBuilder::default()
        .schema_version(SCHEMA_VERSION)
        .media_type(MediaType::ImageManifest)
        .config(descriptor(MediaType::ImageConfig, config)?)
        .layers(layers.collect::<Result<Vec<_>, _>>()?)
        .build()
}

fn descriptor(media_type: MediaType, of: Written) -> Result<Descriptor, OciSpecError> {
    let digest = of.digest.to_string().parse::<oci_spec::image::Digest>()?;
    Ok(Descriptor::new(media_type, of.size, digest))
}
