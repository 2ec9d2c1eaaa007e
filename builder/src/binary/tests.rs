//! Binaries of a checkout and of the store.

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use box_tree::ReadContent as _;
use object::elf;
use proptest::{collection, num};

use super::*;

/// The file offset of the data that all segments of [`elf_file`] share.
const DATA: u64 = 0x1000;

/// Returns an ELF file with one segment for each type in `segments`. All segments have `data`.
fn elf_file(machine: u16, kind: u16, entry: u64, segments: &[u32], data: &[u8]) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend_from_slice(&kind.to_le_bytes());
    file.extend_from_slice(&machine.to_le_bytes());
    file.extend_from_slice(&1u32.to_le_bytes());
    for word in [entry, 64, 0] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.extend_from_slice(&0u32.to_le_bytes());
    for half in [64, 56, u16::try_from(segments.len()).unwrap(), 64, 0, 0] {
        file.extend_from_slice(&half.to_le_bytes());
    }
    for segment in segments {
        file.extend_from_slice(&segment.to_le_bytes());
        file.extend_from_slice(&5u32.to_le_bytes());
        for word in [DATA, 0, 0, data.len() as u64, data.len() as u64, 1] {
            file.extend_from_slice(&word.to_le_bytes());
        }
    }
    file.resize(usize::try_from(DATA).unwrap(), 0);
    file.extend_from_slice(data);
    file
}

fn static_program() -> Vec<u8> {
    elf_file(elf::EM_X86_64, elf::ET_EXEC, 0x40_0000, &[elf::PT_LOAD], b"code")
}

/// Inspects bytes as a program for x86-64.
fn inspected(bytes: &[u8]) -> Result<Program, String> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    inspect(&file, Platform::LinuxAmd64).map_err(|error| error.to_string())
}

struct Checkout {
    dir: tempfile::TempDir,
    store: Store,
    store_dir: tempfile::TempDir,
}

impl Checkout {
    fn new() -> Self {
        let store_dir = tempfile::tempdir().unwrap();
        let store = Store::open(store_dir.path()).unwrap();
        Self { dir: tempfile::tempdir().unwrap(), store, store_dir }
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.dir.path().join(name), bytes).unwrap();
    }

    fn read(&self, path: impl AsRef<Path>) -> Result<Binary, BinaryError> {
        from_checkout(&self.dir.path().into(), path.as_ref(), Platform::LinuxAmd64, &self.store)
    }
}

#[test]
fn a_binary_is_one_executable_file_in_its_tree() {
    let checkout = Checkout::new();
    checkout.write("agent", &static_program());
    let mode = fs::Permissions::from_mode(0o600);
    fs::set_permissions(checkout.dir.path().join("agent"), mode).unwrap();
    let binary = checkout.read("agent").unwrap();
    assert_eq!(binary.program, Program::Static);
    assert_eq!(binary.content, Content::of(&static_program()));
    assert_eq!(binary.sha256, Digest::of(&static_program()));

    let mut tree = Tree::default();
    binary.put_into(&mut tree);
    let entries: Vec<_> = box_tree::entries(&tree).collect();
    let paths: Vec<_> = entries.iter().map(|(path, _)| path.as_slice()).collect();
    assert_eq!(paths, [b"/".as_slice(), b"/agent", b"/agent/bin", AGENT_PATH.as_bytes()]);
    for (_, id) in &entries {
        assert_eq!(tree.inode(*id).meta, Meta::root_owned(0o755));
    }
    let (_, file) = entries.last().unwrap();
    assert_eq!(tree.inode(*file).kind, box_tree::Kind::Leaf(Leaf::File(binary.content)));
}

