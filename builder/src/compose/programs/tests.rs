//! Programs that an image has, lacks, or cannot run.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use box_contract::Layout;
use box_tree::{Inode, Leaf, Meta};
use boxfile_spec::parse;

use super::*;

/// The beginnings of ELF files: for IBM Z, for 32-bit x86, and for x86-64, cut after the header's first fields.
const OTHER: &str = "\x7fELF\x02\x02\x01\0\0\0\0\0\0\0\0\0\0\x02\0\x16";
const X86: &str = "\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0";
const CUT: &str = "\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0";

struct Texts(BTreeMap<Content, &'static str>);

impl ReadContent for Texts {
    fn copy_head(&mut self, content: Content, limit: u64, out: &mut dyn Write) -> io::Result<()> {
        io::copy(&mut self.0[&content].as_bytes().take(limit), out).map(drop)
    }
}

/// An image with a shell, scripts, and a file that is neither.
fn image() -> (Tree, Texts) {
    let (mut tree, mut texts) = (Tree::default(), BTreeMap::new());
    for (directory, name, mode, text) in [
        ("bin", "bash", 0o755, "a shell"),
        ("bin", "env", 0o755, "env"),
        ("app", "run", 0o755, "#!/bin/bash -e\n"),
        ("app", "py", 0o755, "#!/usr/bin/python3\n"),
        ("app", "env-py", 0o755, "#!/bin/env -S python3\n"),
        ("app", "spaced", 0o755, "#! \t/bin/bash  -e\n"),
        ("app", "crlf", 0o755, "#!/bin/bash\r\n"),
        ("app", "crlf-env", 0o755, "#!/bin/env bash\r\nexit\r\n"),
        ("app", "bom", 0o755, "\u{feff}#!/bin/bash\n"),
        ("app", "relative", 0o755, "#!bash\n"),
        ("app", "lfs", 0o755, "version https://git-lfs.github.com/spec/v1\noid sha256:00\n"),
        ("app", "exe", 0o755, "MZ\u{1}"),
        ("app", "other", 0o755, OTHER),
        ("app", "by-other", 0o755, "#!/app/other\n"),
        ("app", "x86", 0o755, X86),
        ("app", "cut", 0o755, CUT),
        ("app", "notes", 0o644, "to do"),
    ] {
        let directory = tree.ensure_directory(Tree::ROOT, directory.as_bytes());
        let content = Content::of(text.as_bytes());
        let meta = Meta::root_owned(mode);
        let file = tree.add(Inode::leaf(meta, Leaf::File(content)));
        tree.link(directory, name.as_bytes(), file);
        texts.insert(content, text);
    }
    let mut link = |directory: &[u8], name: &[u8], target: &[u8]| {
        let leaf = Leaf::Symlink(target.to_vec());
        let link = tree.add(Inode::leaf(Meta::root_owned(0o777), leaf));
        let directory = tree.ensure_directory(Tree::ROOT, directory);
        tree.link(directory, name, link);
    };
    link(b"bin", b"sh", b"bash");
    link(b"bin", b"loop", b"loop");
    link(b"app", b"shared", b"../srv/tool");
    (tree, Texts(texts))
}

/// Checks a box whose agent has these lines, and returns the error with its suggestions.
fn checked(lines: &str) -> Option<(String, Option<String>, Option<String>)> {
    let (tree, mut texts) = image();
    let text = format!(
        "box b\nagent {{\n image \"oci:i\"\n workdir \"/app\"\n {lines}\n}}\nshare s host=\".\" \
         guest=\"/srv\"\n"
    );
    let boxfile = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let plan = plan(&boxfile);
    let components = vec![ComponentName::Agent];
    let root = ComponentRoot { components, name: "agent", tree: &tree };
    let missing = check_programs(&root, &boxfile, &plan, Platform::BUILT, &mut texts).unwrap();
    missing.into_iter().next().map(|error| match error {
        ComposeError::NoSuchProgram { message, near, words, .. } => (message, near, words),
        error => panic!("{error}"),
    })
}

fn plan(boxfile: &Boxfile) -> RunPlan {
    let image = super::super::FlatImage {
        component: ComponentName::Agent,
        process: oci_image::Config::default(),
        tree: Tree::default(),
    };
    let dir = tempfile::tempdir().unwrap();
    let store = box_cache::Store::open(dir.path()).unwrap();
    let contents = crate::pack::ContentMap::default();
    assert_eq!(boxfile.layout, Layout::Split);
    let mut packs = contents.reader(&store);
    super::super::plan_of(boxfile, &BTreeMap::new(), Vec::new(), &[image], &mut packs).unwrap()
}

#[test]
fn what_the_image_has_is_found() {
    for lines in [
        "entrypoint \"/bin/bash\"",
        "entrypoint \"sh\"",
        "entrypoint \"./run\"",
        "entrypoint \"./spaced\"",
        "entrypoint \"/app/run\"; health exec \"../bin/sh\" \"-c\" \"true\"",
        "entrypoint \"mine\"; env PATH=\"/nowhere:/srv\"",
        "entrypoint \"/srv/any\"",
        "entrypoint \"/app/shared\"",
        "entrypoint \"/a3s/skills/greet/run\"",
    ] {
        assert_eq!(checked(lines), None, "{lines}");
    }
}

#[test]
fn what_the_image_lacks_is_an_error() {
    let of_agent = "which is not in the image of `agent`";
    for (lines, message, near) in [
        (
            "entrypoint \"/bin/bahs\"",
            format!("the agent runs \"/bin/bahs\", {of_agent}"),
            Some("/bin/bash"),
        ),
        (
            "entrypoint \"/usr/bin/bash\"",
            format!("the agent runs \"/usr/bin/bash\", {of_agent}"),
            Some("/bin/bash"),
        ),
        (
            "entrypoint \"bahs\"; env PATH=\"/bin\"",
            "the agent runs \"bahs\", which is in no directory of its PATH: /bin".to_owned(),
            Some("bash"),
        ),
        (
            "entrypoint \"run\"; env PATH=\".:/bin\"",
            "the agent runs \"run\", which is in no directory of its PATH: .:/bin".to_owned(),
            None,
        ),
        (
            "entrypoint \"/app/notes\"",
            "the agent runs \"/app/notes\", which is not executable".to_owned(),
            None,
        ),
        ("entrypoint \"/app\"", "the agent runs \"/app\", which is not a file".to_owned(), None),
        // The `/run` of init is not the `/run` of a component.
        ("entrypoint \"/run/any\"", format!("the agent runs \"/run/any\", {of_agent}"), None),
        ("entrypoint \"/bin/loop\"", format!("the agent runs \"/bin/loop\", {of_agent}"), None),
        (
            "entrypoint \"/app/py\"",
            format!("\"/app/py\" is run by \"/usr/bin/python3\", {of_agent}"),
            None,
        ),
        (
            "entrypoint \"/app/env-py\"; env PATH=\"/bin\"",
            "\"/app/env-py\" is run by \"python3\", which is in no directory of its PATH: /bin"
                .to_owned(),
            None,
        ),
        (
            "entrypoint sh; health exec \"/nope\"",
            format!("the health check runs \"/nope\", {of_agent}"),
            None,
        ),
    ] {
        let (found, suggested, words) = checked(lines).unwrap_or_else(|| panic!("{lines}"));
        assert_eq!((found, suggested.as_deref(), words), (message, near, None), "{lines}");
    }
}

#[test]
fn what_linux_does_not_start_is_an_error() {
    let windows =
        "it is a script, but its first line ends as on Windows (CR LF); save it with LF line ends";
    let of = |who: &str, reason: &str| format!("{who}, which Linux does not start: {reason}");
    let agent = |name: &str, reason: &str| of(&format!("the agent runs \"/app/{name}\""), reason);
    for (name, message) in [
        ("crlf", agent("crlf", windows)),
        ("crlf-env", agent("crlf-env", windows)),
        (
            "bom",
            agent("bom", "it is a script that begins with a byte order mark; save it without one"),
        ),
        (
            "relative",
            agent(
                "relative",
                "it is a script, but its first line does not name an interpreter by its absolute path, \
                 as \"#!/bin/sh\" does",
            ),
        ),
        ("lfs", agent("lfs", "it is a pointer of Git LFS, not the file itself")),
        ("exe", agent("exe", "it is a Windows program")),
        ("x86", agent("x86", "it is a program for 32-bit x86, but the box is for x86_64")),
        (
            "by-other",
            of(
                "\"/app/by-other\" is run by \"/app/other\"",
                "it is a program for IBM Z, but the box is for x86_64",
            ),
        ),
        ("cut", agent("cut", "it is an ELF file that Linux does not start: its header is cut off")),
    ] {
        let (found, near, words) = checked(&format!("entrypoint \"/app/{name}\"")).unwrap();
        assert_eq!((found, near, words), (message, None, None), "{name}");
    }
}

#[test]
fn a_c_library_is_known_by_its_linker() {
    for (path, name) in [
        ("/lib64/ld-linux-x86-64.so.2", Some(CLibrary::Gnu)),
        ("/lib/ld-musl-x86_64.so.1", Some(CLibrary::Musl)),
        ("/bin/sh", None),
    ] {
        assert_eq!(library(path), name);
    }
}

#[test]
fn a_command_line_in_one_text_is_split() {
    let (.., words) = checked("entrypoint \"/bin/sh -c 'sleep 9'\"").unwrap();
    assert_eq!(words.as_deref(), Some("\"/bin/sh\" \"-c\" \"sleep 9\""));
    for line in ["/bin/true && echo", "/bin/true 2>&1", "cd /x; /bin/true"] {
        let (.., words) = checked(&format!("entrypoint \"{line}\"")).unwrap();
        assert_eq!(words, Some(format!("\"/bin/sh\" \"-c\" \"{line}\"")));
    }
}
