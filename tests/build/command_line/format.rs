//! Tests of `boxbuild fmt`, which formats in place or only checks.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use serde_json::json;

use crate::checkout::{BOXFILE, Checkout, Ran};

const CROOKED: &str = "// kept\nbox   \"x\"\nagent {\n  image \"oci:a\" // kept, too\n}\n";
const STRAIGHT: &str = "// kept\nbox \"x\"\nagent {\n    image \"oci:a\" // kept, too\n}\n";

#[test]
fn in_place_and_then_it_is_right() {
    let checkout = Checkout::new();
    checkout.result(&["fmt", "--check"]);
    checkout.write("Boxfile", CROOKED);
    insta::assert_snapshot!(checkout.fails(&["fmt", "--check"]), @"
    error: Boxfile is not formatted
      = help: run `boxbuild fmt`
    ");
    assert_eq!(checkout.read("Boxfile"), CROOKED);
    assert_eq!(checkout.notes(&["fmt"]), "formatted Boxfile\n");
    assert_eq!(checkout.read("Boxfile"), STRAIGHT);
    checkout.result(&["fmt", "--check"]);
    let before = fs::metadata(checkout.path("Boxfile")).unwrap().ino();
    assert_eq!(checkout.notes(&["fmt"]), "");
    assert_eq!(fs::metadata(checkout.path("Boxfile")).unwrap().ino(), before, "not written");
}

#[test]
fn permissions_and_links_stay() {
    let checkout = Checkout::new();
    checkout.write("real/Boxfile", CROOKED);
    let real = checkout.path("real/Boxfile");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::remove_file(checkout.path("Boxfile")).unwrap();
    symlink("real/Boxfile", checkout.path("Boxfile")).unwrap();
    checkout.result(&["fmt"]);
    assert!(fs::symlink_metadata(checkout.path("Boxfile")).unwrap().is_symlink());
    assert_eq!(checkout.read("real/Boxfile"), STRAIGHT);
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(checkout.path("real")).unwrap().count(), 1, "no leftovers");
}

#[test]
fn a_broken_file_is_left_and_the_others_are_formatted() {
    let checkout = Checkout::new();
    checkout.write("broken", "box \"x\n");
    checkout.write("crooked", CROOKED);
    let output = checkout.fails(&["fmt", "broken", "nofile", "crooked"]);
    assert!(output.starts_with("formatted crooked\nerror: "), "{output}");
    assert!(
        output.contains("\nerror: this string is never closed\n  --> broken:1:5\n"),
        "{output}"
    );
    assert!(
        output.ends_with(
            "\nerror: cannot read nofile: No such file or directory (os error 2)\n  = help: `boxbuild init` makes a Boxfile\n"
        ),
        "{output}"
    );
    assert_eq!(
        (checkout.read("broken").as_str(), checkout.read("crooked").as_str()),
        ("box \"x\n", STRAIGHT)
    );
}

