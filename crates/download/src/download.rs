//! From responses to verified bytes: retries, ranges, sizes and digests.

use std::io::{self, Write};

use box_cache::{BlobWriter, Store, StoreError};
use box_digest::Digest;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, IF_RANGE, RANGE};

use crate::body::{Body, PIECE};
use crate::error::DownloadError;
use crate::http::{NetworkOptions, Progress};
use crate::request::FinalResponse;
use crate::retry::{Attempts, Cancel, Retryable, retry};
use crate::size::Size;

/// How much has to come for the attempts to be counted from the start again.
const STEP: u64 = 1 << 20;

/// A file on a server, and how it is asked for.
pub trait Source {
    /// Why it cannot be had.
    type Error: From<DownloadError> + Retryable;

    /// Returns the name of the file, for messages.
    fn what(&self) -> &str;

    /// Returns whether the server never gives another file under this name. If so, a download is
    /// resumed also where the server names no version of the file.
    fn is_immutable(&self) -> bool;

    /// Asks for the file with these headers besides the source's own.
    ///
    /// # Errors
    /// There is no response.
    fn get(&self, headers: HeaderMap) -> Result<FinalResponse, Self::Error>;

    /// Returns the error of a response that does not have the file.
    fn refusal(&self, response: FinalResponse) -> Self::Error;
}

/// Where the bytes of a download go.
pub trait Target {
    /// What holds the bytes until they are verified.
    type Draft<'a>: Draft
    where
        Self: 'a;

    /// Starts to write.
    ///
    /// # Errors
    /// [`DraftError`].
    fn draft(&self) -> Result<Self::Draft<'_>, DraftError>;
}

/// The first bytes of a file. Without a commit nothing of them stays.
pub trait Draft {
    /// Appends bytes.
    ///
    /// # Errors
    /// [`DraftError`].
    fn append(&mut self, bytes: &[u8]) -> Result<(), DraftError>;

    /// Returns how many bytes were appended.
    fn size(&self) -> u64;

    /// Returns the sha256 of what was appended.
    fn digest(&self) -> Digest;

    /// Keeps the file, whose size and digest are right.
    ///
    /// # Errors
    /// [`DraftError`].
    fn commit(self) -> Result<(), DraftError>;
}

/// Why bytes are not taken.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// They cannot be written on this machine.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// They are wrong, as the text says: another server may have the right ones.
    #[error("{0}")]
    Content(String),
}

impl DraftError {
    /// Returns the error of the download of a file, which `what` names.
    pub fn of(self, what: &str) -> DownloadError {
        let what = what.to_owned();
        match self {
            Self::Io(source) => DownloadError::Write { what, source },
            Self::Store(error) => error.into(),
            Self::Content(reason) => DownloadError::Content { what, reason },
        }
    }
}

impl Target for Store {
    type Draft<'a> = BlobWriter<'a>;

    fn draft(&self) -> Result<BlobWriter<'_>, DraftError> {
        Ok(self.writer()?)
    }
}

impl Draft for BlobWriter<'_> {
    fn append(&mut self, bytes: &[u8]) -> Result<(), DraftError> {
        Ok(self.write_all(bytes)?)
    }

    fn size(&self) -> u64 {
        Self::size(self)
    }

    fn digest(&self) -> Digest {
        self.id()
    }

    fn commit(self) -> Result<(), DraftError> {
        Self::commit(self)?;
        Ok(())
    }
}

/// A download of a file.
#[derive(Debug)]
pub struct Download<'a, S, T> {
    /// Where the file comes from.
    pub source: &'a S,
    /// Where it goes to: the store, for one.
    pub target: &'a T,
    /// The sha256 that it must have.
    pub digest: Digest,
    /// The size that it must have.
    pub size: Size,
    /// How the network is used.
    pub network: &'a NetworkOptions,
    /// Ends the download early.
    pub cancel: &'a Cancel,
}

/// The first bytes of a file.
struct Partial<D> {
    writer: D,
    /// The file's strong entity tag.
    tag: Option<HeaderValue>,
    /// All bytes of the file, where they are known.
    total: Option<u64>,
    /// Whether the bytes came in several responses.
    resumed: bool,
}

