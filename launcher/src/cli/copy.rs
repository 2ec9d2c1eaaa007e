//! `boxlaunch cp`: files between a box that runs and this host.

use std::io::{IsTerminal as _, stdout};
use std::path::Path;
use std::rc::Rc;

use box_image::wire::Follow;
use box_image::{ComponentName, ErrorCode};
use boxlaunch::boxes::{Boxes, is_name};
use boxlaunch::client::Client;
use boxlaunch::copy::{Inside, archive_from_box, archive_to_box, from_box, to_box};
use boxlaunch::input::Input;
use boxlaunch::signals::StopSignals;

use super::command::{component, own_input, user};
use super::error::CommandError;
use super::paths;
use super::run::component_name;
use super::screen::Screen;
use super::terminal::is_quiet;

/// The path that stands for a stream.
const STREAM: &str = "-";

/// Copies a file or a directory between a box that runs and this host.
///
/// One of SOURCE and DESTINATION is NAME:PATH. What is copied arrives in DESTINATION if that is a directory, else as
/// DESTINATION; of a SOURCE that ends with `/.`, what is in the directory. Directories are merged, files are replaced.
/// Symbolic links are copied as such, out of a box only those that lead to a place within the copy; devices, pipes and
/// sockets are left out. Copies belong to the user who writes them. An archive has to be in the format of GNU tar.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch cp ./input.csv hello:/tmp
  boxlaunch cp --in agent hello:/agent/out ./out
  boxlaunch cp hello:/workspace/. - | tar -t")]
pub(crate) struct CopyArgs {
    /// The path to copy, or `-` for a tar archive from standard input.
    #[arg(value_name = "SOURCE")]
    from: String,
    /// Where to, or `-` for a tar archive on standard output.
    #[arg(value_name = "DESTINATION")]
    to: String,
    /// The component whose files are meant [default: business where the box has one, else agent].
    #[arg(long = "in", value_parser = component_name(), value_name = "COMPONENT")]
    component: Option<ComponentName>,
    /// The user that reads or writes in the box: a name of the component, or a number [default: the component's].
    #[arg(short, long, value_name = "USER[:GROUP]", value_parser = user)]
    user: Option<String>,
}

pub(crate) fn copy(args: &CopyArgs) -> Result<u8, CommandError> {
    let signals = Rc::new(StopSignals::block()?);
    // An archive, which is for no terminal.
    let screen = Screen::new(&signals, true)?;
    let code = match copied(args, &signals, &screen) {
        Ok(said) if said.is_empty() || is_quiet() => 0,
        Ok(said) => {
            screen.notice(&format!("boxlaunch: {said}\n"));
            0
        }
        Err(error) => screen.report(&error, false),
    };
    Ok(screen.close(code))
}

fn copied(args: &CopyArgs, signals: &StopSignals, screen: &Screen) -> Result<String, CommandError> {
    let (from, to) = (args.from.as_str(), args.to.as_str());
    let ((Some((name, path)), None) | (None, Some((name, path)))) = (in_box(from), in_box(to))
    else {
        return Err(misplaced(from, to));
    };
    if to == STREAM && stdout().is_terminal() {
        let help = "redirect it, as to `| tar -t`";
        return Err(CommandError::new(
            (ErrorCode::Usage, help),
            "an archive is not for a terminal",
        ));
    }
    let record = Boxes::new(&paths::state()?).find(name)?;
    let component = component(args.component, |name| record.components.contains(&name))?;
    let mut client = Client::connect(&record, Follow::Nothing, signals)?;
    let inside = Inside { component, user: args.user.clone(), path };
    let said = match (in_box(from).is_some(), from, to) {
        (true, _, STREAM) => archive_from_box(&mut client, &inside, screen.program_stdout()),
        (true, ..) => from_box(&mut client, &inside, Path::new(to)),
        (false, STREAM, _) => archive_to_box(&mut client, Input::new(own_input()?), &inside),
        (false, ..) => to_box(&mut client, Path::new(from), &inside),
    };
    said.map_err(CommandError::from)
}

/// Returns the error of two paths of which not exactly one is in a box.
fn misplaced(from: &str, to: &str) -> CommandError {
    let without = |text: &str| text.strip_suffix(':').is_some_and(is_name);
    let (message, help) = if in_box(from).is_some() {
        ("both paths are in a box", "copy to this host first")
    } else if without(from) || without(to) {
        (
            "the path after the box's name is missing",
            "`NAME:.` is the component's working directory, `NAME:/tmp` an absolute path",
        )
    } else {
        (
            "neither path is in a box",
            "write one of them as NAME:PATH; a path of this host with a colon is ./PATH",
        )
    };
    CommandError::new((ErrorCode::Usage, help), message)
}

/// Splits `NAME:PATH`; `None` for a path of this host.
fn in_box(text: &str) -> Option<(&str, &str)> {
    text.split_once(':').filter(|(name, path)| is_name(name) && !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_named_before_a_colon_and_a_path_of_the_host_has_a_slash_there() {
        assert_eq!(in_box("hello:/tmp/a:b"), Some(("hello", "/tmp/a:b")));
        assert_eq!(in_box("hello:out"), Some(("hello", "out")));
        for path in ["./a:b", "/a:b", "a", "hello:", ":a", "-"] {
            assert_eq!(in_box(path), None, "{path}");
        }
    }
}
