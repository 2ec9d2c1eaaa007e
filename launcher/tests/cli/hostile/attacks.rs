//! Changes that make a box attack the programs that open it. [`testkit::damage`] contains the attacks that all programs refuse
//! with the same error. Some of the boxes here are well-formed.

use std::fs::{self, File};

use box_contract::manifest::{INIT_TYPE, KERNEL_TYPE, LISTING_TYPE, METADATA_TYPE, SEGMENT_TYPE};
use serde_json::json;
use testkit::damage::{edit_layer, pipe};
use testkit::test_box::BoxFiles;

use super::changes::{
    GIANT, MANY, admitted, blob, blobs, config, config_of, deep, digest, elsewhere, giant, index,
    instead, instead_directory, machine, manifest, many_keys, size, socket,
};

/// An attack: its name, and the function that changes a box accordingly.
pub(super) type Attack = (&'static str, fn(&BoxFiles));

/// Replace a file of the box by something else, for example by a pipe or an endless device.
pub(super) const FILES: &[Attack] = &[
    ("the box is a pipe", |target| {
        fs::remove_dir_all(target.path()).unwrap();
        pipe(target.path());
    }),
    ("the box is a device", |target| instead(target.path(), "/dev/zero")),
    ("the box is a link to itself", |target| instead(target.path(), target.path())),
    ("the box is a file", |target| {
        fs::remove_dir_all(target.path()).unwrap();
        fs::write(target.path(), "a box").unwrap();
    }),
    ("the box is the root directory", |target| instead(target.path(), "/")),
    ("the layout is a device", |target| instead(&target.path().join("oci-layout"), "/dev/zero")),
    ("the layout is a socket", |target| socket(&target.path().join("oci-layout"))),
    ("the index is a link to itself", |target| instead(&index(target), index(target))),
    ("the index is a directory", |target| instead_directory(&index(target))),
    ("the index is a terminal", |target| instead(&index(target), "/dev/ptmx")),
    ("the index is a socket", |target| socket(&index(target))),
    ("the index is the memory of the process", |target| instead(&index(target), "/proc/self/mem")),
    ("the manifest is a pipe", |target| pipe(&target.manifest_path())),
    ("the manifest is a device", |target| instead(&target.manifest_path(), "/dev/zero")),
    ("the manifest is a directory", |target| instead_directory(&target.manifest_path())),
    ("the config is a pipe", |target| pipe(&config(target))),
    ("the config is a device", |target| instead(&config(target), "/dev/zero")),
    ("the metadata is a device", |target| instead(&target.blob(METADATA_TYPE), "/dev/zero")),
    ("a segment is a device", |target| instead(&target.blobs(SEGMENT_TYPE)[1], "/dev/zero")),
    ("a segment is a pipe", |target| pipe(&target.blobs(SEGMENT_TYPE)[0])),
    ("a segment is the metadata", |target| {
        let metadata = target.blob(METADATA_TYPE);
        instead(&target.blobs(SEGMENT_TYPE)[0], metadata);
    }),
    ("the init is a pipe", |target| pipe(&target.blob(INIT_TYPE))),
    ("the init is a link", |target| instead(&target.blob(INIT_TYPE), "/bin/sh")),
    ("the kernel is a pipe", |target| pipe(&target.blob(KERNEL_TYPE))),
    ("the kernel is a link", |target| instead(&target.blob(KERNEL_TYPE), "/bin/sh")),
    ("the listing is a pipe", |target| pipe(&target.blob(LISTING_TYPE))),
    ("the listing is a device", |target| instead(&target.blob(LISTING_TYPE), "/dev/zero")),
];

/// Replace a directory of the box that contains blobs.
pub(super) const PARENTS: &[Attack] = &[
    ("the blobs are a link to themselves", |target| instead(&blobs(target), blobs(target))),
    ("the blobs are a pipe", |target| {
        fs::remove_dir_all(blobs(target)).unwrap();
        pipe(&blobs(target));
    }),
    ("the blobs are the root directory", |target| instead(&blobs(target), "/")),
    ("the blobs are a device", |target| instead(&blobs(target), "/dev/zero")),
    ("the blobs are elsewhere", |target| elsewhere(&blobs(target))),
    ("the blobs of sha256 are elsewhere", |target| elsewhere(&blobs(target).join("sha256"))),
    ("the blobs of sha256 are this process", |target| {
        instead(&blobs(target).join("sha256"), "/proc/self/fd");
    }),
    ("the blobs of sha256 are a pipe", |target| {
        fs::remove_dir_all(blobs(target).join("sha256")).unwrap();
        pipe(&blobs(target).join("sha256"));
    }),
];

/// Change the sizes of files, or the sizes and numbers in documents.
pub(super) const SIZES: &[Attack] = &[
    ("a giant layout", |target| giant(&target.path().join("oci-layout"))),
    ("a giant manifest", |target| giant(&target.manifest_path())),
    ("a giant config", |target| giant(&config(target))),
    ("a giant metadata", |target| giant(&target.blob(METADATA_TYPE))),
    ("a giant segment", |target| giant(&target.blobs(SEGMENT_TYPE)[1])),
    ("a giant init", |target| giant(&target.blob(INIT_TYPE))),
    ("a giant kernel", |target| giant(&target.blob(KERNEL_TYPE))),
    ("a giant listing", |target| giant(&target.blob(LISTING_TYPE))),
    ("a manifest that says it is giant", |target| {
        giant(&target.manifest_path());
        target.edit_index(|index| index["manifests"][0]["size"] = GIANT.into());
    }),
    ("a config that says it is giant", |target| {
        giant(&config(target));
        target.edit_manifest(|manifest| manifest["config"]["size"] = GIANT.into());
    }),
    ("an init that says it is giant", |target| admitted(target, INIT_TYPE)),
    ("a kernel that says it is giant", |target| admitted(target, KERNEL_TYPE)),
    ("an empty metadata", |target| File::create(target.blob(METADATA_TYPE)).map(drop).unwrap()),
    ("an empty segment", |target| File::create(&target.blobs(SEGMENT_TYPE)[0]).map(drop).unwrap()),
    ("a segment of the largest size", |target| {
        edit_layer(target, SEGMENT_TYPE, |segment| segment["size"] = (u64::MAX - 4095).into());
    }),
    ("the greatest size", |target| size(target, u64::MAX.into())),
    ("a size below nothing", |target| size(target, (-1).into())),
    ("a size that is no integer", |target| size(target, json!(0.5))),
    ("a machine without memory", |target| machine(target, &json!({"cpus": 1, "memory-mib": 0}))),
    ("a machine with all memory", |target| {
        machine(target, &json!({"cpus": 1, "memory-mib": u32::MAX}));
    }),
    ("a machine with all processors", |target| {
        machine(target, &json!({"cpus": 255, "memory_mib": 256}));
    }),
];

/// Replace documents by ones that are hard to parse or contain harmful values, and blobs by harmful contents.
pub(super) const DOCUMENTS: &[Attack] = &[
    ("a deep layout", |target| target.replace(&target.path().join("oci-layout"), &deep())),
    ("a deep index", |target| target.replace(&index(target), &deep())),
    ("a deep manifest", |target| manifest(target, &deep())),
    ("a deep config", |target| config_of(target, &deep())),
    ("a long text in the index", |target| {
        target.edit_index(|index| index["mediaType"] = "\u{1b}".repeat(MANY).into());
    }),
    ("an index with many keys", |target| {
        target.edit_index(|index| index["annotations"] = many_keys());
    }),
    ("a manifest with many layers", |target| {
        target.edit_manifest(|manifest| {
            let layers = manifest["layers"].as_array_mut().unwrap();
            let last = layers[layers.len() - 1].clone();
            layers.extend(vec![last; 5000]);
        });
    }),
    ("a plan with many arguments", |target| {
        target
            .edit_config(|config| config["plan"]["agent"]["argv"] = vec!["\u{1b}c"; 10_000].into());
    }),
    ("the same key twice", |target| {
        let text = fs::read_to_string(index(target)).unwrap();
        let twice = text.replacen('{', r#"{"schemaVersion":1,"#, 1);
        target.replace(&index(target), twice.as_bytes());
    }),
    ("an index of another encoding", |target| target.replace(&index(target), b"\xff\xfe{\0}\0")),
    ("an index with a byte that is no text", |target| {
        target.replace(&index(target), b"{\"\x9b2J\xff\": 1}");
    }),
    ("an index of half a surrogate", |target| {
        target.replace(&index(target), br#"{"\ud800\u001b[2J": 1}"#);
    }),
    ("an index of NUL bytes", |target| target.replace(&index(target), &[0; 4096])),
    ("an index of escapes", |target| target.replace(&index(target), b"\x1b]0;pwned\x07\x1b[2J")),
    ("a number without end", |target| {
        target.replace(&index(target), b"{\"schemaVersion\": 1e999999999}");
    }),
    ("a digest that leads out", |target| digest(target, "sha256:../../../../../../etc/passwd")),
    ("a digest of another kind", |target| digest(target, "../../etc:passwd")),
    ("a digest with a NUL byte", |target| digest(target, &format!("sha256:{}\0", "0".repeat(63)))),
    ("a digest of capitals", |target| digest(target, &format!("sha256:{}", "A".repeat(64)))),
    ("a root that leads out", |target| {
        target.edit_config(|config| config["plan"]["agent"]["root"] = "/../../..".into());
    }),
    ("a name that leads out", |target| {
        target.edit_config(|config| config["plan"]["name"] = "../../../tmp/pwned".into());
    }),
    ("a metadata of noise", |target| blob(target, METADATA_TYPE, &[0xe2; 1 << 20])),
    ("a segment of a VMDK descriptor", |target| {
        let mut text =
            b"# Disk DescriptorFile\nversion=1\nRDONLY 8 FLAT \"/etc/shadow\" 0\n".to_vec();
        text.resize(4096, b'\n');
        blob(target, SEGMENT_TYPE, &text);
    }),
    ("a rootfs whose names point at themselves", |target| {
        let mut image = fs::read(target.blob(METADATA_TYPE)).unwrap();
        // Keeps only the superblock of EROFS, which begins at byte 1024 and is 128 bytes long.
        let length = image.len();
        image[1152..length].fill(1);
        blob(target, METADATA_TYPE, &image);
    }),
    ("an init of escapes", |target| blob(target, INIT_TYPE, b"\x1b[2J\x1b]0;pwned\x07")),
    ("a kernel of escapes", |target| blob(target, KERNEL_TYPE, b"\x1b[2J\x1b]0;pwned\x07")),
    ("a kernel that overflows", |target| {
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(4096, 0xff);
        blob(target, KERNEL_TYPE, &elf);
    }),
];
