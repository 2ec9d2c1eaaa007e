//! Asks a running box which files of its image its programs have replaced or removed.

use box_contract::ComponentName;
use box_contract::wire::{Builtin, Exec, HiddenFiles, ImageFile};
use host_fs::OsError;

use super::builtin::{self, BoundedOutput};
use super::{Client, ClientError};
use crate::streams::StreamError;
use crate::streams::input::Input;

/// The greatest length of an answer, in bytes.
const MAX_ANSWER: usize = 256 << 10;
/// Reads every directory of the component.
const ROOT: &str = "0";

/// Returns those of the files of a component's image that the component does not see.
///
/// # Errors
/// If the box cannot be asked, or if its answer is malformed.
pub fn hidden_files(
    client: &mut Client<'_>,
    component: ComponentName,
    files: &[ImageFile],
) -> Result<HiddenFiles, ClientError> {
    let exec = Exec::new(component, ["hidden"]);
    let exec = Exec { builtin: Some(Builtin::Hidden), user: Some(ROOT.to_owned()), ..exec };
    let answer = BoundedOutput::new(MAX_ANSWER);
    let input = input(files).map_err(OsError::system("write a list of files"))?;
    let done = builtin::run(client, exec, Some(input), Box::new(answer.clone()))?;
    done.map_err(ClientError::Command)?;
    let malformed = |error: serde_json::Error| StreamError::Protocol(error.to_string());
    Ok(serde_json::from_str(&answer.text()).map_err(malformed)?)
}

/// Returns an input that has a line for each file.
fn input(files: &[ImageFile]) -> std::io::Result<Input> {
    let mut lines = Vec::new();
    for file in files {
        serde_json::to_writer(&mut lines, file)?;
        lines.push(b'\n');
    }
    builtin::input_of(&lines)
}
