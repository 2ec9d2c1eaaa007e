//! The key of the box that a set of inputs produces.

use box_cache::{ActionKey, KeyHasher};
use box_contract::manifest::FORMAT_EPOCH;
use boxfile_spec::Boxfile;
use oci_image::Image;

use super::Inputs;
use crate::pipeline::request::Request;

impl Inputs<'_> {
    /// Returns the key of the box that these inputs produce: a hash of the Boxfile in its canonical form and of the
    /// content of all inputs. The names of the inputs do not change the key, except for the paths of `file`
    /// declarations, which the box's listing has. The packaging and compression of images do not change it either.
    pub(in crate::pipeline) fn key(&self, request: &Request<'_>) -> ActionKey {
        let mut key = KeyHasher::new("box", FORMAT_EPOCH).part(request.builder.as_bytes());
        key = key.text(&nameless(request.boxfile).canonical()).text(request.platform.name());
        for (component, image) in &self.images {
            key = add_image(key.text(component.name()), image);
        }
        if let Some(binary) = &self.binary {
            key = key.text("binary").part(binary.sha256.as_bytes());
        }
        // The variables are hashed, not the files, because a comment in a file must not change the key.
        for (component, variables) in &self.env {
            key = key.text("env").text(component.name()).map(variables);
        }
        for skill in &self.skills {
            key = key.text("skill").text(&skill.name).text(skill.mode.name());
            key = key.part(skill.skill.files.tree.digest().as_bytes());
        }
        // The canonical form of the Boxfile already has the paths, destinations and owners of the files.
        for file in &self.baked {
            key = key.text("file").part(file.source.files.tree.digest().as_bytes());
        }
        key.part(self.init.sha256.as_bytes()).part(self.kernel.sha256.as_bytes()).finish()
    }
}

/// Adds the parts of an image that a box uses: the uncompressed layers and the configuration of the process. The
/// bytes of the config are not added, because tools serialize the same config differently.
fn add_image(key: KeyHasher, image: &Image<'_>) -> KeyHasher {
    let process = &image.process;
    let layers: Vec<String> = image.layers.iter().map(|layer| layer.diff_id.hex()).collect();
    let ports = process.exposed_ports().clone().unwrap_or_default();
    let labels = process.labels().iter().flatten().map(|(key, value)| (key.clone(), value.clone()));
    let argv = [process.env(), process.entrypoint(), process.cmd()];
    let lists =
        [layers, ports].into_iter().chain(argv.map(|list| list.clone().unwrap_or_default()));
    lists
        .fold(key, |key, list| key.list(list.iter().map(String::as_str)))
        .text(process.user().as_deref().unwrap_or_default())
        .text(process.working_dir().as_deref().unwrap_or_default())
        .text(process.stop_signal().as_deref().unwrap_or_default())
        .map(&labels.collect())
}

/// Returns the Boxfile without its platforms and without the names of its inputs.
fn nameless(boxfile: &Boxfile) -> Boxfile {
    let mut boxfile = boxfile.clone();
    boxfile.platforms.clear();
    (boxfile.skills, boxfile.skills_dir, boxfile.kernel) = (Vec::new(), None, None);
    boxfile.agent.binary = None;
    let business = boxfile.business.as_mut().map(|it| &mut it.component);
    for component in [Some(&mut boxfile.agent.component), business].into_iter().flatten() {
        (component.image, component.env_files) = (None, Vec::new());
    }
    boxfile
}
