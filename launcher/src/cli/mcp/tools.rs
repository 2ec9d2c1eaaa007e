//! Performs the calls of tools. A call that fails, such as one of a box that does not run, has a result with `isError`, so that the model
//! sees the reason. A command that exits with another status than 0 has not failed as a call.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use box_contract::ComponentName;
use box_contract::wire::{Exec, Exited, Follow};
use box_copy::FirstEntry;
use boxlaunch::boxes::{Boxes, Record, State};
use boxlaunch::client::copy::Inside;
use boxlaunch::client::files::{list_directory, read_file, write_file};
use boxlaunch::client::{Client, ClientError, CommandSetup};
use boxlaunch::streams::output::Route;
use cli_common::Problem;
use serde_json::{Value, json};
use vmm::signals::StopSignals;

use super::arguments::{
    Encoding, ExecArguments, ListArguments, LogsArguments, ReadArguments, Tool, WriteArguments,
};
use crate::cli::command;
use crate::cli::error::{Failure, usage};
use crate::cli::exec::in_project;
use crate::cli::launch_error::LaunchError;
use crate::cli::logs::{last_lines, read_error};
use crate::cli::ls;
use crate::cli::paths;

/// How much of each output stream, and of the log, a result has at most, in bytes.
const MAX_OUTPUT: usize = 128 << 10;
/// How much of a file a result has at most, in bytes.
const MAX_FILE: usize = 1 << 20;
/// How many entries of a directory a result has at most.
const MAX_ENTRIES: usize = 1000;
/// How many symbolic links are followed to a file.
const MAX_LINKS: usize = 16;
/// How long a box may take to read, write or list.
const PATIENCE: Duration = Duration::from_secs(60);
/// The interval between two looks at whether a command is cancelled.
const LOOK: Duration = Duration::from_millis(100);

/// Performs a call in the box `name`. `None` if the call was cancelled.
pub(super) fn call(tool: &Tool, name: &str, cancelled: &AtomicBool) -> Option<Value> {
    if cancelled.load(Ordering::Relaxed) {
        return None;
    }
    let called = match tool {
        Tool::Exec(arguments) => exec(arguments, name, cancelled).transpose()?,
        Tool::ReadFile(arguments) => read(arguments, name),
        Tool::WriteFile(arguments) => write(arguments, name),
        Tool::ListDirectory(arguments) => list(arguments, name),
        Tool::Logs(arguments) => logs(arguments, name),
    };
    Some(called.unwrap_or_else(|error| failed(&error)))
}

/// Returns the result of a call that failed.
fn failed(error: &Failure) -> Value {
    let text: String = error.problems().iter().map(Problem::text).collect();
    failed_with(text.trim_end())
}

/// Returns the result of a call that failed for this reason.
pub(super) fn failed_with(reason: &str) -> Value {
    json!({ "content": [text_content(reason)], "isError": true })
}

