//! `cargo xtask vmhost`: runs a command on the virtual host.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::Sender;
use std::time::Duration;

use testbed::prerequisites::{with_busybox, with_program};
use testbed::{VirtualHost, Workspace};
use tool_output::{cargo, say};

use super::{Outcome, setup};

/// The command to run on the virtual host, and its files.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  cargo xtask vmhost --disk target/demo/hello.box=/hello.box -- boxlaunch verify /hello.box"
)]
pub(crate) struct Options {
    /// The virtual host's memory, in MiB.
    #[arg(long, default_value_t = 1024, value_name = "MIB")]
    memory: u32,
    /// A file or directory to copy into the virtual host's memory; without GUEST, at the same path.
    #[arg(long, value_name = "HOST[=GUEST]")]
    file: Vec<String>,
    /// A file or directory that the virtual host mounts read-only, for large data; without GUEST, at the same path.
    #[arg(long, value_name = "HOST[=GUEST]")]
    disk: Vec<String>,
    /// The directory for the files that the command writes to /out.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The time limit of the run, in seconds of real time.
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    time_limit: u64,
    /// The command and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let workspace = Workspace::find();
    let kernel = setup::for_virtual_host(&workspace)?;
    let boxlaunch = cargo::build_boxlaunch(&workspace)?;
    let mut host = VirtualHost::new(&kernel, boxlaunch)
        .memory(options.memory)
        .time_limit(Duration::from_secs(options.time_limit));
    for (source, guest) in options.file.iter().map(|text| host_and_guest(text)) {
        host = with_program(host, &source, &guest)?;
    }
    host = with_busybox(host, &workspace)?;
    for (source, guest) in options.disk.iter().map(|text| host_and_guest(text)) {
        host = host.disk(source, guest);
    }
    say::note("starting the virtual host");
    let output = say::watch_until(|first| {
        let mut out = Announced { to: io::stdout(), first: first.clone() };
        let mut err = Announced { to: io::stderr(), first };
        host.run_live(&options.command, &mut out, &mut err)
    })?;
    if let Some(directory) = &options.out {
        output.write_files(directory)?;
    }
    Ok(ExitCode::from(u8::try_from(output.status).unwrap_or(u8::MAX)))
}

/// Forwards output of the virtual host, and sends a message to `first` when there is some.
struct Announced<W> {
    to: W,
    first: Sender<()>,
}

impl<W: Write> Write for Announced<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.first.send(()).ok(); // the receiver is dropped after the first message
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Splits `HOST=GUEST`. Without a `=`, GUEST is the absolute form of HOST.
fn host_and_guest(text: &str) -> (PathBuf, String) {
    if let Some((host, guest)) = text.split_once('=') {
        return (PathBuf::from(host), guest.to_owned());
    }
    let host = PathBuf::from(text);
    let guest = std::path::absolute(&host).unwrap_or_else(|_| host.clone());
    (host, guest.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn output_is_announced_and_passed_on() {
        let (first, announced) = mpsc::channel();
        let mut output = Announced { to: Vec::new(), first };
        assert!(announced.try_recv().is_err());
        output.write_all(b"one").unwrap();
        announced.try_recv().unwrap();
        drop(announced);
        output.write_all(b" two").unwrap();
        assert_eq!(output.to, b"one two");
    }

    #[test]
    fn a_guest_path_may_be_named() {
        assert_eq!(host_and_guest("a/b=/c"), (PathBuf::from("a/b"), "/c".to_owned()));
        assert_eq!(host_and_guest("/a/b"), (PathBuf::from("/a/b"), "/a/b".to_owned()));
        assert!(host_and_guest("b").1.ends_with("/xtask/b"));
    }
}
