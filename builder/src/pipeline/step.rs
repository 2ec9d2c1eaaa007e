//! The steps of a build, for progress displays.

use std::io::{self, Read};

/// A step of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The layers of which the store has no decoded form are decoded.
    Decode {
        /// The number of layers.
        layers: usize,
        /// The total size of the layers' blobs in bytes.
        bytes: u64,
    },
    /// A part of the bytes of [`Step::Decode`] was read.
    Read {
        /// The length of the part in bytes.
        bytes: u64,
    },
    /// The root is composed of the images.
    Compose,
    /// The rootfs is written into the store.
    Write,
}

/// A callback for each step. It is called by several threads, and often for [`Step::Read`].
pub type Observer<'a> = &'a (dyn Fn(Step) + Sync);

/// A reader that reports its progress.
pub(super) struct ReportingReader<'a, R> {
    pub(super) inner: R,
    pub(super) observer: Option<Observer<'a>>,
}

impl<R: Read> Read for ReportingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        if let Some(observer) = self.observer {
            observer(Step::Read { bytes: length as u64 });
        }
        Ok(length)
    }
}