impl<'a, S: Source, T: Target> Download<'a, S, T> {
    /// Downloads the file and returns its size in bytes. The target keeps it after its
    /// last byte was verified; a failure leaves nothing.
    ///
    /// A connection that breaks again and again is used again and again, as long as each attempt
    /// gets farther than all before.
    ///
    /// # Errors
    /// Those of the source, and [`DownloadError`].
    pub fn run(&self, attempts: Attempts) -> Result<u64, S::Error> {
        let mut held = None;
        let mut farthest = 0;
        retry(attempts, self.cancel, |attempts| {
            let result = self.attempt(&mut held, attempts);
            let received = held.as_ref().map_or(0, |it: &Partial<_>| it.writer.size());
            if received >= farthest + STEP {
                farthest = received;
                attempts.refill();
            }
            result
        })
    }

    /// Asks once for the file, or for the part that is missing of what is held.
    fn attempt(
        &self,
        held: &mut Option<Partial<T::Draft<'a>>>,
        attempts: &Attempts,
    ) -> Result<u64, S::Error> {
        self.check_canceled()?;
        let range = held.as_ref().map(|it| it.range(self.source.is_immutable()));
        let answer = self.source.get(range.unwrap_or_default())?;
        let headers = answer.response.headers();
        let mut partial = match (answer.response.status(), held.take()) {
            (StatusCode::OK, _) => self.start(&answer)?,
            (StatusCode::PARTIAL_CONTENT, Some(partial)) if partial.is_continued_by(headers) => {
                Partial { resumed: true, ..partial }
            }
            (StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE, Some(_)) => {
                return self.attempt(held, attempts); // For the whole file now.
            }
            (_, partial) => {
                *held = partial;
                return Err(self.source.refusal(answer));
            }
        };
        let deadline = attempts.deadline(partial.total.unwrap_or(self.size.most()));
        let body = Body::new(self.source.what(), answer, &self.network.policy, deadline);
        match self.copy(body, &mut partial).and_then(|()| self.check_content(&partial)) {
            Ok(()) => Ok(self.commit(partial)?),
            // Parts that do not belong together prove nothing about the file.
            Err(error) if partial.resumed && is_other_content(&error) => {
                self.attempt(held, attempts) // For the whole file.
            }
            Err(error) => {
                *held = Some(partial).filter(|_| error.retry_after().is_some());
                Err(error.into())
            }
        }
    }

