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
    ("the box is a pipe", |it| {
        fs::remove_dir_all(it.path()).unwrap();
        pipe(it.path());
    }),
    ("the box is a device", |it| instead(it.path(), "/dev/zero")),
    ("the box is a link to itself", |it| instead(it.path(), it.path())),
    ("the box is a file", |it| {
        fs::remove_dir_all(it.path()).unwrap();
        fs::write(it.path(), "a box").unwrap();
    }),
    ("the box is the root directory", |it| instead(it.path(), "/")),
    ("the layout is a device", |it| instead(&it.path().join("oci-layout"), "/dev/zero")),
    ("the layout is a socket", |it| socket(&it.path().join("oci-layout"))),
    ("the index is a link to itself", |it| instead(&index(it), index(it))),
    ("the index is a directory", |it| instead_directory(&index(it))),
    ("the index is a terminal", |it| instead(&index(it), "/dev/ptmx")),
    ("the index is a socket", |it| socket(&index(it))),
    ("the index is the memory of the process", |it| instead(&index(it), "/proc/self/mem")),
    ("the manifest is a pipe", |it| pipe(&it.manifest_path())),
    ("the manifest is a device", |it| instead(&it.manifest_path(), "/dev/zero")),
    ("the manifest is a directory", |it| instead_directory(&it.manifest_path())),
    ("the config is a pipe", |it| pipe(&config(it))),
    ("the config is a device", |it| instead(&config(it), "/dev/zero")),
    ("the metadata is a device", |it| instead(&it.blob(METADATA_TYPE), "/dev/zero")),
    ("a segment is a device", |it| instead(&it.blobs(SEGMENT_TYPE)[1], "/dev/zero")),
    ("a segment is a pipe", |it| pipe(&it.blobs(SEGMENT_TYPE)[0])),
    ("a segment is the metadata", |it| {
        let metadata = it.blob(METADATA_TYPE);
        instead(&it.blobs(SEGMENT_TYPE)[0], metadata);
    }),
    ("the init is a pipe", |it| pipe(&it.blob(INIT_TYPE))),
    ("the init is a link", |it| instead(&it.blob(INIT_TYPE), "/bin/sh")),
    ("the kernel is a pipe", |it| pipe(&it.blob(KERNEL_TYPE))),
    ("the kernel is a link", |it| instead(&it.blob(KERNEL_TYPE), "/bin/sh")),
    ("the listing is a pipe", |it| pipe(&it.blob(LISTING_TYPE))),
    ("the listing is a device", |it| instead(&it.blob(LISTING_TYPE), "/dev/zero")),
];

/// Replace a directory of the box that contains blobs.
pub(super) const PARENTS: &[Attack] = &[
    ("the blobs are a link to themselves", |it| instead(&blobs(it), blobs(it))),
    ("the blobs are a pipe", |it| {
        fs::remove_dir_all(blobs(it)).unwrap();
        pipe(&blobs(it));
    }),
    ("the blobs are the root directory", |it| instead(&blobs(it), "/")),
    ("the blobs are a device", |it| instead(&blobs(it), "/dev/zero")),
    ("the blobs are elsewhere", |it| elsewhere(&blobs(it))),
    ("the blobs of sha256 are elsewhere", |it| elsewhere(&blobs(it).join("sha256"))),
    ("the blobs of sha256 are this process", |it| {
        instead(&blobs(it).join("sha256"), "/proc/self/fd");
    }),
    ("the blobs of sha256 are a pipe", |it| {
        fs::remove_dir_all(blobs(it).join("sha256")).unwrap();
        pipe(&blobs(it).join("sha256"));
    }),
];

/// Change the sizes of files, or the sizes and numbers in documents.
pub(super) const SIZES: &[Attack] = &[
    ("a giant layout", |it| giant(&it.path().join("oci-layout"))),
    ("a giant manifest", |it| giant(&it.manifest_path())),
    ("a giant config", |it| giant(&config(it))),
    ("a giant metadata", |it| giant(&it.blob(METADATA_TYPE))),
    ("a giant segment", |it| giant(&it.blobs(SEGMENT_TYPE)[1])),
    ("a giant init", |it| giant(&it.blob(INIT_TYPE))),
    ("a giant kernel", |it| giant(&it.blob(KERNEL_TYPE))),
    ("a giant listing", |it| giant(&it.blob(LISTING_TYPE))),
    ("a manifest that says it is giant", |it| {
        giant(&it.manifest_path());
        it.edit_index(|index| index["manifests"][0]["size"] = GIANT.into());
    }),
    ("a config that says it is giant", |it| {
        giant(&config(it));
        it.edit_manifest(|manifest| manifest["config"]["size"] = GIANT.into());
    }),
    ("an init that says it is giant", |it| admitted(it, INIT_TYPE)),
    ("a kernel that says it is giant", |it| admitted(it, KERNEL_TYPE)),
    ("an empty metadata", |it| File::create(it.blob(METADATA_TYPE)).map(drop).unwrap()),
    ("an empty segment", |it| File::create(&it.blobs(SEGMENT_TYPE)[0]).map(drop).unwrap()),
    ("a segment of the largest size", |it| {
        edit_layer(it, SEGMENT_TYPE, |segment| segment["size"] = (u64::MAX - 4095).into());
    }),
    ("the greatest size", |it| size(it, u64::MAX.into())),
    ("a size below nothing", |it| size(it, (-1).into())),
    ("a size that is no integer", |it| size(it, json!(0.5))),
    ("a machine without memory", |it| machine(it, &json!({"cpus": 1, "memory-mib": 0}))),
    ("a machine with all memory", |it| machine(it, &json!({"cpus": 1, "memory-mib": u32::MAX}))),
    ("a machine with all processors", |it| machine(it, &json!({"cpus": 255, "memory_mib": 256}))),
];

