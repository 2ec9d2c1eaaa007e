//! The results of the two phases.

use std::fmt;

use box_cache::Store;
use box_image::ComponentName;
use box_image::secrets::looks_secret;
use box_tree::listing::{ImageOrigin, Origins};
use boxfile_spec::{Diagnostic, Lock, Span};
use oci_image::Image;

use super::inputs::{self, ComponentImage, Inputs};
use super::request::Request;
use super::step::{Observer, Step};
use crate::compose::merged::Unused;
use crate::{Report, Sealed};

/// The result of a build.
#[derive(Debug)]
pub struct Build {
    /// The box.
    pub sealed: Sealed,
    /// Whether it was in the store already, so that nothing was decoded or baked.
    pub cached: bool,
    /// The policies of the Boxfile that decided nothing.
    pub unused: Vec<Unused>,
}

/// Everything that a build reads, resolved to digests: the first phase's result.
pub struct Resolved<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) store: &'a Store,
    pub(super) inputs: Inputs,
    pub(super) observer: Option<Observer<'a>>,
}

impl fmt::Debug for Resolved<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolved").field("lock", &self.lock()).finish_non_exhaustive()
    }
}

impl<'a> Resolved<'a> {
    /// Sets what is called at each step of the second phase.
    #[must_use]
    pub fn observed(self, observer: Observer<'a>) -> Self {
        Self { observer: Some(observer), ..self }
    }
}

impl Resolved<'_> {
    /// Tells the observer of a step.
    pub(super) fn report(&self, step: Step) {
        if let Some(observer) = self.observer {
            observer(step);
        }
    }

    /// Returns what the lock is to pin: the entries for this Boxfile and platform.
    pub fn lock(&self) -> Lock {
        inputs::lock(&self.inputs, self.request)
    }

    /// Returns the warnings about images whose own variables look like secrets: they become a part
    /// of the box. No value is in a warning.
    pub fn image_warnings(&self) -> Vec<Diagnostic> {
        let boxfile = self.request.boxfile;
        let of_image = |(component, image): &(ComponentName, Image)| {
            let declared = boxfile.component(*component).map(|it| &it.env);
            let layers = [declared, self.inputs.env.get(component)];
            let replaced = move |name: &str| {
                layers.into_iter().flatten().any(|variables| variables.contains_key(name))
            };
            let env = image.process.env().clone().unwrap_or_default();
            let secrets = env.into_iter().filter_map(move |entry| {
                let (name, value) = entry.split_once('=')?;
                (!replaced(name) && looks_secret(name, value)).then(|| name.to_owned())
            });
            let (component, span) = (*component, boxfile.root_span(*component));
            secrets.map(move |name| image_secret(component, &name, span)).collect::<Vec<_>>()
        };
        self.inputs.images.iter().flat_map(of_image).collect()
    }

    /// Returns the warnings about files of the checkout.
    pub fn warnings(&self) -> &[Report] {
        &self.inputs.warnings
    }

    /// Returns the names that the origins in the tree refer to by number.
    pub(super) fn origins(&self) -> Origins {
        let image = |(component, image): &ComponentImage| ImageOrigin {
            component: *component,
            layers: image.layers.iter().map(|layer| layer.diff_id).collect(),
        };
        Origins {
            images: self.inputs.images.iter().map(image).collect(),
            program: self.inputs.binary.as_ref().map(|binary| binary.sha256),
            skills: self.inputs.baked_skills().map(|skill| skill.name.clone()).collect(),
        }
    }
}

fn image_secret(component: ComponentName, name: &str, span: Span) -> Diagnostic {
    let of = component.name();
    let message = format!("the image of `{of}` sets `{name}`, which looks like a secret");
    let whose = if component == ComponentName::Agent { "" } else { " for the business component" };
    Diagnostic::warning(message, span, "its value is in the image, and will be in the box")
        .with_help(format!(
            "build the image without it, and declare the secret `{name}`{whose} in the Boxfile; if \
             it is no secret, `plain-env` with `{name}` says so"
        ))
}
