//! The files of the checkout that the Boxfile puts into components.

use box_contract::ComponentName;
use boxfile_spec::BakedFile;
use checkout::files::MemoryBudget;
use diagnostics::MAX_KEPT;

use crate::BuildError;
use crate::compose::Baked;
use crate::pipeline::request::Request;

/// Reads the files of all components, sorted by component and then by their paths in the component's root.
pub(super) fn read(
    request: &Request<'_>,
    together: &mut MemoryBudget,
) -> Result<Vec<Baked>, BuildError> {
    let read = |(component, file)| read_one(request, component, file, together);
    declared(request).map(read).collect()
}

/// Reads the files of all components and returns the errors, up to a limit.
pub(super) fn check(request: &Request<'_>, together: &mut MemoryBudget) -> Vec<BuildError> {
    let read = |(component, file)| read_one(request, component, file, together).err();
    declared(request).filter_map(read).take(MAX_KEPT).collect()
}

fn declared<'a>(
    request: &Request<'a>,
) -> impl Iterator<Item = (ComponentName, &'a BakedFile)> + use<'a> {
    let boxfile = request.boxfile;
    ComponentName::ALL.into_iter().flat_map(|component| {
        let files = boxfile.component(component).map(|it| it.files.as_slice());
        files.unwrap_or_default().iter().map(move |file| (component, file))
    })
}

fn read_one(
    request: &Request<'_>,
    component: ComponentName,
    declared: &BakedFile,
    together: &mut MemoryBudget,
) -> Result<Baked, BuildError> {
    let path = request.base.join(&declared.path.value);
    let failed = |error| BuildError::at(Some(declared.path.span), error);
    together.place(&path, &declared.to.value).map_err(failed)?;
    let source = checkout::files::any(&request.checkout, &path, together).map_err(failed)?;
    Ok(Baked { component, declared: declared.clone(), source })
}