/// Replace documents by ones that are hard to parse or contain harmful values, and blobs by harmful contents.
pub(super) const DOCUMENTS: &[Attack] = &[
    ("a deep layout", |it| it.replace(&it.path().join("oci-layout"), &deep())),
    ("a deep index", |it| it.replace(&index(it), &deep())),
    ("a deep manifest", |it| manifest(it, &deep())),
    ("a deep config", |it| config_of(it, &deep())),
    ("a long text in the index", |it| {
        it.edit_index(|index| index["mediaType"] = "\u{1b}".repeat(MANY).into());
    }),
    ("an index with many keys", |it| {
        it.edit_index(|index| index["annotations"] = many_keys());
    }),
    ("a manifest with many layers", |it| {
        it.edit_manifest(|manifest| {
            let layers = manifest["layers"].as_array_mut().unwrap();
            let last = layers[layers.len() - 1].clone();
            layers.extend(vec![last; 5000]);
        });
    }),
    ("a plan with many arguments", |it| {
        it.edit_config(|config| config["plan"]["agent"]["argv"] = vec!["\u{1b}c"; 10_000].into());
    }),
    ("the same key twice", |it| {
        let text = fs::read_to_string(index(it)).unwrap();
        let twice = text.replacen('{', r#"{"schemaVersion":1,"#, 1);
        it.replace(&index(it), twice.as_bytes());
    }),
    ("an index of another encoding", |it| it.replace(&index(it), b"\xff\xfe{\0}\0")),
    ("an index with a byte that is no text", |it| it.replace(&index(it), b"{\"\x9b2J\xff\": 1}")),
    ("an index of half a surrogate", |it| it.replace(&index(it), br#"{"\ud800\u001b[2J": 1}"#)),
    ("an index of NUL bytes", |it| it.replace(&index(it), &[0; 4096])),
    ("an index of escapes", |it| it.replace(&index(it), b"\x1b]0;pwned\x07\x1b[2J")),
    ("a number without end", |it| {
        it.replace(&index(it), b"{\"schemaVersion\": 1e999999999}");
    }),
    ("a digest that leads out", |it| digest(it, "sha256:../../../../../../etc/passwd")),
    ("a digest of another kind", |it| digest(it, "../../etc:passwd")),
    ("a digest with a NUL byte", |it| digest(it, &format!("sha256:{}\0", "0".repeat(63)))),
    ("a digest of capitals", |it| digest(it, &format!("sha256:{}", "A".repeat(64)))),
    ("a root that leads out", |it| {
        it.edit_config(|config| config["plan"]["agent"]["root"] = "/../../..".into());
    }),
    ("a name that leads out", |it| {
        it.edit_config(|config| config["plan"]["name"] = "../../../tmp/pwned".into());
    }),
    ("a metadata of noise", |it| blob(it, METADATA_TYPE, &[0xe2; 1 << 20])),
    ("a segment of a VMDK descriptor", |it| {
        let mut text =
            b"# Disk DescriptorFile\nversion=1\nRDONLY 8 FLAT \"/etc/shadow\" 0\n".to_vec();
        text.resize(4096, b'\n');
        blob(it, SEGMENT_TYPE, &text);
    }),
    ("a rootfs whose names point at themselves", |it| {
        let mut image = fs::read(it.blob(METADATA_TYPE)).unwrap();
        // Keeps only the superblock of EROFS, which begins at byte 1024 and is 128 bytes long.
        let length = image.len();
        image[1152..length].fill(1);
        blob(it, METADATA_TYPE, &image);
    }),
    ("an init of escapes", |it| blob(it, INIT_TYPE, b"\x1b[2J\x1b]0;pwned\x07")),
    ("a kernel of escapes", |it| blob(it, KERNEL_TYPE, b"\x1b[2J\x1b]0;pwned\x07")),
    ("a kernel that overflows", |it| {
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(4096, 0xff);
        blob(it, KERNEL_TYPE, &elf);
    }),
];
