#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod bundle;
mod config;
mod error;
mod pip;
mod zip;

use box_digest::Digest;

pub use bundle::{Kernel, KernelError, extract, extract_for, extract_named};
pub use config::{CONFIG_START, Config};
pub use error::PackageError;
pub use pip::{download, has_pip};

/// The paths at which distributions install libkrunfw.
pub const SYSTEM_LIBRARIES: [&str; 6] = [
    "/usr/local/lib64/libkrunfw.so.5",
    "/usr/local/lib/libkrunfw.so.5",
    "/usr/lib64/libkrunfw.so.5",
    "/usr/lib/x86_64-linux-gnu/libkrunfw.so.5",
    "/usr/lib/libkrunfw.so.5",
    "/opt/homebrew/lib/libkrunfw.so.5",
];

/// The maximum size of a file with a kernel, in bytes: an ELF kernel, a libkrunfw, or a package with one.
pub const MAX_FILE: u64 = box_contract::rules::MAX_KERNEL;

/// A package of the Python index, pinned to its wheel for Linux on x86-64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// The package's name in the index.
    pub name: &'static str,
    /// The package's version.
    pub version: &'static str,
    /// The sha256 of its wheel, in hexadecimal.
    pub sha256: &'static str,
}

/// A file of [`PACKAGE`], pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The name and version, as text for the user.
    pub name: &'static str,
    /// The path inside the wheel.
    pub path: &'static str,
    /// The sha256, in hexadecimal.
    pub sha256: &'static str,
}

/// The package that contains the guest kernel.
pub const PACKAGE: Package = Package {
    name: "microsandbox",
    version: "0.7.11",
    sha256: "65f1e4bbf8d721c9f7f557329fb6c8cf41f554c1c6942eac8b941198fa283fe0",
};

/// The shared library that contains the guest kernel as data.
pub const LIBKRUNFW: Member = Member {
    name: "libkrunfw 5.6.1",
    path: "microsandbox/_bundled/lib/libkrunfw.so.5.6.1",
    sha256: "3854efcd3fe625528fa00207d97586d9790db8c436bb6881a43986604336d18e",
};

impl Package {
    /// Returns the package and its version as a requirement for pip, such as `microsandbox==0.7.11`.
    pub fn requirement(&self) -> String {
        format!("{}=={}", self.name, self.version)
    }
}

impl Member {
    /// Extracts this file from a wheel, and checks its digest.
    ///
    /// # Errors
    /// [`PackageError::NotAWheel`], [`PackageError::NoMember`] or [`PackageError::WrongDigest`].
    pub fn read(&self, wheel: &[u8]) -> Result<Vec<u8>, PackageError> {
        let bytes = zip::read(wheel, self.path)?;
        check(self.name, &bytes, self.sha256)?;
        Ok(bytes)
    }

    /// Returns the file name without the directories.
    pub fn file_name(&self) -> &'static str {
        self.path.rsplit_once('/').map_or(self.path, |(_, name)| name)
    }

    /// Returns whether these bytes have the digest of this file.
    pub fn is(&self, bytes: &[u8]) -> bool {
        Digest::of(bytes).hex() == self.sha256
    }
}

/// Returns whether a file begins with the magic number of a wheel.
///
/// # Examples
/// ```
/// assert!(guest_kernel::is_wheel(b"PK\x03\x04\x14\0"));
/// assert!(!guest_kernel::is_wheel(b"\x7fELF"));
/// ```
pub fn is_wheel(file: &[u8]) -> bool {
    file.starts_with(zip::LOCAL_HEADER)
}

/// Checks that the sha256 of `bytes` is `expected`, in hexadecimal. `what` names the bytes in the error.
fn check(what: &str, bytes: &[u8], expected: &'static str) -> Result<(), PackageError> {
    let found = Digest::of(bytes).hex();
    if found == expected {
        return Ok(());
    }
    Err(PackageError::WrongDigest { what: what.to_owned(), expected, found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_digests() {
        for hex in [PACKAGE.sha256, LIBKRUNFW.sha256] {
            assert!(Digest::from_hex(hex).is_some(), "{hex}");
        }
    }

    #[test]
    fn a_member_with_other_bytes_is_refused() {
        let wheel = zip::tests::archive(&[(LIBKRUNFW.path, b"kernel", true)]);
        assert!(is_wheel(&wheel) && !is_wheel(b"\x7fELF"));
        let error = LIBKRUNFW.read(&wheel).unwrap_err().to_string();
        let expected = "libkrunfw 5.6.1 has sha256 ";
        assert!(error.starts_with(expected) && error.contains(LIBKRUNFW.sha256), "{error}");
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let abc = Member { sha256, ..LIBKRUNFW };
        let wheel = zip::tests::archive(&[(LIBKRUNFW.path, b"abc", true)]);
        assert_eq!(abc.read(&wheel).unwrap(), b"abc");
        assert!(abc.is(b"abc") && !abc.is(b"kernel"));
    }
}
