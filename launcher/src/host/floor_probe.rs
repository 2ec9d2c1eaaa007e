//! Measures the lower bound of every start: a kernel with an init that only connects to the host.
//!
//! No box with the same kernel starts faster on the same host, because a box also has to start its init, its disk and
//! its agent.

use std::path::{Path, PathBuf};
use std::thread;

use box_contract::plan::CONTROL_PORT;
use host_fs::OsError;

use crate::host::elf::{self, Access};
use crate::streams::StreamError;
use crate::streams::control::Listener;
use vmm::krun::{self, PortMode, Vm};
use vmm::runtime_dir::RuntimeDir;
use vmm::{CONTROL_SOCKET, Nonce, VmmError, add_first_root};

/// The hidden subcommand that measures the floor: `boxlaunch floor KERNEL CPUS MEMORY_MIB`.
pub const SUBCOMMAND: &str = "floor";

/// The address at which the init is loaded.
const LOAD: u64 = 0x40_0000;
/// The init's code, followed by the address to which it connects: the control port of the host.
#[rustfmt::skip]
const CODE: [u8; 65] = [
    0xbf, 0x28, 0x00, 0x00, 0x00,             // mov edi, 40        AF_VSOCK
    0xbe, 0x01, 0x00, 0x00, 0x00,             // mov esi, 1         SOCK_STREAM
    0x31, 0xd2,                               // xor edx, edx
    0xb8, 0x29, 0x00, 0x00, 0x00,             // mov eax, 41        socket(2)
    0x0f, 0x05,                               // syscall
    0x89, 0xc7,                               // mov edi, eax
    0x48, 0x8d, 0x35, 0x15, 0x00, 0x00, 0x00, // lea rsi, [rip + 21]
    0xba, 0x10, 0x00, 0x00, 0x00,             // mov edx, 16        the size of sockaddr_vm
    0xb8, 0x2a, 0x00, 0x00, 0x00,             // mov eax, 42        connect(2)
    0x0f, 0x05,                               // syscall
    0xb8, 0x22, 0x00, 0x00, 0x00,             // mov eax, 34        pause(2)
    0x0f, 0x05,                               // syscall
    0xeb, 0xf7,                               // jmp -9             to pause(2)
    0x28, 0x00, 0x00, 0x00,                   // svm_family, svm_reserved1
    PORT[0], PORT[1], PORT[2], PORT[3],       // svm_port
    0x02, 0x00, 0x00, 0x00,                   // svm_cid: the host (vsock(7))
    0x00, 0x00, 0x00, 0x00,                   // svm_flags, svm_zero
];
const PORT: [u8; 4] = CONTROL_PORT.to_le_bytes();

/// The VM whose start is measured.
#[derive(Debug)]
pub struct Floor {
    /// The ELF kernel.
    pub kernel: PathBuf,
    /// The number of virtual CPUs.
    pub cpus: u8,
    /// The guest's memory in MiB.
    pub memory_mib: u32,
}

impl Floor {
    /// Parses the arguments of [`SUBCOMMAND`]; returns `None` if they are invalid.
    pub fn parse(arguments: &[String]) -> Option<Self> {
        let [kernel, cpus, memory] = arguments else { return None };
        let (cpus, memory_mib) = (cpus.parse().ok()?, memory.parse().ok()?);
        Some(Self { kernel: kernel.into(), cpus, memory_mib })
    }

    /// Turns this process into the VM, and returns only if the VM cannot start. When init has connected, or the wait
    /// for it has failed, another thread calls `arrived`, which should end the process.
    pub fn enter(
        &self,
        base: &Path,
        arrived: impl FnOnce(Result<(), StreamError>) + Send + 'static,
    ) -> VmmError {
        let started = self.configure(base).and_then(|(vm, listener, directory)| {
            let wait = move || {
                let connection = listener.accept(std::process::id());
                // `arrived` ends the process, so the destructor of `directory` would not run.
                drop(directory);
                arrived(connection.map(drop));
            };
            let waiting = thread::Builder::new().spawn(wait);
            waiting.map_err(OsError::system("start a thread"))?;
            Ok(vm.start())
        });
        started.map_or_else(|error| error, VmmError::from)
    }

    fn configure(&self, base: &Path) -> Result<(Vm, Listener, RuntimeDir), VmmError> {
        krun::log_to_stderr()?;
        let directory = RuntimeDir::create(base)?;
        let listener = Listener::bind(directory.socket(CONTROL_SOCKET)?)?;
        let mut vm = Vm::new(self.cpus, self.memory_mib)?;
        vm.set_kernel(&self.kernel)?;
        // This init reads neither the nonce nor the config.
        let nonce = Nonce::random()?;
        add_first_root(&mut vm, init().leak(), b"{}", (nonce.text(), false))?;
        vm.add_vsock()?;
        vm.add_vsock_port(CONTROL_PORT, listener.path(), PortMode::GuestConnects)?;
        Ok((vm, listener, directory))
    }
}

/// Returns the init's executable.
fn init() -> Vec<u8> {
    elf::executable(LOAD, Access::Execute, &CODE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_init_is_a_program_that_any_linux_starts() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("init");
        std::fs::write(&path, init()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        // With or without a host, init waits and has to be killed.
        let mut child = std::process::Command::new(&path).spawn().unwrap();
        thread::sleep(std::time::Duration::from_millis(100));
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn arguments_are_a_kernel_and_two_numbers() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let floor = Floor::parse(&words("/kernel 2 256")).unwrap();
        assert_eq!((floor.cpus, floor.memory_mib), (2, 256));
        assert!(Floor::parse(&words("/kernel 2")).is_none());
        assert!(Floor::parse(&words("/kernel 2 much")).is_none());
    }
}
