//! The table of calls as a [classic BPF](https://docs.kernel.org/networking/filter.html) program, computed at compile
//! time, so that init starts fast.
//!
//! The program does a binary search for the range that contains a call's number. All calls of a range have the same
//! verdict. The search halves the range of numbers and not the list of ranges: when a filter is installed, the kernel
//! runs it once for every number, to cache which calls are always allowed.

use nix::libc::{self, sock_filter};

use super::calls::Verdict;
use super::ranges::{RANGES, TABLE};

/// `AUDIT_ARCH_X86_64`: `EM_X86_64`, 64 bit, little-endian (`linux/audit.h`).
const ARCH_X86_64: u32 = 62 | 0x8000_0000 | 0x4000_0000;

/// Offsets in `struct seccomp_data`. The filter reads only the low half of an argument, because the kernel ignores the
/// high half of all arguments that the filter checks.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;
const SECOND_ARGUMENT: u32 = 24;

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const ANY_BIT: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K

/// The results of the filter. The last instructions of the program return them, one each.
const ANSWERS: [u32; 4] = [
    libc::SECCOMP_RET_ALLOW,
    refuse(libc::EPERM),
    refuse(libc::ENOSYS),
    refuse(libc::EAFNOSUPPORT),
];
const ALLOW: usize = 0;
const EPERM: usize = 1;
const ENOSYS: usize = 2;
const EAFNOSUPPORT: usize = 3;

/// A check of an argument against several values. `then` is the result if the test is true for one of them, `otherwise`
/// if it is true for none. Both are indices into [`ANSWERS`].
struct ArgumentCheck {
    argument: u32,
    test: u16,
    values: &'static [u32],
    then: usize,
    otherwise: usize,
}

/// `AF_UNIX`, `AF_INET`, `AF_INET6`, `AF_NETLINK`, `AF_PACKET`.
const FAMILIES: ArgumentCheck = ArgumentCheck {
    argument: FIRST_ARGUMENT,
    test: EQUAL,
    values: &[1, 2, 10, 16, 17],
    then: ALLOW,
    otherwise: EAFNOSUPPORT,
};
/// All `CLONE_NEW…` flags of `clone`. (In `clone`, the bit of `CLONE_NEWTIME` belongs to the exit signal.)
const CLONE_FLAGS: ArgumentCheck = ArgumentCheck {
    argument: FIRST_ARGUMENT,
    test: ANY_BIT,
    values: &[0x7E02_0000],
    then: EPERM,
    otherwise: ALLOW,
};
/// `PER_LINUX` and `PER_LINUX32`, each with and without `UNAME26`, and `0xFFFFFFFF`, which queries the personality
/// ([personality(2)](https://man7.org/linux/man-pages/man2/personality.2.html)).
const PERSONALITIES: ArgumentCheck = ArgumentCheck {
    argument: FIRST_ARGUMENT,
    test: EQUAL,
    values: &[0, 8, 0x2_0000, 0x2_0008, u32::MAX],
    then: ALLOW,
    otherwise: EPERM,
};
/// `TIOCSTI` ([ioctl_tty(2)](https://man7.org/linux/man-pages/man2/ioctl_tty.2.html)) and `TIOCLINUX`
/// ([ioctl_console(2)](https://man7.org/linux/man-pages/man2/ioctl_console.2.html)).
const REQUESTS: ArgumentCheck = ArgumentCheck {
    argument: SECOND_ARGUMENT,
    test: EQUAL,
    values: &[0x5412, 0x541C],
    then: EPERM,
    otherwise: ALLOW,
};
const LOOKS: [ArgumentCheck; 4] = [FAMILIES, CLONE_FLAGS, PERSONALITIES, REQUESTS];

/// The indices of the search's first instruction, and of the first one after it. The search has one instruction for each
/// border between two ranges.
const BEFORE: usize = 3;
const AFTER: usize = BEFORE + RANGES - 1;
const FIRST_ANSWER: usize = first_of_look(LOOKS.len());
const LENGTH: usize = FIRST_ANSWER + ANSWERS.len();

pub(super) const PROGRAM: [sock_filter; LENGTH] = program();