fn text_content(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Returns the result of a call that has an object. The text of the object is for clients of older revisions.
fn structured(object: &Value, is_error: bool) -> Value {
    let content = [text_content(&object.to_string())];
    json!({ "content": content, "structuredContent": object, "isError": is_error })
}

/// Connects to a box, and does `work` with the connection and with the component that `component` means.
fn connected<T>(
    name: &str,
    component: Option<ComponentName>,
    work: impl FnOnce(&mut Client<'_>, ComponentName, &Record) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let record = Boxes::new(&paths::state()?).find(name)?;
    if record.state == State::Starting {
        return Err(LaunchError::StillStarting(record.name).into());
    }
    let component = command::component(component, |it| record.components.contains(&it))?;
    // Blocks the signals in this thread only, so they still end the program.
    let signals = StopSignals::block()?;
    let mut client = Client::connect(&record, Follow::Nothing, &signals)?;
    client.give_up_after(PATIENCE);
    work(&mut client, component, &record)
}

/// Runs a command. `None` if it was cancelled: the end of the connection kills it.
fn exec(
    arguments: &ExecArguments,
    name: &str,
    cancelled: &AtomicBool,
) -> Result<Option<Value>, Failure> {
    connected(name, arguments.component, |client, component, record| {
        let workdir = arguments.workdir.clone().map(OsString::from);
        let exec = Exec {
            workdir: workdir.or_else(|| in_project(record)),
            user: arguments.user.clone(),
            timeout_ms: arguments.timeout_ms(),
            ..Exec::new(component, arguments.argv())
        };
        let mut output = Route::capture_within(MAX_OUTPUT);
        client.give_up_after(LOOK);
        let setup = CommandSetup { exec, input: None, tty: None, output: &mut output };
        let mut ended = client.exec(setup, &mut Route::Nowhere);
        while matches!(ended, Err(ClientError::NoAnswer)) {
            if cancelled.load(Ordering::Relaxed) {
                return Ok(None);
            }
            client.give_up_after(LOOK);
            ended = client.wait_for_command(&mut output, &mut Route::Nowhere);
        }
        Ok(Some(reported(ended?, &output)))
    })
}

/// Returns the result of a command. The end at its time limit is an error, because the command is incomplete.
fn reported(exit: Exited, output: &Route) -> Value {
    let mut object = json!(output.captured());
    object["status"] = json!(exit.code());
    object["timed_out"] = json!(exit.timed_out);
    object["oom_killed"] = json!(exit.oom_killed);
    structured(&object, exit.timed_out)
}

/// Reads a file, also through symbolic links.
fn read(arguments: &ReadArguments, name: &str) -> Result<Value, Failure> {
    let mut path = OsString::from(&arguments.path);
    for _ in 0..MAX_LINKS {
        let entry = connected(name, arguments.component, |client, component, _| {
            let inside = Inside { component, user: arguments.user.clone(), path: &path };
            Ok(read_file(client, &inside, MAX_FILE)?)
        })?;
        match entry {
            FirstEntry::File { size, content } => return content_of(arguments, size, &content),
            FirstEntry::Link(target) => path = linked(&path, &target),
            FirstEntry::Other => {
                return Err(usage("the path leads to no file", "list_directory lists directories"));
            }
        }
    }
    Err(usage("the path leads through too many symbolic links", "read the file that they lead to"))
}

/// Returns the path to which the symbolic link at `path` leads.
fn linked(path: &OsStr, target: &[u8]) -> OsString {
    let above = Path::new(path).parent().unwrap_or(Path::new("."));
    above.join(OsStr::from_bytes(target)).into_os_string()
}

/// Returns the result with the content of a file of `size` bytes, of which `content` is the beginning.
fn content_of(arguments: &ReadArguments, size: u64, content: &[u8]) -> Result<Value, Failure> {
    let length = content.len();
    let is_whole = u64::try_from(length).is_ok_and(|it| it == size);
    let text = match arguments.encoding {
        Encoding::Base64 => BASE64_STANDARD.encode(content),
        Encoding::Utf8 => text_of(content, is_whole)?.to_owned(),
    };
    let mut content = vec![text_content(&text)];
    if !is_whole {
        let note = format!("Truncated: these are the first {length} of {size} bytes.");
        content.push(text_content(&note));
    }
    Ok(json!({ "content": content, "isError": false }))
}

/// Returns a content as text. If it is not whole, it may end in the middle of a character, which is left out.
fn text_of(content: &[u8], is_whole: bool) -> Result<&str, Failure> {
    str::from_utf8(content).or_else(|error| {
        let valid = content.get(..error.valid_up_to()).map(str::from_utf8);
        match valid {
            Some(Ok(text)) if !is_whole && error.error_len().is_none() => Ok(text),
            _ => Err(usage("the file is not UTF-8", "read it with the encoding base64")),
        }
    })
}

fn write(arguments: &WriteArguments, name: &str) -> Result<Value, Failure> {
    let content = arguments.bytes().map_err(|reason| usage(&reason, "encode the content"))?;
    connected(name, arguments.component, |client, component, _| {
        let (user, path) = (arguments.user.clone(), OsStr::new(&arguments.path));
        let inside = Inside { component, user, path };
        Ok(write_file(client, &inside, arguments.mode(), &content)?)
    })?;
    let text = format!("{} bytes were written to {}", content.len(), arguments.path);
    Ok(json!({ "content": [text_content(&text)], "isError": false }))
}

fn list(arguments: &ListArguments, name: &str) -> Result<Value, Failure> {
    let listing = connected(name, arguments.component, |client, component, _| {
        let (user, path) = (arguments.user.clone(), OsStr::new(&arguments.path));
        Ok(list_directory(client, &Inside { component, user, path })?)
    })?;
    let mut room = MAX_OUTPUT;
    let fits = |it: &Value| {
        room = room.saturating_sub(it.to_string().len());
        room > 0
    };
    let all = listing.entries.iter().take(MAX_ENTRIES).map(ls::object);
    let entries: Vec<_> = all.take_while(fits).collect();
    let truncated = listing.truncated || listing.entries.len() > entries.len();
    Ok(structured(&json!({ "entries": entries, "truncated": truncated }), false))
}

/// Returns the last lines of a component's log. The box need not run.
fn logs(arguments: &LogsArguments, name: &str) -> Result<Value, Failure> {
    let boxes = Boxes::new(&paths::state()?);
    let record = boxes.find(name)?;
    let component = arguments.component.unwrap_or(ComponentName::Agent);
    let (mut log, mut entries) = (boxes.log(&record.name, component), Vec::new());
    while let Some(entry) = log.next_entry().map_err(read_error)? {
        entries.push(entry);
    }
    let lines = last_lines(entries, arguments.lines);
    let bytes: Vec<u8> = lines.into_iter().flat_map(|it| it.data).collect();
    let first = bytes.len().saturating_sub(MAX_OUTPUT);
    let text = String::from_utf8_lossy(&bytes[first..]);
    Ok(structured(&json!({ "text": text, "truncated": first > 0 }), false))
}

#[cfg(test)]
mod tests {
    use box_contract::wire::{ProgramId, Stream};

    use super::*;

    fn exited(status: u8, timed_out: bool) -> Exited {
        let id = ProgramId::COMMAND;
        Exited { id, status, oom_killed: false, disk_full: false, timed_out, fenced: None }
    }

    #[test]
    fn a_status_is_a_result_and_a_time_limit_an_error() {
        let mut output = Route::capture_within(3);
        output.write(Stream::Stdout, b"output").unwrap();
        let result = reported(exited(7, false), &output);
        let object = &result["structuredContent"];
        assert_eq!(
            (&object["status"], &object["stdout"]),
            (&json!(7), &json!("ou\n[… 3 bytes left out …]\nt"))
        );
        assert_eq!((&object["truncated"], &result["isError"]), (&json!(true), &json!(false)));
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(&serde_json::from_str::<Value>(text).unwrap(), object);
        let late = reported(exited(137, true), &output);
        assert_eq!(
            (&late["isError"], &late["structuredContent"]["status"]),
            (&json!(true), &json!(124))
        );
    }

    #[test]
    fn a_content_is_text_or_base64_and_says_if_it_is_truncated() {
        let of = |encoding: &str, size: u64, content: &[u8]| {
            let arguments =
                json!({ "name": "read_file", "arguments": { "path": "/a", "encoding": encoding } });
            let Ok(Tool::ReadFile(arguments)) = Tool::parse(arguments.as_object().unwrap().clone())
            else {
                panic!()
            };
            content_of(&arguments, size, content)
        };
        let text =
            |value: &Value, at: usize| value["content"][at]["text"].as_str().unwrap().to_owned();
        let whole = of("utf-8", 3, b"abc").unwrap();
        assert_eq!(
            (text(&whole, 0).as_str(), whole["content"].as_array().unwrap().len()),
            ("abc", 1)
        );
        let cut = of("utf-8", 9, "aä".as_bytes().get(..2).unwrap()).unwrap();
        assert_eq!(text(&cut, 0), "a");
        assert_eq!(text(&cut, 1), "Truncated: these are the first 2 of 9 bytes.");
        assert_eq!(text(&of("base64", 1, &[0xFF]).unwrap(), 0), "/w==");
        let error = failed(&of("utf-8", 1, &[0xFF]).unwrap_err());
        assert_eq!(error["isError"], true);
        assert!(text(&error, 0).contains("read it with the encoding base64"), "{error}");
        of("utf-8", 2, "ä".as_bytes().get(..1).unwrap()).unwrap();
    }

    #[test]
    fn a_link_begins_where_it_is() {
        let to = |path: &str, target: &str| linked(OsStr::new(path), target.as_bytes());
        assert_eq!(to("/etc/os-release", "../usr/lib/os-release"), "/etc/../usr/lib/os-release");
        assert_eq!(to("/a/b", "/c"), "/c");
        assert_eq!(to("a", "b"), "b");
    }
}
