//! The steps of a build, for progress displays.

use std::io::{self, Read};

/// A step of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Layers that the store does not have decoded are decoded.
    Decode {
        /// How many.
        layers: usize,
        /// Their bytes, as they are stored in their images.
        bytes: u64,
    },
    /// A part of these bytes was read.
    Read {
        /// The part's length.
        bytes: u64,
    },
    /// The root is composed of the images.
    Compose,
    /// The rootfs is written into the store.
    Write,
}

/// Is called at each step, from several threads; often with [`Step::Read`].
pub type Observer<'a> = &'a (dyn Fn(Step) + Sync);

/// A reader that reports what is read.
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
