//! Tests that an edit of a skill does not move an image's inodes and data in the metadata.

use std::collections::BTreeMap;
use std::fs::{self, File};

use box_inspect::opened;
use erofs_writer::read;
use testkit::images::{Config, Image, Layer};

use super::{BLOCK, noise};
use crate::checkout::{Checkout, WHOLE};

/// The inode number and the address of the data, by path.
pub(super) type Places = BTreeMap<String, (u64, Option<u64>)>;

/// Returns the positions of all entries below the path `below` of the metadata, and the metadata's bytes.
pub(super) fn places(checkout: &Checkout, bundle: &str, below: &str) -> (Places, Vec<u8>) {
    let opened = opened::open(&checkout.path(bundle)).unwrap();
    let path = &opened.rootfs.metadata().path;
    let image = File::open(path).unwrap();
    let mut places = Places::new();
    let mut pending = vec![(String::new(), read::root(&image).unwrap())];
    while let Some((path, inode)) = pending.pop() {
        if path.starts_with(below) {
            places.insert(path.clone(), (inode.nid(), inode.place()));
        }
        if inode.is_directory() {
            let entries = inode.entries(&image, 1 << 20).unwrap();
            let path = |name: Vec<u8>| format!("{path}/{}", String::from_utf8(name).unwrap());
            pending.extend(entries.into_iter().map(|(name, child)| (path(name), child)));
        }
    }
    (places, fs::read(path).unwrap())
}

/// Makes a checkout whose images have many files, whose content is inline, in the metadata's blocks, or in a segment.
fn many() -> Checkout {
    let checkout = super::checkout();
    // The files of the first layer that are large enough for a segment have less than 1 MiB, those of the second more.
    let mut layers = [(); 2].map(|()| Layer::new().mtime(1_700_000_000));
    for number in 0..600u32 {
        let size = usize::try_from(number).unwrap() * 11 % 5000;
        let [first, second] = layers;
        let path = format!("/usr/{}/{number}", number % 7);
        let add = |to: Layer| to.file(&path, 0o644, noise(number, size));
        layers = if number % 5 == 0 { [add(first), second] } else { [first, add(second)] };
        layers[0] = std::mem::take(&mut layers[0])
            .symlink(&format!("/links/{number}"), &"x".repeat(1 + size / 2));
    }
    let segment = Layer::new().file("/srv/large", 0o644, noise(9, 2_000_000)).to_tar();
    let program = Layer::new().file("/agent", 0o755, "# an agent").to_tar();
    let entrypoint = vec!["/agent".to_owned()];
    let agent = Image::new(Config { entrypoint, ..Config::default() }).with(program);
    fs::remove_dir_all(checkout.path("images/agent")).unwrap();
    checkout.image("agent", &agent.with(layers[0].to_tar()).with(layers[1].to_tar()).with(segment));
    checkout
}

#[test]
fn an_edited_skill_moves_nothing_of_an_image() {
    let checkout = many();
    checkout.built(&["--output", "before.box"]);
    let (before, metadata) = places(&checkout, "before.box", "/roots/");
    assert!(before.len() > 1200, "{}", before.len());
    let in_segment = before["/roots/agent/srv/large"].1.unwrap();
    assert!(in_segment >= metadata.len() as u64, "{in_segment} is in the metadata");
    let skill = "---\nname: greet\ndescription: Greets.\n---\n";
    let editions: [(&str, &str, Vec<u8>); 4] = [
        ("one word", "skills/greet/SKILL.md", format!("{skill}Hails.\n").into()),
        (
            "a long text",
            "skills/greet/SKILL.md",
            format!("{skill}{}", "Hails.\n".repeat(900)).into(),
        ),
        ("another file", "skills/greet/tools/more.sh", b"echo more\n".to_vec()),
        ("a large file", "skills/greet/tools/table", noise(77, 40_000)),
    ];
    for (what, path, bytes) in editions {
        checkout.write(path, bytes);
        checkout.built(&["--output", "after.box"]);
        let (after, edited) = places(&checkout, "after.box", "/roots/");
        assert!(after == before, "{what} moved something");
        assert_eq!(super::segments(&checkout, "after.box").len(), 3);
        let names = |bundle| {
            let paths = super::segments(&checkout, bundle).into_iter();
            paths.map(|it| it.file_name().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("after.box"), names("before.box"), "{what}");
        // The changed blocks are the superblock, the parent directories of the skills, and the skills at the end.
        let changed =
            metadata.chunks(BLOCK).zip(edited.chunks(BLOCK)).filter(|(a, b)| a != b).count();
        assert!((1..40).contains(&changed), "{what} changed {changed} blocks");
    }
}

/// Shows that the comparison can fail: an edited image moves entries.
#[test]
fn an_edited_image_does_move_something() {
    let checkout = many();
    checkout.built(&["--output", "before.box"]);
    let (before, _) = places(&checkout, "before.box", "/roots/");
    let business = Layer::new().file("/srv/a-new-file", 0o644, "new").to_tar();
    fs::remove_dir_all(checkout.path("images/business")).unwrap();
    fs::remove_file(checkout.path("Boxfile.lock")).unwrap();
    checkout.image("business", &Image::new(Config::default()).with(business));
    checkout.built(&["--output", "after.box"]);
    assert!(places(&checkout, "after.box", "/roots/").0 != before);
}

#[test]
fn a_large_skill_has_a_segment_of_its_own() {
    let checkout = super::checkout();
    checkout.write("skills/greet/model", noise(50, 1_500_000));
    checkout.built(WHOLE);
    let found = super::segments(&checkout, "test.box");
    assert_eq!(found.len(), 4, "three of layers, and the skill's is the last");
    let expected = super::segment(&[noise(50, 1_500_000)]).unwrap();
    assert!(fs::read(&found[3]).unwrap() == expected);
    checkout.write("skills/greet/tools/more.sh", "echo more\n");
    checkout.built(&["--output", "after.box"]);
    let after = super::segments(&checkout, "after.box");
    assert!(fs::read(&after[3]).unwrap() == expected, "an edited text leaves it alone");
    assert_eq!(places(&checkout, "after.box", "").1.len(), 1 << 20, "nor is it in the metadata");
}
