//! Attacks with symbolic links in the shared directory whose targets on the host are outside it.

use crate::fs::ROOT;
use crate::fs::opcode::{
    GETXATTR, LOOKUP, MKNOD, OPENDIR, REMOVEXATTR, RENAME2, SETXATTR, SYMLINK, UNLINK,
};
use crate::ground::{Ground, Side};

const W: Side = Side::Writable;
const TARGETS: [&[u8]; 4] = [b"/etc/canary", b"../canary", b"/proc/self/fd/0", b"/dev/kvm"];
/// Flags of open(2). All but `O_PATH` and `O_TMPFILE` include `O_NONBLOCK`: read, write, truncate, create, `O_PATH`,
/// `O_NOFOLLOW`, `O_TMPFILE`.
const FLAGS: [u32; 7] = [0o4000, 0o4002, 0o5001, 0o4102, 0o1000_0000, 0o40_4000, 0o2020_0002];

/// Replaces the symbolic link `link` with one to `to`, and returns its node.
fn new_link(ground: &mut Ground, to: &[u8]) -> Option<u64> {
    ground.fs(W).ask(UNLINK, ROOT).name(b"link").send();
    ground.symlink(W, b"link", to)
}

pub(super) fn to_a_file(ground: &mut Ground) {
    for target in TARGETS {
        let Some(node) = new_link(ground, target) else { continue };
        ground.follow(W, node);
        for flags in FLAGS {
            if let Some(open) = ground.open(W, node, flags) {
                ground.read(W, open, 0);
                ground.write(W, open, 0, b"through a link");
                ground.release(W, open);
            }
        }
        ground.send(W, OPENDIR, node, |it| it.words(&[0, 0]));
        change(ground, node);
        ground.create(W, ROOT, b"link", 0o644);
        ground.look(W, node, b"");
        ground.look(W, node, b".");
    }
}

/// Changes the attributes of the link's node and links it: none of it may reach the link's target.
fn change(ground: &mut Ground, node: u64) {
    for valid in [1, 6, 8, 48] {
        ground.set(W, node, valid, 0, [0o777, 1234, 1234]);
    }
    ground.link(W, node, ROOT, b"hard-link");
    ground.look(W, ROOT, b"hard-link");
    ground.fs(W).ask(UNLINK, ROOT).name(b"hard-link").send();
    ground.send(W, SETXATTR, node, |it| it.words(&[1, 0]).name(b"user.a").bytes(b"x"));
    ground.send(W, GETXATTR, node, |it| it.words(&[64, 0]).name(b"user.a"));
    ground.send(W, REMOVEXATTR, node, |it| it.name(b"user.a"));
}

pub(super) fn to_a_directory(ground: &mut Ground) {
    let targets: [&[u8]; 7] = [
        b"/etc",
        b"..",
        b"../../../../../../../../etc",
        b"/proc/self/fd/../../..",
        b"/proc/self/root/etc",
        b"/proc/self/cwd",
        b"/srv/shares/sibling",
    ];
    for target in targets {
        new_link(ground, target);
        for name in [&b"link/canary"[..], b"link/../canary", b"link/etc/canary", b"link/."] {
            ground.look(W, ROOT, name);
        }
        ground.create(W, ROOT, b"link/new", 0o644);
        ground.rename(W, b"link/canary", b"moved");
        ground.rename(W, b"inner", b"link/inner");
        ground.send(W, UNLINK, ROOT, |it| it.name(b"link/canary"));
        // Uses the node of the link itself as the parent directory.
        let answer = ground.send(W, LOOKUP, ROOT, |it| it.name(b"link"));
        if answer.is_done() {
            let node = ground.fs(W).number(0);
            ground.look(W, node, b"canary");
            ground.look(W, node, b"..");
        }
    }
}

/// Names that lead from the shared directory into its repository.
const INTO: [&[u8]; 6] = [
    b".git/new",
    b".git/logs/new",
    b"./.git/new",
    b"inner/../.git/new",
    b"/shares/rw/0/.git/new",
    b"/proc/self/root/shares/rw/0/.git/new",
];
/// A pipe, a socket, a character and a block device, as modes of mknod(2).
const SPECIAL: [u32; 4] = [0o010_644, 0o140_644, 0o020_644, 0o060_644];
/// Flags of renameat2(2): none, `RENAME_NOREPLACE`, `RENAME_EXCHANGE`, `RENAME_WHITEOUT`.
const MOVES: [u32; 4] = [0, 1, 2, 4];
const HOST: &[u8] = b"/etc/canary";

