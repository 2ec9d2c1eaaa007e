//! The VM's hardware: ports, device registers, and memory that the devices access. All unsafe code is here and in `entry`.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering, fence};

/// The start and the end of the GiB that has the registers of libkrun's devices.
const DEVICES: usize = 0xc000_0000;
const DEVICES_END: usize = 0x1_0000_0000;
/// The address of libkrun's page table with one entry for each GiB (`krun-arch`, `x86_64/regs.rs`).
const PER_GIB: usize = 0xa000;
/// The flags of a page table entry that maps a writable page of 2 MiB.
const LARGE_PAGE: u64 = 0x83;
/// The flags of a page table entry that refers to another table.
const TABLE: u64 = 0x03;
/// The offset of `cmd_line_ptr` in the boot parameters.
const COMMAND_LINE_AT: usize = 0x228;
const MAX_COMMAND_LINE: usize = 4096;
/// The port of the keyboard controller, and its command that ends the VM.
const KEYBOARD: u16 = 0x64;
const RESET: u8 = 0xfe;

/// The size of the memory that is shared with the devices, in bytes.
const ARENA: usize = 8 << 20;

#[repr(C, align(4096))]
struct Arena(UnsafeCell<[u8; ARENA]>);

// SAFETY: only `Shared` values access the bytes, and no two of them overlap.
unsafe impl Sync for Arena {}

static MEMORY: Arena = Arena(UnsafeCell::new([0; ARENA]));
/// The number of the arena's bytes that are allocated.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Memory that a device reads and writes at any time, so no Rust reference to it may exist.
#[derive(Debug)]
pub struct Shared {
    start: usize,
    length: usize,
}

impl Shared {
    /// Allocates `length` bytes at a page boundary. They are never freed.
    ///
    /// # Panics
    /// If the arena is used up.
    pub fn take(length: usize) -> Self {
        let pages = length.next_multiple_of(4096);
        let at = TAKEN.fetch_add(pages, Ordering::Relaxed);
        assert!(at + pages <= ARENA, "the memory for devices is used up");
        Self { start: MEMORY.0.get() as usize + at, length }
    }

    /// Returns the physical address, which devices use.
    pub const fn address(&self) -> u64 {
        self.start as u64
    }

    /// Returns the size in bytes.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Copies `bytes.len()` bytes from offset `at` into `bytes`.
    ///
    /// # Panics
    /// If the range exceeds the memory.
    pub fn read(&self, at: usize, bytes: &mut [u8]) {
        assert!(at <= self.length && bytes.len() <= self.length - at, "beyond the memory");
        for (offset, byte) in bytes.iter_mut().enumerate() {
            let from = (self.start + at + offset) as *const u8;
            // SAFETY: the address is in the arena, which is static.
            *byte = unsafe { ptr::read_volatile(from) };
        }
    }

    /// Copies `bytes` to offset `at`.
    ///
    /// # Panics
    /// If the range exceeds the memory.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at <= self.length && bytes.len() <= self.length - at, "beyond the memory");
        for (offset, byte) in bytes.iter().enumerate() {
            let to = (self.start + at + offset) as *mut u8;
            // SAFETY: the address is in the arena, which is static, and to which no reference exists.
            unsafe { ptr::write_volatile(to, *byte) };
        }
    }
}

/// The registers of a device.
#[derive(Debug, Clone, Copy)]
pub struct Registers {
    base: usize,
}

impl Registers {
    /// Returns the registers at `base`, or `None` if no libkrun device can have this address.
    pub fn at(base: usize) -> Option<Self> {
        let fits = (DEVICES..DEVICES_END - 4096).contains(&base) && base.is_multiple_of(4096);
        fits.then_some(Self { base })
    }

    /// Returns the address of the registers.
    pub const fn base(self) -> usize {
        self.base
    }

    /// Reads the register at `offset`.
    ///
    /// # Panics
    /// If `offset` is not a multiple of 4 below 4096.
    pub fn read(self, offset: usize) -> u32 {
        assert!(offset < 4096 && offset.is_multiple_of(4), "no register");
        // SAFETY: the address is a mapped register, not memory of this program.
        unsafe { ptr::read_volatile((self.base + offset) as *const u32) }
    }

    /// Writes to the register at `offset`.
    ///
    /// # Panics
    /// If `offset` is not a multiple of 4 below 4096.
    pub fn write(self, offset: usize, value: u32) {
        assert!(offset < 4096 && offset.is_multiple_of(4), "no register");
        // All earlier writes to memory are visible to the device before the register's value.
        fence(Ordering::SeqCst);
        // SAFETY: the address is a mapped register, not memory of this program.
        unsafe { ptr::write_volatile((self.base + offset) as *mut u32, value) };
    }
}

/// Maps the GiB of the devices' registers one to one.
#[cfg_attr(not(target_os = "none"), allow(dead_code, reason = "there, they are mapped by nobody"))]
pub(crate) fn map_devices() {
    let mut table = Shared::take(4096);
    for page in 0..512_u64 {
        let entry = (DEVICES as u64 + (page << 21)) | LARGE_PAGE;
        table.write(usize::try_from(page).unwrap_or(0) * 8, &entry.to_le_bytes());
    }
    let entry = (PER_GIB + DEVICES / (1 << 30) * 8) as *mut u64;
    // SAFETY: libkrun's page table is at this address, and its entry for the devices' GiB is unused.
    unsafe { ptr::write_volatile(entry, table.address() | TABLE) };
}

/// Returns the kernel's command line, to which the boot parameters at address `parameters` refer.
#[cfg_attr(not(target_os = "none"), allow(dead_code, reason = "only a kernel has one"))]
pub(crate) fn command_line(parameters: usize) -> &'static [u8] {
    // SAFETY: the boot protocol defines a field with the command line's address at this offset.
    let start =
        unsafe { ptr::read_volatile((parameters + COMMAND_LINE_AT) as *const u32) } as usize;
    // SAFETY: libkrun filled this memory before the start, and nothing else uses it.
    let text = unsafe { core::slice::from_raw_parts(start as *const u8, MAX_COMMAND_LINE) };
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    &text[..end]
}

/// Ends the VM.
pub fn end() -> ! {
    loop {
        // SAFETY: the keyboard controller behind the port does not access memory.
        unsafe {
            core::arch::asm!("out dx, al", in("dx") KEYBOARD, in("al") RESET, options(nomem, nostack));
        }
    }
}
