//! Shares and scratch disks: what they must not hide.

use box_image::ComponentName;
use boxfile_spec::{Boxfile, Scope};

use super::split::at;
use super::{ComposeError, FlatImage};

/// Checks that nothing is mounted over what an image has.
///
/// # Errors
/// [`ComposeError::Hidden`] where an image has files below a mount, or something other than a
/// directory at one.
pub(super) fn check(flat: &FlatImage, boxfile: &Boxfile) -> Result<(), ComposeError> {
    let shares = boxfile.shares.iter().map(|it| ("share", &it.name, &it.guest, it.component));
    let disks = boxfile.scratch.iter().map(|it| ("scratch", &it.name, &it.guest, it.component));
    for (kind, name, guest, scope) in shares.chain(disks) {
        if !sees(scope, flat.component) {
            continue;
        }
        if let Some(found) = in_the_way(flat, &guest.value) {
            let (component, path) = (flat.component.name(), guest.value.clone());
            return Err(ComposeError::Hidden {
                component,
                path,
                found,
                mount: format!("{kind} `{name}`"),
                span: guest.span,
            });
        }
    }
    Ok(())
}

/// Whether a component sees what has this scope.
const fn sees(scope: Scope, component: ComponentName) -> bool {
    match scope {
        Scope::Agent => matches!(component, ComponentName::Agent),
        Scope::Business => matches!(component, ComponentName::Business),
        Scope::Both => true,
    }
}

/// Says what an image has at a path, if a mount there would hide it.
fn in_the_way(flat: &FlatImage, path: &str) -> Option<String> {
    let Some(names) = at(&flat.tree, path)?.names() else {
        return Some("something other than a directory".to_owned());
    };
    let first = names.keys().next()?;
    let more =
        if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
    Some(format!("files ({}{more})", String::from_utf8_lossy(first).escape_debug()))
}