#[test]
fn its_bytes_are_found_again_in_the_store() {
    let checkout = Checkout::new();
    let small = static_program();
    let large = [static_program(), vec![7; 1 << 20]].concat();
    for (program, has_segment) in [(small, false), (large, true)] {
        checkout.write("agent", &program);
        let binary = checkout.read("agent").unwrap();
        // The second time, the segment exists already.
        for _ in 0..2 {
            let mut contents = ContentMap::default();
            binary.add_to(&checkout.store, &mut contents).unwrap();
            let bytes = contents.reader(&checkout.store).read(binary.content, 2 << 20).unwrap();
            assert_eq!(bytes, program);
            assert_eq!(contents.in_segment(&binary.content.hash).is_some(), has_segment);
        }
    }
}

#[test]
fn a_downloaded_binary_is_the_same_as_one_of_the_checkout() {
    let checkout = Checkout::new();
    checkout.write("agent", &static_program());
    let blob = checkout.store.put(&static_program()).unwrap();
    let binary = from_store(&blob, "the URL", Platform::LinuxAmd64, &checkout.store).unwrap();
    let other = checkout.read("agent").unwrap();
    assert_eq!(binary.content, other.content);
    assert_eq!((binary.sha256, binary.program), (other.sha256, other.program));
    let missing = from_store(&Digest::of(b""), "the URL", Platform::LinuxAmd64, &checkout.store);
    assert!(matches!(missing, Err(BinaryError::Store(box_cache::StoreError::Missing(_)))));
}

#[test]
fn a_blob_that_was_damaged_is_no_binary() {
    let checkout = Checkout::new();
    let blob = checkout.store.put(&static_program()).unwrap();
    let path = checkout.store_dir.path().join("blobs").join(blob.hex());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&path, b"something else").unwrap();
    let read = from_store(&blob, "the URL", Platform::LinuxAmd64, &checkout.store);
    assert!(matches!(read, Err(BinaryError::Store(box_cache::StoreError::Damaged { .. }))));
}

#[test]
fn only_files_inside_the_checkout_are_read() {
    let checkout = Checkout::new();
    let outside = tempfile::NamedTempFile::new().unwrap();
    fs::write(outside.path(), static_program()).unwrap();
    let at = |name: &str| checkout.dir.path().join(name);
    fs::create_dir(at("directory")).unwrap();
    checkout.write("agent", &static_program());
    symlink(outside.path(), at("escape")).unwrap();
    symlink("agent", at("inside")).unwrap();
    symlink("/", at("root")).unwrap();
    std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    let up = format!("../{}", outside.path().file_name().unwrap().to_str().unwrap());

    assert!(checkout.read("inside").is_ok());
    assert!(checkout.read("directory/../agent").is_ok());
    for escape in ["escape", &up, "root/etc/passwd", ".."] {
        assert!(matches!(checkout.read(escape), Err(BinaryError::Outside(_))), "{escape}");
    }
    assert!(matches!(checkout.read(at("agent")), Err(BinaryError::Absolute(_))));
    for special in ["directory", "socket", "", "."] {
        assert!(matches!(checkout.read(special), Err(BinaryError::File(_))), "{special}");
    }
    assert!(matches!(checkout.read("none"), Err(BinaryError::File(_))));
}

#[test]
fn a_file_of_more_than_two_gib_is_refused_before_it_is_read() {
    let checkout = Checkout::new();
    // A sparse file takes no space on the disk.
    let file = File::create(checkout.dir.path().join("agent")).unwrap();
    file.set_len(MAX_BINARY + 1).unwrap();
    let error = checkout.read("agent").unwrap_err();
    assert_eq!(error.to_string(), "agent has more than 2048 MiB");
}

#[test]
fn copying_hashes_what_it_copies_and_tells_the_failing_side() {
    let bytes = vec![7; 300 << 10];
    let mut hashed = Hashed::new(bytes.as_slice());
    let mut out = Vec::new();
    io::copy(&mut hashed, &mut out).unwrap();
    assert_eq!((hashed.content(), hashed.failed), (Content::of(&bytes), false));
    assert_eq!(out, bytes);
    let mut hashed = Hashed::new(bytes.as_slice());
    let mut full = File::options().write(true).open("/dev/full").unwrap();
    io::copy(&mut hashed, &mut full).unwrap_err();
    assert!(!hashed.failed);
    let mut hashed = Hashed::new(File::open("/").unwrap());
    io::copy(&mut hashed, &mut io::sink()).unwrap_err();
    assert!(hashed.failed);
}

