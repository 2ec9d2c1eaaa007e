//! Finding what the command line does not name: the store, the user's directories.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Once;

use box_cache::Store;
use box_contract::ErrorCode;
use box_find::Stores;
use host_fs::own;

use super::failure::Failure;
use super::terminal;

/// Refuses an output in the directory of a box, or of any other OCI image layout, which would hold
/// something foreign then.
pub(crate) fn check_output(output: &Path) -> Result<(), Failure> {
    let Some(layout) = box_layout::layout_above(output) else { return Ok(()) };
    let (output, layout) = (output.display(), layout.display());
    let message = format!("{output} is in {layout}, an OCI image layout, which holds nothing else");
    Err(Failure::new((ErrorCode::OutputExists, "name another place with --output"), message))
}

/// Returns the directory of the store.
pub(crate) fn store(named: Option<&Path>) -> Result<PathBuf, Failure> {
    own::store(named, |name| env::var_os(name)).ok_or_else(|| {
        let help = "name one with --store, or set HOME";
        Failure::new((ErrorCode::StoreInvalid, help), "no directory for the store")
    })
}

/// Opens the store, and says so if that has to wait for another process.
pub(crate) fn open_store(directory: &Path) -> Result<Store, Failure> {
    let store = directory.display();
    let text = format!("waiting for another process that uses the store {store}");
    let base = Stores { own: None, base: base_store() }.base()?;
    Ok(Store::open_waiting(directory, move || terminal::note(&text))?.with_base(base))
}

/// Returns the directory of the store of the machine, if there is one.
fn base_store() -> Option<PathBuf> {
    let base = own::base_store(|name| env::var_os(name))?;
    static TOLD: Once = Once::new();
    if !base.join("version").exists() {
        let base = base.display();
        TOLD.call_once(|| {
            terminal::note(&format!("warning: {} is {base}, where no store is", own::STORE_RO));
        });
    }
    Some(base)
}

/// Returns the stores in which boxes are looked for. Without a place for a store, a directory that is whole can be read all the same.
pub(crate) fn stores(named: Option<&Path>) -> Stores {
    Stores { own: store(named).ok(), base: base_store() }
}

/// Returns the directory of the virtual host's kernels.
pub(crate) fn host_kernels() -> Result<PathBuf, Failure> {
    let cache = virtual_host::kernel::cache(|name| env::var_os(name));
    let help = "set HOME or XDG_CACHE_HOME";
    cache
        .ok_or_else(|| Failure::new((ErrorCode::Usage, help), "no directory for the user's caches"))
}

/// Returns a box's name made of the current directory's.
pub(crate) fn directory_name() -> String {
    let directory = env::current_dir().unwrap_or_default();
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    diagnostics::names::intended_name(&name).unwrap_or_else(|| "my-agent".to_owned())
}
