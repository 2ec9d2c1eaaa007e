//! QEMU: its command line, and its process.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::disk::Disk;
use crate::initramfs::sorted_children;
use crate::{HostError, Result, programs};

/// The interval for polling the process.
const POLL: Duration = Duration::from_millis(10);
/// The number of bytes at the end of an output that are kept for messages.
const KEPT: usize = 16 << 10;
/// QEMU's program.
pub const EMULATOR: &str = "qemu-system-x86_64";
/// The oldest version of QEMU that can run a virtual host.
pub const OLDEST_EMULATOR: &str = "7.2";
/// The emulated mainboard.
pub(crate) const MACHINE: &str = "q35";
/// The emulated CPU.
pub(crate) const CPU_MODEL: &str = "EPYC";
/// The number of emulated CPUs. With several CPUs and the instruction counter as the clock, QEMU before version 10
/// runs only the first CPU until the next timer. The CPUs of a box share the emulated CPU without long waits, because
/// each PAUSE leaves the guest.
pub(crate) const CPUS: u8 = 1;
/// The model's features that QEMU 7.2 does not emulate. They are switched off, because later versions may emulate them,
/// and would then emulate another CPU.
const NOT_EMULATED: &str = ",-rdseed,-sha-ni,-fxsr-opt,-misalignsse,-3dnowprefetch,-osvw,-topoext,\
    -nrip-save,-xsavec";
/// The kernel command line: a quiet console, and a reboot at a panic, at which QEMU ends. The clock is exact, so no calibration
/// is needed. The timer of the local APIC cannot be calibrated: the kernel would wait 0.4 s to find that out, in a loop of
/// PAUSEs, which are slow to emulate, and use another timer.
///
/// Programs are at the same addresses in each process: otherwise QEMU would translate a program anew in each process, which was a
/// tenth of the work of a run that starts boxes, and a quarter of one that also starts many commands.
///
/// The second line switches off Debian's hardening, and preemption: they cost a start of a box a tenth of its
/// instructions. Grace periods of RCU are expedited, because otherwise they end at a tick, every 4 ms, and many
/// starts of one box differ by 4 ms. The last lines disable work that the virtual host never uses and that takes a fifth of
/// its start: the tests of cryptographic algorithms, the certificates of signed modules, a source of randomness and the events
/// of probes.
const CMDLINE: &str = "console=ttyS0 quiet panic=-1 mitigations=off nokaslr norandmaps \
    init_on_alloc=0 hardened_usercopy=off randomize_kstack_offset=off lsm=landlock,yama preempt=none \
    rcupdate.rcu_expedited=1 no_timer_check tsc_early_khz=1000000 tsc=reliable nolapic_timer \
    cryptomgr.notests initcall_blacklist=load_system_certificate_list,jent_mod_init,init_kprobe_trace";

/// The hardware, QEMU and the kernel of a virtual host, for reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// QEMU's version in its format: `7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)`.
    pub qemu: String,
    /// The emulated mainboard, by QEMU's name.
    pub machine: String,
    /// The emulated CPU, by QEMU's name.
    pub cpu: String,
    /// The number of emulated CPUs.
    pub cpus: u8,
    /// The version of the virtual host's kernel.
    pub kernel: String,
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { qemu, machine, cpu, cpus, kernel } = self;
        write!(f, "QEMU {qemu}, {machine} {cpu}, {cpus} CPU, kernel {kernel}")
    }
}

/// Returns QEMU's version.
pub(crate) fn version() -> Result<String> {
    let printed = programs::run(Command::new(EMULATOR).arg("--version"))?;
    let line = String::from_utf8_lossy(&printed);
    let version = line.lines().next().and_then(in_line);
    version
        .map(ToOwned::to_owned)
        .ok_or_else(|| HostError::malformed("what qemu --version prints", "it has no version"))
}

/// Passes all that distinguishes this QEMU from another one to `add`: its version, its program, and the names and bytes of its firmware.
///
/// # Errors
/// QEMU is missing, or a file cannot be read.
pub(crate) fn add_identity(mut add: impl FnMut(&[u8])) -> Result<()> {
    add(version()?.as_bytes());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = std::env::split_paths(&path).map(|folder| folder.join(EMULATOR));
    let mut files: Vec<PathBuf> = program.filter(|program| program.is_file()).take(1).collect();
    let folders = programs::run(Command::new(EMULATOR).args(["-L", "help"]))?;
    for folder in String::from_utf8_lossy(&folders).lines().map(Path::new) {
        // A directory of the list may be missing.
        let children = sorted_children(folder).unwrap_or_default();
        files.extend(children.into_iter().filter(|file| is_firmware(file)));
    }
    for file in files {
        add(file.file_name().unwrap_or_default().as_encoded_bytes());
        add(&fs::read(&file).map_err(HostError::file("read", &file))?);
    }
    Ok(())
}

