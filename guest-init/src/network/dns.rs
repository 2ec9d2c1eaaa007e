//! DNS queries for the address of a name, and their answers ([RFC 1035, section
//! 4](https://www.rfc-editor.org/rfc/rfc1035#section-4)).

use std::net::Ipv4Addr;

/// The greatest size of a query, in bytes. Without an extension it is UDP's limit ([RFC 1035, section
/// 2.3.4](https://www.rfc-editor.org/rfc/rfc1035#section-2.3.4)).
pub(super) const MAX_MESSAGE: usize = 512;
const HEADER: usize = 12;
/// The flag of an answer, and the flags that an answer copies from the query: the opcode and "recursion desired".
const IS_ANSWER: u8 = 0x80;
const FROM_QUESTION: u8 = 0x79;
const RECURSION_AVAILABLE: u8 = 0x80;
const TYPE_A: u16 = 1;
const CLASS_IN: u16 = 1;
const MAX_LABEL: u8 = 63;
/// The time to live of an answer, in seconds.
pub(super) const KEEP: u32 = 30;

/// The response code ([RFC 1035, section 4.1.1](https://www.rfc-editor.org/rfc/rfc1035#section-4.1.1)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    Done = 0,
    Malformed = 1,
    Failed = 2,
    /// There is no such name (`NXDOMAIN`). Programs do not ask again, as they would after a refusal.
    Absent = 3,
}

/// A query with one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    /// The header and the question as received.
    message: Vec<u8>,
    /// The name in lower case. `None` if it is no host name, or if the question's class is not the internet.
    pub(super) name: Option<String>,
    is_for_address: bool,
}

impl Question {
    /// Parses a query. For a malformed query, returns `Err` with the answer to send, or with `None` if the query cannot
    /// be answered.
    pub(super) fn parse(message: &[u8]) -> Result<Self, Option<Vec<u8>>> {
        let header = message.get(..HEADER).ok_or(None)?;
        if header[2] & IS_ANSWER != 0 {
            return Err(None);
        }
        let malformed = || Some(answer(header, Code::Malformed, 0));
        let is_one_question = header[2] & 0x78 == 0 && header[4..6] == [0, 1];
        let (name, rest) =
            name(&message[HEADER..]).filter(|_| is_one_question).ok_or_else(malformed)?;
        let (kind, rest) = number(rest).ok_or_else(malformed)?;
        let (class, rest) = number(rest).ok_or_else(malformed)?;
        let message = message[..message.len() - rest.len()].to_vec();
        let name = name.filter(|_| class == CLASS_IN);
        Ok(Self { message, name, is_for_address: kind == TYPE_A })
    }

    /// Returns the answer with the name's address. If the question is not for an IPv4 address, the answer has no
    /// records.
    pub(super) fn found(&self, address: Ipv4Addr) -> Vec<u8> {
        let mut message = answer(&self.message, Code::Done, u8::from(self.is_for_address));
        if self.is_for_address {
            // The name, as a pointer to the question's name.
            message.extend([0xc0, 12]);
            message.extend(TYPE_A.to_be_bytes());
            message.extend(CLASS_IN.to_be_bytes());
            message.extend(KEEP.to_be_bytes());
            message.extend([0, 4]);
            message.extend(address.octets());
        }
        message
    }

    /// Returns an answer without an address.
    pub(super) fn failed(&self, code: Code) -> Vec<u8> {
        answer(&self.message, code, 0)
    }
}

/// Returns the header of an answer to `question`, which is a query's header with or without its question, and copies
/// the question. `records` is the number of records that the caller appends.
fn answer(question: &[u8], code: Code, records: u8) -> Vec<u8> {
    let mut message = question.to_vec();
    message[2] = IS_ANSWER | question[2] & FROM_QUESTION;
    message[3] = RECURSION_AVAILABLE | code as u8;
    let questions = u8::from(question.len() > HEADER);
    message[4..HEADER].copy_from_slice(&[0, questions, 0, records, 0, 0, 0, 0]);
    message
}

