//! The checkout of a Boxfile: the directory that its paths must not leave.

use std::io;
use std::path::{Path, PathBuf};

use boxfile_spec::Reach;
use host_fs::FileError;
use host_fs::checkout::{Bounds, Root};
use host_fs::kernel;
use host_fs::known::Known;
use host_fs::upward::{REPOSITORIES, Repository, Search};
use safe_text::shell_path;

/// A checkout, and why it is this directory.
#[derive(Debug, Clone)]
pub struct Checkout {
    /// The homes of the users, which are excluded if they are below the checkout.
    pub homes: Known,
    /// The number of levels by which the Boxfile's paths may lead up, and why the number is not larger.
    pub(super) reach: Reach,
    /// The checkout's directory, opened when it was found. `None` if not even the Boxfile's directory may be a
    /// checkout.
    root: Option<Root>,
    /// The directory of the Boxfile, opened when it was found; `None` if there is none.
    base: Option<Root>,
}

/// Why a directory cannot be the checkout of a Boxfile.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    /// The directory cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The Boxfile is not below the directory that the user named.
    #[error("the Boxfile is in {}, which is not in {}", .0.display(), .1.display())]
    Elsewhere(PathBuf, PathBuf),
}

impl Checkout {
    /// Returns a checkout that is the directory of the Boxfile.
    pub fn own(base: &Path, homes: Known) -> Self {
        let base = Root::of(base).ok();
        Self { homes, reach: Reach::default(), root: base.clone(), base }
    }

    /// Returns the checkout that the user named, for a Boxfile in the directory `base`. A named checkout may be a home
    /// directory. Homes below it are excluded.
    ///
    /// # Errors
    /// [`CheckoutError`].
    pub fn named(directory: &Path, base: &Path, homes: Known) -> Result<Self, CheckoutError> {
        let failed = |error| FileError::of("open the checkout", directory)(error);
        let named = Root::of(directory).map_err(without_number).map_err(failed)?;
        let start = Root::of(base).map_err(failed)?;
        if let Some(place) = kernel::around(named.path()).map_err(failed)? {
            return Err(failed(kernel::no_files(&place)).into());
        }
        let Some(root) = same_around(&start, &named).map_err(failed)? else {
            let [start, named] = [start, named].map(|it| it.path().to_owned());
            return Err(CheckoutError::Elsewhere(start, named));
        };
        let reason = format!("the checkout is {}, as `--checkout` says", root.path().display());
        Ok(Self::around(start, root, homes, reason))
    }

    /// Finds the checkout of a Boxfile in the directory `base`: the repository that contains it, or else `base`.
    /// Neither may be `/`, a home, or a directory of the kernel. A Boxfile whose directory cannot be opened has no
    /// checkout.
    ///
    /// # Errors
    /// The errors of the operating system.
    pub fn find(base: &Path, search: &Search) -> Result<Self, CheckoutError> {
        let failed = |error| FileError::of("find the checkout of", base)(error);
        let Ok(base) = Root::of(base) else {
            return Ok(Self::none(None, String::new()));
        };
        let start = base.path();
        let kernels = kernel::around(start).map_err(failed)?.is_some();
        if kernels || search.is_home(start) {
            let what = match start {
                _ if kernels => "is the kernel's",
                root if root == Path::new("/") => "is no checkout",
                _ => "is a home directory",
            };
            let named = format!(", or name the checkout: `--checkout {}`", shell_path(start));
            let reason = format!(
                "the Boxfile lies in {}, which {what}: put it into a directory with what it names{}",
                start.display(),
                if kernels { "" } else { &named }
            );
            return Ok(Self::none(Some(base), reason));
        }
        let found = search.repository(start);
        let reason = reason_of(&found);
        let root = match &found {
            Repository::At(directory, _) => base.around(directory),
            Repository::Unused(..) | Repository::None => None,
        };
        let root = root.unwrap_or_else(|| base.clone());
        Ok(Self::around(base, root, search.homes.clone(), reason))
    }

    /// Returns a checkout that contains the directory of the Boxfile.
    fn around(base: Root, root: Root, homes: Known, reason: String) -> Self {
        let reach = Reach { up: depth(base.path(), root.path()), reason };
        Self { homes, reach, root: Some(root), base: Some(base) }
    }

    /// Returns the checkout of a Boxfile that may read no files.
    fn none(base: Option<Root>, reason: String) -> Self {
        let reach = Reach { up: None, reason };
        Self { homes: Known::default(), reach, root: None, base }
    }

    /// Returns the path of the checkout's directory, without links. `None` if not even the Boxfile's directory may be a
    /// checkout.
    pub fn directory(&self) -> Option<&Path> {
        self.root.as_ref().map(Root::path)
    }

    /// Returns the bounds of the whole checkout.
    pub(super) fn bounds(&self) -> Bounds {
        self.within(self.root.as_ref().or(self.base.as_ref()))
    }

    /// Returns the bounds of the Boxfile's directory.
    pub(super) fn beside(&self) -> Bounds {
        self.within(self.base.as_ref())
    }

    /// Returns the Boxfile's directory, opened when it was found.
    pub(super) const fn base(&self) -> Option<&Root> {
        self.base.as_ref()
    }

    fn within(&self, root: Option<&Root>) -> Bounds {
        let bounds = root
            .zip(self.base.as_ref())
            .map(|(root, base)| Bounds::within(root.clone(), base.path(), self.homes.clone()));
        bounds.unwrap_or_else(Bounds::none)
    }
}

/// Removes the operating system's error number from the error of a path that is not a directory.
fn without_number(error: io::Error) -> io::Error {
    match error.kind() {
        kind @ io::ErrorKind::NotADirectory => kind.into(),
        _ => error,
    }
}

/// Returns the directory above `start` that has the path of `named`. `None` if there is none, or if it is another
/// directory than `named`.
fn same_around(start: &Root, named: &Root) -> io::Result<Option<Root>> {
    let Some(root) = start.around(named.path()) else { return Ok(None) };
    Ok((root.identity()? == named.identity()?).then_some(root))
}

/// Describes why the checkout is not larger, and how to name a larger one.
fn reason_of(found: &Repository) -> String {
    match found {
        Repository::At(directory, name) => format!(
            "the checkout is {}, which has `{name}`; `--checkout DIR` names a larger one",
            directory.display()
        ),
        Repository::Unused(directory, name, reason) => {
            let directory = directory.display();
            format!(
                "the checkout is the Boxfile's directory: {directory} has `{name}`, but {reason}; \
                 if it is the checkout, add `--checkout {}`",
                safe_text::shell_path(directory.to_string())
            )
        }
        Repository::None => format!(
            "the checkout is the Boxfile's directory, as none above it has {}; `--checkout DIR` \
             names a larger one",
            REPOSITORIES.map(|it| format!("`{it}`")).join(", ")
        ),
    }
}

/// Returns the number of levels from `outer` down to `inner`, such as 2 for `/a` and `/a/b/c`. Both paths are without
/// links. `None` if `inner` is not below `outer`.
fn depth(inner: &Path, outer: &Path) -> Option<usize> {
    Some(inner.strip_prefix(outer).ok()?.iter().count())
}
