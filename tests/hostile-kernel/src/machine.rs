//! The machine: its ports, the registers of its devices, and memory that the devices see. All that is unsafe is here and in
//! `entry`.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering, fence};

/// The GiB in which libkrun puts its devices.
const DEVICES: usize = 0xc000_0000;
const DEVICES_END: usize = 0x1_0000_0000;
/// Where libkrun puts the page table with one entry for each GiB (`krun-arch`, `x86_64/regs.rs`).
const PER_GIB: usize = 0xa000;
/// An entry that maps 2 MiB, to read and write.
const LARGE_PAGE: u64 = 0x83;
/// One that refers to a table.
const TABLE: u64 = 0x03;
/// Where the boot parameters name the command line's address.
const COMMAND_LINE_AT: usize = 0x228;
const MAX_COMMAND_LINE: usize = 4096;
/// The keyboard controller, and its command that ends the machine.
const KEYBOARD: u16 = 0x64;
const RESET: u8 = 0xfe;

/// How much memory the devices can be shown.
const ARENA: usize = 8 << 20;

#[repr(C, align(4096))]
struct Arena(UnsafeCell<[u8; ARENA]>);

// SAFETY: the bytes are reached through `Shared` alone, no two of which overlap.
unsafe impl Sync for Arena {}

static MEMORY: Arena = Arena(UnsafeCell::new([0; ARENA]));
/// How much of the arena is taken.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Memory that a device reads and writes, too: no reference to it is ever made.
#[derive(Debug)]
pub struct Shared {
    start: usize,
    length: usize,
}

impl Shared {
    /// Takes so many bytes, at the start of a page. They are never given back.
    ///
    /// # Panics
    /// When there are no more.
    pub fn take(length: usize) -> Self {
        let pages = length.next_multiple_of(4096);
        let at = TAKEN.fetch_add(pages, Ordering::Relaxed);
        assert!(at + pages <= ARENA, "the memory for devices is used up");
        Self { start: MEMORY.0.get() as usize + at, length }
    }

    /// Returns its address, as devices know it.
    pub const fn address(&self) -> u64 {
        self.start as u64
    }

    /// Returns its size in bytes.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Copies bytes out.
    ///
    /// # Panics
    /// When they are not all in it.
    pub fn read(&self, at: usize, bytes: &mut [u8]) {
        assert!(at <= self.length && bytes.len() <= self.length - at, "beyond the memory");
        for (offset, byte) in bytes.iter_mut().enumerate() {
            let from = (self.start + at + offset) as *const u8;
            // SAFETY: it lies in the arena, which lives as long as the program.
            *byte = unsafe { ptr::read_volatile(from) };
        }
    }

    /// Copies bytes in.
    ///
    /// # Panics
    /// When they do not all fit.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at <= self.length && bytes.len() <= self.length - at, "beyond the memory");
        for (offset, byte) in bytes.iter().enumerate() {
            let to = (self.start + at + offset) as *mut u8;
            // SAFETY: it lies in the arena, which lives as long as the program; no reference to it exists.
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
    /// Those at an address; `None` where no device of libkrun can be.
    pub fn at(base: usize) -> Option<Self> {
        let fits = (DEVICES..DEVICES_END - 4096).contains(&base) && base.is_multiple_of(4096);
        fits.then_some(Self { base })
    }

    /// Returns where they are.
    pub const fn base(self) -> usize {
        self.base
    }

    /// Reads one.
    ///
    /// # Panics
    /// If there is no such thing.
    pub fn read(self, offset: usize) -> u32 {
        assert!(offset < 4096 && offset.is_multiple_of(4), "no register");
        // SAFETY: it is mapped, and no memory of this program.
        unsafe { ptr::read_volatile((self.base + offset) as *const u32) }
    }

    /// Writes to one.
    ///
    /// # Panics
    /// If there is no such thing.
    pub fn write(self, offset: usize, value: u32) {
        assert!(offset < 4096 && offset.is_multiple_of(4), "no register");
        // The device sees memory as it was before.
        fence(Ordering::SeqCst);
        // SAFETY: it is mapped, and no memory of this program.
        unsafe { ptr::write_volatile((self.base + offset) as *mut u32, value) };
    }
}

/// Makes a page table for the devices' GiB, and puts it in.
#[cfg_attr(not(target_os = "none"), allow(dead_code, reason = "there, they are mapped by nobody"))]
pub(crate) fn map_devices() {
    let mut table = Shared::take(4096);
    for page in 0..512_u64 {
        let entry = (DEVICES as u64 + (page << 21)) | LARGE_PAGE;
        table.write(usize::try_from(page).unwrap_or(0) * 8, &entry.to_le_bytes());
    }
    let entry = (PER_GIB + DEVICES / (1 << 30) * 8) as *mut u64;
    // SAFETY: libkrun has put its table there, of which this entry is unused; the processor reads it when it needs it.
    unsafe { ptr::write_volatile(entry, table.address() | TABLE) };
}

/// Returns the command line that the boot parameters name.
#[cfg_attr(not(target_os = "none"), allow(dead_code, reason = "only a kernel has one"))]
pub(crate) fn command_line(parameters: usize) -> &'static [u8] {
    // SAFETY: the boot protocol puts the address there.
    let start =
        unsafe { ptr::read_volatile((parameters + COMMAND_LINE_AT) as *const u32) } as usize;
    // SAFETY: it lies in memory that libkrun filled before the start, and that nothing uses otherwise.
    let text = unsafe { core::slice::from_raw_parts(start as *const u8, MAX_COMMAND_LINE) };
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    &text[..end]
}

/// Ends the machine.
pub fn end() -> ! {
    loop {
        // SAFETY: the port belongs to the keyboard controller; it has no access to memory.
        unsafe {
            core::arch::asm!("out dx, al", in("dx") KEYBOARD, in("al") RESET, options(nomem, nostack));
        }
    }
}