const fn program() -> [sock_filter; LENGTH] {
    let mut program = [answer(0); LENGTH];
    program[0] = load(ARCH);
    // Calls of another architecture, such as a 32-bit program's, fail with `ENOSYS`. So do x32's: their numbers are in
    // the last range.
    program[1] = test(1, EQUAL, ARCH_X86_64, 2, FIRST_ANSWER + ENOSYS);
    program[2] = load(NUMBER);
    program = search(program, BEFORE, 0, RANGES);
    let mut index = 0;
    while index < LOOKS.len() {
        program = look(program, index);
        index += 1;
    }
    index = 0;
    while index < ANSWERS.len() {
        program[FIRST_ANSWER + index] = answer(ANSWERS[index]);
        index += 1;
    }
    program
}

/// Writes the search in the ranges `low..high` to the program, from the index `at`. For n ranges, it has n - 1
/// instructions: a test, the search in the lower half, and the search in the upper half.
const fn search(
    mut program: [sock_filter; LENGTH],
    at: usize,
    low: usize,
    high: usize,
) -> [sock_filter; LENGTH] {
    if high - low < 2 {
        return program;
    }
    let middle = middle(low, high);
    let lower = if middle - low == 1 { target(TABLE[low].verdict) } else { at + 1 };
    let after = at + middle - low;
    let upper = if high - middle == 1 { target(TABLE[middle].verdict) } else { after };
    program[at] = test(at, AT_LEAST, TABLE[middle].first, upper, lower);
    search(search(program, at + 1, low, middle), after, middle, high)
}

/// Returns the index of the first range in the upper half of the numbers from `low` to `high`.
const fn middle(low: usize, high: usize) -> usize {
    let last = if high < RANGES { TABLE[high].first } else { TABLE[RANGES - 1].first };
    let half = u32::midpoint(TABLE[low].first, last);
    let mut middle = low + 1;
    while middle + 1 < high && TABLE[middle].first < half {
        middle += 1;
    }
    middle
}

/// Returns the index of the first instruction for a verdict.
const fn target(verdict: Verdict) -> usize {
    match verdict {
        Verdict::Allowed => FIRST_ANSWER + ALLOW,
        Verdict::Refused => FIRST_ANSWER + EPERM,
        Verdict::Absent => FIRST_ANSWER + ENOSYS,
        Verdict::ByFamily => first_of_look(0),
        Verdict::ByCloneFlags => first_of_look(1),
        Verdict::ByPersonality => first_of_look(2),
        Verdict::ByRequest => first_of_look(3),
    }
}

/// Returns the index of the first instruction of a check.
const fn first_of_look(index: usize) -> usize {
    if index == 0 { AFTER } else { first_of_look(index - 1) + 1 + LOOKS[index - 1].values.len() }
}

/// Writes the instructions of a check into the program.
const fn look(mut program: [sock_filter; LENGTH], index: usize) -> [sock_filter; LENGTH] {
    let (look, mut at, mut value) = (&LOOKS[index], first_of_look(index), 0);
    program[at] = load(look.argument);
    while value < look.values.len() {
        at += 1;
        let is_last = value + 1 == look.values.len();
        let otherwise = if is_last { FIRST_ANSWER + look.otherwise } else { at + 1 };
        program[at] = test(at, look.test, look.values[value], FIRST_ANSWER + look.then, otherwise);
        value += 1;
    }
    program
}

const fn load(offset: u32) -> sock_filter {
    sock_filter { code: LOAD, jt: 0, jf: 0, k: offset }
}

/// Returns the test for the index `at`. The next instruction has the index `then` if the test is true, or else
/// `otherwise`.
const fn test(at: usize, code: u16, value: u32, then: usize, otherwise: usize) -> sock_filter {
    sock_filter { code, jt: skip(at, then), jf: skip(at, otherwise), k: value }
}

/// Returns how many instructions are skipped by a jump from the index `at` to the index `to`.
#[allow(clippy::cast_possible_truncation, reason = "it is looked at first")]
const fn skip(at: usize, to: usize) -> u8 {
    assert!(to > at && to - at - 1 <= u8::MAX as usize, "a jump is too long");
    (to - at - 1) as u8
}

const fn answer(verdict: u32) -> sock_filter {
    sock_filter { code: RETURN, jt: 0, jf: 0, k: verdict }
}

const fn refuse(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.cast_unsigned()
}
