//! The digest with which `boxlaunch up` finds that a box has changed what declares it.

use super::LOCK;
use crate::checkout::{BOXFILE, Checkout, files};

/// A registry's image in the lock, with the digest of `digit`.
fn pin(digit: char) -> String {
    let digest = digit.to_string().repeat(64);
    let layer = "0".repeat(64);
    format!(
        "\n[[entry]]\nname = \"agent\"\nkind = \"image\"\nsource = \"docker://registry.example/agent:1\"\n\
         platform = \"linux/amd64\"\ndigest = \"sha256:{digest}\"\nsize = 481\nlayers = [\n    \"sha256:{layer}\",\n]\n"
    )
}

fn declared(checkout: &Checkout) -> String {
    checkout.result(&["build", "--for-start", "--file", "Boxfile", "--declared"])
}

/// A checkout with everything that a declaration consists of.
fn complete() -> Checkout {
    let checkout = Checkout::new();
    let base = "box \"test\"\n";
    checkout.write("base.Boxfile", base);
    checkout.write("kernel.so", "kernel");
    checkout.write(
        "Boxfile",
        format!("extends \"base.Boxfile\"\n{}kernel \"kernel.so\"\n", BOXFILE.replace(base, "")),
    );
    checkout.write(LOCK, format!("{}{}", checkout_lock_head(), pin('1')));
    checkout
}

fn checkout_lock_head() -> String {
    let lock = super::locked(&Checkout::new());
    lock.split("\n[[entry]]").next().unwrap().to_owned()
}

#[test]
fn everything_that_decides_about_rights_and_fetched_content_is_in_it() {
    type Change = fn(&Checkout);
    let changes: [(&str, Change); 5] = [
        ("the Boxfile", |it| it.write("Boxfile", it.read("Boxfile") + "// one\n")),
        ("the Boxfile that it extends", |it| it.write("base.Boxfile", "box \"test\"\n// two\n")),
        ("a pin of the lock", |it| {
            it.write(LOCK, it.read(LOCK).replace(&"1".repeat(64), &"2".repeat(64)));
        }),
        ("the lock as a whole", |it| std::fs::remove_file(it.path(LOCK)).unwrap()),
        ("the kernel", |it| it.write("kernel.so", "other kernel")),
    ];
    let before = declared(&complete());
    for (what, change) in changes {
        let checkout = complete();
        assert_eq!(declared(&checkout), before, "it depends on the checkout's place");
        change(&checkout);
        assert_ne!(declared(&checkout), before, "{what}");
        let expect = format!("--expect-declared={}", before.trim());
        let ran = checkout.run(&["build", "--for-start", "--file", "Boxfile", &expect]);
        assert_eq!(ran.code, 2, "{what}: {}", ran.notes);
        assert!(ran.notes.contains("has changed meanwhile"), "{what}: {}", ran.notes);
        assert!(
            !checkout.path("store/blobs").exists()
                || files(&checkout.path("store/blobs")).is_empty()
        );
    }
}

#[test]
fn an_image_that_is_exchanged_by_a_link_out_of_the_checkout_is_in_it() {
    type Exchange = fn(&Checkout, &std::path::Path);
    let exchanges: [Exchange; 3] = [
        |it, other| {
            std::fs::rename(it.path("images/agent"), it.path("images/old")).unwrap();
            std::os::unix::fs::symlink(other.join("images/agent"), it.path("images/agent"))
                .unwrap();
        },
        |it, other| {
            std::fs::remove_file(it.path("images/agent/index.json")).unwrap();
            let index = other.join("images/agent/index.json");
            std::os::unix::fs::symlink(index, it.path("images/agent/index.json")).unwrap();
        },
        |it, other| {
            std::fs::rename(it.path("images/agent/blobs/sha256"), it.path("old")).unwrap();
            let blobs = other.join("images/agent/blobs/sha256");
            std::os::unix::fs::symlink(blobs, it.path("images/agent/blobs/sha256")).unwrap();
        },
    ];
    let other = Checkout::new();
    for exchange in exchanges {
        let checkout = Checkout::new();
        let before = declared(&checkout);
        exchange(&checkout, other.root());
        assert_ne!(declared(&checkout), before);
        let expect = format!("--expect-declared={}", before.trim());
        let ran = checkout.run(&["build", "--for-start", "--file", "Boxfile", &expect]);
        assert!(ran.code == 2 && ran.notes.contains("has changed meanwhile"), "{}", ran.notes);
    }
}

#[test]
fn what_a_box_may_change_in_its_project_is_not_in_it() {
    let checkout = Checkout::new();
    checkout.result(&["build"]);
    let before = declared(&checkout);
    checkout.write("skills/greet/tools/greet.sh", "#!/bin/sh\necho other\n");
    checkout.image("agent", &crate::checkout::agent_with("other"));
    assert_eq!(declared(&checkout), before);
    let expect = format!("--expect-declared={}", before.trim());
    checkout.result(&["build", "--for-start", "--file", "Boxfile", &expect]);
    assert_eq!(declared(&checkout), before, "the lock pins other files and images of the project");
}