#[test]
fn programs_say_what_starts_them() {
    let interpreter = b"/lib64/ld-linux-x86-64.so.2".to_vec();
    let named = [interpreter.as_slice(), b"\0"].concat();
    let load = &[elf::PT_LOAD][..];
    let interp = &[elf::PT_INTERP, elf::PT_LOAD][..];
    let dynamic = &[elf::PT_LOAD, elf::PT_DYNAMIC][..];
    let x86 = elf::EM_X86_64;
    let linked = Program::By(interpreter);
    for (kind, segments, data, expected) in [
        (elf::ET_EXEC, load, b"code".as_slice(), Program::Static),
        (elf::ET_DYN, load, b"code", Program::Static),
        (elf::ET_DYN, dynamic, &[0; 32], Program::Static),
        (elf::ET_EXEC, interp, &named, linked.clone()),
        (elf::ET_DYN, interp, &named, linked),
    ] {
        assert_eq!(inspected(&elf_file(x86, kind, 0x1000, segments, data)), Ok(expected));
    }
}

#[test]
fn this_test_is_itself_a_program() {
    let file = File::open(std::env::current_exe().unwrap()).unwrap();
    let machine =
        if cfg!(target_arch = "x86_64") { Platform::LinuxAmd64 } else { Platform::LinuxArm64 };
    match inspect(&file, machine).unwrap() {
        Program::By(interpreter) => {
            assert!(Path::new(std::ffi::OsStr::from_bytes(&interpreter)).exists());
        }
        program => assert_eq!(program, Program::Static),
    }
}

#[test]
fn scripts_say_what_reads_them() {
    let script = |interpreter: &str| Ok(Program::By(interpreter.into()));
    assert_eq!(inspected(b"#!/bin/sh\necho\n"), script("/bin/sh"));
    assert_eq!(inspected(b"#!/bin/sh"), script("/bin/sh"));
    assert_eq!(inspected(b"#! \t/usr/bin/env  python3 -u \n"), script("/usr/bin/env"));
    let long = format!("#!/{}\n", "a".repeat(252));
    assert_eq!(inspected(long.as_bytes()), script(&long[2..255]));
}

#[test]
fn bad_first_lines_are_explained() {
    for (script, expected) in [
        (format!("#!/{}\n", "a".repeat(253)), "is longer than the 255 bytes that Linux reads"),
        ("#!/bin/sh\r\n".into(), "ends as on Windows (CR LF); save it with LF line ends"),
        (
            "#!python3\n".into(),
            "does not name an interpreter by its absolute path, as \"#!/bin/sh\" does",
        ),
        (
            "#!\n/bin/sh\n".into(),
            "does not name an interpreter by its absolute path, as \"#!/bin/sh\" does",
        ),
    ] {
        let expected = format!("it is a script, but its first line {expected}");
        assert_eq!(inspected(script.as_bytes()), Err(expected));
    }
}

#[test]
fn other_files_are_refused_by_type() {
    let library = elf_file(elf::EM_X86_64, elf::ET_DYN, 0, &[elf::PT_LOAD], b"");
    let mut needed = 1u64.to_le_bytes().to_vec();
    needed.extend_from_slice(&[0; 24]);
    let segments = [elf::PT_LOAD, elf::PT_DYNAMIC];
    let needing = elf_file(elf::EM_X86_64, elf::ET_DYN, 0x1000, &segments, &needed);
    let object_file = elf_file(elf::EM_X86_64, elf::ET_REL, 0, &[elf::PT_LOAD], b"");
    for (bytes, what) in [
        (b"".as_slice(), "empty"),
        (b"hello", "neither an ELF program nor a script"),
        (
            b"version https://git-lfs.github.com/spec/v1\n",
            "a pointer of Git LFS, not the file itself",
        ),
        (b"\xcf\xfa\xed\xfe\x07\0\0\x01", "a macOS program"),
        (b"MZ\x90\0", "a Windows program"),
        (&library, "a shared library"),
        (&needing, "a shared library"),
        (&object_file, "an object file or a core dump"),
    ] {
        assert_eq!(inspected(bytes), Err(format!("it is {what}")));
    }
}

