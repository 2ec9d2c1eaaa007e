//! Downloads files over HTTP into the store, verified, and sends files.
//!
//! ```text
//! http      connections, TLS, URLs
//! error     DownloadError
//! retry     retries with exponential backoff, the time that a download may take, cancellation
//! request   a request and the redirects that answer it
//! body      the body of a response, read with bounds on size and time
//! size      the size that a file must have
//! download  a source of responses → verified bytes in the store, or another target
//! fetch     URL and sha256 → a verified blob in the store
//! ```
//!
//! [`Download`] is the one engine: it resumes where a connection broke, retries, bounds size and
//! time, and verifies. [`fetch`] uses it for files with a URL; a client for registries brings its
//! own [`Source`], which adds authentication.
#![forbid(unsafe_code)]

mod body;
mod download;
mod error;
pub mod fetch;
pub mod http;
mod request;
mod retry;
mod size;

pub use body::Body;
pub use download::{Download, Draft, DraftError, Source, Target};
pub use error::DownloadError;
pub use http::{NetworkOptions, Progress};
pub use request::{FinalResponse, Payload, Request, RequestUrl};
pub use retry::{Attempts, Cancel, Deadline, Policy, Retry, RetryObserver, Retryable, retry};
pub use size::Size;
