//! The smallest guest: a kernel of a hundred bytes that executes instructions that stock kernels need, reports its
//! progress, and stops the VM.
//!
//! A software KVM may run the start of a kernel and fail seconds later, at the first instruction that its emulator
//! lacks. This guest executes such instructions at once. It writes a letter to the first serial port before each of
//! them (`TRIALS`), and `END` after the last one.
//!
//! libkrun starts an ELF kernel by the [64-bit boot protocol](https://docs.kernel.org/arch/x86/boot.html) of Linux: in
//! long mode, at the entry address, with interrupts off, an identity mapping of the first GiB of memory, flat segments
//! (8 is the code segment), a stack below 0x9000, and an empty interrupt table.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};

use host_fs::OsError;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::Pid;

use crate::host::elf::{self, Access, CODE_AT};
use vmm::jail::fd_path;
use vmm::krun::{self, Vm};
use vmm::{VmmError, confine, follow};

/// The hidden subcommand that runs the guest; its argument is the caller's process id.
pub const SUBCOMMAND: &str = "kvm-trial";

/// The guest's trials in order: the letter that the guest writes before the trial, and the instruction that it tries.
pub(crate) const TRIALS: [(u8, &str); 4] =
    [(b'b', "int3"), (b'c', "cmpxchg16b"), (b'x', "xrstor"), (b'p', "popcnt")];
/// The letter that the guest writes when all trials have passed.
pub(crate) const END: u8 = b'e';

/// The guest's memory in MiB, of which it touches a few pages.
const MEMORY_MIB: u32 = 32;
/// The address at which the file is loaded: 1 MiB, the first address that is free on every PC.
const LOAD: u64 = 0x10_0000;
/// The offset of the interrupt table in the file. The operand of `lidt` follows the table.
const IDT_AT: usize = 0x200;
/// The size of the interrupt table, which has the vectors 0 to 3 of 16 bytes each. Vector 3 is the breakpoint.
const IDT_SIZE: u16 = 4 * 16;

/// The guest's code. `esi` holds the CPU's features, `edi` points to zeroed memory.
#[rustfmt::skip]
const CODE: [u8; 118] = [
    0x66, 0xba, 0xf8, 0x03,                         // mov dx, 0x3f8       COM1
    0xb0, b'b',                                     // mov al, 'b'
    0xee,                                           // out dx, al
    0x0f, 0x01, 0x1c, 0x25, 0x40, 0x02, 0x10, 0x00, // lidt [0x100240]     LOAD + IDT_AT + IDT_SIZE
    0xcc,                                           // int3                to the last instruction
    0xb8, 0x01, 0x00, 0x00, 0x00,                   // mov eax, 1          the features ...
    0x0f, 0xa2,                                     // cpuid               ... in ecx
    0x89, 0xce,                                     // mov esi, ecx
    0xbf, 0x00, 0x00, 0x20, 0x00,                   // mov edi, 0x200000
    0xf7, 0xc6, 0x00, 0x20, 0x00, 0x00,             // test esi, 1 << 13   CX16
    0x74, 0x0c,                                     // jz +12
    0x66, 0xba, 0xf8, 0x03,                         //   mov dx, 0x3f8
    0xb0, b'c',                                     //   mov al, 'c'
    0xee,                                           //   out dx, al
    0xf0, 0x48, 0x0f, 0xc7, 0x0f,                   //   lock cmpxchg16b [rdi]
    0xf7, 0xc6, 0x00, 0x00, 0x00, 0x04,             // test esi, 1 << 26   XSAVE
    0x74, 0x1f,                                     // jz +31
    0x66, 0xba, 0xf8, 0x03,                         //   mov dx, 0x3f8
    0xb0, b'x',                                     //   mov al, 'x'
    0xee,                                           //   out dx, al
    0x0f, 0x20, 0xe0,                               //   mov rax, cr4
    0x0d, 0x00, 0x02, 0x04, 0x00,                   //   or eax, 1 << 18 | 1 << 9   OSXSAVE, OSFXSR
    0x0f, 0x22, 0xe0,                               //   mov cr4, rax
    0xb8, 0x03, 0x00, 0x00, 0x00,                   //   mov eax, 3        the state of x87 and SSE
    0x31, 0xd2,                                     //   xor edx, edx
    0x0f, 0xae, 0x27,                               //   xsave [rdi]
    0x0f, 0xae, 0x2f,                               //   xrstor [rdi]
    0x66, 0xba, 0xf8, 0x03,                         // mov dx, 0x3f8
    0xf7, 0xc6, 0x00, 0x00, 0x80, 0x00,             // test esi, 1 << 23   POPCNT
    0x74, 0x07,                                     // jz +7
    0xb0, b'p',                                     //   mov al, 'p'
    0xee,                                           //   out dx, al
    0xf3, 0x0f, 0xb8, 0xc6,                         //   popcnt eax, esi
    0xb0, END,                                      // mov al, END
    0xee,                                           // out dx, al
    0xb0, 0xfe,                                     // mov al, 0xfe        reset, by the
    0xe6, 0x64,                                     // out 0x64, al        keyboard controller
    0xf4,                                           // hlt                 until libkrun has seen it
    0x48, 0xcf,                                     // iretq               the handler of int3
];

