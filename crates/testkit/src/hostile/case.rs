//! Parses the language of the cases.
//!
//! ```text
//! == NAME: DESCRIPTION OR SOURCE
//! d PATH | f PATH CONTENT | l PATH TARGET | h PATH TARGET | p PATH | c PATH | b PATH
//! t TYPE PATH                 a member of any type
//! x PAIR… | g PAIR…           a local or a global extended header with valid records
//! xraw BODY | graw BODY       a local or a global extended header with arbitrary bytes
//! L PATH | K TARGET           GNU's long name and long link target
//! zero N | bytes TEXT         blocks of zeros, arbitrary bytes
//! noend | cut N               no zero blocks at the end; N bytes cut from the end
//! ---                         the split into two layers (default: before the last member)
//! = ENTRY…                    the resulting tree
//! ! TEXT                      or the beginning of the error's message
//! =1 =2 !1 !2                 a tree or an error only for one layer, or only for two layers
//! ```
//!
//! A member's line may end with `FIELD:VALUE` words, see [`super::header`]. An entry is
//! `d:PATH`, `f:PATH=CONTENT`, `l:PATH=TARGET`, `p:PATH`, `c:PATH=MAJOR,MINOR` or `h:PATH=FIRST`
//! (the same inode as FIRST). The owner is root, the time is 1970, and the mode is 755 (directories), 777
//! (links) or 644, unless `[mode=…]`, `[uid=…]`, `[gid=…]` or `[mtime=…]` follows. `[x.NAME=…]` is an
//! extended attribute.

use super::bytes::unescape;
use super::entry::{Expected, entry};
use super::header::{Member, record};

/// An attack that must be refused or contained.
#[derive(Debug, Clone)]
pub struct Case {
    /// The name of the attack in messages.
    pub name: String,
    /// A description of the attack, or its source.
    pub reason: String,
    /// The expected outcome if all members are in one layer.
    pub one: Expected,
    /// The expected outcome if the members are split over two layers.
    pub two: Expected,
    members: Vec<Vec<u8>>,
    /// The number of members in the lower of two layers. `None` for all members but the last.
    split: Option<usize>,
    /// Whether the archive ends with two zero blocks.
    end: bool,
    cut: usize,
}

impl Case {
    /// Returns one archive of all members.
    pub fn one_layer(&self) -> Vec<u8> {
        self.archive(&self.members)
    }

    /// Returns two archives into which the members are split. If there is only one member, it is in the upper layer, and
    /// the lower layer has a file `evil-lower`.
    pub fn two_layers(&self) -> [Vec<u8>; 2] {
        let split = self.split.unwrap_or(self.members.len() - 1);
        let lower = match self.split {
            None if split == 0 => vec![Member::new(b'0', LOWER, "0000644", b"").bytes()],
            _ => self.members[..split].to_vec(),
        };
        let end = [lower.concat(), vec![0; 1024]].concat();
        [end, self.archive(&self.members[split..])]
    }

    fn archive(&self, members: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = members.concat();
        bytes.resize(bytes.len() + if self.end { 1024 } else { 0 }, 0);
        bytes.truncate(bytes.len() - self.cut);
        bytes
    }
}

const LOWER: &[u8] = b"evil-lower";

/// Parses the cases of a text.
pub(super) fn read(file: &str, text: &str) -> Vec<Case> {
    let cases = text.split("\n== ").skip(1);
    cases.map(|text| Reader::new(file, text).case()).collect()
}

/// A case that is being parsed.
struct Reader<'a> {
    case: Case,
    lines: std::str::Lines<'a>,
    /// Whether the last member has only an extended header so far, so that the next bytes belong to it.
    open: bool,
    expected: [Option<Expected>; 2],
}

impl<'a> Reader<'a> {
    fn new(file: &str, text: &'a str) -> Self {
        let mut lines = text.lines();
        let title = lines.next().unwrap_or_default();
        let (name, reason) = title.split_once(": ").unwrap_or((title, ""));
        let case = Case {
            name: format!("{file}/{name}"),
            reason: reason.to_owned(),
            one: Expected::Tree(Vec::new()),
            two: Expected::Tree(Vec::new()),
            members: Vec::new(),
            split: None,
            end: true,
            cut: 0,
        };
        Self { case, lines, open: false, expected: [None, None] }
    }

