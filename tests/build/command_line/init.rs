//! Tests of `boxbuild init`, whose Boxfile is valid, formatted, and builds.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;
use testbed::Workspace;
use testkit::images::{Config, Image, Layer};

use crate::checkout::{Checkout, agent_with};

/// The agents of `init --agent`.
const AGENTS: [&str; 5] = ["codex", "claude-code", "gemini-cli", "opencode", "a3s-code"];

/// Makes a checkout with images and a skill, but without a Boxfile.
fn checkout() -> Checkout {
    let checkout = Checkout::new();
    fs::remove_file(checkout.path("Boxfile")).unwrap();
    checkout
}

fn image(labels: &[(&str, &str)]) -> Image {
    let owned = |it: &(&str, &str)| (it.0.to_owned(), it.1.to_owned());
    let labels: BTreeMap<_, _> = labels.iter().map(owned).collect();
    let config = Config { labels, ..Config::default() };
    Image::new(config).with(Layer::new().file("/bin/agent", 0o755, "agent").to_tar())
}

/// Asserts that the Boxfile is valid and formatted, and builds.
fn good(checkout: &Checkout) {
    checkout.result(&["check"]);
    checkout.result(&["fmt", "--check"]);
    checkout.built(&[]);
}

#[test]
fn from_the_images_that_are_there() {
    let checkout = checkout();
    let notes = checkout.notes(&["init", "--name", "my-agent"]);
    assert_eq!(notes, "wrote Boxfile; look at it, then run `boxbuild build`\n");
    insta::assert_snapshot!(checkout.read("Boxfile"), @r#"
    // `boxbuild build` builds this box; `boxlaunch run my-agent` starts it.
    // Every declaration: docs/boxfile.md, or `boxbuild schema --reference`.
    box "my-agent"

    // The component that is started with the box. The image runs `/agent/bin/agent`.
    agent {
        image "oci:images/agent"
        // A guess: the image exposes no port, and has no `sleep` for a box that only waits. The box is ready when the port accepts a connection.
        port 4088
        health "tcp"
        limits memory="512MiB" pids=100
    }

    // Where the agent's commands run. The image names no program of its own.
    business {
        image "oci:images/business"
        limits memory="1GiB" pids=200
    }

    // Every directory in it that has a SKILL.md.
    skills dir="skills"

    // A box that takes longer to be ready is stopped.
    budget total="5s"
    "#);
    good(&checkout);
    assert!(checkout.path("my-agent.box").is_dir());
}

#[test]
fn in_toml() {
    let checkout = checkout();
    checkout.result(&["init", "--toml", "--name", "my-agent"]);
    insta::assert_snapshot!(checkout.read("Boxfile.toml"), @r#"
    # `boxbuild build` builds this box; `boxlaunch run my-agent` starts it.
    # Every declaration: docs/boxfile.md, or `boxbuild schema --reference`.
    box = "my-agent"
    # A box that takes longer to be ready is stopped.
    budget = { total = "5s" }
    # Every directory in it that has a SKILL.md.
    skills = { dir = "skills" }

    # The component that is started with the box. The image runs `/agent/bin/agent`.
    [agent]
    image = "oci:images/agent"
    # A guess: the image exposes no port, and has no `sleep` for a box that only waits. The box is ready when the port accepts a connection.
    port = 4088
    health = "tcp"
    limits = { memory = "512MiB", pids = 100 }

    # Where the agent's commands run. The image names no program of its own.
    [business]
    image = "oci:images/business"
    limits = { memory = "1GiB", pids = 200 }
    "#);
    good(&checkout);
}

#[test]
fn from_images_that_are_named() {
    let checkout = checkout();
    checkout.image("one", &agent_with("one"));
    checkout.result(&["init", "oci:images/one:latest"]);
    let text = checkout.read("Boxfile");
    assert!(
        text.contains("image \"oci:images/one:latest\"") && !text.contains("business"),
        "{text}"
    );
    good(&checkout);
    let checkout = self::checkout();
    checkout.image("two", &agent_with("two"));
    checkout.result(&["init", "oci:images/two", "oci:images/agent"]);
    let text = checkout.read("Boxfile");
    assert!(text.contains("business {\n    image \"oci:images/agent\""), "{text}");
}

#[test]
fn what_an_image_says_in_its_labels_is_left_to_it() {
    let checkout = checkout();
    let labels =
        [("a3s.entrypoint", "/bin/agent --serve"), ("a3s.port", "5000"), ("a3s.interface", "grpc")];
    checkout.image("agent", &image(&labels));
    checkout.result(&["init"]);
    let text = checkout.read("Boxfile");
    assert!(text.contains("The image runs `/bin/agent --serve`."), "{text}");
    assert!(text.contains("    port 5000\n") && !text.contains("entrypoint"), "{text}");
    assert!(text.contains("    health \"a3s\"\n"), "{text}");
    good(&checkout);
    let plan = checkout.built_plan();
    assert_eq!(plan["agent"]["argv"], serde_json::json!(["/bin/agent", "--serve"]));
}

/// An image with the label of the interface and without a port has the default port of the interface.
#[test]
fn an_interface_without_a_port() {
    let checkout = checkout();
    let labels = [("a3s.entrypoint", "/bin/agent"), ("a3s.interface", "grpc")];
    checkout.image("agent", &image(&labels));
    checkout.result(&["init"]);
    let text = checkout.read("Boxfile");
    assert!(text.contains("    port 4088\n    health \"a3s\"\n"), "{text}");
    assert!(!text.contains("A guess"), "{text}");
    good(&checkout);
}

#[test]
fn an_image_that_listens_on_vsock() {
    let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let config = Config {
        entrypoint: words(&["/bin/agent"]),
        cmd: words(&["--listen", "vsock://4090"]),
        ..Config::default()
    };
    let layer = Layer::new().file("/bin/agent", 0o755, "agent").to_tar();
    let image = Image::new(config).with(layer);
    let kdl = "    args \"--listen\" \"127.0.0.1:4090\"\n";
    let toml = "\nargs = [\"--listen\", \"127.0.0.1:4090\"]\n";
    for (option, file, args) in [(&[][..], "Boxfile", kdl), (&["--toml"], "Boxfile.toml", toml)] {
        let checkout = checkout();
        checkout.image("agent", &image);
        checkout.result(&[&["init"][..], option].concat());
        let text = checkout.read(file);
        assert!(text.contains(args) && !text.contains("A guess"), "{text}");
        good(&checkout);
        assert_eq!(checkout.built_plan()["agent"]["port"], 4090);
    }
}

#[test]
fn an_image_without_a_program_needs_one() {
    let checkout = checkout();
    checkout.image("agent", &image(&[]));
    let refused = checkout.fails(&["init"]);
    assert!(refused.contains("oci:images/agent has no program for the agent"), "{refused}");
    assert!(!checkout.path("Boxfile").exists());
    checkout.result(&["init", "--entrypoint", "/bin/agent"]);
    let text = checkout.read("Boxfile");
    assert!(text.contains("    entrypoint \"/bin/agent\"\n"), "{text}");
    good(&checkout);
}

#[test]
fn labels_tell_the_images_apart() {
    let checkout = checkout();
    fs::remove_dir_all(checkout.path("images")).unwrap();
    checkout.image("one", &image(&[("a3s.type", "business")]));
    checkout.image("two", &image(&[("a3s.type", "agent"), ("a3s.entrypoint", "/bin/agent")]));
    checkout.result(&["init"]);
    let text = checkout.read("Boxfile");
    assert!(text.contains("business {\n    image \"oci:images/one\""), "{text}");
    good(&checkout);
}

/// `init` skips an image whose label `a3s.type` is not the name of a component, because a build would refuse it.
#[test]
fn an_image_for_something_else_is_not_taken() {
    let checkout = checkout();
    checkout.image("a-tool", &image(&[("a3s.type", "tool")]));
    checkout.image("empty", &image(&[("a3s.type", "")]));
    insta::assert_snapshot!(checkout.notes(&["init", "--name", "x"]), @r#"
    warning: skipped: images/a-tool has the label a3s.type="tool"
    warning: skipped: images/empty has the label a3s.type=""
    wrote Boxfile; look at it, then run `boxbuild build`
    "#);
    assert!(!checkout.read("Boxfile").contains("a-tool"));
    good(&checkout);
}

#[test]
fn a_definition_that_is_a_link_makes_no_skill() {
    let checkout = checkout();
    fs::rename(checkout.path("skills/greet/SKILL.md"), checkout.path("greet.md")).unwrap();
    symlink("../../greet.md", checkout.path("skills/greet/SKILL.md")).unwrap();
    checkout.result(&["init", "--name", "x"]);
    assert!(!checkout.read("Boxfile").contains("skills"));
    good(&checkout);
}

#[test]
fn images_that_cannot_be_told_apart() {
    let checkout = checkout();
    checkout.image("other", &agent_with("other"));
    insta::assert_snapshot!(checkout.fails(&["init"]), @r"
    error: it is not clear which image is which: oci:images/agent, oci:images/other, oci:images/business
      = help: name them: boxbuild init oci:PATH/OF/AGENT oci:PATH/OF/BUSINESS
    ");
    assert!(!checkout.path("Boxfile").exists());
}

#[test]
fn no_image() {
    let checkout = checkout();
    fs::remove_dir_all(checkout.path("images/agent")).unwrap();
    insta::assert_snapshot!(checkout.fails(&["init"]), @r"
    error: no agent's image was found in . and ./images
      = help: copy one there: skopeo copy docker://NAME oci:images/agent:latest
        or say where it is: boxbuild init oci:PATH/OF/AGENT
    ");
    fs::remove_dir_all(checkout.path("images")).unwrap();
    checkout.image("agent", &agent_with("agent").architecture("arm64"));
    insta::assert_snapshot!(checkout.fails(&["init"]), @r"
    warning: skipped: the image in images/agent is for linux/arm64; the box needs linux/amd64
    error: no agent's image was found in . and ./images
      = help: copy one there: skopeo copy docker://NAME oci:images/agent:latest
        or say where it is: boxbuild init oci:PATH/OF/AGENT
    ");
}

#[test]
fn a_directory_that_a_boxfile_cannot_name() {
    let checkout = checkout();
    fs::rename(checkout.path("images/agent"), checkout.path("images/agent:v1")).unwrap();
    let output = checkout.fails(&["init"]);
    assert!(
        output.starts_with("warning: skipped: a Boxfile cannot name images/agent:v1: rename it\n"),
        "{output}"
    );
}

#[test]
fn references_that_cannot_be_looked_at() {
    let checkout = checkout();
    insta::assert_snapshot!(checkout.fails(&["init", "oci:images/agnet"]), @"
    error: images/agnet does not exist
      = help: copy an image there: skopeo copy docker://NAME oci:images/agnet:latest
    ");
    insta::assert_snapshot!(checkout.fails(&["init", "oci:images/agent:v2"]), @r#"
    error: images/agent has no image tagged "v2"; it has latest
      = help: name one of these, as "oci:PATH:TAG"
    "#);
    insta::assert_snapshot!(checkout.fails(&["init", "oci:/images/agent"]), @"
    error: /images/agent does not exist
      = help: copy an image there: skopeo copy docker://NAME oci:/images/agent:latest
    ");
    insta::assert_snapshot!(checkout.fails(&["init", "docker://Registry/App"]), @r#"
    error: `docker://Registry/App` is not a valid image reference
      = help: a repository name has lower-case letters only: "docker://registry/app"
    "#);
    insta::assert_snapshot!(checkout.fails(&["init", "--name", "My Agent"]), @r#"
    error: "My Agent" is not a valid name
      = help: a name has lower-case letters, digits and inner hyphens, at most 64: "my-agent"
    "#);
    assert!(!checkout.path("Boxfile").exists());
}

#[test]
fn a_boxfile_that_is_there_stays() {
    for name in ["Boxfile", "Boxfile.kdl", "Boxfile.toml"] {
        let checkout = checkout();
        checkout.write(name, "mine");
        let output = checkout.fails(&["init", "--toml"]);
        let there = format!("error: {name} exists already; it was not changed\n");
        let help = match name {
            "Boxfile.toml" => "to replace it, add `--force`".to_owned(),
            other => format!("remove {other} first: a directory has one Boxfile"),
        };
        assert_eq!(output, format!("{there}  = help: {help}\n"));
        assert_eq!(checkout.read(name), "mine");
    }
}

#[test]
fn a_boxfile_is_replaced_with_force() {
    let checkout = checkout();
    checkout.write("Boxfile", "mine");
    let output = checkout.fails(&["init", "--toml", "--force"]);
    assert!(output.contains("help: remove Boxfile first"), "{output}");
    assert_eq!(checkout.read("Boxfile"), "mine");
    checkout.result(&["init", "--force"]);
    good(&checkout);
}

#[test]
fn an_image_that_is_labelled_for_the_other_component() {
    let checkout = checkout();
    checkout.image("one", &image(&[("a3s.type", "business")]));
    insta::assert_snapshot!(checkout.fails(&["init", "oci:images/one"]), @r#"
    error: the image of `agent` says that it is for "business" (label `a3s.type`)
      = help: name the agent's image before it: `boxbuild init AGENT oci:images/one`
    "#);
    assert!(!checkout.path("Boxfile").exists());
}

#[test]
fn business_is_a_word_of_the_name() {
    let checkout = checkout();
    fs::rename(checkout.path("images/business"), checkout.path("images/web-business")).unwrap();
    checkout.result(&["init"]);
    let text = checkout.read("Boxfile");
    assert!(text.contains("business {\n    image \"oci:images/web-business\""), "{text}");
}

#[test]
fn a_path_without_its_kind() {
    let checkout = checkout();
    insta::assert_snapshot!(checkout.fails(&["init", "./images/agent"]), @"
    error: `./images/agent` does not say of which kind the image is
      = help: write oci:./images/agent; an image of a registry is docker://NAME
    ");
    // `images/agent` is also a valid name on Docker Hub, but a directory of this name exists.
    let output = checkout.fails(&["init", "images/agent"]);
    assert!(output.contains("write oci:images/agent;") && !output.contains("retrying"), "{output}");
}

#[test]
fn a_file_is_not_asked_for_at_docker_io() {
    let checkout = checkout();
    checkout.write("plain.txt", "no image");
    insta::assert_snapshot!(checkout.fails(&["init", "plain.txt"]), @"
    error: plain.txt is a file here, and not the name of an image
      = help: write docker-archive:plain.txt for the image in it, or docker://plain.txt for an image of a registry
    ");
    insta::assert_snapshot!(checkout.fails(&["init", "images"]), @"
    error: images is a directory here, and not the name of an image
      = help: write oci:DIR for a directory with an image, or docker://images for an image of a registry
    ");
}

#[test]
fn a_box_is_not_an_image() {
    let checkout = checkout();
    checkout.result(&["init"]);
    checkout.result(&["build", "--name", "test"]);
    std::fs::remove_file(checkout.path("Boxfile")).unwrap();
    for image in ["test.box", "oci:test.box"] {
        insta::allow_duplicates!(insta::assert_snapshot!(checkout.fails(&["init", image]), @r#"
        error: test.box is a box, not an image
          = help: name the image that the box was built from, such as "oci:images/agent"
        "#));
    }
    let notes = checkout.notes(&["init"]);
    assert!(!notes.contains("skipped"), "{notes}");
    for image in ["test.box", "oci:test.box", "oci:test.box:latest"] {
        checkout.write("Boxfile", format!("box \"other\"\nagent {{\n    image \"{image}\"\n}}\n"));
        let error = checkout.fails(&["build", "--offline"]);
        assert!(error.contains(": test.box is a box, not an image\n"), "{error}");
        assert!(error.contains("= help: name the image that the box was built from"), "{error}");
    }
}

#[test]
fn a_directory_of_skills_without_a_skill_is_not_declared() {
    let checkout = checkout();
    fs::remove_dir_all(checkout.path("skills/greet")).unwrap();
    checkout.result(&["init"]);
    assert!(!checkout.read("Boxfile").contains("skills"));
    good(&checkout);
}

/// The Boxfiles of examples/agents, which `init --agent` writes.
#[test]
fn an_agent_that_people_use() {
    for name in AGENTS {
        let checkout = checkout();
        let notes = checkout.notes(&["init", "--agent", name]);
        let files = if name == "a3s-code" { "a3s-code and Boxfile" } else { "Boxfile" };
        assert_eq!(
            notes,
            format!(
                "wrote {files}; run the commands in the first comment of the Boxfile, which make the image, and then `boxbuild build`\n"
            )
        );
        let example = Workspace::find().path("examples/agents").join(name);
        for file in files.split(" and ") {
            assert_eq!(checkout.read(file), fs::read_to_string(example.join(file)).unwrap());
        }
        checkout.result(&["check"]);
        checkout.result(&["fmt", "--check"]);
        let report = checkout.run(&["init", "--agent", name, "--force", "--json"]).json();
        let images = json!([{ "component": "agent", "image": "oci:image" }]);
        let mut expected = json!({ "name": name, "file": "Boxfile", "images": images });
        if name == "a3s-code" {
            expected["program"] = json!("a3s-code");
        }
        assert_eq!(report, expected);
        let again = checkout.fails(&["init", "--agent", name]);
        assert!(again.contains("Boxfile exists already"), "{again}");
    }
}

/// The error of a kind without an image names the command that makes the image.
#[test]
fn a_kind_leads_to_a_boxfile_whose_comment_makes_its_image() {
    let checkout = checkout();
    for kind in ["a3s_code", "opencode"] {
        checkout.write("Boxfile", format!("box \"b\"\nagent kind=\"{kind}\"\n"));
        let error = checkout.fails(&["check"]);
        let (_, command) = error.split_once("`boxbuild init --agent ").unwrap();
        let name = command.split('`').next().unwrap();
        assert!(AGENTS.contains(&name), "{error}");
        checkout.notes(&["init", "--agent", name, "--force"]);
        checkout.result(&["check"]);
    }
}

/// The Boxfile of A3S Code declares a program, which `init` writes, too.
#[test]
fn a_program_that_is_there_stays() {
    let checkout = checkout();
    checkout.write("a3s-code", "mine");
    insta::assert_snapshot!(checkout.fails(&["init", "--agent", "a3s-code"]), @"
    error: a3s-code exists already; it was not changed
      = help: to replace it, add `--force`
    ");
    assert_eq!(checkout.read("a3s-code"), "mine");
    assert!(!checkout.path("Boxfile").exists());
    checkout.result(&["init", "--agent", "a3s-code", "--force"]);
    checkout.result(&["check"]);
}

#[test]
fn an_agent_that_is_not_known() {
    let checkout = checkout();
    let unknown = checkout.run(&["init", "--agent", "claude"]);
    assert_eq!(unknown.code, 2);
    let names = format!("[possible values: {}]", AGENTS.join(", "));
    assert!(unknown.notes.contains(&names), "{}", unknown.notes);
    for other in [&["oci:images/agent"][..], &["--name", "mine"], &["--toml"]] {
        let both = checkout.run(&[&["init", "--agent", "codex"][..], other].concat());
        assert_eq!(both.code, 2, "{}", both.notes);
        assert!(both.notes.contains("cannot be used with"), "{}", both.notes);
    }
    assert!(!checkout.path("Boxfile").exists());
}

/// The page of OpenCode has the service of another model.
#[test]
fn another_model_for_an_agent() {
    let checkout = checkout();
    checkout.result(&["init", "--agent", "opencode"]);
    let page = Workspace::find().path("examples/agents/opencode/README.md");
    let page = fs::read_to_string(page).unwrap();
    let service = page.split("```kdl\n").nth(1).unwrap().split("```").next().unwrap();
    let text = checkout.read("Boxfile");
    let (before, after) = text.split_once("service ").unwrap();
    let (_, after) = after.split_once("}\n").unwrap();
    checkout.write("Boxfile", format!("{before}{service}{after}"));
    checkout.edit("Boxfile", "OPENAI_API_KEY=\"on-the-host\"", "ANTHROPIC_API_KEY=\"on-the-host\"");
    checkout.result(&["check"]);
}
