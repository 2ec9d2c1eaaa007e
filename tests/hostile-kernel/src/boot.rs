//! The kernel's main function: finds the devices, makes the attacks, and ends the VM.

use crate::attacks::ALL;
use crate::console::{self, Console};
use crate::fs::opcode::ACCESS;
use crate::fs::{self, Fs, ROOT};
use crate::ground::{Ground, Side};
use crate::machine;
use crate::virtio::{Device, devices};

/// The tag of the virtio-fs device for the VM's first root, which is not a share.
const FIRST_ROOT: &[u8] = b"/dev/root";
/// The mask `W_OK` of access(2).
const WRITE: u32 = 2;

/// Makes the attacks that the file `attacks` selects, and ends the VM.
#[cfg_attr(not(target_os = "none"), allow(dead_code, reason = "only a kernel boots"))]
pub(crate) fn run(command_line: &[u8]) -> ! {
    if let Some(mut ground) = find(command_line) {
        let [first, last, flood] = wanted(&mut ground);
        ground.say(format_args!("there are {} attacks", ALL.len()));
        ground.flood = u32::try_from(flood).unwrap_or(u32::MAX);
        for (number, attack) in (1..=last).zip(&ALL).skip(first - 1) {
            if !ground.restart() {
                ground.say(format_args!("the devices do not start"));
                machine::end();
            }
            ground.say(format_args!("attack {number} {}", attack.name));
            (attack.make)(&mut ground);
            ground.conclude(number, attack.name);
            if ground.is_lost() {
                machine::end();
            }
        }
        ground.say(format_args!("all attacks are made"));
    }
    machine::end()
}

/// Finds the console and the two shares. Returns `None` if one of them is missing.
fn find(command_line: &[u8]) -> Option<Ground> {
    let is = |kind: u32| move |device: &Device| device.kind() == kind;
    let mut console = Console::start(devices(command_line).find(is(console::KIND))?);
    let shared = devices(command_line).filter(is(fs::KIND));
    let mut shared = shared.filter(|device| !Fs::has_tag(*device, FIRST_ROOT)).map(Fs::new);
    let (Some(mut one), Some(mut other)) = (shared.next(), shared.next()) else {
        console.say(format_args!("there are no two shared directories"));
        return None;
    };
    one.start();
    other.start();
    let (read_only, writable) = if may_write(&mut one) { (other, one) } else { (one, other) };
    Some(Ground::new(read_only, writable, console))
}

fn may_write(fs: &mut Fs) -> bool {
    fs.ask(ACCESS, ROOT).words(&[WRITE, 0]).send().is_done()
}

/// Reads the numbers of the first and the last attack, and of the look-ups in a flood, from the file `attacks`.
/// The defaults are all attacks and 0 look-ups.
fn wanted(ground: &mut Ground) -> [usize; 3] {
    let mut text = [0; 16];
    let file = ground.lookup(Side::Writable, ROOT, b"attacks");
    if let Some(open) = file.and_then(|node| ground.open(Side::Writable, node, 0)) {
        ground.read(Side::Writable, open, 0);
        ground.fs(Side::Writable).payload(0, &mut text);
    }
    ground.forget_outcomes();
    let mut numbers = text.split(|byte| !byte.is_ascii_digit()).map(number).filter(|it| *it > 0);
    [1, ALL.len(), 0].map(|default| numbers.next().unwrap_or(default))
}

fn number(digits: &[u8]) -> usize {
    digits.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}
