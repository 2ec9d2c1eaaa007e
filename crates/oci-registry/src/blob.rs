//! One blob, from a server to the store: through broken connections, and verified.

use std::io::{self, Write};

use box_cache::{BlobId, BlobWriter, Store};
use box_image::Digest;
use download::http::content_range;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_RANGE, HeaderMap};

use super::body::{Body, PIECE};
use super::guard::Guard;
use super::manifest::{check_digest, check_size};
use super::retry::Stop;
use super::session::Session;
use super::{Progress, RegistryError, refusal};

/// How much has to come for the tries to be counted anew.
const STEP: u64 = 1 << 20;

/// One blob that is fetched, through all its tries.
pub(super) struct Download<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) store: &'a Store,
    pub(super) digest: Digest,
    pub(super) size: u64,
    pub(super) stop: &'a Stop,
    /// What an earlier try left.
    partial: Option<Partial<'a>>,
}

/// The first bytes of a blob.
struct Partial<'a> {
    writer: BlobWriter<'a>,
    /// Whether the bytes came in several answers.
    resumed: bool,
}

impl<'a> Download<'a> {
    /// Prepares a download; nothing is asked yet.
    pub(super) const fn new(
        session: &'a Session<'a>,
        store: &'a Store,
        (digest, size): (Digest, u64),
        stop: &'a Stop,
    ) -> Self {
        Self { session, store, digest, size, stop, partial: None }
    }

    /// Fetches the blob into the store. A connection that breaks again and again is used again and
    /// again, as long as each gets farther than all before: that has an end.
    pub(super) fn run(mut self) -> Result<(), RegistryError> {
        let mut tries = self.session.tries();
        let mut farthest = 0;
        loop {
            let Err(error) = self.attempt() else { return Ok(()) };
            let received = self.received();
            if received >= farthest + STEP {
                farthest = received;
                tries.refill();
            }
            let Some(pause) = tries.pause(&error) else { return Err(error) };
            self.stop.sleep(pause);
            if self.stop.is_stopped() {
                return Err(self.stopped());
            }
        }
    }

    fn received(&self) -> u64 {
        self.partial.as_ref().map_or(0, |partial| partial.writer.size())
    }

    /// Asks once for the blob, or for what is missing of it.
    fn attempt(&mut self) -> Result<(), RegistryError> {
        let from = self.received();
        let ask = self.session.blob(&self.digest, from);
        let answer = self.session.send(&ask)?;
        let mut partial = match (answer.response.status(), self.partial.take()) {
            (StatusCode::OK, _) => Partial { writer: self.store.writer()?, resumed: false },
            (StatusCode::PARTIAL_CONTENT, Some(partial))
                if self.continues(answer.response.headers(), from) =>
            {
                Partial { resumed: true, ..partial }
            }
            (StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE, Some(_)) => {
                return self.attempt(); // For the whole blob now.
            }
            (_, partial) => {
                self.partial = partial;
                return Err(refusal::of(self.session, &ask.what, answer));
            }
        };
        let body = Body::of(self.session, &ask.what, answer)?;
        match self.copy(body, &ask.what, &mut partial) {
            Ok(()) => self.finish(partial, &ask.what),
            Err(error) => {
                self.partial = Some(partial).filter(|_| error.is_passing());
                Err(error)
            }
        }
    }

    /// Whether a part begins where the bytes that there are end, and is of a blob of this size.
    fn continues(&self, headers: &HeaderMap, from: u64) -> bool {
        let range = headers.get(CONTENT_RANGE).and_then(content_range);
        range.is_some_and(|(first, total)| first == from && total.is_none_or(|it| it == self.size))
    }

    /// Appends a body to what there is of the blob.
    fn copy(
        &self,
        mut body: Body<'_>,
        what: &str,
        partial: &mut Partial<'_>,
    ) -> Result<(), RegistryError> {
        if let Some(rest) = body.announced() {
            check_size(self.session, what, self.size, partial.writer.size().saturating_add(rest))?;
        }
        let mut buffer = vec![0; PIECE];
        loop {
            let length = body.read(&mut buffer)?;
            if length == 0 && partial.writer.size() < self.size && !body.has_an_end() {
                return Err(body.broken(io::ErrorKind::UnexpectedEof.into()));
            }
            if length == 0 {
                return Ok(());
            }
            if self.stop.is_stopped() {
                return Err(self.stopped());
            }
            let received = partial.writer.size() + length as u64;
            if received > self.size {
                check_size(self.session, what, self.size, received)?;
            }
            partial
                .writer
                .write_all(&buffer[..length])
                .map_err(|source| RegistryError::Write { what: what.to_owned(), source })?;
            // The last piece is told of when the blob is verified.
            if received < self.size {
                self.tell(received);
            }
        }
    }

    /// Gives the blob its name in the store, if it is the right one. Parts that do not belong
    /// together prove nothing about the blob: it is asked for once more as a whole.
    fn finish(&mut self, partial: Partial<'_>, what: &str) -> Result<(), RegistryError> {
        check_size(self.session, what, self.size, partial.writer.size())?;
        let found = partial.writer.id();
        if found != BlobId(*self.digest.as_bytes()) {
            if partial.resumed && self.session.guards.hold(Guard::Digest) {
                return self.attempt();
            }
            check_digest(self.session, what, self.digest, Digest::from_bytes(found.0))?;
        }
        partial.writer.commit()?;
        self.tell(self.size);
        Ok(())
    }

    fn tell(&self, received: u64) {
        if let Some(progress) = self.session.options.progress {
            progress(Progress { digest: self.digest, received, total: self.size });
        }
    }

    fn stopped(&self) -> RegistryError {
        RegistryError::Stopped { what: self.digest.to_string() }
    }
}
