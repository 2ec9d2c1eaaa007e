//! Agents that are a single program, from a file of the checkout or a URL, alone or on top of an image.

use std::fs;
use std::os::unix::fs::symlink;

use box_digest::Digest;
use test_server::{Identity, Request, Server, file};

use crate::checkout::{Checkout, shown, tools};

/// Returns the bytes of a static program.
fn program() -> Vec<u8> {
    fs::read(&tools().hello_agent).unwrap()
}

/// Makes a checkout with a static program at `bin/agent`. `agent` is the content of the agent's declaration.
fn checkout(agent: &str) -> Checkout {
    let checkout = Checkout::new();
    checkout.write("bin/agent", program());
    checkout.write("Boxfile", format!("box \"test\"\nagent {{\n    {agent}\n}}\n"));
    checkout
}

/// Returns the errors with which a build refuses an agent. Asserts that a check has the same.
fn refused(checkout: &Checkout) -> String {
    let output = checkout.fails(&["build"]);
    assert_eq!(checkout.fails(&["check"]), output);
    assert!(!checkout.path("test.box").exists() && !checkout.path("Boxfile.lock").exists());
    shown(&output)
}

#[test]
fn a_file_of_the_checkout() {
    let checkout = checkout("binary \"bin/agent\"");
    checkout.result(&["check"]);
    let plan = checkout.built_plan();
    assert_eq!(plan["agent-kind"], "local_binary");
    assert_eq!(plan["agent"]["argv"], serde_json::json!(["/agent/bin/agent"]));
    let lock = checkout.read("Boxfile.lock");
    let digest = Digest::of(&program()).hex();
    assert!(lock.contains("kind = \"binary\"\nsource = \"bin/agent\"\n"), "{lock}");
    assert!(lock.contains(&digest), "{lock}");
    // The program's directory in the checkout does not affect the box.
    let before = checkout.built(&[])["box"].clone();
    fs::rename(checkout.path("bin"), checkout.path("dist")).unwrap();
    checkout.edit("Boxfile", "bin/agent", "dist/agent");
    assert_eq!(checkout.built(&[])["box"], before);
}

#[test]
fn arguments_follow_the_program() {
    let plan = checkout("binary \"bin/agent\"; args \"--port\" \"4090\"; port 4090").built_plan();
    assert_eq!(plan["agent"]["argv"], serde_json::json!(["/agent/bin/agent", "--port", "4090"]));
    assert_eq!(plan["agent"]["port"], 4090);
}

#[test]
fn a_program_on_top_of_an_image() {
    let checkout = checkout("image \"oci:images/agent\"; binary \"bin/agent\"; user \"1000\"");
    let plan = checkout.built_plan();
    assert_eq!(plan["agent-kind"], "local_binary");
    assert_eq!(plan["agent"]["argv"], serde_json::json!(["/agent/bin/agent"]));
    assert_eq!(plan["agent"]["user"]["uid"], 1000);
    let bytes = checkout.built(&[])["rootfs_bytes"].as_u64().unwrap();
    assert!(bytes > 160_000 + program().len() as u64, "the image's files are there, too");
}

