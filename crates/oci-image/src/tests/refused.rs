//! Rejected images, and their error messages.

use std::fs;

use serde_json::{Value, json};
use testkit::images::{Compression, Image as Declared, LayoutDir, Saved, pack};

use super::*;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// Makes the image `oci:a` with a changed manifest and config.
pub(super) fn made(change: impl FnOnce(&mut Value, &mut Value)) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let layout = LayoutDir::make(&directory.path().join("a")).unwrap();
    let tar = layer("a", "a");
    let mut config = json!({
        "architecture": "amd64", "os": "linux",
        "rootfs": { "type": "layers", "diff_ids": [tar.diff_id()] },
    });
    let layers = json!([layout.put(LAYER, tar.bytes()).unwrap()]);
    let mut manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "layers": layers });
    change(&mut manifest, &mut config);
    if manifest["config"].is_null() {
        manifest["config"] = json!(layout.put_json(CONFIG, &config).unwrap());
    }
    let named = layout.put_json(MANIFEST, &manifest).unwrap();
    layout.finish(&json!({ "schemaVersion": 2, "manifests": [named] })).unwrap();
    directory
}

/// Returns the error message for an image with a changed manifest and config.
pub(super) fn with(change: impl FnOnce(&mut Value, &mut Value)) -> String {
    refusal(made(change).path(), "oci:a")
}

