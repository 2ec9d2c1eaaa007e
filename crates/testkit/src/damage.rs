//! Lists the ways in which a file of a box can be wrong.
//!
//! All programs must refuse each damaged box, with the same message.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use box_contract::manifest::{
    ARTIFACT_TYPE, INIT_TYPE, KERNEL_TYPE, METADATA_TYPE, ROOTFS_TYPE, SEGMENT_TYPE,
};
use serde_json::{Value, json};

use crate::test_box::BoxFiles;

/// One way to damage a box.
#[derive(Debug, Clone, Copy)]
pub struct Damage {
    /// The name of the damage, for messages of failed tests.
    pub name: &'static str,
    /// A part of every program's message about the damaged box.
    pub says: &'static str,
    /// The function that damages an intact box.
    pub apply: fn(&BoxFiles),
}

const fn damage(name: &'static str, says: &'static str, apply: fn(&BoxFiles)) -> Damage {
    Damage { name, says, apply }
}

const NOT_REGULAR: &str = "is not a regular file; a box consists of regular files only";
const LIST: &str = "it has a list in the place of an object";
const OTHER: &str = "application/vnd.example";

/// The ways to damage a box.
pub const ALL: &[Damage] = &[
    damage("no layout", "is not a box: it has no file `oci-layout`", |files| {
        remove(files, "oci-layout");
    }),
    damage("another layout version", "its imageLayoutVersion is \"2.0.0\"", |files| {
        write(files, "oci-layout", br#"{"imageLayoutVersion":"2.0.0"}"#);
    }),
    damage("a linked layout", NOT_REGULAR, |files| link(&files.path().join("oci-layout"))),
    damage("a layout that is a pipe", NOT_REGULAR, |files| pipe(&files.path().join("oci-layout"))),
    damage("no index", "cannot read", |files| remove(files, "index.json")),
    damage("a linked index", NOT_REGULAR, |files| link(&files.path().join("index.json"))),
    damage("an index that is a pipe", NOT_REGULAR, |files| pipe(&files.path().join("index.json"))),
    damage("an index without end", NOT_REGULAR, |files| {
        remove(files, "index.json");
        symlink("/dev/zero", files.path().join("index.json")).unwrap();
    }),
    damage("an overlong index", "1099511627776 bytes, and at most 1048576 are allowed", |files| {
        File::create(files.path().join("index.json")).unwrap().set_len(1 << 40).unwrap();
    }),
    damage("an index of noise", "is malformed", |files| {
        write(files, "index.json", b"{");
    }),
    damage("an index of another media type", "its mediaType is", |files| {
        files.edit_index(|index| index["mediaType"] = OTHER.into());
    }),
    damage("an index of another schema", "its schemaVersion is \"1\"", |files| {
        files.edit_index(|index| index["schemaVersion"] = 1.into());
    }),
    damage("a list for the index", LIST, |files| {
        files.edit_index(|index| {
            let values = ["schemaVersion", "mediaType", "manifests"].map(|key| index[key].take());
            *index = values.into_iter().collect();
        });
    }),
    damage("a list for a descriptor", LIST, |files| {
        files.edit_index(|index| {
            let named = index["manifests"][0].take();
            index["manifests"][0] =
                json!([named["mediaType"], named["digest"], named["size"], null, {}]);
        });
    }),
    damage("a list for the layout version", LIST, |files| {
        write(files, "oci-layout", br#"["1.0.0"]"#);
    }),
    damage("no manifest", "names 0 manifests, and a box has one", |files| {
        files.edit_index(|index| index["manifests"] = json!([]));
    }),
    damage("two boxes", "has 2 boxes: ", |files| {
        files.edit_index(|index| {
            let mut second = index["manifests"][0].clone();
            second["digest"] = format!("sha256:{}", "0".repeat(64)).into();
            list(&mut index["manifests"]).push(second);
        });
    }),
    damage("a descriptor of another media type", "its mediaType of the manifest is", |files| {
        files.edit_index(|index| index["manifests"][0]["mediaType"] = OTHER.into());
    }),
    damage("a manifest of another size", "bytes, but its manifest says 7", |files| {
        files.edit_index(|index| index["manifests"][0]["size"] = 7.into());
    }),
    damage("a changed manifest", "has the digest", |files| flip(files, &files.manifest_path())),
    damage("a linked manifest", NOT_REGULAR, |files| link(&files.manifest_path())),
    damage("a manifest of another artifact", "its artifactType is", |files| {
        files.edit_manifest(|manifest| manifest["artifactType"] = OTHER.into());
    }),
    damage("an image's manifest", "is an OCI image, not a box", |files| {
        files.edit_manifest(|manifest| {
            drop(manifest.as_object_mut().unwrap().remove("artifactType"));
        });
    }),
    damage("a manifest of another media type", "its mediaType is", |files| {
        files.edit_manifest(|manifest| manifest["mediaType"] = OTHER.into());
    }),
    damage("a manifest of another schema", "its schemaVersion is \"1\"", |files| {
        files.edit_manifest(|manifest| manifest["schemaVersion"] = 1.into());
    }),
    damage("a list for the manifest", "is an OCI image, not a box", |files| {
        files.edit_manifest(|manifest| *manifest = json!([ARTIFACT_TYPE]));
    }),
    damage("a list for a blob", LIST, |files| {
        files.edit_manifest(|manifest| {
            let named = manifest["config"].take();
            manifest["config"] =
                json!([named["mediaType"], named["digest"], named["size"], null, {}]);
        });
    }),
    damage("a list in the plan", LIST, |files| {
        files.edit_config(|config| config["plan"]["vm"] = json!([1, 256]));
    }),
    damage("a config of another media type", "its mediaType of the config is", |files| {
        files.edit_manifest(|manifest| manifest["config"]["mediaType"] = OTHER.into());
    }),
    damage("a changed config", "has the digest", |files| {
        flip(files, &files.blob_path(&files.manifest().config.digest));
    }),
    damage("a linked config", NOT_REGULAR, |files| {
        link(&files.blob_path(&files.manifest().config.digest));
    }),
    damage("a missing config", "the config sha256:", |files| {
        fs::remove_file(files.blob_path(&files.manifest().config.digest)).unwrap();
    }),
    damage("a config of another epoch", "is of format epoch 999", |files| {
        files.edit_config(|config| config["epoch"] = 999.into());
    }),
    damage("a config with an unknown key", "unknown field `more`", |files| {
        files.edit_config(|config| config["more"] = true.into());
    }),
    damage(
        "a plan without a program",
        "the box cannot be run: its agent has no program",
        |files| {
            files.edit_config(|config| config["plan"]["agent"]["argv"] = json!([]));
        },
    ),
    damage("a linked metadata", NOT_REGULAR, |files| link(&files.blob(METADATA_TYPE))),
    damage("a metadata that is a pipe", NOT_REGULAR, |files| pipe(&files.blob(METADATA_TYPE))),
    damage("a linked segment", NOT_REGULAR, |files| link(&files.blobs(SEGMENT_TYPE)[0])),
    damage("a missing segment", "the segment sha256:", |files| {
        fs::remove_file(&files.blobs(SEGMENT_TYPE)[1]).unwrap();
    }),
    damage("a kernel that is a directory", NOT_REGULAR, |files| {
        let path = files.blob(KERNEL_TYPE);
        fs::remove_file(&path).unwrap();
        fs::create_dir(path).unwrap();
    }),
    damage("a missing kernel", "the kernel sha256:", |files| {
        fs::remove_file(files.blob(KERNEL_TYPE)).unwrap();
    }),
    damage("two inits", "does not name exactly one init", |files| {
        files.edit_manifest(|manifest| {
            let init = layers(manifest).iter().find(|it| it["mediaType"] == INIT_TYPE);
            let init = init.unwrap().clone();
            layers(manifest).push(init);
        });
    }),
    damage("an init that fits no memory", "1099511627776 bytes, and at most 67108864", |files| {
        edit_layer(files, INIT_TYPE, |init| init["size"] = (1_u64 << 40).into());
    }),
    damage("a kernel that fits no memory", "1099511627776 bytes, and at most 536870912", |files| {
        edit_layer(files, KERNEL_TYPE, |kernel| kernel["size"] = (1_u64 << 40).into());
    }),
    damage("no metadata", "does not name exactly one metadata", |files| {
        files.edit_manifest(|manifest| {
            layers(manifest).retain(|it| it["mediaType"] != METADATA_TYPE);
        });
    }),
    damage("segments before the metadata", "is layer 0, and the metadata is layer 0", |files| {
        files.edit_manifest(|manifest| layers(manifest).swap(0, 1));
    }),
    damage("a segment behind the init", "and the segments follow it without a gap", |files| {
        files.edit_manifest(|manifest| {
            let segment = layers(manifest).remove(2);
            layers(manifest).push(segment);
        });
    }),
    damage("the same segment twice", "is named more than once", |files| {
        files.edit_manifest(|manifest| {
            let first = layers(manifest)[1].clone();
            layers(manifest)[2] = first;
        });
    }),
    damage("255 segments", "it names 255 segments, and at most 254 are allowed", |files| {
        files.edit_manifest(|manifest| {
            let segments = (2..255_u32).map(|number| {
                json!({ "mediaType": SEGMENT_TYPE, "digest": format!("sha256:{number:064x}"),
                        "size": 4096 })
            });
            drop(layers(manifest).splice(2..2, segments));
        });
    }),
    damage("a segment of half a block", "2048 bytes, and a positive multiple of 4096", |files| {
        edit_layer(files, SEGMENT_TYPE, |segment| segment["size"] = 2048.into());
    }),
    damage("a segment of nothing", "has 0 bytes, and a positive multiple of 4096", |files| {
        edit_layer(files, SEGMENT_TYPE, |segment| segment["size"] = 0.into());
    }),
    damage("a segment larger than any image", "bytes together", |files| {
        edit_layer(files, SEGMENT_TYPE, |segment| segment["size"] = (u64::MAX - 4095).into());
    }),
    damage(
        "a metadata of a few blocks",
        "8192 bytes, and a positive multiple of 1048576",
        |files| {
            edit_layer(files, METADATA_TYPE, |metadata| metadata["size"] = 8192.into());
        },
    ),
    damage(
        "a rootfs of epoch 3",
        "a box of format epoch 4 has a rootfs of metadata and",
        |files| {
            edit_layer(files, METADATA_TYPE, |metadata| metadata["mediaType"] = ROOTFS_TYPE.into());
        },
    ),
    damage("a config of epoch 3", "a box of format epoch 3 has a rootfs of one blob", |files| {
        files.edit_config(|config| config["epoch"] = 3.into());
    }),
];

fn list(value: &mut Value) -> &mut Vec<Value> {
    value.as_array_mut().unwrap()
}

fn layers(manifest: &mut Value) -> &mut Vec<Value> {
    list(&mut manifest["layers"])
}

/// Changes the descriptor of the manifest's first blob of a media type.
pub fn edit_layer(files: &BoxFiles, media_type: &str, edit: impl FnOnce(&mut Value)) {
    files.edit_manifest(|manifest| {
        edit(layers(manifest).iter_mut().find(|it| it["mediaType"] == media_type).unwrap());
    });
}

fn remove(files: &BoxFiles, name: &str) {
    fs::remove_file(files.path().join(name)).unwrap();
}

fn write(files: &BoxFiles, name: &str, bytes: &[u8]) {
    files.replace(&files.path().join(name), bytes);
}

/// Flips a bit in the middle of a file.
pub fn flip(files: &BoxFiles, path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    files.replace(path, &bytes);
}

/// Renames a file, and replaces it with a symbolic link to its new name.
fn link(path: &Path) {
    let elsewhere = path.with_extension("elsewhere");
    fs::rename(path, &elsewhere).unwrap();
    symlink(elsewhere, path).unwrap();
}

/// Replaces a file with a named pipe.
pub fn pipe(path: &Path) {
    if path.exists() {
        fs::remove_file(path).unwrap();
    }
    let status = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(status.success(), "mkfifo {}: {status}", path.display());
}

/// A function that writes a text into one field of a box's documents.
pub type Forge = fn(&BoxFiles, &str);

/// The fields of a box's documents whose text a program could repeat in an error, and a function that forges each.
pub const FORGED: &[(&str, Forge)] = &[
    ("layout version", |files, text| {
        let layout = json!({ "imageLayoutVersion": text });
        write(files, "oci-layout", &serde_json::to_vec(&layout).unwrap());
    }),
    ("key of the layout", |files, text| {
        write(files, "oci-layout", &serde_json::to_vec(&json!({ text: 1 })).unwrap());
    }),
    ("media type of the index", |files, text| {
        files.edit_index(|index| index["mediaType"] = text.into());
    }),
    ("key of the index", |files, text| files.edit_index(|index| *index = json!({ text: text }))),
    ("media type of the descriptor", |files, text| {
        files.edit_index(|index| index["manifests"][0]["mediaType"] = text.into());
    }),
    ("tag of a second box", |files, text| {
        files.edit_index(|index| {
            let mut second = index["manifests"][0].clone();
            second["digest"] = format!("sha256:{}", "0".repeat(64)).into();
            second["annotations"] = json!({ "org.opencontainers.image.ref.name": text });
            list(&mut index["manifests"]).push(second);
        });
    }),
    ("digest of the manifest", |files, text| {
        files.edit_index(|index| index["manifests"][0]["digest"] = text.into());
    }),
    ("hexadecimal digest of the manifest", |files, text| {
        files.edit_index(|index| index["manifests"][0]["digest"] = format!("sha256:{text}").into());
    }),
    ("media type of the manifest", |files, text| {
        files.edit_manifest(|manifest| manifest["mediaType"] = text.into());
    }),
    ("artifact type of the manifest", |files, text| {
        files.edit_manifest(|manifest| manifest["artifactType"] = text.into());
    }),
    ("key of the manifest", |files, text| {
        files.edit_manifest(|manifest| *manifest = json!({ text: 1 }));
    }),
    ("media type of the config", |files, text| {
        files.edit_manifest(|manifest| manifest["config"]["mediaType"] = text.into());
    }),
    ("epoch of the config", |files, text| {
        files.edit_config(|config| config["epoch"] = text.into());
    }),
    ("key of the config", |files, text| files.edit_config(|config| config[text] = 1.into())),
    ("value of the config", |files, text| {
        files.edit_config(|config| config["plan"]["layout"] = text.into());
    }),
    ("working directory", |files, text| {
        let text = format!("/proc/{text}");
        files.edit_config(|config| config["plan"]["agent"]["workdir"] = text.into());
    }),
    ("noise in the config", |files, text| {
        let noise = files.put("", format!("{{\"{text}\": {text}").as_bytes());
        files.edit_manifest(|manifest| {
            manifest["config"]["digest"] = noise.digest.to_string().into();
            manifest["config"]["size"] = noise.size.into();
        });
    }),
];

/// Returns a text that attacks a terminal. It has every control character, a forged error line, and a window title.
pub fn hostile_text() -> String {
    let controls: String =
        (0..0xa0).filter_map(char::from_u32).filter(|c| c.is_control()).collect();
    format!("x{controls}\u{202e}\nerror: all is well\r\n\u{1b}]0;pwned\u{7}\u{1b}[2J\u{9b}2Jy")
}

/// Panics unless all lines of a text are harmless on a terminal, and exactly one is an error.
pub fn assert_one_harmless_error(text: &str, what: &str) {
    let harmless = safe_text::shown_lines(text);
    assert!(text == harmless && !text.contains('\t'), "{what}: {text:?}");
    let errors = text.lines().filter(|line| line.starts_with("error:")).count();
    assert_eq!(errors, 1, "{what}: {text:?}");
}
