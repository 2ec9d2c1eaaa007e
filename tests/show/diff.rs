//! Tests of `boxbuild diff`.

use std::fs;
use std::process::Command;

use testbed::prerequisites::{Package, packages};
use testbed::program;
use testkit::images::{Compression, Config, Image, Layer};

use crate::checkout::{Checkout, Ran, shown};
use crate::fixture::{built, checkout};
use crate::schema::assert_fits;

/// Runs `boxbuild diff`, which must find a difference and exit with code 5.
fn differing(checkout: &Checkout, args: &[&str]) -> Ran {
    let ran = checkout.run(&[&["diff"], args].concat());
    assert_eq!(ran.code, 5, "{}{}", ran.result, ran.notes);
    ran
}

/// Runs `boxbuild diff`, which must find no difference.
fn same(checkout: &Checkout, args: &[&str]) {
    let ran = checkout.run(&[&["diff"], args].concat());
    assert_eq!((ran.code, ran.result.as_str()), (0, ""), "{}{}", ran.result, ran.notes);
    assert_eq!(ran.notes, "no difference\n");
}

/// Builds `new.box`, whose agent and skill differ from those of `test.box`.
fn changed() -> Checkout {
    let checkout = built();
    checkout.edit("skills/greet/SKILL.md", "\nGreets.", "\nGreets more.");
    let base =
        Layer::new().mtime(1_700_000_000).dir("/usr", 0o755).file("/usr/base", 0o644, "base");
    let program = Layer::new()
        .mtime(1_700_000_001)
        .dir("/agent", 0o755)
        .file("/agent/run", 0o4755, "# /bin/sh\nexit 1\n")
        .owner(1000, 1001)
        .file("/agent/notes", 0o600, "notes")
        .xattr("user.note", "kept\n")
        .dir("/agent/link", 0o755)
        .file("/agent/link/inner", 0o644, "")
        .owner(0, 0)
        .fifo("/agent/pipe", 0o666)
        .device("/agent/null", 0o666, 1, 5)
        .mtime(1_800_000_000)
        .dir("/data", 0o755)
        .dir("/data/deep", 0o755)
        .file("/data/deep/file", 0o644, "");
    let entrypoint = vec!["/agent/run".to_owned()];
    let image = Image::new(Config { entrypoint, ..Config::default() });
    fs::rename(checkout.path("images/agent"), checkout.path("images/old")).unwrap();
    checkout.image("agent", &image.with(base.to_tar()).with(program.to_tar()));
    checkout.result(&["update"]);
    checkout.built(&["--output", "new.box"]);
    checkout
}

#[test]
fn what_is_equal() {
    let checkout = built();
    same(&checkout, &["test.box", "test.box"]);
    same(&checkout, &["oci:images/agent", "oci:images/agent:latest"]);
    same(&checkout, &["--component", "agent", "test.box", "oci:images/agent"]);
    same(&checkout, &["./skills", "skills/"]);
    let report = checkout.run(&["diff", "test.box", "test.box", "--json"]).json();
    assert_eq!(report["counts"], serde_json::json!({ "added": 0, "removed": 0, "changed": 0 }));
    assert_eq!(report["differences"], serde_json::json!([]));
}

