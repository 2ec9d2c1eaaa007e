//! Copies between a box and this host. The connection carries an archive ([`box_copy`]), which init's built-in program
//! packs or unpacks in the box. On the host, a separate thread packs or unpacks it, through a pipe to the connection.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::thread::{self, JoinHandle};

use box_contract::ComponentName;
use box_contract::wire::{Builtin, Exec};
use box_copy::{Author, CopyEnd, LeftOut, pack, unpack};
use host_fs::OsError;
use safe_text::shown;

use crate::client::{Client, ClientError, builtin};
use crate::streams::StreamError;
use crate::streams::input::Input;
use crate::streams::output::Sink;

/// The path in a box that a copy reads or writes.
#[derive(Debug)]
pub struct Inside<'a> {
    /// The component in whose file system the path is.
    pub component: ComponentName,
    /// The user that reads or writes the files. `None` for the component's user.
    pub user: Option<String>,
    /// The path, absolute or relative to the component's working directory.
    pub path: &'a OsStr,
}

/// Copies a path of a box, with everything below it, to this host. Returns the messages of the program in the box.
///
/// # Errors
/// The error of the side that fails first. Files that were already copied stay.
pub fn from_box(
    client: &mut Client<'_>,
    inside: &Inside<'_>,
    to: CopyEnd,
) -> Result<String, ClientError> {
    let (reader, writer) = io::pipe().map_err(OsError::system("make a pipe"))?;
    let source = inside.path.to_owned();
    let unpack = move || unpack(reader, to, Author::Box(source.as_ref()));
    let unpacking = thread::Builder::new().spawn(unpack);
    let unpacking = unpacking.map_err(OsError::system("start a thread that unpacks"))?;
    let read = archive_from_box(client, inside, Box::new(writer));
    match (read, joined(unpacking)) {
        // If unpacking failed, the failure to write to its pipe is only a consequence.
        (Err(error), Ok(_)) => Err(error),
        (Err(error), Err(_)) if !matches!(error, ClientError::Stream(StreamError::Output(_))) => {
            Err(error)
        }
        (_, Err(error)) => Err(ClientError::Copy(shown(&error.to_string()))),
        (Ok(text), Ok(LeftOut { links: 0, .. })) => Ok(text),
        (Ok(text), Ok(left_out)) => Ok(format!("{left_out}\n{text}").trim_end().to_owned()),
    }
}

/// Writes an archive of a path in a box to `archive`. Returns the messages of the program in the box.
///
/// # Errors
/// The error of the box or of the writer.
pub fn archive_from_box(
    client: &mut Client<'_>,
    inside: &Inside<'_>,
    archive: Box<dyn Sink>,
) -> Result<String, ClientError> {
    run(client, inside, Builtin::Pack, None, archive)
}

/// Copies a path of this host, with everything below it, to a path in a box. Returns the message about files that were
/// left out, if any, or else the messages of the program in the box.
///
/// # Errors
/// The errors of [`from_box`].
pub fn to_box(
    client: &mut Client<'_>,
    from: CopyEnd,
    inside: &Inside<'_>,
) -> Result<String, ClientError> {
    // Checked first, so that a missing path creates nothing in the box.
    from.check().map_err(|error| ClientError::Copy(error.to_string()))?;
    let (reader, writer) = io::pipe().map_err(OsError::system("make a pipe"))?;
    let packing = thread::Builder::new().spawn(move || pack(&from, writer));
    let packing = packing.map_err(OsError::system("start a thread that packs"))?;
    let written = archive_to_box(client, Input::new(reader), inside);
    match joined(packing) {
        // The box has read all that it needs, or reports its error itself.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => written,
        Err(error) => Err(ClientError::Copy(error.to_string())),
        Ok(left_out) if left_out == LeftOut::default() => written,
        Ok(left_out) => written.map(|_| left_out.to_string()),
    }
}

/// Unpacks an archive to a path in a box. Returns the messages of the program in the box.
///
/// # Errors
/// The error of the box or of the reader.
pub fn archive_to_box(
    client: &mut Client<'_>,
    archive: Input,
    inside: &Inside<'_>,
) -> Result<String, ClientError> {
    run(client, inside, Builtin::Unpack, Some(archive), Box::new(io::sink()))
}

/// Runs init's built-in program in the box with the operation `builtin`.
fn run(
    client: &mut Client<'_>,
    inside: &Inside<'_>,
    builtin: Builtin,
    input: Option<Input>,
    stdout: Box<dyn Sink>,
) -> Result<String, ClientError> {
    let exec = Exec::new(inside.component, [OsStr::new("cp"), inside.path]);
    let exec = Exec { builtin: Some(builtin), user: inside.user.clone(), ..exec };
    builtin::run(client, exec, input, stdout)?.map_err(ClientError::Copy)
}

/// Waits for a thread, and returns its result. If the thread has panicked, resumes the panic in this thread.
pub(crate) fn joined<T>(thread: JoinHandle<io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
