//! Compares FORMAT.md with the images: its tables account for every byte, and have the written
//! values.

use std::collections::BTreeMap;

use crate::model::{Kind, Tree, meta};

const FORMAT: &str = include_str!("../../FORMAT.md");

/// A row of a structure's table: offset, length, name and what is written.
#[derive(Debug, Clone)]
struct Field {
    offset: usize,
    length: usize,
    name: String,
    written: String,
}

/// Returns the structures with their sizes and fields.
fn structures() -> BTreeMap<&'static str, (usize, Vec<Field>)> {
    let sections = FORMAT.split("# `struct ").skip(1);
    sections
        .map(|section| {
            let (name, rest) = section.split_once("`, ").unwrap();
            let (size, rest) = rest.split_once(" bytes").unwrap();
            let rows = rest.lines().skip_while(|line| !line.starts_with("|---"));
            let rows = rows.skip(1).take_while(|line| line.starts_with('|'));
            (name, (size.parse().unwrap(), rows.map(field).collect()))
        })
        .collect()
}

fn field(row: &str) -> Field {
    let cells: Vec<_> = row.split('|').map(str::trim).collect();
    let name = cells[3].split('`').nth(1).unwrap().to_owned();
    let number = |cell: &str| cell.parse().unwrap();
    Field { offset: number(cells[1]), length: number(cells[2]), name, written: cells[4].to_owned() }
}

#[test]
fn the_tables_account_for_every_byte() {
    let structures = structures();
    assert_eq!(structures.len(), 5, "{:?}", structures.keys());
    for (name, (size, fields)) in structures {
        let end = fields.iter().fold(0, |end, field| {
            assert_eq!(field.offset, end, "{name}.{}", field.name);
            end + field.length
        });
        assert_eq!(end, size, "{name}");
    }
}

/// Checks the fields that are one number in the table, and returns how many there are.
fn check_constants(fields: &[Field], bytes: &[u8]) -> usize {
    let constant = |field: &&Field| parse(&field.written).is_some();
    let constants = fields.iter().filter(constant);
    constants
        .inspect(|field| {
            let stored = &bytes[field.offset..][..field.length];
            let mut expected = parse(&field.written).unwrap().to_le_bytes().to_vec();
            expected.resize(field.length.max(8), 0);
            assert_eq!(stored, &expected[..field.length], "{field:?}");
            assert!(expected[field.length..].iter().all(|byte| *byte == 0), "{field:?}");
        })
        .count()
}

fn parse(written: &str) -> Option<u64> {
    match written.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => written.parse().ok(),
    }
}

#[test]
fn what_the_tables_call_constant_is_what_is_written() {
    let structures = structures();
    let mut tree = Tree::flat([(b"fifo".to_vec(), Kind::Fifo)]);
    tree.inodes[1].0.xattrs = vec![(b"user.a".to_vec(), b"b".to_vec())];
    tree.add(0, b"file", meta(), Kind::File(vec![1; 5000]));
    let (image, _) = tree.image();
    let fields = |name: &str| structures[name].1.as_slice();
    assert_eq!(check_constants(fields("erofs_super_block"), &image[1024..]), 20);
    // The root with `.`, `..`, `fifo` and `file` ends at 4096 + 64 + 4 * 12 + 11 bytes.
    let fifo = 4096 + 128;
    for inode in [4096, fifo] {
        assert_eq!(check_constants(fields("erofs_inode_extended"), &image[inode..]), 2);
    }
    assert_eq!(check_constants(fields("erofs_xattr_ibody_header"), &image[fifo + 64..]), 3);
    assert_eq!(check_constants(fields("erofs_dirent"), &image[4096 + 64..]), 1);
}
