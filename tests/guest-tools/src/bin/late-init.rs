//! Runs box-init without standard streams, as the kernel does if the console appears late.
#![forbid(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use box_contract::plan::INIT_PATH;
use box_init::boot;
use box_init::error::InitError;
use box_init::time::Clock;
use nix::sys::stat::{fstat, makedev};
use nix::sys::statvfs::{FsFlags, statvfs};

/// The argument of the second start, in which the streams are closed.
const AGAIN: &str = "again";

fn main() -> ExitCode {
    let clock = Clock::start();
    if std::process::id() == 1 && std::env::args().all(|it| it != AGAIN) {
        for stream in 0..3 {
            let _closed = nix::unistd::close(stream);
        }
        // exec returns only on failure. The kernel then panics because init ends.
        drop(Command::new(INIT_PATH).arg(AGAIN).exec());
        return ExitCode::FAILURE;
    }
    if std::process::id() == 1
        && let Err(error) = check()
    {
        return box_init::run_as_init(|_| Err(error));
    }
    box_init::main(clock)
}

/// Checks that the streams were closed, and that `/dev`, which the kernel mounted, gets init's flags. Rust's runtime opens
/// the null device for a closed stream.
fn check() -> Result<(), InitError> {
    let failed = |what: &str, reason: String| InitError::new(what.to_owned(), reason);
    let stream =
        fstat(io::stderr()).map_err(|error| failed("look at a stream", error.to_string()))?;
    if stream.st_rdev != makedev(1, 3) {
        return Err(failed("find the null device", format!("device {:x}", stream.st_rdev)));
    }
    boot::mount_devices()?;
    let flags = statvfs("/dev").map_err(|error| failed("look at /dev", error.to_string()))?.flags();
    if !flags.contains(FsFlags::ST_NOSUID | FsFlags::ST_NOEXEC) {
        return Err(failed("find the flags of /dev", format!("{flags:?}")));
    }
    Ok(())
}
