//! The key of the box that some inputs make.

use box_cache::{ActionKey, KeyHasher};
use box_image::manifest::FORMAT_EPOCH;
use boxfile_spec::Boxfile;

use super::{Inputs, Request};

impl Inputs {
    /// Returns the key of the box that these inputs make: what the Boxfile says, in its canonical form,
    /// and the content of all that it names. Under which name it found them makes no difference.
    pub(in crate::pipeline) fn key(&self, request: &Request<'_>) -> ActionKey {
        let mut key = KeyHasher::new("box", FORMAT_EPOCH).part(&request.builder);
        key = key.part(nameless(request.boxfile).canonical().as_bytes());
        key = key.part(request.platform.as_str().as_bytes());
        for (component, image) in &self.images {
            key = key.part(component.name().as_bytes()).part(image.manifest.as_bytes());
        }
        if let Some(binary) = &self.binary {
            key = key.part(b"binary").part(binary.sha256.as_bytes());
        }
        // The variables, not the files: whose they are counts, and no comment does.
        key = key.part(b"env").part(format!("{:?}", self.env).as_bytes());
        for skill in &self.skills {
            let mode = format!("{:?}", skill.mode);
            key = key.part(skill.name.as_bytes()).part(mode.as_bytes());
            key = key.part(skill.skill.tree.digest().as_bytes());
        }
        key.part(self.init.sha256.as_bytes()).part(self.kernel.sha256.as_bytes()).finish()
    }
}

/// Returns what a Boxfile says without the names of what it reads.
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