/// Tries to make links and special files in the repository `.git` of the shared directory, through which git on the host would
/// write. Leaves the file `.git/attacked` if there is a repository.
pub(super) fn into_a_repository(ground: &mut Ground) {
    ground.make_directory(W, ROOT, b"inner", 0o755);
    let Some(git) = ground.lookup(W, ROOT, b".git") else { return };
    ground.make_directory(W, git, b"logs", 0o755);
    let logs = ground.lookup(W, git, b"logs").unwrap_or(git);
    for parent in [git, logs] {
        make_all(ground, parent, b"new");
        make_all(ground, parent, b"HEAD");
    }
    for name in INTO {
        make_all(ground, ROOT, name);
    }
    for number in 0..48_u8 {
        let digits = [b'0' + number / 10, b'0' + number % 10];
        let digits = if number < 10 { &digits[1..] } else { &digits[..] };
        for end in [&b"/.git/new"[..], b"/logs/new", b"/new"] {
            let mut name = [0; 32];
            let mut length = 0;
            for part in [&b"/proc/self/fd/"[..], digits, end] {
                name[length..length + part.len()].copy_from_slice(part);
                length += part.len();
            }
            ground.send(W, SYMLINK, ROOT, |it| it.name(&name[..length]).name(HOST));
        }
    }
    move_in(ground, git, logs);
    test_and_move(ground, git);
    ground.create(W, git, b"attacked", 0o644);
}

/// Tries to make a link and all special files.
fn make_all(ground: &mut Ground, parent: u64, name: &[u8]) {
    ground.send(W, SYMLINK, parent, |it| it.name(name).name(HOST));
    for mode in SPECIAL {
        ground.send(W, MKNOD, parent, |it| it.words(&[mode, 0x0103, 0, 0]).name(name));
    }
}

fn move_to(ground: &mut Ground, from: (u64, &[u8]), to: (u64, &[u8]), flags: u32) {
    ground.send(W, RENAME2, from.0, |it| {
        it.longs(&[to.0]).words(&[flags, 0]).name(from.1).name(to.1)
    });
}

/// Moves and links what was made outside of the repository into it, and the repository to another place.
fn move_in(ground: &mut Ground, git: u64, logs: u64) {
    let link = new_link(ground, HOST);
    ground.make_node(W, b"own-pipe", 0o010_644, 0);
    ground.make_directory(W, ROOT, b"with-link", 0o755);
    if let Some(directory) = ground.lookup(W, ROOT, b"with-link") {
        ground.send(W, SYMLINK, directory, |it| it.name(b"HEAD").name(HOST));
    }
    for flags in MOVES {
        for name in [&b"link"[..], b"own-pipe", b"with-link"] {
            move_to(ground, (ROOT, name), (git, b"moved"), flags);
            move_to(ground, (ROOT, name), (git, b"logs"), flags);
            move_to(ground, (ROOT, name), (logs, b"HEAD"), flags);
            move_to(ground, (ROOT, name), (ROOT, b".git/moved"), flags);
        }
        move_to(ground, (ROOT, b".git"), (ROOT, b"other"), flags);
        move_to(ground, (ROOT, b".git"), (ROOT, b"with-link"), flags);
        move_to(ground, (ROOT, b"with-link"), (ROOT, b".git"), flags);
        move_to(ground, (git, b"logs"), (ROOT, b"logs"), flags);
    }
    if let Some(link) = link {
        ground.link(W, link, git, b"linked");
        ground.link(W, link, ROOT, b".git/linked");
    }
}

/// Makes the link with which git tests for links, and gives it the name of a file into which git writes.
fn test_and_move(ground: &mut Ground, git: u64) {
    ground.send(W, SYMLINK, git, |it| it.name(b"tAAAAAA").name(b"testing"));
    move_to(ground, (git, b"tAAAAAA"), (git, b"FETCH_HEAD"), 0);
    ground.create(W, git, b"testing", 0o644);
}
