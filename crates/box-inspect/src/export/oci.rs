//! The form `oci`: a component's root as an [OCI
//! image](https://github.com/opencontainers/image-spec/blob/v1.1.0/spec.md) of one layer.
//!
//! The layer is the archive of the form `tar`, uncompressed, because compressed bytes have no
//! canonical form. The config has the component's program, environment, directory and user, but
//! neither an author nor a time.

use box_contract::Platform;
use box_contract::{ComponentName, ComponentPlan};
use box_digest::Digest;
use box_tree::path::lossy;
use box_tree::{Tree, entries};
use oci_spec::image::{Arch, Config, ImageConfiguration, Os, RootFs};

use super::image::{Layer, OciImage};
use super::{Export, ExportError};
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

impl<'a> OciImage<'a> {
    /// Makes the image of a component. All its data are read once to compute the layer's digest.
    ///
    /// # Errors
    /// [`ExportError`], for a whole box [`ExportError::WhichComponent`].
    pub fn of(export: &'a Export) -> Result<Self, ExportError> {
        let plan = export.plan.as_ref().ok_or(ExportError::WhichComponent)?;
        check_names(&export.tree)?;
        Self::new(vec![Layer::Tree(export)], None, |layers| {
            Ok(config(plan, layers).to_string()?.into_bytes())
        })
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

/// Returns the image's [config](https://github.com/opencontainers/image-spec/blob/main/config.md).
fn config(plan: &ComponentPlan, layers: &[Digest]) -> ImageConfiguration {
    let mut process = Config::default();
    process
        .set_user(Some(format!("{}:{}", plan.user.uid, plan.user.gid)))
        .set_exposed_ports(plan.port.map(|port| vec![format!("{port}/tcp")]))
        .set_env(Some(plan.env.clone()))
        .set_entrypoint(Some(plan.argv.clone()).filter(|argv| !argv.is_empty()))
        .set_working_dir(Some(plan.workdir.clone()));
    let mut rootfs = RootFs::default();
    rootfs.set_diff_ids(layers.iter().map(Digest::to_string).collect::<Vec<_>>());
    let mut config = ImageConfiguration::default();
    // Name this platform, because boxes are built for one platform only.
    let built = Platform::BUILT;
    config.set_architecture(Arch::from(built.architecture())).set_os(Os::from(built.os()));
    config.set_config(Some(process)).set_rootfs(rootfs);
    config
}
