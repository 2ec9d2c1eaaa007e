//! Tests of `boxbuild cat`.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::process::Stdio;

use box_contract::manifest::METADATA_TYPE;
use testkit::images::Layer;

use crate::checkout::{Checkout, WHOLE};
use crate::fixture::{blob, built, manifest};

#[test]
fn a_file_is_printed_byte_for_byte() {
    let checkout = Checkout::new();
    // Binary content that is larger than one read of `cat`.
    let noise: Vec<u8> =
        (0u32..500_000).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let layer = Layer::new().file("/agent", 0o755, "# /bin/sh\n").file("/empty", 0o644, "").file(
        "/noise",
        0o644,
        noise.clone(),
    );
    checkout.agent_of(layer.to_tar());
    checkout.built(WHOLE);
    let cat = |path: &str| checkout.boxbuild(&["cat", "test.box", path]).output().unwrap();
    let output = cat("/roots/agent/noise");
    assert!(output.status.success() && output.stdout == noise);
    assert!(output.stderr.is_empty());
    assert_eq!(cat("/roots/agent/empty").stdout, b"");
    assert_eq!(cat("/boxbuild/plan.json").stdout[0], b'{');
}

#[test]
fn what_is_no_file_is_refused() {
    let checkout = built();
    let cat = |path| checkout.fails(&["cat", "test.box", path]);
    insta::assert_snapshot!(cat("/"), @"
    error: / is a directory, and not a file
      = help: list it with `boxbuild ls test.box /`
    ");
    insta::assert_snapshot!(cat("/roots/agent/agent/pipe"), @"error: /roots/agent/agent/pipe is a pipe, and not a file");
    insta::assert_snapshot!(cat("/roots/agent/agent/null"), @"error: /roots/agent/agent/null is a device, and not a file");
    insta::assert_snapshot!(cat("/agent/notes"), @"
    error: the box test.box has no /agent
      = help: did you mean /roots/agent/agent/notes?
    ");
    assert_eq!(checkout.result(&["cat", "test.box", "/roots/agent/agent/link"]), "notes");
}

#[test]
fn damaged_content_is_an_error() {
    let checkout = built();
    let path = blob(&checkout, &manifest(&checkout).blob(METADATA_TYPE).unwrap().digest);
    let metadata = fs::read(&path).unwrap();
    let content = b"# /bin/sh\n";
    let at = metadata.windows(content.len()).position(|it| it == content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(b"!", at as u64).unwrap();
    let ran = checkout.run(&["cat", "test.box", "/roots/agent/agent/run"]);
    assert_eq!(ran.code, 1);
    insta::assert_snapshot!(ran.notes, @"
    error: the rootfs of the box is damaged: /roots/agent/agent/run does not have the content that the listing names
      = help: copy or build the box again
    ");
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let checkout = Checkout::new();
    let layer = Layer::new().file("/agent", 0o755, vec![b'x'; 8 << 20]);
    checkout.agent_of(layer.to_tar());
    checkout.built(WHOLE);
    let mut command = checkout.boxbuild(&["cat", "test.box", "/roots/agent/agent"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 16]).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
