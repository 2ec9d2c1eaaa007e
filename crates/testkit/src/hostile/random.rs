//! Changes archives and texts at random. Equal seeds give equal changes on every host.

use super::header::BLOCK;

/// A generator of pseudorandom numbers ([xorshift64*](https://arxiv.org/abs/1402.6246), Vigna 2016), not for secrets.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts a sequence. Equal seeds give equal sequences.
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap_or(0) % limit
    }

    /// Returns one of the choices.
    pub fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

/// The offsets and lengths of the header fields that readers use.
const FIELDS: [(usize, usize); 10] = [
    (0, 100),
    (100, 8),
    (108, 8),
    (124, 12),
    (136, 12),
    (156, 1),
    (157, 100),
    (257, 8),
    (329, 16),
    (345, 155),
];
/// Values of fields that readers interpret in different ways, or did in the past.
const ODD: [&[u8]; 24] = [
    b"",
    b"\0",
    b" ",
    b"/",
    b"./",
    b"..",
    b"../x",
    b"a/",
    b"7",
    b"0000001",
    b"00000001000",
    b"00000000777\0",
    b"        12",
    b"\x80\0\0\0\0\0\0\0\0\0\x02\0",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"-1",
    b"+1",
    b"0x1",
    b"1_0",
    b"ustar\x0000",
    b"ustar  \0",
    b"ustar",
    b"\n",
    b"8 a=bc\n",
];

/// Replaces parts of a text, one after the other. Each part is an offset (modulo the length of the text + 1), a length in
/// bytes, and the new text.
///
/// # Examples
/// ```
/// use testkit::hostile::replace_each;
///
/// let parts = [(0, 5, "Goodbye".to_owned()), (9, 5, "box".to_owned())];
/// assert_eq!(replace_each("Hello, world", &parts), "Goodbye, box");
/// ```
pub fn replace_each(text: &str, parts: &[(usize, usize, String)]) -> String {
    let mut text = text.to_owned();
    for (place, length, instead) in parts {
        let start = text.floor_char_boundary(place % (text.len() + 1));
        let end = text.floor_char_boundary(start + length);
        text.replace_range(start..end, instead);
    }
    text
}

/// Returns a copy of `archive` with one to four changes. A change can replace the end with the end of `other`. In nine of
/// ten copies, the checksums of the headers are corrected.
pub fn mutate(archive: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = archive.to_vec();
    for _ in 0..=random.below(4) {
        change(&mut bytes, other, random);
    }
    if random.below(10) > 0 {
        mend(&mut bytes);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    if bytes.len() < BLOCK {
        bytes.extend_from_slice(other);
        return;
    }
    let blocks = bytes.len() / BLOCK;
    let at = random.below(blocks) * BLOCK;
    match random.below(8) {
        0 => bytes[at + random.below(BLOCK)] ^= 1 << random.below(8),
        1 | 2 => {
            let (start, length) = *random.one_of(&FIELDS);
            let odd = random.one_of(&ODD);
            let field = &mut bytes[at + start..at + start + length];
            let length = odd.len().min(length);
            field[..length].copy_from_slice(&odd[..length]);
        }
        3 => bytes[at + 156] = *random.one_of(b"01234567\0xgLKSXVAD"),
        4 => {
            let block = bytes[at..at + BLOCK].to_vec();
            let to = random.below(blocks) * BLOCK;
            bytes.splice(to..to, block);
        }
        5 => drop(bytes.drain(at..at + BLOCK)),
        6 => {
            let from = random.below(other.len() / BLOCK + 1) * BLOCK;
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        _ => {
            let at = random.below(bytes.len());
            bytes[at] = *random.one_of(b"0179 =\n\0/.x\xff");
        }
    }
}

/// Corrects the checksum of each block that has the magic number of a header, or a checksum field that ends like one.
fn mend(bytes: &mut [u8]) {
    for block in bytes.chunks_exact_mut(BLOCK) {
        let is_header = block[257..262] == *b"ustar" || (block[154] == 0 && block[155] == b' ');
        if is_header {
            block[148..156].fill(b' ');
            let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
            block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_text_are_replaced_between_characters() {
        let parts = [(1, 2, "x".to_owned()), (5, 9, "é".to_owned()), (6, 0, "<".to_owned())];
        assert_eq!(replace_each("aéb", &parts), "a<é");
        assert_eq!(replace_each("é", &[(1, 1, String::new())]), "é");
    }

    #[test]
    fn the_same_seed_gives_the_same_archives() {
        let archive = crate::hostile::corpus().remove(0).one_layer();
        let run = |seed| {
            let mut random = Random::new(seed);
            (0..20).map(|_| mutate(&archive, &archive, &mut random)).collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        assert!(run(1).iter().filter(|changed| **changed != archive).count() > 10);
    }
}
