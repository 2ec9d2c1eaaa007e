//! The error of every module of this crate.

use box_contract::ErrorCode;

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, MeasureError>;

/// A box could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum MeasureError {
    /// The virtual host could not be made or started, or stopped without a result.
    #[error(transparent)]
    Host(#[from] virtual_host::HostError),
    /// The box shares the network of its host.
    #[error(
        "a box that shares its host's network cannot be measured on the virtual host, which has none"
    )]
    Network,
    /// `boxlaunch` refused the box or its start failed, with these words.
    #[error("the box does not start on the virtual host: {message}")]
    Refused {
        message: String,
        /// The help that boxlaunch gave; the options in it are those of `boxlaunch run`.
        help: Option<String>,
        /// Whether that help names options.
        names_options: bool,
        /// The code that boxlaunch gave.
        code: Option<ErrorCode>,
    },
    /// A program failed in the virtual host.
    #[error("{command} failed on the virtual host with status {status}:\n{stderr}")]
    Failed {
        command: String,
        status: i32,
        /// The end of its standard error.
        stderr: String,
    },
    /// A program printed something else than it should.
    #[error("{command} printed no measurement: {reason}")]
    Malformed { command: String, reason: String },
}