#[test]
fn a_syntax_is_only_for_standard_input() {
    let ran = Checkout::new().run(&["fmt", "--syntax", "toml", "Boxfile"]);
    assert_eq!(ran.code, 2);
    insta::assert_snapshot!(ran.notes, @"
    error: `--syntax` can be used only with standard input
      = help: write `boxbuild fmt --syntax toml - <Boxfile`, or leave out `--syntax`
    ");
}

#[test]
fn an_invalid_boxfile_is_still_formatted() {
    let checkout = Checkout::new();
    checkout.write("Boxfile", CROOKED.replace("image", "imag"));
    checkout.fails(&["check"]);
    checkout.result(&["fmt"]);
    assert_eq!(checkout.read("Boxfile"), STRAIGHT.replace("image", "imag"));
}

#[test]
fn other_files_are_left_alone() {
    let checkout = Checkout::new();
    let other = "layout   {\n  pane size=1\n}\n";
    checkout.write("zellij.kdl", other);
    insta::assert_snapshot!(checkout.fails(&["fmt", "zellij.kdl"]), @"
    error: zellij.kdl is not a Boxfile, and was not changed
      = help: a Boxfile has that name, as `Boxfile.toml` and `ci.Boxfile` do, or declares a box, an agent or a business component, or extends a Boxfile
    ");
    assert_eq!(checkout.read("zellij.kdl"), other);
    checkout.write("base.Boxfile", "vm   cpus=1\n");
    checkout.result(&["fmt", "base.Boxfile"]);
    assert_eq!(checkout.read("base.Boxfile"), "vm cpus=1\n");
}

#[test]
fn a_lock_is_left_as_it_is() {
    let checkout = Checkout::new();
    let lock = boxbuild::project::lock::Lock::new(1).write();
    checkout.write("Boxfile.lock", &lock);
    checkout.write("Boxfile", CROOKED);
    for args in [
        &["fmt", "Boxfile.lock"][..],
        &["fmt", "--check", "Boxfile.lock"],
        &["check", "-f", "Boxfile.lock"],
    ] {
        insta::allow_duplicates!(insta::assert_snapshot!(checkout.fails(args), @"
        error: Boxfile.lock is a lock, not a Boxfile, and was not changed
          = help: name the Boxfile that it was written for: boxbuild alone writes locks
        "));
    }
    assert_eq!(piped(&checkout, &[], &lock).code, 1);
    let ran = checkout.run(&["fmt", "--json", "Boxfile", "Boxfile.lock"]);
    assert_eq!(ran.json(), json!({ "files": ["Boxfile"], "formatted": ["Boxfile"] }));
    checkout.result(&["fmt", "--check", "Boxfile", "Boxfile.lock"]);
    assert_eq!(
        (checkout.read("Boxfile").as_str(), checkout.read("Boxfile.lock")),
        (STRAIGHT, lock)
    );
}

/// Runs `boxbuild fmt -` with `text` as its stdin.
fn piped(checkout: &Checkout, args: &[&str], text: &str) -> Ran {
    let mut command = checkout.boxbuild(&["fmt", "-"]);
    checkout.write("input", text);
    Ran::of(command.args(args).stdin(fs::File::open(checkout.path("input")).unwrap()))
}

#[test]
fn from_standard_input() {
    let checkout = Checkout::new();
    let ran = piped(&checkout, &[], CROOKED);
    assert_eq!((ran.code, ran.result.as_str(), ran.notes.as_str()), (0, STRAIGHT, ""));
    assert_eq!(piped(&checkout, &[], STRAIGHT).result, STRAIGHT);
    let ran = piped(&checkout, &["--check"], CROOKED);
    assert_eq!((ran.code, ran.result.as_str()), (1, ""));
    assert_eq!(ran.notes, "error: standard input is not formatted\n");
    assert_eq!(piped(&checkout, &["--check"], STRAIGHT).code, 0);
    assert_eq!(piped(&checkout, &[], "box   =   \"x\"\n").result, "box = \"x\"\n");
    let ran = piped(&checkout, &["--syntax", "kdl"], "box = \"x\"\n");
    assert_eq!(ran.result, "box=\"x\"\n", "a property in KDL");
    let ran = piped(&checkout, &[], "box \"x\n");
    assert_eq!((ran.code, ran.result.as_str()), (1, ""));
    assert!(ran.notes.contains("\n  --> <stdin>:1:5\n"), "{}", ran.notes);
    assert_eq!(piped(&checkout, &["Boxfile"], "").code, 2);
    assert_eq!(piped(&checkout, &["--json"], "").code, 2);
    assert_eq!(checkout.run(&["fmt", "--syntax", "kdl"]).code, 2);
}

#[test]
fn as_data() {
    let checkout = Checkout::new();
    checkout.write("crooked", CROOKED);
    let ran = checkout.run(&["fmt", "--check", "--json", "Boxfile", "crooked"]);
    assert_eq!((ran.code, ran.notes.as_str()), (1, ""));
    let error = &ran.json()["errors"][0];
    assert_eq!(error["message"], "crooked is not formatted");
    assert_eq!(error["help"], "run `boxbuild fmt crooked`");
    let ran = checkout.run(&["fmt", "--json", "Boxfile", "crooked"]);
    assert_eq!(ran.json(), json!({ "files": ["Boxfile", "crooked"], "formatted": ["crooked"] }));
    assert_eq!(ran.notes, "");
    assert_eq!(checkout.read("Boxfile"), BOXFILE);
}
