//! Tests with images whose files have paths of almost the maximum length. The archive's entries are short, such as `l/000001`,
//! because `l` is a link to a deep directory. The whole paths need a hundred times as much memory as the entries, so no command
//! may keep many of them.

use std::fs;
use std::io::{self, Write};
use std::process::Command;

use testbed::promises::HOSTILE_MEMORY;
use testbed::{Artefacts, Workspace};

use crate::bombs::header;
use crate::builds::{
    Built, END, Layer, assert_refused, build_in, empty, extended, program, run, stream,
};
use crate::layout::Layout;

/// The memory limit of a command that only reads, in MiB. The whole paths alone would take more.
const LOOKING: f64 = 128.0;
/// The exit code of `boxbuild diff` if the images differ.
const DIFFERENT: i32 = 5;
/// The number of files that only one of the two images has.
const OWN: usize = 20_000;
/// The number of files whose whole paths have almost 256 MiB.
const FILES: usize = 65_000;

/// Returns the target of the link `l`: 15 names of 255 bytes, 3839 bytes with slashes. With more names fewer files would be
/// allowed, because the total of the links' path components has a limit.
fn deep() -> String {
    ["n".repeat(255).as_str(); 15].join("/")
}

/// Writes the deep directory, and the link `l` to it.
fn way(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&extended("path", &format!("{}/", deep())))?;
    out.write_all(&empty(b'5', "d/", ""))?;
    out.write_all(&extended("linkpath", &deep()))?;
    out.write_all(&empty(b'2', "l", "x"))
}

/// Makes a layer of `count` deep files with the same content.
fn files(layout: &Layout, names: impl Fn(usize) -> String, count: usize, content: &str) -> Layer {
    stream(layout, |out| {
        way(out)?;
        let mut block = content.as_bytes().to_vec();
        block.resize(block.len().next_multiple_of(512), 0);
        for number in 0..count {
            let size = format!("{:011o}", content.len());
            out.write_all(&header(b'0', &format!("l/{}", names(number)), "", size))?;
            out.write_all(&block)?;
        }
        out.write_all(&END)
    })
}

/// A checkout with the images `one` and `two`.
struct Scene(tempfile::TempDir);

impl Scene {
    /// Makes each image of a program's layer and the layer that `of` returns for its number.
    fn new(of: impl Fn(&Layout, usize) -> Layer) -> Self {
        let work = tempfile::Builder::new().prefix("hostile-").tempdir().unwrap();
        for (number, name) in ["one", "two"].into_iter().enumerate() {
            let layout = Layout::new(&work.path().join(name));
            let layers = [program(&layout), of(&layout, number)];
            layout.index(&[layout.image(&layers)]);
        }
        Self(work)
    }

    /// Builds a box with the layout `merged` of both images. Its memory limit is that of a single image.
    fn merge(&self, name: &str, policies: &str) -> Built {
        let components = "agent {\n    image \"oci:one\"\n    entrypoint \"/bin/sh\"\n}\n\
                          business {\n    image \"oci:two\"\n}\nlayout \"merged\"\n";
        let boxfile = format!("box \"bomb\"\n{components}{policies}");
        fs::write(self.0.path().join("Boxfile"), boxfile).unwrap();
        let (peak, built) = build_in(name, self.0.path());
        HOSTILE_MEMORY.check(peak as f64 / 1024.0);
        built
    }

    /// Runs a command that only reads, and checks that it uses less memory than `LOOKING`.
    fn look(&self, name: &str, words: &[&str]) -> Built {
        let tools = Artefacts::build(&Workspace::find()).unwrap();
        let (peak, done) = run(Command::new(tools.boxbuild).args(words), self.0.path());
        println!("{name}: {peak} KiB: {:.1000}", done.output);
        assert!(peak as f64 / 1024.0 < LOOKING, "{peak} KiB");
        done
    }
}

fn numbered(number: usize) -> String {
    format!("{number:06}")
}

