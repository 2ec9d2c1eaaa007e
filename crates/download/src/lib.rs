#![doc = include_str!("../README.md")]
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
