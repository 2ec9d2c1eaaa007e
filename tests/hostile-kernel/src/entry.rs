//! The entry of the kernel.
//!
//! libkrun enters an ELF kernel by the 64-bit boot protocol of Linux (Documentation/arch/x86/boot.rst): in long mode, with
//! interrupts off, the address of the boot parameters in `rsi`, and the first GiB of memory mapped one to one. The devices'
//! addresses are above the first GiB, so the kernel maps them first.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;

#[cfg(target_os = "none")]
core::arch::global_asm!(
    ".globl _start",
    "_start:",
    "lea rsp, [rip + {stack} + {size}]",
    "mov rdi, rsi",
    "call {enter}",
    "2: hlt",
    "jmp 2b",
    stack = sym STACK,
    size = const STACK_SIZE,
    enter = sym enter,
);

const STACK_SIZE: usize = 256 << 10;

#[repr(align(16))]
struct Stack(
    #[allow(dead_code, reason = "it is used by what runs on it")] UnsafeCell<[u8; STACK_SIZE]>,
);

// SAFETY: only the stack pointer of the VM's single CPU refers to the stack.
unsafe impl Sync for Stack {}

#[cfg_attr(not(target_os = "none"), allow(dead_code, reason = "only the machine has one"))]
static STACK: Stack = Stack(UnsafeCell::new([0; STACK_SIZE]));

#[cfg(target_os = "none")]
extern "C" fn enter(parameters: usize) -> ! {
    crate::machine::map_devices();
    crate::boot::run(crate::machine::command_line(parameters))
}

#[cfg(target_os = "none")]
#[panic_handler]
fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    crate::console::last_words(info);
    crate::machine::end()
}
