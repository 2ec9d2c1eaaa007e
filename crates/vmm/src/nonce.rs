//! The secret that init sends first to authenticate itself.

use std::fmt;
use std::hint::black_box;

use box_contract::plan::NONCE_LENGTH;
use box_digest::hex;
use serde::{Deserialize, Serialize};

use host_fs::OsError;

/// The secret of one boot: random bytes as [`NONCE_LENGTH`] hexadecimal digits.
#[derive(Clone, Serialize, Deserialize)]
pub struct Nonce(String);

impl Nonce {
    /// Makes a new nonce.
    ///
    /// # Errors
    /// If the kernel gives no random bytes.
    pub fn random() -> Result<Self, OsError> {
        let mut bytes = [0; NONCE_LENGTH / 2];
        getrandom::fill(&mut bytes).map_err(OsError::system("get random bytes"))?;
        Ok(Self(hex(&bytes)))
    }

    /// Returns the hexadecimal digits.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Compares the nonce with `other` in constant time.
    pub fn matches(&self, other: &str) -> bool {
        let pairs = self.0.bytes().zip(other.bytes());
        let difference = pairs.fold(0, |seen, (ours, theirs)| black_box(seen | (ours ^ theirs)));
        self.0.len() == other.len() && difference == 0
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonce(…)")
    }
}
