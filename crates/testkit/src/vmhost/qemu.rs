//! The emulator: its command line, and its process.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::disk::Disk;
use crate::{Result, program};

/// How often the process is looked at.
const POLL: Duration = Duration::from_millis(10);

/// The machine's kernel command line. Beside a quiet console and an end at a panic: the clock of
/// the emulator is exact, so nothing is calibrated against anything (`no_timer_check`,
/// `tsc_early_khz`). The local APIC's timer stays: without it the older timers expire so often that
/// the fault that `patiently.sh` tells of hits one boot in ten instead of one in a hundred.
const CMDLINE: &str =
    "console=ttyS0 quiet panic=-1 mitigations=off nokaslr no_timer_check tsc_early_khz=1000000";

/// The machine that [`command`] describes.
#[derive(Debug)]
pub(super) struct Machine<'a> {
    pub(super) memory_mib: u32,
    pub(super) kernel: &'a Path,
    pub(super) initramfs: &'a Path,
    pub(super) console: &'a Path,
    pub(super) disks: &'a [Disk],
    /// Whether the second and third serial port are the emulator's standard output and error.
    pub(super) live: bool,
}

/// Returns the command that emulates a machine.
///
/// One CPU whose clock is its instruction counter, a calendar that starts on a fixed day, and a
/// fixed seed: the same machine takes the same virtual time in every run. `rep movsb` is one
/// instruction on a real CPU and many here, so the guest is told that it is not fast.
pub(super) fn command(machine: &Machine<'_>) -> Command {
    let mut command = Command::new("qemu-system-x86_64");
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
    command.args(["-M", "q35,accel=tcg,nvdimm=on", "-cpu", "max,-erms,-fsrm", "-smp", "1"]);
    command.args(["-icount", "shift=0,sleep=off", "-seed", "1"]);
    command.args(["-rtc", "base=2026-01-01T00:00:00,clock=vm", "-bios", "qboot.rom"]);
    command.arg("-kernel").arg(machine.kernel).arg("-initrd").arg(machine.initramfs);
    command.args(["-append", CMDLINE]);
    command.arg("-serial").arg(with_path("file:", machine.console));
    if machine.live {
        command.args(["-serial", "file:/dev/fd/1", "-serial", "file:/dev/fd/2"]);
    }
    add_memory(&mut command, machine);
    command
}

/// Adds the memory and, as memory that keeps its content, the disks.
fn add_memory(command: &mut Command, machine: &Machine<'_>) {
    let mib: u64 = machine.disks.iter().map(|disk| (disk.size >> 20) + 1024).sum();
    let (memory, slots) = (machine.memory_mib, machine.disks.len());
    command.args(["-m", &format!("{memory}M,slots={slots},maxmem={}M", u64::from(memory) + mib)]);
    for (number, Disk { path, size, writable }) in machine.disks.iter().enumerate() {
        let (share, sealed) = if *writable { ("on", "off") } else { ("off", "on") };
        let options = format!(
            "memory-backend-file,id=disk{number},size={size},share={share},readonly={sealed},mem-path="
        );
        command.arg("-object").arg(with_path(&options, path));
        command.args(["-device", &format!("nvdimm,memdev=disk{number},unarmed={sealed}")]);
    }
}

/// Appends a path to an option. QEMU reads a doubled comma as a comma.
fn with_path(option: &str, path: &Path) -> OsString {
    let path = path.to_string_lossy().replace(',', ",,");
    OsString::from(format!("{option}{path}"))
}

/// How the emulator's process ended.
#[derive(Debug)]
pub(super) struct End {
    /// How it ended; nothing where it was killed at the time limit.
    pub(super) status: Option<ExitStatus>,
    pub(super) stderr: Vec<u8>,
}

/// Runs the emulator to its end or to the time limit, and copies its output as it comes.
pub(super) fn run(
    mut command: Command,
    limit: Duration,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<End> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|source| program::not_started(&command, source))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        scope.spawn(move || stdout.map(|from| copy(from, out)));
        let said = scope.spawn(move || stderr.map(|from| copy(from, err)));
        let status = wait(&mut child, limit);
        let stderr = said.join().ok().flatten().unwrap_or_default();
        Ok(End { status, stderr })
    })
}

/// Waits for the process; returns nothing after it had to be killed.
fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if started.elapsed() <= limit => thread::sleep(POLL),
            _ => break,
        }
    }
    // A process that has just ended by itself cannot be killed, and need not.
    drop(child.kill());
    drop(child.wait());
    None
}

/// Copies until the end, and returns what was copied. A reader that has gone away loses its part.
fn copy(mut from: impl Read, to: &mut (dyn Write + Send)) -> Vec<u8> {
    let mut copied = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        copied.extend_from_slice(&chunk[..count]);
        drop(to.write_all(&chunk[..count]).and_then(|()| to.flush()));
    }
    copied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_become_memory_and_commas_stay_commas() {
        let disk = |path: &str, writable| Disk { path: path.into(), size: 4 << 20, writable };
        let machine = Machine {
            memory_mib: 256,
            kernel: Path::new("k"),
            initramfs: Path::new("i"),
            console: Path::new("c,d"),
            disks: &[disk("r", true), disk("a,b", false)],
            live: false,
        };
        let line = program::shown(&command(&machine));
        assert!(line.contains("-serial file:c,,d -m 256M,slots=2,maxmem=2312M "), "{line}");
        assert!(line.contains("share=on,readonly=off,mem-path=r -device"), "{line}");
        assert!(line.contains("share=off,readonly=on,mem-path=a,,b -device"), "{line}");
    }

    #[test]
    fn a_process_that_takes_too_long_is_ended() {
        let mut command = Command::new("sleep");
        command.arg("60");
        let end = run(command, Duration::ZERO, &mut Vec::new(), &mut Vec::new()).unwrap();
        assert!(end.status.is_none());
    }

    #[test]
    fn output_is_passed_on_and_kept() {
        let mut command = Command::new("sh");
        command.args(["-c", "printf out; printf err >&2"]);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let end = run(command, Duration::from_secs(60), &mut out, &mut err).unwrap();
        assert!(end.status.is_some_and(|status| status.success()));
        assert_eq!((out, err, end.stderr), (b"out".to_vec(), b"err".to_vec(), b"err".to_vec()));
    }
}