/// Parses a name. Returns the name, or `None` if it is not a host name, and the bytes after it. Returns `None` alone if
/// the name is malformed.
fn name(mut rest: &[u8]) -> Option<(Option<String>, &[u8])> {
    let (mut name, mut is_text) = (String::new(), true);
    loop {
        let (length, after) = rest.split_first()?;
        if *length == 0 {
            return Some(((is_text && !name.is_empty()).then_some(name), after));
        }
        // A length above the maximum is a pointer, and no earlier name exists to which it could point.
        let (label, after) =
            after.split_at_checked((*length).into()).filter(|_| *length <= MAX_LABEL)?;
        is_text &= label.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
        if !name.is_empty() {
            name.push('.');
        }
        name.extend(label.iter().map(|byte| char::from(byte.to_ascii_lowercase())));
        rest = after;
    }
}

fn number(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u16::from_be_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = &[0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    const AT_INTERNET: &[u8] = &[0, 1, 0, 1];

    fn question(name: &[u8], kind: &[u8]) -> Vec<u8> {
        [HEAD, name, kind].concat()
    }

    #[test]
    fn a_name_has_its_address() {
        let asked = question(b"\x03aPi\x07example\x03com\x00", AT_INTERNET);
        // Bytes after the question, such as the extensions of EDNS, are not echoed.
        let question = Question::parse(&[asked.as_slice(), b"\0\0\x29\x10\0"].concat()).unwrap();
        assert_eq!(question.name.as_deref(), Some("api.example.com"));
        let answer = question.found(Ipv4Addr::new(198, 18, 0, 2));
        assert_eq!(answer[..12], [0x12, 0x34, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
        assert_eq!(answer[12..asked.len()], asked[12..], "as it was asked");
        let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4, 198, 18, 0, 2];
        assert_eq!(answer[asked.len()..], record);
        let absent = question.failed(Code::Absent);
        assert_eq!(absent[..12], [0x12, 0x34, 0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(absent.len(), asked.len());
    }

    #[test]
    fn it_has_none_of_ipv6_and_nothing_else() {
        for kind in [28, 16, 65, 255] {
            let asked = question(b"\x01a\x02bc\x00", &[0, kind, 0, 1]);
            let answer = Question::parse(&asked).unwrap().found(Ipv4Addr::LOCALHOST);
            assert_eq!(answer[3] & 15, 0, "the name is there");
            assert_eq!(answer[6..8], [0, 0], "but nothing of that kind");
            assert_eq!(answer.len(), asked.len());
        }
    }

    #[test]
    fn what_is_no_name_of_a_host_has_no_name() {
        for name in
            [&b"\x00"[..], b"\x05_sip.\x00", b"\x03a.b\x01c\x00", b"\x01\xff\x00", b"\x02a \x00"]
        {
            assert_eq!(Question::parse(&question(name, AT_INTERNET)).unwrap().name, None);
        }
        let chaos = question(b"\x07version\x04bind\x00", &[0, 16, 0, 3]);
        assert_eq!(Question::parse(&chaos).unwrap().name, None);
    }

    #[test]
    fn malformed_messages_are_told_so_or_dropped() {
        let malformed = |message: &[u8]| Question::parse(message).unwrap_err().map(|it| it[3] & 15);
        for name in [&b""[..], b"\x05a", b"\xc0\x0c", b"\x40aaa\x00"] {
            assert_eq!(malformed(&question(name, b"")), Some(1), "{name:?}");
        }
        assert_eq!(malformed(&question(b"\x01a\x00", &[0, 1, 0])), Some(1));
        let mut two = question(b"\x01a\x00", AT_INTERNET);
        two[5] = 2;
        assert_eq!(malformed(&two), Some(1));
        let mut update = question(b"\x01a\x00", AT_INTERNET);
        update[2] = 0x28;
        assert_eq!(malformed(&update), Some(1));
        assert_eq!(Question::parse(&HEAD[..11]), Err(None));
        let mut an_answer = question(b"\x01a\x00", AT_INTERNET);
        an_answer[2] = 0x81;
        assert_eq!(Question::parse(&an_answer), Err(None), "two resolvers would talk for ever");
    }

    #[test]
    fn no_message_makes_it_panic() {
        use proptest::prelude::*;
        proptest!(|(message in proptest::collection::vec(any::<u8>(), 0..80))| {
            if let Ok(question) = Question::parse(&message) {
                question.found(Ipv4Addr::LOCALHOST);
            }
        });
    }
}
