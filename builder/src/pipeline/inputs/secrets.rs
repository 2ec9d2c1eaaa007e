//! Warns about variables of images that look like secrets. Such a variable is no error, because the user may not be
//! able to change the image.

use box_contract::ComponentName;
use boxfile_spec::Boxfile;
use diagnostics::{Diagnostic, Span};
use safe_text::secrets::{looks_secret, mask_words};

use super::Inputs;
use crate::compose::{ImageConfig, image_words};

/// The label of the image's span.
const IN_BOX: &str = "its value is in the image, and will be in the box";

impl Inputs<'_> {
    /// Returns the warnings about images. An image's variable, from its config or a label, is checked unless the
    /// Boxfile or an environment file overrides it. An image's command line is checked unless the Boxfile replaces it.
    /// No warning contains a value.
    pub(in crate::pipeline) fn image_secrets(&self, boxfile: &Boxfile) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        for (component, image) in &self.images {
            let declared = boxfile.component(*component);
            let files = self.env.get(component);
            let replaced = |name: &str| {
                declared.is_some_and(|it| it.decides(name))
                    || files.is_some_and(|it| it.contains_key(name))
            };
            let config = ImageConfig { component: *component, process: &image.process };
            let span = boxfile.root_span(*component);
            // If a variable is malformed, none is checked: the build fails anyway.
            for (name, value) in config.env().into_iter().flatten() {
                if !replaced(&name) && looks_secret(&name, &value) {
                    warnings.push(warning(*component, &name, span));
                }
            }
            let mut words = declared.map(|it| image_words(it, config)).unwrap_or_default();
            if !mask_words(&mut words).is_empty() {
                let message = format!(
                    "the command line of the image of `{}` has what looks like a secret in it",
                    component.name()
                );
                let help = "build the image without it, and declare a `secret` in the Boxfile";
                warnings.push(Diagnostic::warning(message, span, IN_BOX).with_help(help));
            }
        }
        warnings
    }
}

fn warning(component: ComponentName, name: &str, span: Span) -> Diagnostic {
    let of = component.name();
    let message = format!("the image of `{of}` sets `{name}`, which looks like a secret");
    let whose = if component == ComponentName::Agent { "" } else { " for the business component" };
    Diagnostic::warning(message, span, IN_BOX).with_help(format!(
        "build the image without it, and declare the secret `{name}`{whose} in the Boxfile; if \
             it is no secret, `plain-env` with `{name}` says so"
    ))
}
