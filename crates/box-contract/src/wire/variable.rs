//! The transfer of launch variables into a box.

use std::io;

use thiserror::Error;

use super::frame::{Body, invalid, put};
use super::sizes::MAX_OUTPUT;

/// The maximum number of launch variables of a box, in both components together.
pub const MAX_VARIABLES: usize = 256;
/// The fault of a box with too many launch variables.
pub const TOO_MANY_VARIABLES: &str = "a box has at most 256 variables that are given at launch";
/// The maximum length of a launch variable's value, in bytes.
pub const MAX_VALUE: usize = MAX_OUTPUT;

/// The value of one of the plan's [`launch_variables`](crate::RunPlan::launch_variables).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The variable's index in `launch_variables`, from 0.
    pub index: u8,
    /// The value. `None` means the default.
    pub value: Option<String>,
}

/// Why a text cannot be the value of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum VariableError {
    /// The value is longer than [`MAX_VALUE`].
    #[error("it is longer than {MAX_VALUE} bytes")]
    TooLong,
    /// The value has a NUL byte, but environment variables are C strings.
    #[error("it has a NUL byte, which no variable can have")]
    Nul,
}

/// Checks that a text can be the value of a variable.
///
/// # Errors
/// Returns the reason if it cannot.
pub fn check_value(value: &str) -> Result<(), VariableError> {
    if value.len() > MAX_VALUE {
        return Err(VariableError::TooLong);
    }
    if value.contains('\0') { Err(VariableError::Nul) } else { Ok(()) }
}

impl Body for Variable {
    fn encode(&self, frame: &mut Vec<u8>) -> io::Result<()> {
        let value = self.value.as_ref().map(|it| [b"=", it.as_bytes()].concat());
        put(frame, &[self.index], &value.unwrap_or_default());
        Ok(())
    }

    fn decode(body: Vec<u8>) -> io::Result<Self> {
        let (index, value) = match body.as_slice() {
            [index] => (*index, None),
            [index, b'=', value @ ..] => (*index, Some(value)),
            _ => return Err(invalid("a variable's frame without its index")),
        };
        let text = |it: &[u8]| str::from_utf8(it).map(str::to_owned);
        let value = value.map(text).transpose();
        Ok(Self { index, value: value.map_err(|_| invalid("a variable that is not UTF-8"))? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::HostMessage;

    #[test]
    fn a_value_is_carried_as_it_is_and_an_empty_one_is_one() {
        let long = "\u{1}".repeat(MAX_VALUE);
        for value in [None, Some(""), Some("="), Some("a=b\n\"\u{e4}"), Some(long.as_str())] {
            let value = value.map(str::to_owned);
            let message = HostMessage::Variable(Variable { index: 255, value });
            let mut frame = Vec::new();
            message.write(&mut frame).unwrap();
            assert_eq!(HostMessage::read(&mut frame.as_slice()).unwrap(), Some(message));
        }
    }

    #[test]
    fn a_malformed_variable_is_refused() {
        for body in [&[][..], &[0, b'a'], &[0, b'=', 0xFF]] {
            let mut frame = u32::try_from(body.len() + 1).unwrap().to_le_bytes().to_vec();
            frame.push(77);
            frame.extend_from_slice(body);
            HostMessage::read(&mut frame.as_slice()).unwrap_err();
        }
    }

    #[test]
    fn a_value_is_a_c_string_of_bounded_length() {
        assert_eq!(check_value(""), Ok(()));
        assert_eq!(check_value("a\0b"), Err(VariableError::Nul));
        assert_eq!(check_value(&"x".repeat(MAX_VALUE)), Ok(()));
        assert_eq!(check_value(&"x".repeat(MAX_VALUE + 1)), Err(VariableError::TooLong));
    }
}