#[test]
fn a_program_for_another_machine_is_refused() {
    let arm = elf_file(elf::EM_AARCH64, elf::ET_EXEC, 1, &[elf::PT_LOAD], b"");
    let expected = "it is a program for aarch64, but the box is for x86_64";
    assert_eq!(inspected(&arm), Err(expected.into()));
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&arm).unwrap();
    assert_eq!(inspect(&file, Platform::LinuxArm64).unwrap(), Program::Static);
    let mut short = static_program();
    short[4] = elf::ELFCLASS32;
    let expected = "it is a program for x86_64 with another word size or byte order, but the box is for x86_64";
    assert_eq!(inspected(&short), Err(expected.into()));
    let other = elf_file(0xfeed, elf::ET_EXEC, 1, &[elf::PT_LOAD], b"");
    let expected = "it is a program for machine 65261, but the box is for x86_64";
    assert_eq!(inspected(&other), Err(expected.into()));
}

#[test]
fn broken_headers_are_refused_without_much_memory() {
    let good = static_program();
    let patched = |offset: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[offset..offset + bytes.len()].copy_from_slice(bytes);
        inspected(&file)
    };
    let prefix = "it is an ELF file that Linux does not start: ";
    for (result, reason) in [
        (inspected(&good[..19]), "its header is cut off"),
        (inspected(&good[..63]), "its header is cut off"),
        (inspected(&good[..80]), "it is cut off"),
        (patched(32, &u64::MAX.to_le_bytes()), "it is cut off"),
        (patched(32, &(i64::MAX as u64).to_le_bytes()), "it is cut off"),
        (patched(56, &[0, 0]), "it has no proper program headers"),
        (patched(56, &[0xff, 0xff]), "it has no proper program headers"),
        (patched(54, &[32, 0]), "it has no proper program headers"),
        (patched(64, &[6]), "it has no loadable segment"),
    ] {
        assert_eq!(result, Err(format!("{prefix}{reason}")));
    }
    let interp = [elf::PT_INTERP, elf::PT_LOAD];
    for path in [b"".as_slice(), b"\0", b"/ld.so", b"ld.so\0", b"/a\0b\0"] {
        let file = elf_file(elf::EM_X86_64, elf::ET_EXEC, 1, &interp, path);
        let reason = "it does not name its dynamic linker by an absolute path";
        assert_eq!(inspected(&file), Err(format!("{prefix}{reason}")), "{path:?}");
    }
    let mut huge = elf_file(elf::EM_X86_64, elf::ET_EXEC, 1, &interp, b"/ld.so\0");
    huge[96..104].copy_from_slice(&(1u64 << 40).to_le_bytes());
    assert!(inspected(&huge).is_err());
}

proptest::proptest! {
    #[test]
    fn nothing_panics(
        start in 0..4usize,
        bytes in collection::vec(num::u8::ANY, 0..200),
        patches in collection::vec((0..180usize, num::u8::ANY), 0..8),
    ) {
        let starts = [Vec::new(), b"#!".to_vec(), b"\x7fELF\x02\x01".to_vec(), static_program()];
        let mut file = [starts[start].as_slice(), &bytes].concat();
        for (offset, byte) in patches {
            if let Some(place) = file.get_mut(offset) {
                *place = byte;
            }
        }
        inspected(&file).ok();
    }
}
