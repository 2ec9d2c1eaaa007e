#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

/// Implements `From<$below>` for `$above`: converts the error of a module into the error of a module that calls it.
///
/// A variant in the list `$same`, which both enums have, is converted to the same variant, so that callers match it in
/// the same way at each level. Every other error becomes the variant `$variant`, which contains the lower error. For
/// example, `from_below!(StreamError => ClientError::Stream, Os, Stopped)`.
#[macro_export]
macro_rules! from_below {
    ($below:ident => $above:ident::$variant:ident $(, $same:ident)*) => {
        impl From<$below> for $above {
            fn from(error: $below) -> Self {
                match error {
                    $($below::$same(error) => error.into(),)*
                    error => Self::$variant(error),
                }
            }
        }
    };
}

pub mod agent;
pub mod boxes;
pub mod client;
pub mod host;
pub mod machine;
pub mod mounts;
pub mod network;
pub mod opened;
pub mod project;
pub mod streams;
pub mod supervisor;
