//! The packages of two boxes that are compared. A database that both have is not read.

use std::collections::BTreeSet;

use super::*;
use crate::diff::PackageChanges;

const SKILL: Origin = Origin::Skill(0);
const STATUS: &str = "/roots/agent/var/lib/dpkg/status";

/// The data of a box, and the contents of it that were read.
struct Noted<'d>(Data<'d>, BTreeSet<Content>);

impl ReadContent for Noted<'_> {
    fn copy_head(&mut self, content: Content, limit: u64, out: &mut dyn Write) -> io::Result<()> {
        self.1.insert(content);
        self.0.copy_head(content, limit, out)
    }
}

fn listing(of: &Fixture) -> Listing {
    let digest = |byte| Digest::from_bytes([byte; 32]);
    let image = |component| ImageOrigin { component, layers: vec![digest(1), digest(2)] };
    let images = ComponentName::ALL.map(image).to_vec();
    let skills = vec!["greet".to_owned()];
    Listing { tree: of.tree.clone(), origins: Origins { images, skills, ..Origins::default() } }
}

/// Compares two boxes. Returns a line for each change, and how many distinct contents were read.
fn compared(a: &Fixture, b: &Fixture) -> (Vec<String>, usize) {
    let plan = plan();
    let listings = [a, b].map(listing);
    let mut noted = [a, b].map(|it| Noted(Data(&it.data), BTreeSet::new()));
    let [one, other] = &mut noted;
    let changes = PackageChanges::of(
        &mut Packaged { plan: &plan, listing: &listings[0], contents: one },
        &mut Packaged { plan: &plan, listing: &listings[1], contents: other },
    );
    let lines = changes.unwrap().changes.iter().map(|it| it.line()).collect();
    (lines, noted[0].1.union(&noted[1].1).count())
}

fn npm(version: &str) -> String {
    format!(r#"{{"name":"pad","version":"{version}"}}"#)
}

fn base() -> Fixture {
    let status = "Package: libc6\nVersion: 1\n";
    let base = Fixture::default().file(AGENT[0], "/roots/agent/etc/os-release", "ID=debian\n");
    let base = base.file(AGENT[0], STATUS, status);
    base.file(AGENT[0], "/roots/agent/node_modules/pad/package.json", npm("1"))
}

#[test]
fn what_both_boxes_have_is_not_read() {
    let new = base().file(SKILL, "/skills/greet/SKILL.md", "Greets.");
    assert_eq!(compared(&base(), &new), (Vec::new(), 0));
    // A package of a skill is none of the image.
    let new = base().file(SKILL, "/skills/greet/node_modules/pad/package.json", npm("2"));
    assert_eq!(compared(&base(), &new), (vec!["skill greet npm pad  +2".to_owned()], 1));
}

#[test]
fn a_copy_that_both_boxes_have_still_counts() {
    let nested = "/roots/agent/node_modules/a/node_modules/pad/package.json";
    // The second copy has the version of the first, in other bytes.
    let same = base().file(AGENT[1], nested, npm("1") + "\n");
    assert_eq!(compared(&base(), &same), (Vec::new(), 2));
    let other = base().file(AGENT[1], nested, npm("2"));
    assert_eq!(compared(&base(), &other), (vec!["agent npm pad  1 → 1, 2".to_owned()], 2));
}

#[test]
fn a_database_that_differs_is_read_from_both_boxes() {
    let old = Fixture::default().file(AGENT[0], STATUS, "Package: libc6\nVersion: 1\n");
    let new = Fixture::default().file(AGENT[0], STATUS, "Package: libc6\nVersion: 2\n");
    assert_eq!(compared(&old, &new), (vec!["agent deb libc6  1 → 2".to_owned()], 2));
    let moved = Fixture::default().file(
        AGENT[0],
        "/roots/agent/var/lib/dpkg/status.d/libc6",
        "Package: libc6\nVersion: 1\n",
    );
    assert_eq!(compared(&old, &moved).0, [""; 0]);
}
