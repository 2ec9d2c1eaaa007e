//! The requests that most attacks make. Each method notes the answer in the report.

use super::{Ground, Side};
use crate::fs::opcode::{
    CREATE, GETATTR, LINK, LOOKUP, MKDIR, MKNOD, OPEN, OPENDIR, READ, READDIR, READLINK, RELEASE,
    RENAME, SETATTR, SYMLINK, WRITE,
};
use crate::fs::{Answer, Attributes, Request};
use crate::text::Shown;

/// How many bytes of a file are read, and how many are printed. The texts that the harness searches for are shorter.
const SAMPLE: u32 = 4096;
const SHOWN: usize = 64;
/// The mask of the file type in a mode, and two types.
const TYPE: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const LINK_TYPE: u32 = 0o120_000;
/// `O_NONBLOCK`.
const NONBLOCK: u32 = 0o4000;
/// The offset of the attributes in the answer's payload: of LOOKUP, and of GETATTR.
const IN_ENTRY: usize = 40;
const IN_ATTRIBUTES: usize = 16;

/// A node, and a handle that is open for it.
pub(crate) type Open = (u64, u64);

impl Ground {
    /// Sends the request that `make` completes, and notes the answer.
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

    /// Looks up `name` below `parent`, and prints the attributes of its node.
    pub fn lookup(&mut self, side: Side, parent: u64, name: &[u8]) -> Option<u64> {
        let answer = self.send(side, LOOKUP, parent, |it| it.name(name));
        self.found(side, name, answer).map(|(node, _)| node)
    }

    /// Reads a node and its attributes from the answer to LOOKUP, and prints the attributes.
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

    /// Looks up `name`, and prints the beginning of its content: a list, a link's target, a file's bytes.
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

    /// Opens `node`, and prints the beginning of its content.
    pub fn read_node(&mut self, side: Side, node: u64) {
        let Some((_, handle)) = self.open(side, node, NONBLOCK) else { return };
        self.read(side, (node, handle), 0);
        self.release(side, (node, handle));
    }

    /// Prints the content of an open file from `offset` on.
    pub fn read(&mut self, side: Side, (node, handle): Open, offset: u64) {
        let read = |it: Request<'_>| -> Answer {
            it.longs(&[handle, offset]).words(&[SAMPLE, 0]).longs(&[0]).words(&[0, 0]).send()
        };
        let answer = read(self.fs(side).ask(READ, node));
        self.note(answer);
        self.show(side, "read", answer);
    }

    /// Prints the target of a symbolic link.
    pub fn follow(&mut self, side: Side, node: u64) {
        let answer = self.send(side, READLINK, node, |it| it);
        self.show(side, "link", answer);
    }

    /// Prints the beginning of a directory's entries.
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

    /// Prints the first 64 bytes of the answer's payload after the label `what`.
    pub fn show(&mut self, side: Side, what: &str, answer: Answer) {
        let Answer::Done(length @ 1..) = answer else { return };
        let mut bytes = [0; SHOWN];
        let bytes = &mut bytes[..length.min(SHOWN)];
        self.fs(side).payload(0, bytes);
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.say(format_args!("  {what} {}", Shown(&bytes[..end])));
    }

    /// Opens `node` with flags of open(2).
    pub fn open(&mut self, side: Side, node: u64, flags: u32) -> Option<Open> {
        let answer = self.send(side, OPEN, node, |it| it.words(&[flags, 0]));
        answer.is_done().then(|| (node, self.fs(side).number(0)))
    }

    /// Closes a handle.
    pub fn release(&mut self, side: Side, (node, handle): Open) -> Answer {
        self.send(side, RELEASE, node, |it| it.longs(&[handle]).words(&[0, 0]).longs(&[0]))
    }

    /// Creates a file, and opens it for reading and writing.
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

    /// Creates the symbolic link `name` to `to` in the root directory, and returns its node.
    pub fn symlink(&mut self, side: Side, name: &[u8], to: &[u8]) -> Option<u64> {
        let answer = self.send(side, SYMLINK, crate::fs::ROOT, |it| it.name(name).name(to));
        answer.is_done().then(|| self.fs(side).number(0))
    }

    /// Creates a directory, and returns its node.
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

    /// Creates `name` in the root directory with mknod(2)'s `mode` and `device`, and returns its node.
    pub fn make_node(&mut self, side: Side, name: &[u8], mode: u32, device: u32) -> Option<u64> {
        let words = [mode, device, 0, 0];
        let answer = self.send(side, MKNOD, crate::fs::ROOT, |it| it.words(&words).name(name));
        answer.is_done().then(|| self.fs(side).number(0))
    }

    /// Creates a hard link to `node`.
    pub fn link(&mut self, side: Side, node: u64, parent: u64, name: &[u8]) -> Answer {
        self.send(side, LINK, parent, |it| it.longs(&[node]).name(name))
    }

    /// Renames `from` to `to` in the root directory.
    pub fn rename(&mut self, side: Side, from: &[u8], to: &[u8]) -> Answer {
        self.send(side, RENAME, crate::fs::ROOT, |it| {
            it.longs(&[crate::fs::ROOT]).name(from).name(to)
        })
    }

    /// Sets the attributes in the mask `valid` (`FATTR_*`). `handle` is used if the mask contains `FATTR_FH`.
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

    /// Prints the current attributes of `node`.
    pub fn describe(&mut self, side: Side, node: u64) {
        let answer = self.send(side, GETATTR, node, |it| it.words(&[0, 0]).longs(&[0]));
        if answer.is_done() {
            let attributes = Attributes::read(self.fs(side), IN_ATTRIBUTES);
            self.say(format_args!("  is {attributes}"));
        }
    }
}
