//! What an answer holds, read no faster than it is wanted, and no slower than it may be.

use std::io::{self, Read};
use std::time::Instant;

use download::http::timed_out;
use reqwest::blocking::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING};

use super::session::Session;
use super::{RegistryError, session::Answer};

/// How much is read at once.
pub(super) const PIECE: usize = 64 << 10;

/// The body of an answer.
pub(super) struct Body<'s> {
    session: &'s Session<'s>,
    what: String,
    host: String,
    response: Response,
    received: u64,
    /// When the rate was measured last, and how much had come until then.
    measured: (Instant, u64),
}

impl<'s> Body<'s> {
    /// Begins to read what an answer holds. `host` sends it.
    pub(super) fn new(
        session: &'s Session<'s>,
        what: String,
        host: String,
        response: Response,
    ) -> Self {
        Self { session, what, host, response, received: 0, measured: (Instant::now(), 0) }
    }

    /// Begins to read what a registry has answered, if it comes as it was asked for.
    pub(super) fn of(
        session: &'s Session<'s>,
        what: &str,
        answer: Answer,
    ) -> Result<Self, RegistryError> {
        let encoding = answer.response.headers().get(CONTENT_ENCODING);
        if encoding.is_some_and(|it| it != "identity") {
            return Err(RegistryError::Encoded { what: what.to_owned() });
        }
        Ok(Self::new(session, what.to_owned(), answer.url.host(), answer.response))
    }

    /// Returns how many bytes will come, where the server tells.
    pub(super) fn announced(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// Whether the answer says where it ends: otherwise a broken connection looks like the end.
    pub(super) fn has_an_end(&self) -> bool {
        let headers = self.response.headers();
        headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING)
    }

    /// Reads a piece; nothing at the end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, RegistryError> {
        let length = match self.response.read(buffer) {
            Ok(0) => return Ok(0),
            Ok(length) => length,
            Err(source) => return Err(self.broken(source)),
        };
        self.received += length as u64;
        self.check_rate().map(|()| length)
    }

    /// Reads all of it, if that is no more than a limit.
    pub(super) fn read_whole(mut self, limit: u64) -> Result<Vec<u8>, RegistryError> {
        let too_large = |what: String| RegistryError::TooLarge { what, limit };
        if self.announced().is_some_and(|size| size > limit) {
            return Err(too_large(self.what));
        }
        let mut whole = Vec::new();
        let mut buffer = vec![0; PIECE];
        loop {
            match self.read(&mut buffer)? {
                0 => return Ok(whole),
                length => whole.extend_from_slice(&buffer[..length]),
            }
            if self.received > limit {
                return Err(too_large(self.what));
            }
        }
    }

    /// Refuses a server that keeps its connection alive and sends next to nothing.
    fn check_rate(&mut self) -> Result<(), RegistryError> {
        let (patience, rate) = (self.session.options.patience, self.session.options.least_rate);
        let (since, before) = self.measured;
        if since.elapsed() < patience {
            return Ok(());
        }
        let came = u128::from(self.received - before) * 1000;
        if came < u128::from(rate) * patience.as_millis() {
            return Err(RegistryError::TooSlow { host: self.host.clone(), rate });
        }
        self.measured = (Instant::now(), self.received);
        Ok(())
    }

    /// Returns the error of an answer that ended too early.
    pub(super) fn broken(&self, source: io::Error) -> RegistryError {
        if timed_out(&source) {
            return self.session.client.stalled(self.host.clone()).into();
        }
        RegistryError::Truncated { what: self.what.clone(), received: self.received, source }
    }
}
