//! The checkout that a Boxfile belongs to: the directory beyond which none of its paths lead.

use std::io;
use std::path::{Path, PathBuf};

use box_image::text::shell_path;
use boxfile_spec::Reach;
use host_fs::FileError;
use host_fs::checkout::real;
use host_fs::kernel;
use host_fs::known::Known;
use host_fs::upward::{REPOSITORIES, Repository, Search};

/// A checkout, and why it is this directory.
#[derive(Debug, Clone)]
pub struct Checkout {
    /// The directory, without links; `None` if even the Boxfile's own directory is not a checkout.
    pub directory: Option<PathBuf>,
    /// The homes of the users, which are no part of it where they lie below it.
    pub homes: Known,
    /// The directory, as seen from the Boxfile.
    pub(super) reach: Reach,
}

/// Why a directory cannot be the checkout of a Boxfile.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    /// The directory cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The Boxfile is elsewhere.
    #[error("the Boxfile is in {}, which is not in {}", .0.display(), .1.display())]
    Elsewhere(PathBuf, PathBuf),
}

impl Checkout {
    /// Returns the directory of a Boxfile.
    pub fn own(base: &Path, homes: Known) -> Self {
        Self { directory: Some(base.to_owned()), homes, reach: Reach::default() }
    }

    /// Takes a directory that somebody has named for the checkout of a Boxfile, whose directory is `base`. It may be a home;
    /// one that lies below it is no part of it.
    ///
    /// # Errors
    /// [`CheckoutError`].
    pub fn named(directory: &Path, base: &Path, homes: Known) -> Result<Self, CheckoutError> {
        let failed = |error| FileError::of("open the checkout", directory)(error);
        let (real, start) = (real(directory).map_err(failed)?, real(base).map_err(failed)?);
        if !real.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()).into());
        }
        if let Some(place) = kernel::around(&real).map_err(failed)? {
            return Err(failed(kernel::no_files(&place)).into());
        }
        let Some(up) = depth(&start, &real) else {
            return Err(CheckoutError::Elsewhere(start, real));
        };
        let why = format!("the checkout is {}, as `--checkout` says", real.display());
        Ok(Self { directory: Some(real), homes, reach: Reach { up: Some(up), why } })
    }

    /// Finds the checkout of a Boxfile, whose directory is `base`: the repository that it lies in, else that directory.
    /// Neither is `/`, somebody's home or the kernel's. A Boxfile whose directory cannot be found has none.
    ///
    /// # Errors
    /// The operating system's.
    pub fn find(base: &Path, search: &Search) -> Result<Self, CheckoutError> {
        let failed = |error| FileError::of("find the checkout of", base)(error);
        let Ok(start) = real(base) else {
            return Ok(Self::none(String::new()));
        };
        let kernels = kernel::around(&start).map_err(failed)?.is_some();
        if kernels || search.is_home(&start) {
            let what = match &*start {
                _ if kernels => "is the kernel's",
                root if root == Path::new("/") => "is no checkout",
                _ => "is a home directory",
            };
            let named = format!(", or name the checkout: `--checkout {}`", shell_path(&start));
            let why = format!(
                "the Boxfile lies in {}, which {what}: put it into a directory with what it names{}",
                start.display(),
                if kernels { "" } else { &named }
            );
            return Ok(Self::none(why));
        }
        let found = search.repository(&start);
        let why = why(&found);
        let directory = match found {
            Repository::At(directory, _) => directory,
            Repository::Unused(..) | Repository::None => start.clone(),
        };
        let up = depth(&start, &directory);
        let (directory, homes) = (Some(directory), search.homes.clone());
        Ok(Self { directory, homes, reach: Reach { up, why } })
    }

    /// Returns what a Boxfile has that may read nothing.
    fn none(why: String) -> Self {
        Self { directory: None, homes: Known::default(), reach: Reach { up: None, why } }
    }
}

/// Says why the checkout reaches no farther, and what to do about it.
fn why(found: &Repository) -> String {
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
                box_image::text::shell_path(directory.to_string())
            )
        }
        Repository::None => format!(
            "the checkout is the Boxfile's directory, as none above it has {}; `--checkout DIR` \
             names a larger one",
            REPOSITORIES.map(|it| format!("`{it}`")).join(", ")
        ),
    }
}

/// Returns how many directories a directory is below another one, both without links.
fn depth(inner: &Path, outer: &Path) -> Option<usize> {
    Some(inner.strip_prefix(outer).ok()?.iter().count())
}
