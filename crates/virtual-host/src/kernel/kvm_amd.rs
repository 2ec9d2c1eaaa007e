//! Changes the module `kvm_amd` so that it leaves the guest in two more cases, which QEMU's emulation requires.
//!
//! **After each interrupt that it injects.** QEMU's emulation of VMRUN (`helper_vmrun` in
//! `target/i386/tcg/sysemu/svm_helper.c`) leaves `exception_index` set after it has delivered an injected interrupt.
//! If one of QEMU's timers expires before the next #VMEXIT, the same interrupt is delivered a second time, even if
//! the guest has disabled interrupts. A guest's kernel that holds a lock then deadlocks. No real CPU does that.
//!
//! KVM already has code for a similar case: before it enters a guest with an event to inject while it single-steps over an
//! NMI (`svm_vcpu_run` in `arch/x86/kvm/svm/svm.c`, "smp_send_reschedule is enough to force an immediate vmexit"), it
//! sends itself an interrupt. The guest takes the event and exits at its first instruction, before a QEMU timer can
//! expire. The change removes the condition on the NMI from the module's code, so that KVM does this for every event.
//! Such a KVM is correct on any CPU, and adds one exit for each interrupt: below one percent of a start.
//!
//! **At each PAUSE.** QEMU emulates one CPU, which the CPUs of a box share. A CPU that spins for another would use up
//! its whole time slice. A real CPU counts the PAUSE instructions of such a loop, and KVM then lets another CPU of
//! the box run (`kvm_vcpu_on_spin`). QEMU does not count them, so KVM disables these exits (`svm_vm_init`:
//! "pause_in_guest"). The change enables them, and each PAUSE leaves the guest.

use serde::{Deserialize, Serialize};

/// The x86-64 code in `svm_vcpu_run` for an event while KVM single-steps over an NMI. `..` is a byte that differs
/// between builds.
///
/// ```text
/// 80 bb .. .. .. .. 00    cmpb  $0, nmi_singlestep(%rbx)
/// 74 15                   je    after
/// 48 8b 83 .. .. .. ..    mov   vmcb(%rbx), %rax
/// 8b .. a8 00 00 00       mov   control.event_inj(%rax), %ecx (or %edx)
/// 85 ..                   test  %ecx, %ecx
/// 0f 85 .. .. .. ..       jne   stop_stepping
/// ```
const INJECTION: &str =
    "80 bb .. .. .. .. 00 74 15 48 8b 83 .. .. .. .. 8b .. a8 00 00 00 85 .. 0f 85 .. .. .. ..";
/// The offset of `je after` in [`INJECTION`].
const SKIP: usize = 7;
/// The offset of the distance of `jne stop_stepping`.
const DISTANCE: usize = 26;
/// `mov %rbx, %rdi; call disable_nmi_singlestep`, before the code that sends the interrupt.
const STOP_STEPPING: [u8; 4] = [0x48, 0x89, 0xdf, 0xe8];
/// The length of the two instructions of [`STOP_STEPPING`].
const STOP_STEPPING_SIZE: i32 = 8;
/// The one-byte no-op instruction.
const NOP: u8 = 0x90;
/// The code in `svm_vm_init` that disables exits at PAUSE, in Linux 6.1 and 6.12:
///
/// ```text
/// 80 3d .. .. .. .. 00    cmpb  $0, enable_apicv(%rip)
/// c6 87 .. .. 00 00 01    movb  $1, arch.pause_in_guest(%rdi)
/// 74 e9                   je    return_0
///
/// e9 .. .. .. ..          jmp   return_thunk
/// c6 87 .. .. 00 00 01    movb  $1, arch.pause_in_guest(%rdi)
/// eb c2                   jmp   back
/// ```
const PAUSE: [&str; 2] = [
    "80 3d .. .. .. .. 00 c6 87 .. .. 00 00 01 74 e9",
    "e9 .. .. .. .. c6 87 .. .. 00 00 01 eb c2",
];
/// The offset of the value of `pause_in_guest`, from the end of each of [`PAUSE`].
const IN_GUEST: usize = 3;

/// Which of the additional exits a kernel's KVM has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exits {
    /// After each injection.
    pub(crate) after_injection: bool,
    /// At each PAUSE.
    pub(crate) at_pause: bool,
}

impl Exits {
    pub(crate) const BOTH: Self = Self { after_injection: true, at_pause: true };
}

