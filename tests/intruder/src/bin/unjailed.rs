//! Runs a VM without the jail. With it, a test of the jail shows which attacks succeed without the jail.
//!
//! `unjailed KERNEL READ-ONLY WRITABLE` boots KERNEL with two shares, as this user and in this user's namespaces.
//! `unjailed listen SOCKET` listens on a Unix socket of the host.
#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, reason = "it is a program for tests to read")]

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::ExitCode;

use vmm::krun::{self, KrunError, ShareMode, Vm};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["listen", socket] => listen(socket),
        [kernel, read_only, writable] => {
            let vm = prepare(kernel, read_only, writable);
            eprintln!("{}", vm.map_or_else(|error| error, Vm::start));
        }
        _ => eprintln!("usage: unjailed KERNEL READ-ONLY WRITABLE | listen SOCKET"),
    }
    ExitCode::FAILURE
}

/// Listens on `socket`, and reports the first connection, which no guest may make.
fn listen(socket: &str) {
    let listener = UnixListener::bind(socket);
    let connected = listener.and_then(|it| it.accept());
    eprintln!("somebody connected: {connected:?}");
}

fn prepare(kernel: &str, read_only: &str, writable: &str) -> Result<Vm, KrunError> {
    krun::log_to_stderr()?;
    let mut vm = Vm::new(1, 256)?;
    vm.set_kernel(Path::new(kernel))?;
    vm.add_memory_root()?;
    vm.add_share("read-only", Path::new(read_only), ShareMode::ReadOnly)?;
    vm.add_share("writable", Path::new(writable), ShareMode::ReadWrite)?;
    Ok(vm)
}
