//! The transfer of secrets' values into a box.

use std::{fmt, io};

use thiserror::Error;
use zeroize::Zeroizing;

use super::frame::{Body, invalid, put};
use super::sizes::MAX_OUTPUT;
use crate::SecretDelivery;

/// The maximum number of secrets of a box.
pub const MAX_SECRETS: usize = 256;
/// The fault of a box with too many secrets.
pub const TOO_MANY_SECRETS: &str = "a box has at most 256 secrets";
/// The maximum length of a secret, in bytes.
pub const MAX_SECRET: usize = MAX_OUTPUT;
/// The minimum length of a secret that the host adds to requests, in bytes.
pub const MIN_CREDENTIAL: usize = 8;

/// The value of a secret. Its memory is cleared on drop.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// The secret's index in the plan, from 0.
    pub index: u8,
    /// The value, at most [`MAX_SECRET`] bytes.
    pub value: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("index", &self.index).finish_non_exhaustive()
    }
}

/// Why a value cannot be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SecretError {
    /// The value is empty, which is typical of a variable that was not set.
    #[error("it is empty")]
    Empty,
    /// The value is longer than [`MAX_SECRET`].
    #[error("it is longer than {MAX_SECRET} bytes")]
    TooLong,
    /// The value has a NUL byte, but environment variables are C strings.
    #[error("it has a NUL byte, which no variable can have; declare it with a `path`")]
    Nul,
    /// The value is not UTF-8, but the environment variables of a box must be.
    #[error("it is not UTF-8; declare it with a `path`")]
    Encoding,
    /// The value has a byte that no header line can have.
    #[error(
        "it has a space or another character than visible ASCII, which no secret of a service can have"
    )]
    Header,
    /// The value is shorter than [`MIN_CREDENTIAL`], so it could not be told from other text of an answer.
    #[error(
        "it is shorter than {MIN_CREDENTIAL} bytes, so it could not be told from other text of an answer"
    )]
    TooShort,
}

/// Checks that a value can be delivered.
///
/// # Errors
/// Returns the reason if it cannot be delivered.
pub fn check_secret(value: &[u8], delivery: &SecretDelivery) -> Result<(), SecretError> {
    if value.is_empty() {
        return Err(SecretError::Empty);
    }
    if value.len() > MAX_SECRET {
        return Err(SecretError::TooLong);
    }
    match delivery {
        SecretDelivery::File { .. } => Ok(()),
        SecretDelivery::Host if value.len() < MIN_CREDENTIAL => Err(SecretError::TooShort),
        SecretDelivery::Host => {
            let is_plain = value.iter().all(u8::is_ascii_graphic);
            is_plain.then_some(()).ok_or(SecretError::Header)
        }
        SecretDelivery::Env if value.contains(&0) => Err(SecretError::Nul),
        SecretDelivery::Env => {
            std::str::from_utf8(value).map(drop).map_err(|_| SecretError::Encoding)
        }
    }
}

impl Body for Secret {
    fn encode(&self, frame: &mut Vec<u8>) -> io::Result<()> {
        put(frame, &[self.index], &self.value);
        Ok(())
    }

    fn decode(mut body: Vec<u8>) -> io::Result<Self> {
        let Some(&index) = body.first() else {
            return Err(invalid("a secret's frame without its index"));
        };
        body.drain(..1);
        Ok(Self { index, value: Zeroizing::new(body) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::HostMessage;

    #[test]
    fn a_secret_is_carried_as_it_is_and_never_shown() {
        let value = Zeroizing::new(b"\0canary\xFF".to_vec());
        let message = HostMessage::Secret(Secret { index: 7, value });
        let mut frame = Vec::new();
        message.write(&mut frame).unwrap();
        assert_eq!(HostMessage::read(&mut frame.as_slice()).unwrap(), Some(message.clone()));
        assert_eq!(format!("{message:?}"), "Secret(Secret { index: 7, .. })");
    }

    #[test]
    fn a_variable_is_text_and_a_file_is_anything() {
        let file = SecretDelivery::File { path: "/run/key".to_owned() };
        let check = |value: &[u8]| check_secret(value, &SecretDelivery::Env);
        assert_eq!(check(b"plain"), Ok(()));
        assert_eq!(check(b""), Err(SecretError::Empty));
        assert_eq!(check(b"a\0b"), Err(SecretError::Nul));
        assert_eq!(check(b"\xFF"), Err(SecretError::Encoding));
        assert_eq!(check_secret(b"\0\xFF", &file), Ok(()));
        assert_eq!(check_secret(&[0; MAX_SECRET], &file), Ok(()));
        assert_eq!(check_secret(&[0; MAX_SECRET + 1], &file), Err(SecretError::TooLong));
    }
}
