//! The module `kvm_amd`, made to leave the guest right after each interrupt that it injects.
//!
//! QEMU's emulation of VMRUN (`helper_vmrun` in `target/i386/tcg/sysemu/svm_helper.c`) leaves
//! `exception_index` set after it has delivered an injected interrupt. If one of the emulator's timers
//! expires before the next #VMEXIT, the same interrupt is delivered a second time, wherever the
//! guest is: with interrupts disabled too. A guest's kernel that holds a lock then waits for itself
//! forever. No CPU does such a thing.
//!
//! KVM has the remedy: before it enters a guest with an event to inject while it steps over an NMI
//! (`svm_vcpu_run` in `arch/x86/kvm/svm/svm.c`, "smp_send_reschedule is enough to force an immediate
//! vmexit"), it sends itself an interrupt. The guest takes the event and leaves at its first
//! instruction, and QEMU's window is closed before a timer can expire. Here that is done for every
//! event: the condition on the NMI is removed from the module's code. Such a KVM is correct on any CPU,
//! and costs one exit for each interrupt: below one percent of a start.

/// The code with which `svm_vcpu_run` treats an event while it steps over an NMI, as x86-64 code; `None` is a
/// byte that differs from build to build.
///
/// ```text
/// 80 bb .. .. .. .. 00    cmpb  $0, nmi_singlestep(%rbx)
/// 74 15                   je    after
/// 48 8b 83 .. .. .. ..    mov   vmcb(%rbx), %rax
/// 8b 88 a8 00 00 00       mov   control.event_inj(%rax), %ecx
/// 85 c9                   test  %ecx, %ecx
/// 0f 85 .. .. .. ..       jne   stop_stepping
/// ```
const CONDITION: [Option<u8>; 30] = {
    const ANY: Option<u8> = None;
    const fn b(byte: u8) -> Option<u8> {
        Some(byte)
    }
    [
        b(0x80),
        b(0xbb),
        ANY,
        ANY,
        ANY,
        ANY,
        b(0x00), //
        b(0x74),
        b(0x15), //
        b(0x48),
        b(0x8b),
        b(0x83),
        ANY,
        ANY,
        ANY,
        ANY, //
        b(0x8b),
        b(0x88),
        b(0xa8),
        b(0x00),
        b(0x00),
        b(0x00), //
        b(0x85),
        b(0xc9), //
        b(0x0f),
        b(0x85),
        ANY,
        ANY,
        ANY,
        ANY,
    ]
};
/// Where `je after` is in [`CONDITION`].
const SKIP: usize = 7;
/// Where the distance of `jne stop_stepping` is.
const DISTANCE: usize = 26;
/// `mov %rbx, %rdi; call disable_nmi_singlestep`, before the code that sends the interrupt.
const STOP_STEPPING: [u8; 4] = [0x48, 0x89, 0xdf, 0xe8];
/// The length of these two instructions.
const STOP_STEPPING_SIZE: i32 = 8;
/// An instruction of one byte that does nothing.
const NOP: u8 = 0x90;
/// The end of a signed module (kernel documentation: admin-guide/module-signing.rst).
const SIGNED: &[u8] = b"~Module signature appended~\n";
/// The length of `struct module_signature`, whose last four bytes are the signature's length.
const SIGNATURE_INFO: usize = 12;

/// Returns the module with an exit after each injection, and without the signature that then no longer
/// fits it; `None` where the code is not the known one.
pub(crate) fn exit_after_injection(module: &[u8]) -> Option<Vec<u8>> {
    let at = position(module)?;
    let target = at + CONDITION.len();
    let distance = i32::from_le_bytes(*module.get(at + DISTANCE..)?.first_chunk()?);
    let stop = target.checked_add_signed(isize::try_from(distance).ok()?)?;
    if !module.get(stop..)?.starts_with(&STOP_STEPPING) {
        return None;
    }
    let mut changed = module.to_vec();
    changed[at + SKIP..at + SKIP + 2].fill(NOP);
    let distance = distance.checked_add(STOP_STEPPING_SIZE)?.to_le_bytes();
    changed[at + DISTANCE..target].copy_from_slice(&distance);
    remove_signature(&mut changed)?;
    Some(changed)
}

/// Returns where the condition is; `None` where it is not there exactly once.
fn position(module: &[u8]) -> Option<usize> {
    let matches = |window: &[u8]| {
        window.iter().zip(CONDITION).all(|(byte, wanted)| wanted.is_none_or(|it| it == *byte))
    };
    let mut found = module.windows(CONDITION.len()).enumerate();
    let at = found.find(|(_, window)| matches(window))?.0;
    found.all(|(_, window)| !matches(window)).then_some(at)
}

fn remove_signature(module: &mut Vec<u8>) -> Option<()> {
    if !module.ends_with(SIGNED) {
        return Some(());
    }
    let info = module.len() - SIGNED.len();
    let size = u32::from_be_bytes(*module.get(..info)?.last_chunk()?) as usize;
    module.truncate(info.checked_sub(SIGNATURE_INFO)?.checked_sub(size)?);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a module: the condition, some code, and the code to which the condition jumps.
    fn module(stop: &[u8], signature: &[u8]) -> Vec<u8> {
        let mut code: Vec<u8> = CONDITION.iter().map(|byte| byte.unwrap_or(0x11)).collect();
        code[DISTANCE..].copy_from_slice(&5_i32.to_le_bytes());
        let mut file = [b"ELF".as_slice(), &code, b"other", stop, b"more"].concat();
        if !signature.is_empty() {
            file.extend_from_slice(signature);
            file.extend_from_slice(&[0; SIGNATURE_INFO - 4]);
            file.extend_from_slice(&u32::try_from(signature.len()).unwrap().to_be_bytes());
            file.extend_from_slice(SIGNED);
        }
        file
    }

    #[test]
    fn the_condition_is_removed_and_the_jump_skips_the_call() {
        let plain = module(&STOP_STEPPING, b"");
        let changed = exit_after_injection(&plain).unwrap();
        let differences: Vec<_> = (0..plain.len()).filter(|&at| plain[at] != changed[at]).collect();
        assert_eq!(differences, [3 + SKIP, 3 + SKIP + 1, 3 + DISTANCE]);
        assert_eq!(
            (changed[3 + SKIP], changed[3 + SKIP + 1], changed[3 + DISTANCE]),
            (NOP, NOP, 13)
        );
        assert_eq!(exit_after_injection(&module(&STOP_STEPPING, b"signed")).unwrap(), changed);
    }

    #[test]
    fn other_code_is_left_alone() {
        assert_eq!(exit_after_injection(b"ELF"), None);
        assert_eq!(exit_after_injection(&module(b"\xc3\xc3\xc3\xc3", b"")), None);
        let twice = module(&STOP_STEPPING, b"").repeat(2);
        assert_eq!(exit_after_injection(&twice), None);
        let mut bad = module(&STOP_STEPPING, b"signed");
        let size = bad.len() - SIGNED.len() - 4;
        bad[size] = 0xff;
        assert_eq!(exit_after_injection(&bad), None, "a signature longer than the file");
    }
}
