//! Tasks that init's own program does in a box.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use box_contract::wire::Exec;
use safe_text::shown;

use crate::client::{Client, ClientError, CommandSetup};
use crate::streams::input::Input;
use crate::streams::output::{Route, Sink};

/// How much of the messages from the box is kept, in bytes.
const MAX_SAID: usize = 4096;

/// Does a task. Returns what the program says beside its output, or why it failed; both are safe for a terminal.
///
/// # Errors
/// When the task cannot be begun, or its end is not seen.
pub(crate) fn run(
    client: &mut Client<'_>,
    exec: Exec,
    input: Option<Input>,
    stdout: Box<dyn Sink>,
) -> Result<Result<String, String>, ClientError> {
    let said = Kept::new(MAX_SAID);
    let mut output = Route::Pass { stdout, stderr: Box::new(said.clone()) };
    let setup = CommandSetup { exec, input, tty: None, output: &mut output };
    let exit = client.exec(setup, &mut Route::Nowhere);
    // Who fills the input would wait for ever for somebody to read on.
    client.let_go();
    Ok(match (exit?.status, shown(said.text().trim_end())) {
        (0, said) if said.is_empty() => Ok(said),
        (0, said) => Ok(format!("the box says: {said}")),
        (status, said) if said.is_empty() => {
            Err(format!("the program in the box ended with status {status}"))
        }
        (_, said) => Err(format!("in the box: {said}")),
    })
}

/// The beginning of what a program in a box writes.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    bytes: Rc<RefCell<Vec<u8>>>,
    limit: usize,
}

impl Kept {
    /// Keeps so many bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: Rc::default(), limit }
    }

    /// Returns what was kept, as it is.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.borrow()).into_owned()
    }
}

impl Write for Kept {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut bytes = self.bytes.borrow_mut();
        let room = self.limit - bytes.len();
        bytes.extend_from_slice(&data[..data.len().min(room)]);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
