//! The floor under every startup time: a kernel and an init under libkrun, and nothing else.
//!
//! `krun-floor KERNEL INIT CPUS MEMORY_MIB` boots the ELF kernel with the init, the first root, the
//! console and the control channel that `boxlaunch` gives to a box, but in one process, with no
//! disk and no verification. It prints how long that took, from the program's start to the arrival
//! of init's "ready", as one JSON object: `{"ready_ms": 412.345678}`.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use std::{env, thread};

use box_image::plan::CONTROL_PORT;
use box_image::wire::{GuestMessage, HostMessage, Shutdown};
use boxlaunch::clock::process_start;
use boxlaunch::control::{Channel, Listener, Nonce};
use boxlaunch::krun::{self, PortMode, Vm};
use boxlaunch::runtime_dir::RuntimeDir;
use boxlaunch::vmm::add_first_root;

const USAGE: &str = "usage: krun-floor KERNEL INIT CPUS MEMORY_MIB";

/// The machine to boot.
struct Arguments {
    kernel: PathBuf,
    init: PathBuf,
    cpus: u8,
    memory_mib: u32,
}

fn main() -> ExitCode {
    let Err(error) = boot();
    tell(&*error);
    ExitCode::FAILURE
}

/// Becomes the machine; a thread takes the time.
fn boot() -> Result<std::convert::Infallible, Box<dyn Error>> {
    let started = process_start()?;
    let arguments = parse(env::args().skip(1).collect())?;
    let nonce = Nonce::random()?;
    let runtime = RuntimeDir::create(&env::temp_dir())?;
    let listener = Listener::bind(runtime.socket("control.sock")?)?;
    let vm = configure(&arguments, &nonce, listener.path())?;
    thread::spawn(move || {
        if let Err(error) = measure(started, listener, nonce, runtime) {
            fail(&*error);
        }
    });
    Err(vm.start().into())
}

fn parse(arguments: Vec<String>) -> Result<Arguments, Box<dyn Error>> {
    let [kernel, init, cpus, memory] = <[String; 4]>::try_from(arguments).map_err(|_| USAGE)?;
    Ok(Arguments {
        kernel: kernel.into(),
        init: init.into(),
        cpus: cpus.parse()?,
        memory_mib: memory.parse()?,
    })
}

fn configure(arguments: &Arguments, nonce: &Nonce, control: &Path) -> Result<Vm, Box<dyn Error>> {
    krun::log_to_stderr()?;
    let mut vm = Vm::new(arguments.cpus, arguments.memory_mib)?;
    vm.set_kernel(&arguments.kernel)?;
    add_first_root(&mut vm, std::fs::read(&arguments.init)?, nonce.text())?;
    vm.add_vsock()?;
    vm.add_vsock_port(CONTROL_PORT, control, PortMode::GuestConnects)?;
    Ok(vm)
}

/// Waits for "ready", prints the time, and lets init power off, which ends the process.
fn measure(
    started: Instant,
    listener: Listener,
    nonce: Nonce,
    runtime: RuntimeDir,
) -> Result<(), Box<dyn Error>> {
    let mut channel = Channel::new(listener.accept(std::process::id())?, nonce);
    loop {
        match channel.message()? {
            Some(GuestMessage::Ready(_)) => break,
            Some(other) => return Err(format!("init said {other:?}").into()),
            None if channel.receive()? => {}
            None => return Err("init closed the control channel".into()),
        }
    }
    let ready = started.elapsed();
    // The process ends without destructors.
    drop(runtime);
    writeln!(io::stdout(), "{{\"ready_ms\": {:.6}}}", ready.as_secs_f64() * 1000.0)?;
    channel.send(&HostMessage::Shutdown(Shutdown { grace_ms: 0 }))?;
    // Holds the connection until the machine is gone.
    while channel.receive()? {}
    Ok(())
}

/// Ends the process, which the main thread has made a machine that ends when it likes.
#[expect(clippy::exit, reason = "no other thread can return from main")]
fn fail(error: &dyn Error) -> ! {
    tell(error);
    std::process::exit(1)
}

fn tell(error: &dyn Error) {
    // Nobody is left to tell where that fails.
    drop(writeln!(io::stderr(), "krun-floor: {error}"));
}
