//! The requests that attacks make most, each of which is noted.

use super::{Ground, Side};
use crate::fs::opcode::{
    CREATE, GETATTR, LINK, LOOKUP, MKDIR, MKNOD, OPEN, OPENDIR, READ, READDIR, READLINK, RELEASE,
    RENAME, SETATTR, SYMLINK, WRITE,
};
use crate::fs::{Answer, Attributes, Request};
use crate::text::Shown;

/// How much is read of a file, and how much of that is shown: the harness looks for texts that are shorter.
const SAMPLE: u32 = 4096;
const SHOWN: usize = 64;
/// The type of a file in its mode.
const TYPE: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const LINK_TYPE: u32 = 0o120_000;
/// `O_NONBLOCK`.
const NONBLOCK: u32 = 0o4000;
/// Where the attributes are in the answers to LOOKUP and GETATTR.
const IN_ENTRY: usize = 40;
const IN_ATTRIBUTES: usize = 16;

/// A node, and a handle of it.
pub(crate) type Open = (u64, u64);

impl Ground {
    /// Sends a request that something makes, and notes what came of it.
    pub fn send(
        &mut self,
        side: Side,
        opcode: u32,
        node: u64,
        make: impl FnOnce(Request<'_>) -> Request<'_>,
    ) -> Answer {
        let answer = make(self.fs(side).ask(opcode, node)).send();
        self.note(answer)
    }

    /// Looks up a name below a node, and says what it is.
    pub fn lookup(&mut self, side: Side, parent: u64, name: &[u8]) -> Option<u64> {
        let answer = self.send(side, LOOKUP, parent, |it| it.name(name));
        self.found(side, name, answer).map(|(node, _)| node)
    }

    /// Reads a node and its attributes from an answer, and says what it is.
    fn found(&mut self, side: Side, name: &[u8], answer: Answer) -> Option<(u64, Attributes)> {
        if !answer.is_done() {
            return None;
        }
        let attributes = Attributes::read(self.fs(side), IN_ENTRY);
        let node = self.fs(side).number(0);
        let shown = Shown(&name[..name.len().min(SHOWN)]);
        self.say(format_args!("  found {shown}: {attributes}"));
        Some((node, attributes))
    }

    /// Looks up a name, and shows all that can be read of it.
    pub fn look(&mut self, side: Side, parent: u64, name: &[u8]) {
        let answer = self.send(side, LOOKUP, parent, |it| it.name(name));
        let Some((node, attributes)) = self.found(side, name, answer) else { return };
        match attributes.mode & TYPE {
            DIRECTORY => self.list(side, node),
            LINK_TYPE => self.follow(side, node),
            _ => {}
        }
        self.read_node(side, node);
    }

    /// Shows the beginning of a file.
    pub fn read_node(&mut self, side: Side, node: u64) {
        let Some((_, handle)) = self.open(side, node, NONBLOCK) else { return };
        self.read(side, (node, handle), 0);
        self.release(side, (node, handle));
    }

    /// Shows the beginning of an open file.
    pub fn read(&mut self, side: Side, (node, handle): Open, offset: u64) {
        let read = |it: Request<'_>| -> Answer {
            it.longs(&[handle, offset]).words(&[SAMPLE, 0]).longs(&[0]).words(&[0, 0]).send()
        };
        let answer = read(self.fs(side).ask(READ, node));
        self.note(answer);
        self.show(side, "read", answer);
    }

    /// Says where a symbolic link leads.
    pub fn follow(&mut self, side: Side, node: u64) {
        let answer = self.send(side, READLINK, node, |it| it);
        self.show(side, "link", answer);
    }

    /// Lists a directory.
    fn list(&mut self, side: Side, node: u64) {
        let answer = self.send(side, OPENDIR, node, |it| it.words(&[0, 0]));
        if !answer.is_done() {
            return;
        }
        let handle = self.fs(side).number(0);
        let words = [SAMPLE, 0];
        let answer = self.send(side, READDIR, node, |it| {
            it.longs(&[handle, 0]).words(&words).longs(&[0]).words(&[0, 0])
        });
        self.show(side, "list", answer);
    }

