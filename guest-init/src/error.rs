//! Errors in the guest, with the step that failed.

use std::error::Error;
use std::fmt;

use box_contract::wire::Failed;

/// The greatest length of an error's reason, in bytes. A reason can quote content of a box, and has to fit a frame.
const MAX_REASON: usize = 4096;

/// A step of init's work that failed.
///
/// The launcher prints both parts to a user who cannot look into the guest. `step` describes the work, `source` is the
/// reason of the failure. For example, "mount the rootfs: ENOENT: No such file or directory".
#[derive(Debug)]
pub struct InitError {
    step: String,
    source: Box<dyn Error + Send + Sync>,
}

impl InitError {
    /// Makes an error from a step and the reason of its failure.
    pub fn new(step: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { step: step.into(), source: source.into() }
    }

    /// Returns the error in the form in which it is sent to another process.
    pub fn report(&self) -> Failed {
        Failed { step: self.step.clone(), message: self.reason() }
    }

    fn reason(&self) -> String {
        let mut reason = self.source.to_string();
        if reason.len() > MAX_REASON {
            reason.truncate(reason.floor_char_boundary(MAX_REASON));
            reason.push('…');
        }
        reason
    }
}

impl From<Failed> for InitError {
    fn from(Failed { step, message }: Failed) -> Self {
        Self::new(step, message)
    }
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.reason())
    }
}

impl Error for InitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.source.as_ref())
    }
}

/// Adds the failed step to the error of a result.
pub(crate) trait Step<T> {
    /// Turns an error into an [`InitError`] of this step.
    fn step(self, step: &str) -> Result<T, InitError>;

    /// Like [`Step::step`], for a step with a computed name.
    fn step_with(self, step: impl FnOnce() -> String) -> Result<T, InitError>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> Step<T> for Result<T, E> {
    fn step(self, step: &str) -> Result<T, InitError> {
        self.map_err(|source| InitError::new(step, source))
    }

    fn step_with(self, step: impl FnOnce() -> String) -> Result<T, InitError> {
        self.map_err(|source| InitError::new(step(), source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_any_length_can_be_told() {
        let error = InitError::new("parse the run plan", "\u{1}\u{e9}".repeat(1 << 20));
        assert!(error.to_string().len() < 2 * MAX_REASON && error.to_string().ends_with('…'));
        let mut frame = Vec::new();
        box_contract::wire::GuestMessage::Failed(error.report()).write(&mut frame).unwrap();
        assert!(!frame.is_empty());
    }

    #[test]
    fn an_error_names_its_step_and_its_reason() {
        let failed: Result<(), _> = Err(std::io::Error::from_raw_os_error(2));
        let error = failed.step("read the run plan").unwrap_err();
        let report = error.report();
        assert_eq!(report.step, "read the run plan");
        assert_eq!(error.to_string(), format!("read the run plan: {}", report.message));
        assert!(report.message.contains("No such file"));
        assert_eq!(InitError::from(report.clone()).report(), report);
    }
}
