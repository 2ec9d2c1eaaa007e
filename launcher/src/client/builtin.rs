//! Runs an operation of init's built-in program in a box, such as copying.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Seek as _, Write};
use std::rc::Rc;

use box_contract::wire::Exec;
use rustix::fs::{MemfdFlags, memfd_create};
use safe_text::shown;

use crate::client::{Client, ClientError, CommandSetup};
use crate::streams::input::Input;
use crate::streams::output::{Route, Sink};

/// How many bytes of the program's standard error are kept.
const MAX_STDERR: usize = 4096;

/// Runs the operation `exec`. Returns the program's messages, or its error. Both are safe for a terminal.
///
/// # Errors
/// If the operation cannot be started, or if its result is unknown.
pub(crate) fn run(
    client: &mut Client<'_>,
    exec: Exec,
    input: Option<Input>,
    stdout: Box<dyn Sink>,
) -> Result<Result<String, String>, ClientError> {
    let stderr = BoundedOutput::new(MAX_STDERR);
    let mut output = Route::Pass { stdout, stderr: Box::new(stderr.clone()) };
    let setup = CommandSetup { exec, input, tty: None, output: &mut output };
    let exit = client.exec(setup, &mut Route::Nowhere);
    // Close the input. Otherwise a thread that writes to the input would wait forever.
    client.let_go();
    Ok(match (exit?.status, shown(stderr.text().trim_end())) {
        (0, text) if text.is_empty() => Ok(text),
        (0, text) => Ok(format!("the box reports: {text}")),
        (status, text) if text.is_empty() => {
            Err(format!("the program in the box ended with status {status}"))
        }
        (_, text) => Err(format!("in the box: {text}")),
    })
}

/// Returns an input with these bytes, in a file in memory.
///
/// # Errors
/// Errors of the operating system.
pub(crate) fn input_of(bytes: &[u8]) -> io::Result<Input> {
    let mut file = File::from(memfd_create("input", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(Input::new(file))
}

/// The beginning of a program's output in a box.
#[derive(Debug, Clone)]
pub(crate) struct BoundedOutput {
    bytes: Rc<RefCell<Vec<u8>>>,
    limit: usize,
}

impl BoundedOutput {
    /// Keeps the first `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: Rc::default(), limit }
    }

    /// Returns the kept output, which is not safe for a terminal.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.borrow()).into_owned()
    }
}

impl Write for BoundedOutput {
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
