//! The platforms that a box can be built for.

use std::fmt;
use std::str::FromStr;

use crate::named_enum;
use serde::{Deserialize, Serialize};

use safe_text::quote;

named_enum! {
    /// An operating system and a CPU architecture, as OCI writes them: `linux/amd64`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum Platform {
        /// x86-64.
        #[serde(rename = "linux/amd64")]
        LinuxAmd64 "linux/amd64",
        /// AArch64.
        #[serde(rename = "linux/arm64")]
        LinuxArm64 "linux/arm64",
    }
}

impl Platform {
    /// The only platform that this version builds for.
    pub const BUILT: Self = Self::LinuxAmd64;

    /// Returns the operating system, as in `platform.os` of an
    /// [OCI image index](https://github.com/opencontainers/image-spec/blob/v1.1.1/image-index.md) (a `GOOS` value).
    pub const fn os(self) -> &'static str {
        "linux"
    }

    /// Returns the CPU architecture, as in `platform.architecture` of an OCI image index (a `GOARCH` value).
    pub const fn architecture(self) -> &'static str {
        match self {
            Self::LinuxAmd64 => "amd64",
            Self::LinuxArm64 => "arm64",
        }
    }
}

/// Writes [`Platform::name`].
impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Platform {
    type Err = UnknownPlatform;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = |platform: &Self| platform.name() == text;
        Self::ALL.into_iter().find(named).ok_or_else(|| UnknownPlatform(text.to_owned()))
    }
}

/// The error for a text that names no [`Platform`]. The value is the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPlatform(pub String);

impl fmt::Display for UnknownPlatform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Platform::ALL.map(|platform| format!("`{platform}`")).join(" or ");
        write!(f, "{} is not a platform: write {known}", quote(&self.0))
    }
}

impl std::error::Error for UnknownPlatform {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows the text that serde gets: a formatter is a serializer for plain texts.
    struct Serialized(Platform);

    impl fmt::Display for Serialized {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.serialize(f)
        }
    }

    #[test]
    fn a_platform_is_its_text() {
        for platform in Platform::ALL {
            assert_eq!(platform.to_string().parse(), Ok(platform));
            assert_eq!(format!("{}/{}", platform.os(), platform.architecture()), platform.name());
            assert_eq!(Serialized(platform).to_string(), platform.name());
        }
    }

    #[test]
    fn other_texts_are_refused_and_the_message_says_what_to_write() {
        for text in ["", "linux", "linux/x86_64", "LINUX/AMD64", " linux/amd64", "darwin/arm64"] {
            assert_eq!(text.parse::<Platform>(), Err(UnknownPlatform(text.to_owned())));
        }
        assert_eq!(
            UnknownPlatform("linux/x86_64".to_owned()).to_string(),
            "`linux/x86_64` is not a platform: write `linux/amd64` or `linux/arm64`"
        );
    }
}
