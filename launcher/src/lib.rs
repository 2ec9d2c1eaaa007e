//! Opens a box, verifies what it boots, starts it under libkrun and holds the start to its budget.
//!
//! Two processes run a box. The **supervisor** opens the box and verifies its blobs ([`opened`]), starts the machine
//! ([`machine`]) with its control channel, and serves its clients ([`supervisor`]) until it ends. The **VMM** ([`vmm`]) is the same
//! program started again, in a [jail](vmm::jail): it calls libkrun, and becomes the virtual machine. It gets the blobs as open files, so
//! that what was verified is what boots. Whether the host can run a machine at all is found out before that ([`host`]), by a guest
//! of a hundred bytes.
//!
//! Commands find a running box by its record ([`boxes`]), and talk to its supervisor as [`client`]s. What outlives a box
//! is in [`mounts::volumes`]. [`agent`] is a client of the agents themselves.
//!
//! The rooms, each above those that it uses:
//!
//! ```text
//! cli          the commands (of the program)
//! client       commands that talk to the supervisor of a box
//! supervisor   serves the clients of a box until it ends
//! boxes        records and logs of boxes that were started
//! machine      starts a machine, and follows it
//! mounts       directories of the host, volumes, scratch disks
//! network      what a box reaches, and what reaches a box
//! host         what this host can do, and where a user's state is
//! agent        a client of agents in boxes
//! opened       a box that is opened and verified
//! streams      terminals, input, output, logs, the control channel
//! ```
//!
//! Below them is the crate `vmm`, the process that becomes the machine, which has all `unsafe` code.
//!
//! A room that can fail in ways of its own has an enum of them, which holds those of the rooms below; the program has their sum.
//! No error of the library names an option.
//!
//! The library prints nothing and reads no environment: the program hands it paths and writers.
#![forbid(unsafe_code)]

/// Makes an error of one folder out of that of a folder below it. What both have stays what it is, so that an error has one form
/// however far up it has come.
#[macro_export]
macro_rules! from_below {
    ($below:ident => $above:ident::$variant:ident $(, $same:ident)*) => {
        impl From<$below> for $above {
            fn from(error: $below) -> Self {
                match error {
                    $($below::$same(error) => error.into(),)*
                    error => Self::$variant(error),
                }
            }
        }
    };
}

pub mod agent;
pub mod boxes;
pub mod client;
pub mod host;
pub mod machine;
pub mod mounts;
pub mod network;
pub mod opened;
pub mod streams;
pub mod supervisor;
