//! The error of the functions that measure a box.

use box_contract::ErrorCode;

/// The result of the functions that measure a box.
pub type Result<T> = std::result::Result<T, MeasureError>;

/// A box could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum MeasureError {
    /// The virtual host could not be created or started, or it ended without a result.
    #[error(transparent)]
    Host(#[from] virtual_host::HostError),
    /// The box shares the network of its host.
    #[error(
        "a box that shares its host's network cannot be measured on the virtual host, which has none"
    )]
    Network,
    /// `boxlaunch` refused the box, or the start failed. `message` is boxlaunch's message.
    #[error("the box does not start on the virtual host: {message}")]
    Refused {
        message: String,
        /// boxlaunch's help. Its options are the options of `boxlaunch run`.
        help: Option<String>,
        /// Whether `help` names options.
        names_options: bool,
        /// boxlaunch's error code.
        code: Option<ErrorCode>,
    },
    /// A program failed in the virtual host.
    #[error("{command} failed on the virtual host with status {status}:\n{stderr}")]
    Failed {
        command: String,
        status: i32,
        /// The end of the program's standard error.
        stderr: String,
    },
    /// A program's output is not the expected JSON.
    #[error("{command} printed no measurement: {reason}")]
    Malformed { command: String, reason: String },
}