#[test]
fn layers_that_are_not_read() {
    let typed = |media_type: &str| {
        with(|manifest, _| manifest["layers"][0]["mediaType"] = json!(media_type))
    };
    let found = [
        typed("application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"),
        typed("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"),
        typed("application/vnd.oci.image.layer.v1.tar+gzip+encrypted"),
        typed("application/vnd.oci.image.layer.v1.tar+xz"),
    ];
    insta::assert_snapshot!(found.join("\n"), @r#"
    layer 1 of the image in a is of type "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip": a foreign layer, whose content is not part of the image
    layer 1 of the image in a is of type "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip": a foreign layer, whose content is not part of the image
    layer 1 of the image in a is of type "application/vnd.oci.image.layer.v1.tar+gzip+encrypted": an encrypted layer
    layer 1 of the image in a is of type "application/vnd.oci.image.layer.v1.tar+xz": not a layer that is read: tar, tar+gzip and tar+zstd are
    "#);
}

#[test]
fn documents_that_contradict_each_other() {
    let found = [
        with(|_, config| config["rootfs"]["diff_ids"] = Value::Null),
        with(|_, config| config["history"] = json!([{}, {}, { "empty_layer": true }])),
        with(|manifest, _| manifest["layers"] = Value::Null),
        with(|manifest, _| {
            manifest["mediaType"] = json!("application/vnd.oci.image.index.v1+json");
        }),
        with(|manifest, _| manifest["manifests"] = json!([])),
        with(|manifest, _| manifest["layers"] = json!(vec![manifest["layers"][0].clone(); 257])),
        with(|manifest, _| {
            manifest["artifactType"] = json!("application/vnd.example.sbom");
            manifest["config"] = json!({
                "mediaType": "application/vnd.oci.empty.v1+json", "size": 2,
                "digest": format!("sha256:{}", "0".repeat(64)), "data": "e30=",
            });
        }),
    ];
    insta::assert_snapshot!(found.join("\n"), @r#"
    the image in a is inconsistent: layers in its manifest: 1, diff_ids in its config: 0
    the image in a is inconsistent: layers in its manifest: 1, in its history: 2
    the image in a is inconsistent: layers in its manifest: 0, diff_ids in its config: 1
    a/blobs/sha256/DIGEST cannot be read as an image manifest: its own mediaType is "application/vnd.oci.image.index.v1+json", but it is described as "application/vnd.oci.image.manifest.v1+json"
    a/blobs/sha256/DIGEST cannot be read as an image manifest: it is a manifest and an index at once
    the image in a has 257 layers; an image may have 256
    a/blobs/sha256/DIGEST cannot be read as an image manifest: it is not an image, but an artifact of type "application/vnd.example.sbom"
    "#);
}

#[test]
fn documents_that_do_not_read() {
    let found = [
        with(|_, config| config["rootfs"]["diff_ids"][0] = json!("sha512:00")),
        with(|_, config| config["os"] = Value::Null),
        with(|manifest, _| manifest["layers"][0]["digest"] = json!("sha256:../../etc/passwd")),
        with(|manifest, _| manifest["layers"][0]["size"] = json!(-1)),
        with(|_, config| config["filler"] = json!("x".repeat(9 << 20))),
    ];
    insta::assert_snapshot!(found.join("\n"), @r#"
    a/blobs/sha256/DIGEST cannot be read as an image config: expected a digest, "sha256:" and 64 lower-case hexadecimal digits at line 1 column 71
    a/blobs/sha256/DIGEST cannot be read as an image config: missing field `os` at line 1 column 148
    a/blobs/sha256/DIGEST cannot be read as an image manifest: expected a digest, "sha256:" and 64 lower-case hexadecimal digits at line 1 column 206
    a/blobs/sha256/DIGEST cannot be read as an image manifest: expected u64 at line 1 column 317
    a/blobs/sha256/DIGEST has 9437347 bytes; an image config may have 8388608
    "#);
}

#[test]
fn paths_that_hold_something_else() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path();
    sample().write_layout(&base.join("layout"), "v1", Compression::Gzip).unwrap();
    fs::write(base.join("oci.tar"), pack(&base.join("layout")).unwrap().bytes()).unwrap();
    let saved = Declared::docker_archive(&[(&sample(), &[])], Saved::Legacy);
    fs::write(base.join("docker.tar"), saved.bytes()).unwrap();
    fs::write(base.join("docker.tar.gz"), saved.gzip()).unwrap();
    fs::write(base.join("other.tar"), Layer::new().file("x", 0o644, "x").to_tar().bytes()).unwrap();
    let old = Layer::new().file("repositories", 0o644, "{}").to_tar();
    fs::write(base.join("old.tar"), old.bytes()).unwrap();
    fs::write(base.join("text"), "no archive").unwrap();
    fs::create_dir(base.join("empty")).unwrap();
    fs::create_dir(base.join("dir")).unwrap();
    fs::write(base.join("dir/manifest.json"), "{}").unwrap();
    let found = [
        "oci:nothing",
        "oci:empty",
        "oci:dir",
        "oci:docker.tar",
        "oci:layout:v2",
        "oci-archive:nothing.tar",
        "oci-archive:layout",
        "oci-archive:docker.tar",
        "oci-archive:other.tar",
        "oci-archive:text",
        "oci-archive:oci.tar:v2",
        "docker-archive:nothing.tar",
        "docker-archive:oci.tar",
        "docker-archive:docker.tar.gz",
        "docker-archive:other.tar",
        "docker-archive:old.tar",
        "docker-archive:docker.tar:v1",
        "docker://registry.example.org/app",
    ]
    .map(|text| format!("{text}\n    {}", refusal(base, text)));
    insta::assert_snapshot!(found.join("\n"), @r#"
    oci:nothing
        nothing does not exist
    oci:empty
        empty is not an OCI image layout: it has no file "oci-layout"
    oci:dir
        dir is not an OCI image layout: it looks like a skopeo `dir:` directory
    oci:docker.tar
        docker.tar is not an OCI image layout: it is a file
    oci:layout:v2
        layout has no image tagged "v2"; it has v1
    oci-archive:nothing.tar
        nothing.tar does not exist
    oci-archive:layout
        layout is not an archive of an OCI image layout: it is a directory
    oci-archive:docker.tar
        docker.tar is not an archive of an OCI image layout: `docker save` wrote it
    oci-archive:other.tar
        other.tar is not an archive of an OCI image layout: it has no file "oci-layout"
    oci-archive:text
        text is not an archive of an OCI image layout: it does not begin like a tar archive
    oci-archive:oci.tar:v2
        oci.tar has no image tagged "v2"; it has v1
    docker-archive:nothing.tar
        nothing.tar does not exist
    docker-archive:oci.tar
        oci.tar is not an archive of `docker save`: it is an archive of an OCI image layout
    docker-archive:docker.tar.gz
        docker.tar.gz is not an archive of `docker save`: it is a gzip file
    docker-archive:other.tar
        other.tar is not an archive of `docker save`: it has no file "manifest.json"
    docker-archive:old.tar
        old.tar is not an archive of `docker save`: a docker older than 1.10 saved it
    docker-archive:docker.tar:v1
        docker.tar has no image "v1"
    docker://registry.example.org/app
        docker://registry.example.org/app: the image is not in the store, and the network is off (--offline)
    "#);
}

/// Returns the error message for an archive of `docker save` with these members.
fn docker(members: impl FnOnce(Layer) -> Layer) -> String {
    let directory = tempfile::tempdir().unwrap();
    let tar = members(Layer::new()).to_tar();
    fs::write(directory.path().join("a.tar"), tar.bytes()).unwrap();
    refusal(directory.path(), "docker-archive:a.tar")
}

#[test]
fn archives_that_could_be_read_in_two_ways_or_lead_elsewhere() {
    let list = |config: &str, layers: &[&str]| {
        json!([{ "Config": config, "RepoTags": null, "Layers": layers }]).to_string()
    };
    let config = r#"{"architecture":"amd64","os":"linux","rootfs":{"diff_ids":[]}}"#;
    let one = r#"{"architecture":"amd64","os":"linux","rootfs":{"diff_ids":["sha256:0000000000000000000000000000000000000000000000000000000000000000"]}}"#;
    let hex = "0".repeat(64);
    let many = vec![json!({ "Config": "c.json" }); 257];
    let found = [
        docker(|it| it.file("manifest.json", 0o644, "[]").file("./manifest.json", 0o644, "[]")),
        docker(|it| it.file("../manifest.json", 0o644, "[]")),
        docker(|it| it.symlink("manifest.json", "../../etc/passwd")),
        docker(|it| it.symlink("manifest.json", "/etc/passwd")),
        docker(|it| it.symlink("manifest.json", "manifest.json")),
        docker(|it| it.file("manifest.json", 0o644, "[]")),
        docker(|it| it.file("manifest.json", 0o644, "{}")),
        docker(|it| it.file("manifest.json", 0o644, Value::from(many).to_string())),
        docker(|it| it.file("manifest.json", 0o644, list("c.json", &[]))),
        docker(|layer| {
            let layer = layer.file("manifest.json", 0o644, list(&format!("{hex}.json"), &[]));
            layer.file(&format!("{hex}.json"), 0o644, config)
        }),
        docker(|layer| {
            layer
                .file("manifest.json", 0o644, list("c.json", &["l.tar"]))
                .file("c.json", 0o644, config)
        }),
        docker(|it| {
            it.file("manifest.json", 0o644, list("c.json", &["l.tar"])).file("c.json", 0o644, one)
        }),
    ];
    insta::assert_snapshot!(found.join("\n"), @r#"
    a.tar, at byte 1024, cannot be read as a tar archive: it has two files named "manifest.json"
    a.tar, at byte 0, cannot be read as a tar archive: the path leaves the image by ".."
    cannot read manifest.json in a.tar: it is a link out of the archive
    cannot read manifest.json in a.tar: it is a link out of the archive
    cannot read manifest.json in a.tar: too many links lead to it
    a.tar has no image
    manifest.json in a.tar cannot be read as a list of images: expected a list at line 1 column 2
    manifest.json in a.tar has 257 images; a list of images may have 256
    the image names c.json in a.tar (an image config), which is not there
    DIGEST.json in a.tar (an image config) has the digest sha256:DIGEST, but the image names sha256:DIGEST
    the image in a.tar is inconsistent: layers in its manifest: 1, diff_ids in its config: 0
    the image names l.tar in a.tar (a layer), which is not there
    "#);
}

#[test]
fn blobs_that_are_missing_or_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path();
    let manifest = sample().write_layout(&base.join("a"), "v1", Compression::Gzip).unwrap();
    let image = opened(base, "oci:a").unwrap();
    let path = |digest: &Digest| base.join("a/blobs/sha256").join(digest.hex());
    let mut found = Vec::new();
    for (digest, change) in
        [(image.config_digest, b"{}".as_slice()), (image.config_digest, b""), (manifest, b"{}")]
    {
        let whole = fs::read(path(&digest)).unwrap();
        fs::write(path(&digest), change).unwrap();
        found.push(refusal(base, "oci:a"));
        let mut flipped = whole.clone();
        flipped[5] ^= 1;
        fs::write(path(&digest), flipped).unwrap();
        found.push(refusal(base, "oci:a"));
        fs::remove_file(path(&digest)).unwrap();
        found.push(refusal(base, "oci:a"));
        fs::write(path(&digest), whole).unwrap();
    }
    found.push(refusal(base, &format!("oci:a@sha256:{}", "0".repeat(64))));
    insta::assert_snapshot!(found.join("\n"), @"
    a/blobs/sha256/DIGEST (an image config) has 2 bytes, but the image names 477 bytes
    a/blobs/sha256/DIGEST (an image config) has the digest sha256:DIGEST, but the image names sha256:DIGEST
    the image names a/blobs/sha256/DIGEST (an image config), which is not there
    a/blobs/sha256/DIGEST (an image config) has 0 bytes, but the image names 477 bytes
    a/blobs/sha256/DIGEST (an image config) has the digest sha256:DIGEST, but the image names sha256:DIGEST
    the image names a/blobs/sha256/DIGEST (an image config), which is not there
    a/blobs/sha256/DIGEST (an image manifest) has 2 bytes, but the image names 1015 bytes
    a/blobs/sha256/DIGEST (an image manifest) has the digest sha256:DIGEST, but the image names sha256:DIGEST
    the image names a/blobs/sha256/DIGEST (an image manifest), which is not there
    a has no image sha256:DIGEST
    ");
}