fn is_firmware(file: &Path) -> bool {
    file.is_file() && file.extension().is_some_and(|end| end == "rom" || end == "bin")
}

/// Returns the version in the first line of QEMU's output: `QEMU emulator version 7.2.22 (Debian …)`.
fn in_line(line: &str) -> Option<&str> {
    line.split_once(" version ").map(|(_, version)| version)
}

/// Returns whether the QEMU with this first line of `--version` can run a virtual host.
pub fn is_supported(line: &str) -> bool {
    in_line(line).is_some_and(is_recent)
}

/// Returns whether a QEMU of this version can run a virtual host.
fn is_recent(version: &str) -> bool {
    numbers(version) >= numbers(OLDEST_EMULATOR)
}

/// Checks that QEMU is installed, starts, and is recent enough. A run checks this first, because another program then
/// starts QEMU, whose error does not show that QEMU is missing.
///
/// # Errors
/// QEMU is missing, does not start, or is older than [`OLDEST_EMULATOR`].
pub fn require_qemu() -> Result<()> {
    let version = version()?;
    if is_recent(&version) {
        return Ok(());
    }
    Err(HostError::OldEmulator { version, oldest: OLDEST_EMULATOR })
}

/// Returns the first two numbers of a version.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split(|it: char| !it.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The input for [`command`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) memory_mib: u32,
    pub(crate) kernel: &'a Path,
    pub(crate) initramfs: &'a Path,
    pub(crate) console: &'a Path,
    pub(crate) disks: &'a [Disk],
    /// Whether the second and third serial port are connected to QEMU's standard output and standard error.
    pub(crate) live: bool,
}

/// Returns the command that emulates the host. The clock is the instruction counter, the calendar starts on a fixed
/// day and the random seed is fixed, so that equal inputs take the same virtual time in every run.
///
/// QEMU runs in `/`, because it would load a file of the current directory with the name of its firmware, and a box may
/// have written such a file.
pub(crate) fn command(starter: &[OsString], start: &Start<'_>) -> Command {
    let mut words = starter.iter().map(OsString::as_os_str).chain([OsStr::new(EMULATOR)]);
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).current_dir("/");
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
    command.args(["-M", &format!("{MACHINE},accel=tcg,nvdimm=on"), "-bios", "qboot.rom"]);
    command.args(["-cpu", &format!("{CPU_MODEL}{NOT_EMULATED}"), "-smp", &CPUS.to_string()]);
    command.arg("-kernel").arg(absolute(start.kernel));
    command.arg("-initrd").arg(absolute(start.initramfs));
    command.args(["-icount", "shift=0,sleep=off", "-seed", "1"]);
    command.args(["-rtc", "base=2026-01-01T00:00:00,clock=vm", "-append", CMDLINE]);
    command.arg("-serial").arg(with_path("file:", start.console));
    if start.live {
        command.args(["-serial", "file:/dev/fd/1", "-serial", "file:/dev/fd/2"]);
    }
    add_memory(&mut command, start);
    command
}

/// Adds the memory, and the disks as non-volatile memory.
fn add_memory(command: &mut Command, start: &Start<'_>) {
    let mib: u64 = start.disks.iter().map(|disk| (disk.size >> 20) + 1024).sum();
    let (memory, slots) = (start.memory_mib, start.disks.len());
    command.args(["-m", &format!("{memory}M,slots={slots},maxmem={}M", u64::from(memory) + mib)]);
    for (number, Disk { content, size, writable }) in start.disks.iter().enumerate() {
        let (share, sealed) = if *writable { ("on", "off") } else { ("off", "on") };
        let options = format!(
            "memory-backend-file,id=disk{number},size={size},share={share},readonly={sealed},mem-path="
        );
        command.arg("-object").arg(with_path(&options, &content.path()));
        command.args(["-device", &format!("nvdimm,memdev=disk{number},unarmed={sealed}")]);
    }
}