/// Returns the guest's executable: its code, its interrupt table, and the operand of `lidt`.
fn image() -> Vec<u8> {
    let mut content = CODE.to_vec();
    content.resize(IDT_AT - CODE_AT + 3 * 16, 0);
    content.extend(gate(LOAD + (CODE_AT + CODE.len() - 2) as u64));
    content.extend((IDT_SIZE - 1).to_le_bytes());
    content.extend((LOAD + IDT_AT as u64).to_le_bytes());
    elf::executable(LOAD, Access::WriteExecute, &content)
}

/// Returns an interrupt gate for a handler in the code segment (AMD64 manual, volume 2, 4.8.4).
fn gate(handler: u64) -> [u8; 16] {
    let at = handler.to_le_bytes();
    let code = 8u16.to_le_bytes();
    let present_interrupt_gate = 0x8e;
    [
        at[0],
        at[1],
        code[0],
        code[1],
        0,
        present_interrupt_gate,
        at[2],
        at[3], //
        at[4],
        at[5],
        at[6],
        at[7],
        0,
        0,
        0,
        0,
    ]
}

/// Turns this process into the VM of the guest, and returns only on failure. Standard output is the guest's serial
/// port.
pub fn enter(supervisor: Option<i32>) -> VmmError {
    match configured(supervisor.unwrap_or_default()) {
        Ok(vm) => VmmError::Krun(vm.start()),
        Err(error) => error,
    }
}

fn configured(supervisor: i32) -> Result<Vm, VmmError> {
    follow(Pid::from_raw(supervisor))?;
    confine()?;
    krun::log_to_stderr()?;
    let mut vm = Vm::new(1, MEMORY_MIB)?;
    let kernel = in_memory(&image()).map_err(OsError::system("make a file in memory"))?;
    vm.set_kernel(&fd_path(kernel.as_raw_fd()))?;
    // The descriptor must stay open, because libkrun opens the kernel by its number when the VM starts.
    std::mem::forget(kernel);
    let serial = io::stdout().as_fd().try_clone_to_owned();
    vm.add_serial_output(serial.map_err(OsError::system("use standard output"))?)?;
    Ok(vm)
}

fn in_memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("guest", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_the_code_are_those_of_the_layout() {
        let image = image();
        assert_eq!(&image[CODE_AT..CODE_AT + CODE.len()], CODE);
        let lidt = CODE.windows(4).position(|it| it == [0x0f, 0x01, 0x1c, 0x25]).unwrap();
        let operand = u32::from_le_bytes(CODE[lidt + 4..lidt + 8].try_into().unwrap());
        let table = IDT_AT + usize::from(IDT_SIZE);
        assert_eq!(u64::from(operand), LOAD + table as u64);
        assert_eq!(image.len(), table + 10);
        assert_eq!(&image[96..104], (image.len() as u64).to_le_bytes(), "the size in the file");
    }

    #[test]
    fn each_letter_is_written_before_its_trial() {
        let letters = CODE.windows(3).filter(|it| it[0] == 0xb0 && it[2] == 0xee).map(|it| it[1]);
        let expected = TRIALS.iter().map(|(letter, _)| *letter).chain([END]);
        assert!(letters.eq(expected));
    }
}