#[test]
fn a_script_without_an_image() {
    let alone = checkout("binary \"bin/agent.sh\"");
    alone.write("bin/agent.sh", "#!/bin/sh\nexec sleep 1000\n");
    insta::assert_snapshot!(refused(&alone), @r#"
    error: the agent's program needs /bin/sh, which only an image can have
      --> Boxfile:3:12
       |
     3 |     binary "bin/agent.sh"
       |            ^^^^^^^^^^^^^^ named here
       |
       = help: link the program statically, or declare an `image` for the agent that has it
    "#);
    let over = checkout("image \"oci:images/agent\"; binary \"bin/agent.sh\"");
    over.write("bin/agent.sh", "#!/agent/bin/alias -c\nexec sleep 1000\n");
    over.built(&[]);
}

#[test]
fn a_dynamic_program_without_an_image() {
    let alone = checkout("binary \"bin/dynamic\"");
    alone.write("bin/dynamic", fs::read(&tools().boxbuild).unwrap());
    let output = refused(&alone);
    assert!(output.contains("error: the agent's program needs /lib"), "{output}");
    assert!(output.contains("link the program statically, or declare an `image`"), "{output}");
}

/// The hello agent's image has no dynamic linker.
#[test]
fn a_dynamic_program_over_an_image_without_its_linker() {
    let over = checkout("binary \"bin/dynamic\"\n    image \"oci:images/agent\"");
    over.write("bin/dynamic", fs::read(&tools().boxbuild).unwrap());
    let output = over.fails(&["build"]);
    assert!(output.contains("which the agent's image does not have"), "{output}");
}

#[test]
fn a_file_that_is_no_program() {
    let text = checkout("binary \"bin/notes\"");
    text.write("bin/notes", "what the agent does\n");
    insta::assert_snapshot!(refused(&text), @r##"
    error: the agent's program cannot be used: bin/notes is not a program that the box can start: it is neither an ELF program nor a script
      --> Boxfile:3:12
       |
     3 |     binary "bin/notes"
       |            ^^^^^^^^^^^ named here
       |
       = help: name an ELF program for Linux, or a script that starts with "#!"
    "##);
    let missing = checkout("binary \"bin/agnet\"");
    let output = refused(&missing);
    assert!(output.contains("bin/agnet"), "{output}");
    assert!(output.contains("No such file or directory"), "{output}");
}

#[test]
fn a_link_out_of_the_checkout() {
    let checkout = checkout("binary \"bin/link\"");
    symlink(&tools().hello_agent, checkout.path("bin/link")).unwrap();
    let output = refused(&checkout);
    assert!(output.contains("bin/link leads out of the checkout\n"), "{output}");
    fs::remove_file(checkout.path("bin/link")).unwrap();
    symlink("agent", checkout.path("bin/link")).unwrap();
    checkout.built(&[]);
}

#[test]
fn another_content_than_declared() {
    let zeros = "0".repeat(64);
    let wrong = checkout(&format!("binary \"bin/agent\" sha256=\"{zeros}\""));
    insta::assert_snapshot!(refused(&wrong), @r#"
    error: the agent's program is sha256:DIGEST, but the Boxfile names sha256:DIGEST
      --> Boxfile:3:12
       |
     3 |     binary "bin/agent" sha256="DIGEST"
       |            ^^^^^^^^^^^ named here
       |
       = help: if the file was meant to change, write the new sha256
    "#);
    let right = Digest::of(&program()).hex();
    checkout(&format!("binary \"bin/agent\" sha256=\"{right}\"")).built(&[]);
}

#[test]
fn a_program_that_is_too_large() {
    let checkout = checkout("binary \"bin/large\"");
    // A sparse file, which uses no disk space.
    let file = fs::File::create(checkout.path("bin/large")).unwrap();
    file.set_len((2 << 30) + 1).unwrap();
    let output = refused(&checkout);
    assert!(output.contains("bin/large has more than 2048 MiB\n"), "{output}");
}

/// Starts a server that answers every request with these bytes.
fn serve(bytes: Vec<u8>) -> Server {
    Server::start(Identity::None, |_| move |_: &Request| file(&bytes))
}

/// Makes a checkout whose agent is downloaded from `server`.
fn remote(server: &Server, sha256: &str) -> Checkout {
    let url = server.url("/agent");
    checkout(&format!("binary \"{url}\" sha256=\"{sha256}\""))
}

#[test]
fn a_url() {
    let server = serve(program());
    let sha256 = Digest::of(&program()).hex();
    let checkout = remote(&server, &sha256);
    checkout.result(&["check"]);
    assert_eq!(server.requests().len(), 0, "check touches no network");
    let plan = checkout.built_plan();
    assert_eq!(plan["agent-kind"], "remote_binary");
    assert_eq!(server.requests().len(), 1);
    checkout.built(&["--locked"]);
    checkout.built(&["--offline"]);
    assert_eq!(server.requests().len(), 1, "the store has it");
    let lock = checkout.read("Boxfile.lock");
    assert!(lock.contains("kind = \"url\"") && lock.contains(&sha256), "{lock}");
    let local = self::checkout("binary \"bin/agent\"");
    assert_eq!(local.built_plan()["agent"], plan["agent"]);
}

#[test]
fn the_download_of_a_program_is_reported() {
    let mut large = program();
    large.resize(2 << 20, 0);
    let digest = Digest::of(&large).hex();
    let notes = remote(&serve(large), &digest).notes(&["build"]);
    assert!(notes.contains(&format!("fetched sha256:{} (2.0 MiB)", &digest[..12])), "{notes}");
}

#[test]
fn a_url_with_another_content() {
    let server = serve(program());
    let checkout = remote(&server, &"0".repeat(64));
    let output = checkout.fails(&["build"]).replace(&server.url(""), "URL");
    insta::assert_snapshot!(shown(&output), @r#"
    error: the agent's program cannot be fetched: URL/agent is damaged, or another file: its digest is sha256:DIGEST, not sha256:DIGEST
      --> Boxfile:3:12
       |
     3 |     binary "URL/agent" sha256="DIGEST"
       |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ named here
       |
       = help: if the file was meant to change, write the new sha256
    "#);
    assert!(!checkout.path("Boxfile.lock").exists());
}

#[test]
fn a_url_that_the_store_lacks_while_offline() {
    let server = serve(program());
    let checkout = remote(&server, &Digest::of(&program()).hex());
    let output = checkout.fails(&["build", "--offline"]).replace(&server.url(""), "URL");
    insta::assert_snapshot!(shown(&output), @r#"
    error: the agent's program cannot be fetched: URL/agent (sha256:DIGEST) is not in the store, and the network is off (--offline)
      --> Boxfile:3:12
       |
     3 |     binary "URL/agent" sha256="DIGEST"
       |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ named here
       |
       = help: run `boxbuild fetch`, or build once without --offline
    "#);
    assert_eq!(server.requests().len(), 0);
    checkout.result(&["lock"]);
    checkout.built(&["--offline", "--locked"]);
}

/// The agent kinds that are images.
#[test]
fn kinds_of_images() {
    for (kind, port) in [("oci_image", 4088), ("a3s_code", 4088), ("opencode", 4096)] {
        let checkout = Checkout::new();
        checkout.edit("Boxfile", "agent {", &format!("agent kind=\"{kind}\" {{"));
        let plan = checkout.built_plan();
        let kind = (kind != "oci_image").then_some(kind);
        assert_eq!(plan["agent-kind"].as_str(), kind, "the default is left out");
        assert_eq!(plan["agent"]["port"], port);
    }
}