/// Adds both exits to the module, and returns those that were added. For an exit whose code is unknown, the module stays
/// unchanged. The module must have no signature, because the change would invalidate it.
pub(crate) fn add_exits(module: &mut [u8]) -> Exits {
    Exits {
        after_injection: exit_after_injection(module).is_some(),
        at_pause: exit_at_pause(module).is_some(),
    }
}

fn exit_at_pause(module: &mut [u8]) -> Option<()> {
    let end = |code: &str| {
        let code = pattern(code);
        Some(position(module, &code)? + code.len())
    };
    let end = PAUSE.into_iter().find_map(end)?;
    module[end - IN_GUEST] = 0;
    Some(())
}

fn exit_after_injection(module: &mut [u8]) -> Option<()> {
    let pattern = pattern(INJECTION);
    let at = position(module, &pattern)?;
    let target = at + pattern.len();
    let distance = i32::from_le_bytes(*module.get(at + DISTANCE..)?.first_chunk()?);
    let stop = target.checked_add_signed(isize::try_from(distance).ok()?)?;
    if !module.get(stop..)?.starts_with(&STOP_STEPPING) {
        return None;
    }
    module[at + SKIP..at + SKIP + 2].fill(NOP);
    let distance = distance.checked_add(STOP_STEPPING_SIZE)?.to_le_bytes();
    module[at + DISTANCE..target].copy_from_slice(&distance);
    Some(())
}

/// Parses a pattern: bytes in hexadecimal, and `None` for arbitrary bytes.
fn pattern(text: &str) -> Vec<Option<u8>> {
    text.split(' ').map(|byte| u8::from_str_radix(byte, 16).ok()).collect()
}

/// Returns the offset of `code` in a module. Returns `None` unless it occurs exactly once.
fn position(module: &[u8], code: &[Option<u8>]) -> Option<usize> {
    let matches = |window: &[u8]| {
        window.iter().zip(code).all(|(byte, wanted)| wanted.is_none_or(|it| it == *byte))
    };
    let mut found = module.windows(code.len()).enumerate();
    let at = found.find(|(_, window)| matches(window))?.0;
    found.all(|(_, window)| !matches(window)).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a module with both patterns, other code, and `stop` at the target of the jump in [`INJECTION`].
    fn module(stop: &[u8]) -> Vec<u8> {
        module_with(PAUSE[0], stop)
    }

    fn module_with(pause: &str, stop: &[u8]) -> Vec<u8> {
        let code = |text| -> Vec<u8> {
            pattern(text).into_iter().map(|byte| byte.unwrap_or(0x11)).collect()
        };
        let mut injection = code(INJECTION);
        injection[DISTANCE..].copy_from_slice(&5_i32.to_le_bytes());
        [b"ELF", &*injection, b"other", stop, b"more", &*code(pause)].concat()
    }

    fn changed(module: &[u8]) -> (Exits, Vec<u8>) {
        let mut changed = module.to_vec();
        (add_exits(&mut changed), changed)
    }

    #[test]
    fn the_two_places_are_changed_and_nothing_else() {
        for pause in PAUSE {
            let plain = module_with(pause, &STOP_STEPPING);
            let (exits, with_exits) = changed(&plain);
            assert_eq!(exits, Exits::BOTH);
            let differs = |at: &usize| plain[*at] != with_exits[*at];
            let differences: Vec<_> = (0..plain.len()).filter(differs).collect();
            let last = plain.len() - IN_GUEST;
            assert_eq!(differences, [3 + SKIP, 3 + SKIP + 1, 3 + DISTANCE, last]);
            let bytes: Vec<_> = differences.iter().map(|&at| with_exits[at]).collect();
            assert_eq!(bytes, [NOP, NOP, 13, 0]);
        }
    }

    #[test]
    fn other_code_is_left_alone() {
        let none = |module: &[u8]| assert_eq!(changed(module), (Exits::default(), module.to_vec()));
        none(b"ELF");
        let known = module(&STOP_STEPPING);
        none(&known.repeat(2));
        let (exits, _) = changed(&module(b"\xc3\xc3\xc3\xc3"));
        assert_eq!(exits, Exits { after_injection: false, at_pause: true });
        let (exits, _) = changed(&known[..known.len() - 1]);
        assert_eq!(exits, Exits { after_injection: true, at_pause: false });
    }
}
