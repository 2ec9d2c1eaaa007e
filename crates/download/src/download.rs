//! Downloads a file into a target: retries, resumes, and verifies its size and digest.

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

/// The number of bytes after whose receipt all attempts are available again.
const STEP: u64 = 1 << 20;

/// A file on a server, and the means to request it.
pub trait Source {
    /// The error of a failed request.
    type Error: From<DownloadError> + Retryable;

    /// Returns the name of the file, for messages.
    fn what(&self) -> &str;

    /// Returns whether the server always returns the same file for this request. If so, a download is resumed even if the server
    /// sends no entity tag.
    fn is_immutable(&self) -> bool;

    /// Requests the file with `headers` and the headers of the source, such as `Authorization`.
    ///
    /// # Errors
    /// There is no response.
    fn get(&self, headers: HeaderMap) -> Result<FinalResponse, Self::Error>;

    /// Returns the error of a response whose status is not that of the file.
    fn refusal(&self, response: FinalResponse) -> Self::Error;
}

/// The destination of a download.
pub trait Target {
    /// The type of the file while it is incomplete or not verified.
    type Draft<'a>: Draft
    where
        Self: 'a;

    /// Begins a file.
    ///
    /// # Errors
    /// [`DraftError`].
    fn draft(&self) -> Result<Self::Draft<'_>, DraftError>;
}

/// An incomplete file. It is discarded unless it is committed.
pub trait Draft {
    /// Appends bytes.
    ///
    /// # Errors
    /// [`DraftError`].
    fn append(&mut self, bytes: &[u8]) -> Result<(), DraftError>;

    /// Returns how many bytes were appended.
    fn size(&self) -> u64;

    /// Returns the sha256 of the appended bytes.
    fn digest(&self) -> Digest;

    /// Keeps the file. Its size and digest have been checked.
    ///
    /// # Errors
    /// [`DraftError`].
    fn commit(self) -> Result<(), DraftError>;
}

/// The reason why a target does not accept bytes.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// The bytes cannot be written on this host.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The bytes are invalid. The text is the reason. Another server may have the correct bytes.
    #[error("{0}")]
    Content(String),
}

impl DraftError {
    /// Converts the error to the error of the download of `what`.
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
    /// The source of the file.
    pub source: &'a S,
    /// The destination of the file, such as the store.
    pub target: &'a T,
    /// The required sha256.
    pub digest: Digest,
    /// The required size.
    pub size: Size,
    /// The network options.
    pub network: &'a NetworkOptions,
    /// The token that cancels the download.
    pub cancel: &'a Cancel,
}

/// The first bytes of a file.
struct Partial<D> {
    writer: D,
    /// The file's strong entity tag.
    tag: Option<HeaderValue>,
    /// The size of the file, if it is known.
    total: Option<u64>,
    /// Whether the bytes are from several responses.
    resumed: bool,
}

impl<'a, S: Source, T: Target> Download<'a, S, T> {
    /// Downloads the file and returns its size in bytes. The target keeps the file after it is verified. After an error, the
    /// target keeps no file.
    ///
    /// After each MiB of progress all attempts are available again, so that a large file can be downloaded over a connection that
    /// often breaks.
    ///
    /// # Errors
    /// The errors of the source, and [`DownloadError`].
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

    /// Requests the file, or the missing part of it.
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
                return self.attempt(held, attempts); // Now request the whole file.
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
            // A resumed file may be joined from different versions, so the wrong content may not be the server's.
            Err(error) if partial.resumed && error.is_other_content() => {
                self.attempt(held, attempts) // Now request the whole file.
            }
            Err(error) => {
                *held = Some(partial).filter(|_| error.retry_after().is_some());
                Err(error.into())
            }
        }
    }

    /// Begins a new file for a response that has the whole file.
    fn start(&self, answer: &FinalResponse) -> Result<Partial<T::Draft<'a>>, DownloadError> {
        let tag = answer.response.headers().get(ETAG).filter(|tag| is_strong(tag)).cloned();
        let total = match self.size {
            Size::Exactly(size) => Some(size),
            Size::AtMost(_) => answer.response.content_length(),
        };
        let writer = self.target.draft().map_err(|error| error.of(self.source.what()))?;
        Ok(Partial { writer, tag, total, resumed: false })
    }

    /// Appends a body to the incomplete file.
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
            // The last byte is reported once the file is verified.
            if partial.total != Some(partial.writer.size()) {
                self.report(partial.writer.size(), partial.total);
            }
        }
    }

    /// Returns the retryable error of a broken connection if the file is too short, and the response does not declare its end.
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

    /// Returns an error if the file has another size or digest.
    fn check_content(&self, partial: &Partial<T::Draft<'a>>) -> Result<(), DownloadError> {
        let what = self.source.what();
        self.size.check(what, partial.writer.size(), true)?;
        let (expected, found) = (self.digest, partial.writer.digest());
        if found != expected {
            return Err(DownloadError::WrongDigest { what: what.to_owned(), expected, found });
        }
        Ok(())
    }

    /// Commits the verified file, and returns its size.
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
    /// Returns the headers that request the rest of the file ([RFC 9110, sections
    /// 13.1.5](https://www.rfc-editor.org/rfc/rfc9110#section-13.1.5) and
    /// [14.2](https://www.rfc-editor.org/rfc/rfc9110#section-14.2)). Returns no headers if there are no bytes yet, or if the rest
    /// could be of another version of the file.
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

    /// Returns whether the response with these headers has the rest of the same file.
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

/// Reads the first byte and the total of `bytes FIRST-LAST/TOTAL`
/// ([RFC 9110, section 14.4](https://www.rfc-editor.org/rfc/rfc9110#section-14.4)). The total is `None` if it is `*`.
fn content_range(value: &HeaderValue) -> Option<(u64, Option<u64>)> {
    let (range, total) = value.to_str().ok()?.strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = range.split_once('-')?;
    Some((first.parse().ok()?, total.parse().ok()))
}

/// Returns whether an entity tag is strong: a quoted string without `W/`. A strong tag changes whenever a byte of the file
/// changes ([RFC 9110, section 8.8.3](https://www.rfc-editor.org/rfc/rfc9110#section-8.8.3)).
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