/// Checks that the diff has `OWN` files in each image that the other lacks.
fn assert_only_their_own(done: &Built) {
    let counts = format!("{OWN} added, {OWN} removed, 0 changed");
    assert!(done.code == DIFFERENT && done.output.contains(&counts), "{:.1000}", done.output);
}

#[test]
fn deep_files_that_are_the_same_in_both_images() {
    let scene = Scene::new(|layout, _| files(layout, numbered, FILES, "same"));
    let built = scene.merge("equal", "");
    assert_eq!(built.code, 0, "{}", built.output);
}

#[test]
fn deep_files_that_conflict() {
    let contents = ["one", "another"];
    let scene = Scene::new(|layout, number| files(layout, numbered, FILES, contents[number]));
    let built = scene.merge("conflicts", "");
    assert_eq!(built.code, 1, "{}", built.output);
    assert!(built.output.contains(&format!("conflict at {FILES} paths")), "{:.1000}", built.output);
    assert!(built.output.contains(&format!("\"/{}/**\"", deep())), "{:.1000}", built.output);
    let decided = scene.merge("decided", "conflict \"/**\" policy=\"prefer-business\"\n");
    assert_eq!(decided.code, 0, "{}", decided.output);
}

#[test]
fn deep_files_that_only_one_image_has() {
    let names = ["a", "b"];
    let name = |number: usize| move |file: usize| format!("{}{file:05}", names[number]);
    let scene = Scene::new(|layout, number| files(layout, name(number), OWN, ""));
    let done = scene.look("diff", &["diff", "oci:one", "oci:two"]);
    assert_only_their_own(&done);
}

#[test]
fn deep_names_of_the_same_files() {
    let scene = Scene::new(|layout, number| {
        stream(layout, |out| {
            way(out)?;
            for file in 0..OWN {
                out.write_all(&empty(b'0', &format!("l/{file:05}-a"), ""))?;
                let further = format!("l/{file:05}-{}", ["b", "c"][number]);
                out.write_all(&empty(b'1', &further, &format!("l/{file:05}-a")))?;
            }
            out.write_all(&END)
        })
    });
    let done = scene.look("links", &["diff", "oci:one", "oci:two"]);
    assert_only_their_own(&done);
}

#[test]
fn packages_at_deep_paths() {
    let name = |number: usize| format!("{number:06}.egg-info");
    let metadata = "Name: a\nVersion: 1\n";
    let scene = Scene::new(|layout, number| {
        files(layout, name, if number == 0 { FILES } else { 0 }, metadata)
    });
    let built = scene.merge("packages", "");
    assert_eq!(built.code, 0, "{}", built.output);
    let done = scene.look("sbom", &["inspect", "bomb.box", "--store", "store", "--sbom"]);
    assert_eq!(done.code, 0, "{:.1000}", done.output);
}

#[test]
fn paths_that_links_make_longer_than_any() {
    // Each link's target is 15 long names deeper than the previous link's.
    let part = deep();
    let scene = Scene::new(|layout, _| {
        stream(layout, |out| {
            let mut from = String::new();
            for link in 0..20 {
                let way = format!("{from}{}", &part[from.len()..]);
                out.write_all(&extended("path", &format!("{way}/")))?;
                out.write_all(&empty(b'5', "d/", ""))?;
                out.write_all(&extended("linkpath", &format!("/{way}")))?;
                out.write_all(&empty(b'2', &format!("l{link}"), "x"))?;
                from = format!("l{link}/");
            }
            for file in 0..1000 {
                out.write_all(&empty(b'0', &format!("{from}{file}"), ""))?;
            }
            out.write_all(&END)
        })
    });
    let reason = "a path has more than 4352 bytes";
    assert_refused(&scene.merge("long", ""), reason);
    let done = scene.look("diff", &["diff", "oci:one", "oci:two"]);
    assert_eq!(done.code, 1, "{}", done.output);
    assert!(done.output.contains(reason), "{:.1000}", done.output);
}