#[test]
fn two_boxes() {
    let checkout = changed();
    let ran = differing(&checkout, &["test.box", "new.box"]);
    insta::assert_snapshot!(shown(&ran.result), @r#"
    changed  /a3s/skills/greet/SKILL.md  size
             a  file, 49 bytes, skill greet
             b  file, 54 bytes, skill greet
    removed  /roots/agent/agent/alias  file, 10 bytes, agent layer 2 DIG
    changed  /roots/agent/agent/link  type
             a  symlink, agent layer 2 DIG
             b  directory, 1 entry below, agent layer 2 DIG
    changed  /roots/agent/agent/notes  xattr user.note
             a  "kept": file, 5 bytes, agent layer 2 DIG
             b  "kept\n": file, 5 bytes, agent layer 2 DIG
    changed  /roots/agent/agent/null  uid
             a  1000: char-device, agent layer 2 DIG
             b  0: char-device, agent layer 2 DIG
    changed  /roots/agent/agent/pipe  mode
             a  0600: fifo, agent layer 2 DIG
             b  0666: fifo, agent layer 2 DIG
    changed  /roots/agent/agent/run  size
             a  file, 10 bytes, agent layer 2 DIG
             b  file, 17 bytes, agent layer 2 DIG
    removed  /roots/agent/agent/wild��[2J  file, 4 bytes, agent layer 2 DIG
    added    /roots/agent/data  directory, 2 entries below, agent layer 2 DIG
    "#);
    insta::assert_snapshot!(ran.notes, @"4 added, 2 removed, 6 changed");
    let back = differing(&checkout, &["new.box", "test.box", "/roots/agent/data"]);
    insta::assert_snapshot!(shown(&back.result), @"removed  /roots/agent/data  directory, 2 entries below, agent layer 2 DIG");
    same(&checkout, &["test.box", "new.box", "roots/business"]);
    same(&checkout, &["test.box", "new.box", "--component", "business"]);
}

/// Builds `new.box` from a Boxfile that permits more than that of `test.box`.
fn allowing() -> Checkout {
    let checkout = built();
    checkout.edit(
        "Boxfile",
        "    health \"tcp\"\n",
        "    health \"tcp\"\n    capabilities add=\"NET_RAW\"\n    env FEATURE=\"on\"\n    plain-env API=\"ghp_0123456789abcdef\"\n",
    );
    checkout.edit(
        "Boxfile",
        "vm cpus=1",
        "network \"shared\"\nshare \"data\" guest=\"/data\" component=\"both\"\nvm cpus=2",
    );
    checkout.built(&["--output", "new.box"]);
    checkout
}

#[test]
fn what_another_boxfile_allows() {
    let checkout = allowing();
    let ran = differing(&checkout, &["test.box", "new.box"]);
    insta::assert_snapshot!(shown(&ran.result), @r#"
    plan     agent capabilities  +NET_RAW
    plan     agent env API  +****
    plan     agent env FEATURE  +"on"
    plan     network  none → shared
    plan     share data  +access=ro guest=/data scope=both
    plan     vm cpus  1 → 2
    added    /boxbuild/system/agent/data  directory, init
    changed  /boxbuild/system/agent/etc/resolv.conf  size
             a  file, 86 bytes, init
             b  file, 71 bytes, init
    added    /boxbuild/system/business/data  directory, init
    changed  /boxbuild/system/business/etc/resolv.conf  size
             a  file, 86 bytes, init
             b  file, 71 bytes, init
    "#);
    insta::assert_snapshot!(ran.notes, @"6 fields of the plan differ; 2 added, 0 removed, 2 changed");
    let back = differing(&checkout, &["new.box", "test.box"]);
    assert!(back.result.contains("plan     agent capabilities  -NET_RAW\n"), "{}", back.result);
    same(&checkout, &["test.box", "new.box", "/roots/agent/usr"]);
    let report = checkout.run(&["diff", "test.box", "new.box", "--json"]).json();
    assert_fits("diff", &report);
    let network = serde_json::json!({ "field": "network", "a": "none", "b": "shared" });
    assert!(report["plan"].as_array().unwrap().contains(&network), "{report}");
    assert!(!report.to_string().contains("plan.json"), "{report}");
}

#[test]
fn two_images_and_a_box_with_another_image() {
    let checkout = changed();
    let images = differing(&checkout, &["oci:images/old", "oci:images/agent", "/agent/null"]);
    insta::assert_snapshot!(shown(&images.result), @"
    changed  /agent/null  uid
             a  1000: char-device, layer 2 DIG
             b  0: char-device, layer 2 DIG
    ");
    let args = ["--component", "agent", "new.box", "oci:images/old", "agent/notes"];
    insta::assert_snapshot!(shown(&differing(&checkout, &args).result), @r#"
    changed  /agent/notes  xattr user.note
             a  "kept\n": file, 5 bytes, agent layer 2 DIG
             b  "kept": file, 5 bytes, layer 2 DIG
    "#);
    let whole = differing(&checkout, &["new.box", "oci:images/old", "/agent"]);
    insta::assert_snapshot!(whole.notes, @r"
    8 added, 0 removed, 0 changed
    note: an image is one component's root; add `--component agent`, or business
    ");
    same(
        &checkout,
        &["--ignore", "xattrs,mode", "oci:images/old", "oci:images/agent", "agent/notes"],
    );
}

#[test]
fn as_data() {
    let checkout = changed();
    let ran = differing(&checkout, &["test.box", "new.box", "/roots/agent/agent/notes", "--json"]);
    let text = serde_json::to_string_pretty(&ran.json()).unwrap();
    insta::assert_snapshot!(shown(&text), @r#"
    {
      "a": {
        "digest": "sha256:DIGEST",
        "kind": "box",
        "name": "test.box"
      },
      "b": {
        "digest": "sha256:DIGEST",
        "kind": "box",
        "name": "new.box"
      },
      "counts": {
        "added": 0,
        "changed": 1,
        "removed": 0
      },
      "differences": [
        {
          "a": {
            "blake3": "DIGEST",
            "gid": 1001,
            "mode": "0600",
            "mtime": 1700000001,
            "mtime_nsec": 0,
            "origin": {
              "component": "agent",
              "diff_id": "sha256:DIGEST",
              "kind": "image",
              "layer": 2
            },
            "size": 5,
            "type": "file",
            "uid": 1000,
            "xattrs": [
              {
                "name": "user.note",
                "value_base64": "a2VwdA=="
              }
            ]
          },
          "b": {
            "blake3": "DIGEST",
            "gid": 1001,
            "mode": "0600",
            "mtime": 1700000001,
            "mtime_nsec": 0,
            "origin": {
              "component": "agent",
              "diff_id": "sha256:DIGEST",
              "kind": "image",
              "layer": 2
            },
            "size": 5,
            "type": "file",
            "uid": 1000,
            "xattrs": [
              {
                "name": "user.note",
                "value_base64": "a2VwdAo="
              }
            ]
          },
          "change": "changed",
          "field": "xattrs",
          "path": "/roots/agent/agent/notes",
          "xattr": "user.note"
        }
      ],
      "packages": [],
      "parts": [],
      "permissions": [],
      "plan": []
    }
    "#);
    assert_eq!(ran.notes, "");
}

#[test]
fn what_boots_beside_the_files() {
    let checkout = built();
    // The same program with a byte after its last section.
    let init = fs::read(&crate::checkout::tools().init).unwrap();
    checkout.write("init", [init.as_slice(), b"\0"].concat());
    let mut command = checkout.boxbuild(&["build", "--output", "new.box"]);
    let ran = Ran::of(command.env("BOXBUILD_INIT", checkout.path("init")));
    assert_eq!(ran.code, 0, "{}", ran.notes);
    let ran = differing(&checkout, &["test.box", "new.box"]);
    insta::assert_snapshot!(shown(&ran.result), @r"
    changed  the init
             a  sha256:DIGEST
             b  sha256:DIGEST
    ");
    insta::assert_snapshot!(ran.notes, @"the files are the same");
    same(&checkout, &["test.box", "new.box", "/roots"]);
}

#[test]
fn an_image_and_what_umoci_unpacks_of_it() {
    packages(&[Package::Umoci], &mut |line| println!("{line}")).unwrap();
    let checkout = Checkout::new();
    let layer = Layer::new()
        .mtime(1_700_000_000)
        .dir("/", 0o755)
        .dir("/etc", 0o711)
        .file("/etc/file", 0o4755, "data")
        .hardlink("/etc/again", "/etc/file")
        .owner(7, 8)
        .file("/etc/other", 0o600, "other")
        .xattr("user.note", "kept")
        .symlink("/link", "etc/file")
        .fifo("/pipe", 0o640)
        .device("/null", 0o666, 1, 3);
    let layout = checkout.path("images/one");
    let image = Image::new(Config::default()).with(layer.to_tar());
    image.write_layout(&layout, "v1", Compression::Gzip).unwrap();
    let mut umoci = Command::new("umoci");
    umoci.args(["unpack", "--image", "images/one:v1", "out"]).current_dir(checkout.root());
    program::run(&mut umoci).unwrap();
    same(&checkout, &["oci:images/one:v1", "out/rootfs"]);
    fs::write(checkout.path("out/rootfs/etc/other"), "0ther").unwrap();
    let ran = differing(&checkout, &["--ignore=mtime", "oci:images/one:v1", "out/rootfs"]);
    insta::assert_snapshot!(shown(&ran.result), @"
    changed  /etc/other  content
             a  blake3:DIG: file, 5 bytes, layer 1 DIG
             b  blake3:DIG: file, 5 bytes, this host
    ");
}

#[test]
fn what_cannot_be_compared() {
    let checkout = built();
    let fails = |args: &[&str]| shown(&checkout.fails(&[&["diff"], args].concat()));
    insta::assert_snapshot!(fails(&["test.box", "images/agent"]), @r"
    error: images/agent is an OCI image, not a box
      = help: compare an image in it: oci:images/agent
    ");
    insta::assert_snapshot!(fails(&["test.box", "./missing"]), @"
    error: there is no ./missing
      = help: name a box such as NAME.box, an image such as oci:DIR, or a directory
    ");
    insta::assert_snapshot!(fails(&["oci:images/missing", "test.box"]), @"
    error: the image oci:images/missing cannot be read: images/missing does not exist
      = help: copy an image there: skopeo copy docker://NAME oci:images/missing:latest
    ");
    insta::assert_snapshot!(fails(&["docker://registry.example.org/a:v1", "test.box"]), @r"
    error: `boxbuild diff` does not read images from a registry: docker://registry.example.org/a:v1
      = help: copy it first: skopeo copy docker://registry.example.org/a:v1 oci:DIR:latest
    ");
    insta::assert_snapshot!(fails(&["oci:", "test.box"]), @r#"
    error: the reference names no directory
      = help: an image is "oci:DIR", "oci-archive:FILE", "docker-archive:FILE" or "docker://HOST/NAME", each perhaps followed by `:TAG`
    "#);
    insta::assert_snapshot!(fails(&["test.box", "test.box", "/roots/agemt"]), @"
    error: there is no /roots/agemt
      = help: did you mean /roots/agent?
    ");
    checkout.write("Boxfile", "box \"alone\"\nagent {\n    image \"oci:images/agent\"\n}\n");
    checkout.built(&["--output", "alone.box"]);
    insta::assert_snapshot!(fails(&["alone.box", "test.box", "--component", "business"]), @"
    error: the box alone.box has no business component
      = help: leave out `--component`, or name the other
    ");
    for args in [&["a"][..], &["a", "b", "--component", "x"], &["a", "b", "--ignore", "type"]] {
        assert_eq!(checkout.run(&[&["diff"], args].concat()).code, 2);
    }
}

#[test]
fn a_layer_that_is_refused_leaves_nothing() {
    let checkout = checkout();
    let layer = Layer::new().hardlink("/a", "/missing");
    let layout = checkout.path("images/bad");
    let image = Image::new(Config::default()).with(layer.to_tar());
    image.write_layout(&layout, "v1", Compression::Gzip).unwrap();
    fs::create_dir(checkout.path("tmp")).unwrap();
    let mut command = checkout.boxbuild(&["diff", "oci:images/bad", "./skills"]);
    let ran = Ran::of(command.env("TMPDIR", checkout.path("tmp")));
    assert_eq!((ran.code, ran.result.as_str()), (1, ""));
    insta::assert_snapshot!(shown(&ran.notes), @r#"error: the image oci:images/bad cannot be read: layer sha256:DIGEST, entry "a": it is a hard link to "missing", which is not there"#);
    assert_eq!(fs::read_dir(checkout.path("tmp")).unwrap().count(), 0);
}