/// Appends a path to an option. A comma is escaped as two commas.
fn with_path(option: &str, path: &Path) -> OsString {
    let path = absolute(path).to_string_lossy().replace(',', ",,");
    OsString::from(format!("{option}{path}"))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The end of QEMU's process.
#[derive(Debug)]
pub(crate) struct End {
    /// The status. `None` if [`wait`] killed the process.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stderr: Vec<u8>,
}

/// Runs QEMU until it ends or the time limit is reached, and forwards its output.
pub(crate) fn run(
    mut command: Command,
    limit: Duration,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<End> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|source| programs::not_started(&command, source))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let lost = OnceLock::new();
    let (status, stderr) = thread::scope(|scope| {
        scope.spawn(|| stdout.map(|from| copy(from, out, &lost)));
        let written = scope.spawn(|| stderr.map(|from| copy(from, err, &lost)));
        let status = wait(&mut child, limit, &lost);
        (status, written.join().ok().flatten().unwrap_or_default())
    });
    match lost.into_inner() {
        Some(source) => Err(HostError::Output(source)),
        None => Ok(End { status, stderr }),
    }
}

/// Waits for the process. Kills it and returns `None` if the time limit is reached or its output cannot be forwarded.
fn wait(child: &mut Child, limit: Duration, lost: &OnceLock<io::Error>) -> Option<ExitStatus> {
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if started.elapsed() <= limit && lost.get().is_none() => thread::sleep(POLL),
            _ => break,
        }
    }
    // `kill` fails if the process has just ended by itself, which is harmless.
    drop(child.kill());
    drop(child.wait());
    None
}

/// Copies `from` to its end, and returns the last [`KEPT`] bytes for messages. The first error of `to` is stored in `lost`.
fn copy(mut from: impl Read, to: &mut (dyn Write + Send), lost: &OnceLock<io::Error>) -> Vec<u8> {
    let mut copied = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        copied.extend_from_slice(&chunk[..count]);
        let excess = copied.len().saturating_sub(KEPT);
        copied.drain(..excess);
        if let Err(error) = to.write_all(&chunk[..count]).and_then(|()| to.flush()) {
            // Only the first error is kept.
            drop(lost.set(error));
        }
    }
    copied
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn disks_become_memory_and_commas_stay_commas() {
        let disk = |writable| Disk { content: Scratch::new().unwrap(), size: 4 << 20, writable };
        let disks = [disk(true), disk(false)];
        let start = Start {
            memory_mib: 256,
            kernel: Path::new("k"),
            initramfs: Path::new("i"),
            console: Path::new("/c,d"),
            disks: &disks,
            live: false,
        };
        let command = command(&[], &start);
        assert_eq!(command.get_current_dir(), Some(Path::new("/")));
        let line = programs::shown(&command);
        let beside = std::env::current_dir().unwrap().join("k");
        assert!(line.contains(&format!("-kernel {} ", beside.display())), "{line}");
        assert!(line.contains("-serial file:/c,,d -m 256M,slots=2,maxmem=2312M "), "{line}");
        for (disk, options) in disks.iter().zip(["share=on,readonly=off", "share=off,readonly=on"])
        {
            let path = disk.content.path();
            let option = format!("{options},mem-path={} -device", path.display());
            assert!(line.contains(&option), "{line}");
        }
    }

    #[test]
    fn an_older_qemu_is_refused() {
        assert!(is_supported("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)"));
        assert!(is_supported("QEMU emulator version 10.0.2"));
        assert!(!is_supported("QEMU emulator version 6.2.0 (Debian 1:6.2+dfsg-2ubuntu6)"));
        assert!(!is_supported("another program"));
        let old =
            HostError::OldEmulator { version: "6.2.0".into(), oldest: OLDEST_EMULATOR }.to_string();
        assert_eq!(old, "QEMU 6.2.0 is too old: the virtual host needs 7.2 or later");
    }

    #[test]
    fn a_process_that_takes_too_long_is_ended() {
        let mut command = Command::new("sleep");
        command.arg("60");
        let end = run(command, Duration::ZERO, &mut Vec::new(), &mut Vec::new()).unwrap();
        assert!(end.status.is_none());
    }

    #[test]
    fn a_program_whose_output_nobody_takes_is_ended() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut command = Command::new("sh");
        command.args(["-c", "echo line; exec sleep 60"]);
        let error =
            run(command, Duration::from_secs(60), &mut Closed, &mut Vec::new()).unwrap_err();
        assert!(matches!(error, HostError::Output(_)), "{error}");
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