    /// Shows the beginning of what came back.
    pub fn show(&mut self, side: Side, what: &str, answer: Answer) {
        let Answer::Done(length @ 1..) = answer else { return };
        let mut bytes = [0; SHOWN];
        let bytes = &mut bytes[..length.min(SHOWN)];
        self.fs(side).payload(0, bytes);
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.say(format_args!("  {what} {}", Shown(&bytes[..end])));
    }

    /// Opens a node.
    pub fn open(&mut self, side: Side, node: u64, flags: u32) -> Option<Open> {
        let answer = self.send(side, OPEN, node, |it| it.words(&[flags, 0]));
        answer.is_done().then(|| (node, self.fs(side).number(0)))
    }

    /// Closes a handle.
    pub fn release(&mut self, side: Side, (node, handle): Open) -> Answer {
        self.send(side, RELEASE, node, |it| it.longs(&[handle]).words(&[0, 0]).longs(&[0]))
    }

    /// Makes a file, and opens it to read and write.
    pub fn create(&mut self, side: Side, parent: u64, name: &[u8], mode: u32) -> Option<Open> {
        let create = [0o2, 0o100_000 | mode, 0, 0];
        let answer = self.send(side, CREATE, parent, |it| it.words(&create).name(name));
        let (node, attributes) =
            (self.fs(side).number(0), Attributes::read(self.fs(side), IN_ENTRY));
        let handle = self.fs(side).number(128);
        if answer.is_done() {
            self.say(format_args!("  made {}: {attributes}", Shown(name)));
        }
        answer.is_done().then_some((node, handle))
    }

    /// Writes to an open file.
    pub fn write(&mut self, side: Side, (node, handle): Open, offset: u64, text: &[u8]) -> Answer {
        let size = u32::try_from(text.len()).unwrap_or(0);
        self.send(side, WRITE, node, |it| {
            it.longs(&[handle, offset]).words(&[size, 0]).longs(&[0]).words(&[0, 0]).bytes(text)
        })
    }

    /// Makes a symbolic link.
    pub fn symlink(&mut self, side: Side, name: &[u8], to: &[u8]) -> Option<u64> {
        let answer = self.send(side, SYMLINK, crate::fs::ROOT, |it| it.name(name).name(to));
        answer.is_done().then(|| self.fs(side).number(0))
    }

    /// Makes a directory.
    pub fn make_directory(
        &mut self,
        side: Side,
        parent: u64,
        name: &[u8],
        mode: u32,
    ) -> Option<u64> {
        let answer = self.send(side, MKDIR, parent, |it| it.words(&[mode, 0]).name(name));
        answer.is_done().then(|| self.fs(side).number(0))
    }

    /// Makes a node of a type.
    pub fn make_node(&mut self, side: Side, name: &[u8], mode: u32, device: u32) -> Option<u64> {
        let words = [mode, device, 0, 0];
        let answer = self.send(side, MKNOD, crate::fs::ROOT, |it| it.words(&words).name(name));
        answer.is_done().then(|| self.fs(side).number(0))
    }

    /// Gives a node another name.
    pub fn link(&mut self, side: Side, node: u64, parent: u64, name: &[u8]) -> Answer {
        self.send(side, LINK, parent, |it| it.longs(&[node]).name(name))
    }

    /// Moves what has a name to another one.
    pub fn rename(&mut self, side: Side, from: &[u8], to: &[u8]) -> Answer {
        self.send(side, RENAME, crate::fs::ROOT, |it| {
            it.longs(&[crate::fs::ROOT]).name(from).name(to)
        })
    }

    /// Changes attributes: which, and the new mode, user and group; with a handle, by that.
    pub fn set(
        &mut self,
        side: Side,
        node: u64,
        valid: u32,
        handle: u64,
        [mode, user, group]: [u32; 3],
    ) -> Answer {
        self.send(side, SETATTR, node, |request| {
            request
                .words(&[valid, 0])
                .longs(&[handle, 0, 0, 0, 0, 0])
                .words(&[0, 0, 0, mode, 0, user, group, 0])
        })
    }

    /// Says what a node is now.
    pub fn describe(&mut self, side: Side, node: u64) {
        let answer = self.send(side, GETATTR, node, |it| it.words(&[0, 0]).longs(&[0]));
        if answer.is_done() {
            let attributes = Attributes::read(self.fs(side), IN_ATTRIBUTES);
            self.say(format_args!("  is {attributes}"));
        }
    }
}
