//! The table of calls as a classic BPF program, put together by the compiler: init starts fast.
//!
//! The calls are divided into ranges of numbers with one verdict, and the program looks for the range by
//! halves. A half is one of the numbers: when a filter is installed, the kernel tries it on every number to remember what is
//! always allowed.

use nix::libc::{self, sock_filter};

use super::calls::Verdict;
use super::ranges::{RANGES, TABLE};

/// `AUDIT_ARCH_X86_64`: `EM_X86_64`, 64 bit, little-endian (`linux/audit.h`).
const ARCH_X86_64: u32 = 62 | 0x8000_0000 | 0x4000_0000;

/// Offsets in `struct seccomp_data`, of an argument its low half: the kernel ignores the other of all that
/// is looked at here.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;
const SECOND_ARGUMENT: u32 = 24;

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const ANY_BIT: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K

/// The last instructions: what the filter answers.
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

/// A look at an argument: the answer where one of the tests holds, and otherwise.
struct Look {
    argument: u32,
    test: u16,
    values: &'static [u32],
    then: usize,
    otherwise: usize,
}

/// `AF_UNIX`, `AF_INET`, `AF_INET6`, `AF_NETLINK`, `AF_PACKET`.
const FAMILIES: Look = Look {
    argument: FIRST_ARGUMENT,
    test: EQUAL,
    values: &[1, 2, 10, 16, 17],
    then: ALLOW,
    otherwise: EAFNOSUPPORT,
};
/// All of `CLONE_NEW…` that `clone` knows (`CLONE_NEWTIME` is a signal there).
const CLONE_FLAGS: Look = Look {
    argument: FIRST_ARGUMENT,
    test: ANY_BIT,
    values: &[0x7E02_0000],
    then: EPERM,
    otherwise: ALLOW,
};
/// `PER_LINUX` and `PER_LINUX32`, each with `UNAME26` and without, and the question which one it is.
const PERSONALITIES: Look = Look {
    argument: FIRST_ARGUMENT,
    test: EQUAL,
    values: &[0, 8, 0x2_0000, 0x2_0008, u32::MAX],
    then: ALLOW,
    otherwise: EPERM,
};
/// `TIOCSTI` and `TIOCLINUX`.
const REQUESTS: Look = Look {
    argument: SECOND_ARGUMENT,
    test: EQUAL,
    values: &[0x5412, 0x541C],
    then: EPERM,
    otherwise: ALLOW,
};
const LOOKS: [Look; 4] = [FAMILIES, CLONE_FLAGS, PERSONALITIES, REQUESTS];

/// The instructions before the search, and in it: one for each border between two ranges.
const BEFORE: usize = 3;
const AFTER: usize = BEFORE + RANGES - 1;
const FIRST_ANSWER: usize = first_of_look(LOOKS.len());
const LENGTH: usize = FIRST_ANSWER + ANSWERS.len();

/// The program.
pub(super) const PROGRAM: [sock_filter; LENGTH] = program();

const fn program() -> [sock_filter; LENGTH] {
    let mut program = [answer(0); LENGTH];
    program[0] = load(ARCH);
    // Of another architecture, as of a 32-bit program, there is no call. x32's numbers are in the last range.
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

/// Puts the search among the ranges from `low` to `high` at `at`: it has one instruction less than there are
/// ranges, and those of the lower half follow at once.
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

/// Returns the first range of the upper half, by numbers.
const fn middle(low: usize, high: usize) -> usize {
    let last = if high < RANGES { TABLE[high].first } else { TABLE[RANGES - 1].first };
    let half = u32::midpoint(TABLE[low].first, last);
    let mut middle = low + 1;
    while middle + 1 < high && TABLE[middle].first < half {
        middle += 1;
    }
    middle
}

/// Returns the instruction that answers a verdict, or begins to.
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

/// Returns where the look at an argument begins.
const fn first_of_look(index: usize) -> usize {
    if index == 0 { AFTER } else { first_of_look(index - 1) + 1 + LOOKS[index - 1].values.len() }
}

/// Puts a look at an argument into the program.
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

/// Makes the test at `at`, with the instructions that follow if it holds and if not.
const fn test(at: usize, code: u16, value: u32, then: usize, otherwise: usize) -> sock_filter {
    sock_filter { code, jt: skip(at, then), jf: skip(at, otherwise), k: value }
}

/// Returns how many instructions are skipped from one to another.
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
