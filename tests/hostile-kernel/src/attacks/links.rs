//! Attacks with symbolic links in the shared directory whose targets on the host are outside it.

use crate::fs::ROOT;
use crate::fs::opcode::{GETXATTR, LOOKUP, OPENDIR, REMOVEXATTR, SETXATTR, UNLINK};
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