    fn case(mut self) -> Case {
        while let Some(line) = self.lines.next() {
            if !line.is_empty() && !line.starts_with('#') {
                self.line(line);
            }
        }
        let name = &self.case.name;
        let [one, two] = self.expected;
        self.case.one = one.unwrap_or_else(|| panic!("{name}: what of one layer?"));
        self.case.two = two.unwrap_or_else(|| panic!("{name}: what of two layers?"));
        self.case
    }

    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let rest = &words[1..];
        match words[0] {
            "=" | "=1" | "=2" => {
                let entries: Vec<_> = rest.iter().map(|word| entry(word)).collect();
                let is_alone = self.case.split.is_none() && self.case.members.len() == 1;
                if words[0] == "=" && is_alone {
                    let lower = [entry("f:evil-lower=")];
                    self.expect("=2", Expected::Tree([&entries[..], &lower].concat()));
                }
                self.expect(words[0], Expected::Tree(entries));
            }
            "!" | "!1" | "!2" => self.expect(words[0], Expected::Refused(rest.join(" "))),
            "---" => self.case.split = Some(self.case.members.len()),
            "noend" => self.case.end = false,
            "cut" => self.case.cut = number(rest[0]),
            "zero" => self.append(vec![0; 512 * number(rest[0])], false),
            "bytes" => self.append(unescape(rest[0]), false),
            "x" | "g" => self.append(records(words[0], rest), true),
            "xraw" | "graw" => self.append(raw(&words[0][..1], rest, &unescape(rest[0])), true),
            "L" | "K" => self.append(raw(words[0], rest, &unescape(rest[0])), true),
            kind => self.append(member(kind, rest), false),
        }
    }

    fn expect(&mut self, sign: &str, expected: Expected) {
        let sorted = match expected {
            Expected::Tree(mut entries) => {
                entries.sort_by(|a, b| a.path.cmp(&b.path));
                Expected::Tree(entries)
            }
            refused @ Expected::Refused(_) => refused,
        };
        for (place, own) in self.expected.iter_mut().zip(["1", "2"]) {
            if sign.ends_with(own) || (sign.len() == 1 && place.is_none()) {
                *place = Some(sorted.clone());
            }
        }
    }

    /// Appends bytes to the last member if it is open, and otherwise adds them as a new member. Zeros and partial blocks are
    /// appended to the member before them, or, at the start of a layer, to the member after them.
    fn append(&mut self, bytes: Vec<u8>, opens: bool) {
        let is_odd = bytes.len() < 512 || bytes.iter().all(|byte| *byte == 0);
        let is_first = self.case.split == Some(self.case.members.len());
        match self.case.members.last_mut() {
            Some(last) if self.open || (is_odd && !is_first) => last.extend(bytes),
            _ => self.case.members.push(bytes),
        }
        self.open = opens || (is_odd && is_first);
    }
}

fn number(word: &str) -> usize {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
}

fn records(kind: &str, pairs: &[&str]) -> Vec<u8> {
    let body: Vec<u8> = pairs.iter().flat_map(|pair| record(&unescape(pair))).collect();
    raw(kind, &[], &body)
}

fn raw(kind: &str, words: &[&str], body: &[u8]) -> Vec<u8> {
    let mut member = Member::new(kind.as_bytes()[0], b"evil-extension", "0000644", body);
    apply(&mut member, words.get(1..).unwrap_or_default());
    member.bytes()
}

fn member(kind: &str, words: &[&str]) -> Vec<u8> {
    let (tar_type, mode, takes) = match kind {
        "d" => (b'5', "0000755", 1),
        "f" => (b'0', "0000644", 2),
        "l" => (b'2', "0000777", 2),
        "h" => (b'1', "0000644", 2),
        "p" => (b'6', "0000644", 1),
        "c" => (b'3', "0000644", 1),
        "b" => (b'4', "0000644", 1),
        "t" => (unescape(words[0])[0], "0000644", 2),
        other => panic!("{other} is no kind of line"),
    };
    let name = unescape(words[usize::from(kind == "t")]);
    let data = if kind == "f" { unescape(words[1]) } else { Vec::new() };
    let mut member = Member::new(tar_type, &name, mode, &data);
    if matches!(kind, "l" | "h") {
        member.set("linkname", &unescape(words[1]));
    }
    apply(&mut member, &words[takes..]);
    member.bytes()
}

fn apply(member: &mut Member, words: &[&str]) {
    for word in words {
        assert!(member.apply(word), "{word} is no field");
    }
}
