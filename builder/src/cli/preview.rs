//! Reads a box's images like a build, up to the composed root, for `plan` and `check --images`.

use box_contract::Platform;
use boxbuild::compose::merged::Unused;
use boxbuild::project::LockFile;
use boxbuild::project::lock::Lock;
use boxbuild::{BuildError, Composition, Preview, Report, resolve};

use super::failure::{Failure, of_build};
use super::loaded::{Loaded, Tools};
use super::locking::Fixed;
use super::options::LockedOption;
use super::stages::Stages;

/// The preview of a build, with the lock and the warnings.
pub(crate) struct Previewed {
    pub(crate) preview: Preview,
    /// The lock that a build would write.
    pub(crate) lock: Lock,
    /// The warnings about the files that were read.
    pub(crate) warnings: Vec<Report>,
}

/// Previews a build for a platform. A `fixed` lock must match the Boxfile and the resolved inputs.
pub(crate) fn preview(
    loaded: &Loaded,
    tools: &Tools<'_>,
    platform: Platform,
    lock_file: &LockFile,
    fixed: Option<&Fixed<'_>>,
) -> Result<Previewed, Failure> {
    let locked = LockedOption { locked: fixed.is_some() };
    let failed = |error: BuildError| locked.blame_pin(of_build(&error, &loaded.sources));
    fixed.map_or(Ok(()), |fixed| fixed.check_declared(loaded, platform))?;
    let old = lock_file.lock.as_ref();
    let request = tools.request(loaded, platform, old, &[])?;
    request.check_platform().map_err(failed)?;
    let stages = Stages::new(tools.as_json);
    stages.begin("reading images and files");
    let resolved = resolve(&request, &tools.store).map_err(failed)?;
    let observer = stages.observer();
    let resolved = resolved.observed(&observer);
    let lock = loaded.declarations().updated(old, &resolved.lock(), loaded.target(platform));
    fixed.map_or(Ok(()), |fixed| fixed.check_resolved(&lock))?;
    let preview = resolved.preview().map_err(failed)?;
    stages.end();
    let mut of_boxfile = resolved.image_warnings();
    of_boxfile.extend(resolved.layer_warnings());
    if let Composition::Merged(report) = &preview.composition {
        let unused = Unused::of(&report.policies);
        of_boxfile.extend(unused.iter().filter_map(|unused| unused.warning(loaded.boxfile())));
    }
    let mut warnings = resolved.warnings().to_vec();
    warnings.extend(Report::new(&loaded.sources, &of_boxfile));
    Ok(Previewed { preview, lock, warnings })
}
