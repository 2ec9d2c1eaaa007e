//! Variables of images that look like secrets: the images are made, so that is a warning.

use box_image::ComponentName;
use box_image::secrets::looks_secret;
use boxfile_spec::{Boxfile, Diagnostic, Span};

use super::Inputs;

impl Inputs {
    /// Returns the warnings about variables that an image itself sets, unless the Boxfile or one of its
    /// files sets them. No value is in a warning.
    pub(in crate::pipeline) fn image_secrets(&self, boxfile: &Boxfile) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        for (component, image) in &self.images {
            let declared = boxfile.component(*component).map(|it| &it.env);
            let layers = [declared, self.env.get(component)];
            let replaced =
                |name: &str| layers.into_iter().flatten().any(|layer| layer.contains_key(name));
            let env = image.process.env().iter().flatten();
            for (name, value) in env.filter_map(|entry| entry.split_once('=')) {
                if !replaced(name) && looks_secret(name, value) {
                    warnings.push(warning(*component, name, boxfile.root_span(*component)));
                }
            }
        }
        warnings
    }
}

fn warning(component: ComponentName, name: &str, span: Span) -> Diagnostic {
    let of = component.name();
    let message = format!("the image of `{of}` sets `{name}`, which looks like a secret");
    let whose = if component == ComponentName::Agent { "" } else { " for the business component" };
    Diagnostic::warning(message, span, "its value is in the image, and will be in the box")
        .with_help(format!(
            "build the image without it, and declare the secret `{name}`{whose} in the Boxfile; if \
             it is no secret, `plain-env` with `{name}` says so"
        ))
}
