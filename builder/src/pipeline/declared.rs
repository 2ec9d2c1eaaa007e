//! Parts of a Boxfile by component.

use box_image::ComponentName;
use boxfile_spec::{Boxfile, Component, Span};

/// Returns what the Boxfile declares of a component.
pub(super) fn declared(boxfile: &Boxfile, component: ComponentName) -> Option<&Component> {
    match component {
        ComponentName::Agent => Some(&boxfile.agent.component),
        ComponentName::Business => boxfile.business.as_ref().map(|it| &it.component),
    }
}

/// Returns where the Boxfile names a component's image.
pub(super) fn image_span(boxfile: &Boxfile, component: ComponentName) -> Span {
    let image = declared(boxfile, component).and_then(|it| it.image.as_ref());
    image.map(|image| image.span).unwrap_or_default()
}
