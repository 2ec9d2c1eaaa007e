//! One entry of a layer, and its bytes in a tar stream
//! ([POSIX pax](https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html)).

use tar::{EntryType, Header};

/// The type of an entry, with its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A regular file with its content.
    File(Vec<u8>),
    /// A directory (`5`).
    Dir,
    /// A symbolic link with its target.
    Symlink(Vec<u8>),
    /// A hard link to an earlier entry.
    Hardlink(Vec<u8>),
    /// A character device with its major and minor number.
    CharDevice(u32, u32),
    /// A block device with its major and minor number.
    BlockDevice(u32, u32),
    /// A named pipe (`6`).
    Fifo,
}

/// One entry of a layer. Its name is written unchanged, so that hostile names are possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name in the tar stream. A leading slash is kept.
    pub name: Vec<u8>,
    /// The type, with its data.
    pub kind: Kind,
    /// The permission bits with set-uid, set-gid and sticky.
    pub mode: u32,
    /// The numeric user id.
    pub uid: u64,
    /// The numeric group id.
    pub gid: u64,
    /// The modification time, in seconds since 1970.
    pub mtime: u64,
    /// The extended attributes in their order, as `SCHILY.xattr.` records.
    pub xattrs: Vec<(String, Vec<u8>)>,
}

impl Entry {
    /// Appends the entry to a tar stream. Its extended header also has the records `further`.
    pub(crate) fn append_to(&self, tar: &mut Vec<u8>, further: &[(String, Vec<u8>)]) {
        let (entry_type, target, data) = self.parts();
        let mut records = self.pax_records(target);
        for (key, value) in further {
            push_record(&mut records, key, value);
        }
        if !records.is_empty() {
            let mut header = Header::new_ustar();
            header.set_entry_type(EntryType::XHeader);
            put_name(&mut header, b"././@PaxHeader");
            append_member(tar, header, &records);
        }
        let mut header = Header::new_ustar();
        header.set_entry_type(entry_type);
        put_name(&mut header, &self.name);
        put_target(&mut header, target);
        self.put_numbers(&mut header);
        append_member(tar, header, data);
    }

    fn parts(&self) -> (EntryType, &[u8], &[u8]) {
        match &self.kind {
            Kind::File(data) => (EntryType::Regular, b"", data),
            Kind::Dir => (EntryType::Directory, b"", b""),
            Kind::Symlink(target) => (EntryType::Symlink, target, b""),
            Kind::Hardlink(target) => (EntryType::Link, target, b""),
            Kind::CharDevice(..) => (EntryType::Char, b"", b""),
            Kind::BlockDevice(..) => (EntryType::Block, b"", b""),
            Kind::Fifo => (EntryType::Fifo, b"", b""),
        }
    }

    fn put_numbers(&self, header: &mut Header) {
        header.set_mode(self.mode);
        header.set_uid(self.uid);
        header.set_gid(self.gid);
        header.set_mtime(self.mtime);
        if let (Kind::CharDevice(major, minor) | Kind::BlockDevice(major, minor), Some(ustar)) =
            (&self.kind, header.as_ustar_mut())
        {
            ustar.set_device_major(*major);
            ustar.set_device_minor(*minor);
        }
    }

    fn pax_records(&self, target: &[u8]) -> Vec<u8> {
        let mut records = Vec::new();
        if self.name.len() > 100 {
            push_record(&mut records, "path", &self.name);
        }
        if target.len() > 100 {
            push_record(&mut records, "linkpath", target);
        }
        for (name, value) in &self.xattrs {
            push_record(&mut records, &format!("SCHILY.xattr.{name}"), value);
        }
        records
    }
}

/// Appends `LENGTH KEY=VALUE\n`, in which LENGTH includes its own digits.
fn push_record(records: &mut Vec<u8>, key: &str, value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length.to_string().len() + rest != length {
        length = length.to_string().len() + rest;
    }
    records.extend_from_slice(format!("{length} {key}=").as_bytes());
    records.extend_from_slice(value);
    records.push(b'\n');
}

fn put_name(header: &mut Header, name: &[u8]) {
    let length = name.len().min(100);
    header.as_old_mut().name[..length].copy_from_slice(&name[..length]);
}

fn put_target(header: &mut Header, target: &[u8]) {
    let length = target.len().min(100);
    header.as_old_mut().linkname[..length].copy_from_slice(&target[..length]);
}

fn append_member(tar: &mut Vec<u8>, mut header: Header, data: &[u8]) {
    header.set_size(data.len() as u64);
    header.set_cksum();
    tar.extend_from_slice(header.as_bytes());
    tar.extend_from_slice(data);
    tar.resize(tar.len().next_multiple_of(512), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_its_own_digits() {
        let mut records = Vec::new();
        push_record(&mut records, "path", b"ab");
        assert_eq!(records, b"11 path=ab\n");
        for size in 80..110 {
            let mut records = Vec::new();
            push_record(&mut records, "path", &vec![b'x'; size]);
            let text = String::from_utf8(records).unwrap();
            let length: usize = text.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(length, text.len());
        }
    }
}
