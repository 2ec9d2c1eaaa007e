//! The byte streams between a box and its host: terminals, input and output, consoles, logs, and the control channel.

pub mod attached;
pub mod console;
pub mod control;
mod error;
pub mod input;
pub(crate) mod log;
pub mod output;
pub mod tty;

pub use error::StreamError;
