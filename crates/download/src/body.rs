//! The body of a response, read within limits on its size and time.

use std::io::{self, Read};
use std::time::Instant;

use reqwest::blocking::Response;
use reqwest::header::{CONTENT_LENGTH, TRANSFER_ENCODING};

use crate::error::DownloadError;
use crate::http::{HttpError, timed_out};
use crate::request::FinalResponse;
use crate::retry::{Deadline, Policy};

/// The size of a read, in bytes.
pub(crate) const PIECE: usize = 64 << 10;

/// The body of a response.
#[derive(Debug)]
pub struct Body<'a> {
    what: &'a str,
    host: String,
    response: Response,
    policy: &'a Policy,
    deadline: Deadline,
    received: u64,
    /// The time at which the rate was last measured, and the bytes received until then.
    measured: (Instant, u64),
}

impl<'a> Body<'a> {
    /// Begins to read the body of `answer`. `what` describes the file in messages.
    pub fn new(
        what: &'a str,
        answer: FinalResponse,
        policy: &'a Policy,
        deadline: Deadline,
    ) -> Self {
        let measured = (Instant::now(), 0);
        let (host, response) = (answer.at.url.host(), answer.response);
        Self { what, host, response, policy, deadline, received: 0, measured }
    }

    /// Returns the length that the server declares. `None` if it declares none.
    pub(crate) fn announced(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// Returns whether the response declares where its body ends. If not, a broken connection looks like the end.
    pub(crate) fn has_an_end(&self) -> bool {
        let headers = self.response.headers();
        headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING)
    }

    /// Reads some bytes, and returns their number: 0 at the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, DownloadError> {
        let length = self.response.read(buffer).map_err(|source| self.broken(source))?;
        self.received += length as u64;
        if length > 0 {
            self.check_time()?;
        }
        Ok(length)
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// [`DownloadError`], also if there are more than `limit` bytes.
    pub fn read_whole(mut self, limit: u64) -> Result<Vec<u8>, DownloadError> {
        let too_large = DownloadError::TooLarge { what: self.what.to_owned(), limit };
        if self.announced().is_some_and(|size| size > limit) {
            return Err(too_large);
        }
        let mut whole = Vec::new();
        let mut buffer = vec![0; PIECE];
        loop {
            match self.read(&mut buffer)? {
                0 => return Ok(whole),
                length => whole.extend_from_slice(&buffer[..length]),
            }
            if self.received > limit {
                return Err(too_large);
            }
        }
    }

    /// Returns an error if the deadline has passed, or the server sends less than the minimum rate.
    fn check_time(&mut self) -> Result<(), DownloadError> {
        let Policy { patience, least_rate: rate, .. } = *self.policy;
        if self.deadline.is_over() {
            let allowed = self.deadline.allowed.as_secs();
            let how = format!("the download of {} is not complete after {allowed} s", self.what);
            return Err(DownloadError::Interrupted { how, transient: false, source: None });
        }
        let (since, before) = self.measured;
        if since.elapsed() < patience {
            return Ok(());
        }
        let received = u128::from(self.received - before) * 1000;
        if received < u128::from(rate) * patience.as_millis() {
            let how = format!("{} sends less than {rate} bytes per second", self.host);
            return Err(DownloadError::Interrupted { how, transient: true, source: None });
        }
        self.measured = (Instant::now(), self.received);
        Ok(())
    }

    /// Returns the error of a body that ended too early.
    pub(crate) fn broken(&self, source: io::Error) -> DownloadError {
        if timed_out(&source) {
            return HttpError::stalled(&self.host, self.policy.patience).into();
        }
        let how = format!("the download of {} broke off after {} bytes", self.what, self.received);
        DownloadError::Interrupted { how, transient: true, source: Some(source) }
    }
}
