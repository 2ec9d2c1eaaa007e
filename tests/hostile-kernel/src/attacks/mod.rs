//! The attacks. Those that can end the VM are last.

mod attributes;
mod changes;
mod lies;
mod links;
mod names;
mod nodes;
mod read_only;
mod rings;
mod special;

use crate::ground::Ground;

/// An attack on the host.
#[derive(Debug, Clone, Copy)]
pub struct Attack {
    /// The attack's name in the report, such as `look-up-parents`.
    pub name: &'static str,
    /// Sends the attack's requests.
    pub make: fn(&mut Ground),
}

const fn attack(name: &'static str, make: fn(&mut Ground)) -> Attack {
    Attack { name, make }
}

/// All attacks. Their numbers in the report begin with 1.
pub const ALL: [Attack; 41] = [
    attack("look-up-parents", names::parents),
    attack("look-up-absolute-names", names::absolute),
    attack("look-up-through-a-directory", names::through_a_directory),
    attack("look-up-open-files", names::open_files),
    attack("look-up-through-open-files", names::through_open_files),
    attack("look-up-processes", names::processes),
    attack("look-up-devices-and-sockets", names::devices_and_sockets),
    attack("look-up-other-shares", names::other_shares),
    attack("look-up-odd-names", names::odd),
    attack("create-outside", changes::create),
    attack("make-directories-outside", changes::make_directories),
    attack("make-nodes-and-links-outside", changes::make_nodes_and_links),
    attack("hard-link-outside", changes::hard_link),
    attack("rename-outside", changes::rename),
    attack("remove-outside", changes::remove),
    attack("change-attributes-outside", attributes::outside),
    attack("extended-attributes", attributes::extended),
    attack("open-a-link-to-the-host", links::to_a_file),
    attack("walk-a-link-to-the-host", links::to_a_directory),
    attack("write-the-read-only-share", read_only::write),
    attack("write-it-through-the-other", read_only::through_the_other),
    attack("hard-link-out-of-it", read_only::hard_link),
    attack("privileged-files", special::privileged),
    attack("unknown-requests", lies::unknown),
    attack("mappings-and-ioctls", lies::mappings),
    attack("nodes-that-are-none", nodes::none),
    attack("handles-that-are-none", nodes::handles),
    attack("forgetting-too-much", nodes::forget),
    attack("sizes-that-lie", lies::sizes),
    attack("lengths-that-lie", lies::lengths),
    attack("talk-before-and-again", lies::again),
    attack("files-without-end", special::without_end),
    attack("look-ups-without-end", rings::flood),
    attack("chains-that-loop", rings::loops),
    attack("links-in-a-repository", links::into_a_repository),
    // Each of the following attacks ends libkrun's thread that serves the directory, or makes that thread loop forever.
    attack("chains-that-lead-nowhere", rings::nowhere),
    attack("memory-that-is-none", rings::outside),
    attack("no-room-for-an-answer", rings::no_room),
    attack("flags-that-are-too-large", rings::large_flags),
    attack("rings-that-are-nowhere", rings::no_rings),
    attack("files-that-wait", special::waiting),
];