    /// Prepares for a response that has the whole file.
    fn start(&self, answer: &FinalResponse) -> Result<Partial<T::Draft<'a>>, DownloadError> {
        let tag = answer.response.headers().get(ETAG).filter(|tag| is_strong(tag)).cloned();
        let total = match self.size {
            Size::Exactly(size) => Some(size),
            Size::AtMost(_) => answer.response.content_length(),
        };
        let writer = self.target.draft().map_err(|error| error.of(self.source.what()))?;
        Ok(Partial { writer, tag, total, resumed: false })
    }

    /// Appends a body to what is held of the file.
    fn copy(
        &self,
        mut body: Body<'_>,
        partial: &mut Partial<T::Draft<'a>>,
    ) -> Result<(), DownloadError> {
        let what = self.source.what();
        if let Some(rest) = body.announced() {
            self.size.check(what, partial.writer.size().saturating_add(rest), true)?;
        }
        let mut buffer = vec![0; PIECE];
        loop {
            let length = body.read(&mut buffer)?;
            if length == 0 {
                return self.check_end(&body, partial);
            }
            self.check_canceled()?;
            self.size.check(what, partial.writer.size() + length as u64, false)?;
            partial.writer.append(&buffer[..length]).map_err(|error| error.of(what))?;
            // That all bytes are there is reported when the file is verified.
            if partial.total != Some(partial.writer.size()) {
                self.report(partial.writer.size(), partial.total);
            }
        }
    }

    /// Refuses the end of a connection where it need not be the end of the file.
    fn check_end(
        &self,
        body: &Body<'_>,
        partial: &Partial<T::Draft<'a>>,
    ) -> Result<(), DownloadError> {
        match self.size {
            Size::Exactly(size) if partial.writer.size() < size && !body.has_an_end() => {
                Err(body.broken(io::ErrorKind::UnexpectedEof.into()))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a file that is not the expected one.
    fn check_content(&self, partial: &Partial<T::Draft<'a>>) -> Result<(), DownloadError> {
        let what = self.source.what();
        self.size.check(what, partial.writer.size(), true)?;
        let (expected, found) = (self.digest, partial.writer.digest());
        if found != expected {
            return Err(DownloadError::WrongDigest { what: what.to_owned(), expected, found });
        }
        Ok(())
    }

    /// Keeps the file, and returns its size.
    fn commit(&self, partial: Partial<T::Draft<'a>>) -> Result<u64, DownloadError> {
        let size = partial.writer.size();
        partial.writer.commit().map_err(|error| error.of(self.source.what()))?;
        self.report(size, Some(size));
        Ok(size)
    }

    fn report(&self, received: u64, total: Option<u64>) {
        if let Some(progress) = &self.network.progress {
            progress(Progress { digest: self.digest, received, total });
        }
    }

    fn check_canceled(&self) -> Result<(), DownloadError> {
        if self.cancel.is_canceled() {
            return Err(DownloadError::Canceled { what: self.source.what().to_owned() });
        }
        Ok(())
    }
}

impl<D: Draft> Partial<D> {
    /// Returns the headers that ask for the rest of the file (RFC 9110, sections 13.1.5 and 14.2);
    /// none where the server could send the rest of another version.
    fn range(&self, is_immutable: bool) -> HeaderMap {
        let from = self.writer.size();
        let mut headers = HeaderMap::new();
        if from == 0 || (self.tag.is_none() && !is_immutable) {
            return headers;
        }
        headers.extend(HeaderValue::from_str(&format!("bytes={from}-")).map(|it| (RANGE, it)));
        headers.extend(self.tag.clone().map(|tag| (IF_RANGE, tag)));
        headers
    }

    /// Returns whether a response has the rest of the same file.
    fn is_continued_by(&self, headers: &HeaderMap) -> bool {
        let range = headers.get(CONTENT_RANGE).and_then(content_range);
        let fits = range.is_some_and(|(first, total)| {
            let same_total = self.total.is_none() || total.is_none() || self.total == total;
            first == self.writer.size() && same_total
        });
        let tag = headers.get(ETAG);
        fits && (self.tag.is_none() || tag.is_none() || tag == self.tag.as_ref())
    }
}

/// Returns whether a download has failed because of the bytes that it got.
const fn is_other_content(error: &DownloadError) -> bool {
    use DownloadError::{Content, TooLarge, WrongDigest, WrongSize};
    matches!(error, WrongSize { .. } | TooLarge { .. } | WrongDigest { .. } | Content { .. })
}

/// Reads `bytes FIRST-LAST/TOTAL` (RFC 9110, section 14.4) into the first byte and the total; the
/// total may be unknown, `*`.
fn content_range(value: &HeaderValue) -> Option<(u64, Option<u64>)> {
    let (range, total) = value.to_str().ok()?.strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = range.split_once('-')?;
    Some((first.parse().ok()?, total.parse().ok()))
}

/// Returns whether an entity tag changes with every bit of the file (RFC 9110, section 8.8.3): it is
/// a quoted text without `W/` before it.
fn is_strong(tag: &HeaderValue) -> bool {
    matches!(tag.as_bytes(), [b'"', .., b'"'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_quoted_tags_are_strong() {
        let strong = |tag| is_strong(&HeaderValue::from_static(tag));
        assert!(strong("\"abc\"") && strong("\"\""));
        assert!(!strong("W/\"abc\"") && !strong("abc") && !strong("\"") && !strong(""));
    }

    #[test]
    fn ranges_are_read() {
        let read = |value| content_range(&HeaderValue::from_static(value));
        assert_eq!(read("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(read("bytes 5-9/*"), Some((5, None)));
        for bad in ["", "bytes */10", "bytes 5/10", "lines 5-9/10", "bytes x-9/10", "bytes 5-9"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
