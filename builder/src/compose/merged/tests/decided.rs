//! Equal entries, conflicts, and the effect of each policy.

use box_tree::Origin;

use super::super::{Note, SystemFile, Unused};
use super::*;

#[test]
fn each_image_brings_its_own_paths_and_the_rest_is_one() {
    let merge = merged(
        &both(
            &["d agent", "f agent/run 1", "f usr/lib/shared 333 7"],
            &["d workspace", "f workspace/app 22", "f usr/lib/shared 333 9"],
        ),
        &[],
        &[],
    );
    let tree = merge.root.unwrap().tree;
    assert_eq!(
        list(&tree),
        [
            "/agent/ 755",
            "/agent/run =1",
            "/usr/ 755",
            "/usr/lib/ 755",
            "/usr/lib/shared =3",
            "/workspace/ 755",
            "/workspace/app =2",
        ]
    );
    let shared = tree.inode(tree.lookup(b"usr/lib/shared").unwrap());
    let agent = Origin::Layer(ComponentName::Agent, 0);
    assert_eq!((shared.meta.mtime, shared.origin), (7, agent), "the agent's time and origin");
    let app = tree.inode(tree.lookup(b"workspace/app").unwrap());
    assert_eq!(app.origin, Origin::Layer(ComponentName::Business, 0));
    let report = merge.report;
    assert_eq!((report.agent, report.business, report.equal), (2, 2, 4));
}

#[test]
fn every_difference_but_that_of_times_is_a_conflict() {
    let conflicts = left(
        &["d dir 700", "f file 1", "s link a", "f kind 1", "f same 1", "f size 1", "d tree"],
        &["d dir 755", "f file 2", "s link b", "s kind 1", "f same 1 9", "f size 22", "f tree 1"],
        &[],
    );
    assert_eq!(
        shown(&conflicts),
        [
            "/dir: mode 0700 0755",
            "/file: content blake3:d63bd9a826af blake3:813e9b729141",
            "/kind: type file symlink",
            "/link: target a b",
            "/size: size 1 2",
            "/tree: type directory file",
        ]
    );
}

#[test]
fn a_directory_that_no_layer_names_says_nothing_of_itself() {
    for (agent, business) in [(&["f d/a 1"][..], &["d d 700"][..]), (&["d d 700"], &["f d/a 1"])] {
        assert_eq!(root(agent, business, &[]), ["/d/ 700", "/d/a =1"]);
    }
}

#[test]
fn the_first_pattern_that_fits_decides() {
    let (agent, business) =
        (["f a/1 1", "f a/2 1", "f a/3 1"], ["f a/1 22", "f a/2 22", "f a/3 22"]);
    let declared =
        ["/a/1 prefer-agent", "/a/2 drop", "/a/* prefer-business", "/a/3 drop", "/b drop"];
    assert_eq!(root(&agent, &business, &declared), ["/a/ 755", "/a/1 =1", "/a/3 =2"]);
    let report = merged(&both(&agent, &business), &declared, &[]).report;
    let counts: Vec<_> = report.policies.iter().map(|it| (it.fits, it.decides)).collect();
    assert_eq!(counts, [(1, 1), (1, 1), (3, 1), (1, 0), (0, 0)]);
    let unused = Unused::of(&report.policies);
    assert_eq!(unused, [Unused { number: 3, late: true }, Unused { number: 4, late: false }]);
}

#[test]
fn a_policy_decides_for_a_whole_tree_only_against_something_else() {
    let (agent, business) = (["d x", "f x/a 1", "f x/b/c 1"], ["f x 22"]);
    assert_eq!(root(&agent, &business, &["/x prefer-business"]), ["/x =2"]);
    assert_eq!(root(&agent, &business, &["/x drop"]), [""; 0]);
    assert_eq!(root(&business, &agent, &["/x prefer-agent"]), ["/x =2"]);
    let kept = root(&agent, &business, &["/x prefer-agent"]);
    assert_eq!(kept, ["/x/ 755", "/x/a =1", "/x/b/ 755", "/x/b/c =1"]);
    let conflicts = left(&agent, &business, &[]);
    assert_eq!(conflicts.first[0].sides.map(|side| side.below), [3, 0]);

    let (agent, business) = (["d x 700", "f x/a 1"], ["d x 755", "f x/b 1"]);
    let both = |mode| [format!("/x/ {mode}"), "/x/a =1".to_owned(), "/x/b =1".to_owned()];
    assert_eq!(root(&agent, &business, &["/x prefer-agent"]), both(700));
    assert_eq!(root(&agent, &business, &["/x prefer-business"]), both(755));
    let conflicts = left(&agent, &business, &["/* drop"]);
    assert_eq!(conflicts.first[0].note, Some(Note::DroppedAttributes));
}

#[test]
fn the_root_has_attributes_as_any_directory() {
    let (agent, business) = (["d  700", "f a 1"], ["d  755", "f b 1"]);
    assert_eq!(shown(&left(&agent, &business, &[])), ["/: mode 0700 0755"]);
    let merge = merged(&both(&agent, &business), &["/ prefer-business"], &[]);
    assert_eq!(merge.root.unwrap().tree.inode(Tree::ROOT).meta.mode, 0o755);
}

#[test]
fn what_describes_a_system_is_decided_by_its_name_alone() {
    let status = "var/lib/dpkg/status";
    let (agent, business) = ([format!("f {status} 1")], [format!("f {status} 22")]);
    let (agent, business) = (agent.each_ref().map(|it| &**it), business.each_ref().map(|it| &**it));
    let conflicts = left(&agent, &business, &["/** prefer-agent", "/var/lib/dpkg/* drop"]);
    assert_eq!(conflicts.first[0].note, Some(Note::SystemFile(SystemFile::Packages("dpkg"))));
    let named = root(&agent, &business, &["/** drop", "/var/lib/dpkg/status prefer-business"]);
    assert!(named.contains(&format!("/{status} =2")), "{named:?}");
}

#[test]
fn accounts_are_united() {
    let (one, other) = ("root:x:0\nann:x:1\n", "root:x:0\nbob:x:1\n");
    let file = |text: &str| format!("f etc/passwd {}", text.replace('\n', "|"));
    let images = both(&[&file(one), "h etc/alias etc/passwd"], &[&file(other)]);
    let merge = merged(&images, &["/etc/passwd merge"], &[one, other]);
    let root = merge.root.unwrap();
    assert_eq!(root.united, [b"root:x:0\nann:x:1\nbob:x:1\n"]);
    let passwd = root.tree.inode(root.tree.lookup(b"etc/passwd").unwrap());
    assert_eq!(passwd.kind, Kind::Leaf(Leaf::File(Content::of(&root.united[0]))));
    assert_eq!(passwd.origin, Origin::Merged);
    let alias = root.tree.inode(root.tree.lookup(b"etc/alias").unwrap());
    assert_eq!(alias.kind, Kind::Leaf(Leaf::File(Content::of(one.as_bytes()))));

    let images = both(&[&file(one)], &["s etc/passwd other"]);
    let report = merged(&images, &["/etc/passwd merge"], &[]).report;
    assert_eq!(report.conflicts.first[0].note, Some(Note::NotUnitable));
    let images = both(&[&file(one)], &[&file("ann:x:2\n")]);
    let report = merged(&images, &["/etc/passwd merge"], &[one, "ann:x:2\n"]).report;
    assert!(matches!(report.conflicts.first[0].note, Some(Note::Accounts(_))));
}

#[test]
fn names_of_one_inode_stay_together() {
    let agent = ["f x 1", "h z x"];
    let inodes = |business: &[&str], declared: &[&str]| {
        let tree = merged(&both(&agent, business), declared, &[]).root.unwrap().tree;
        ["x", "y", "z"].map(|name| tree.child(Tree::ROOT, name.as_bytes()))
    };
    let [x, y, z] = inodes(&["f x 1", "h y x"], &[]);
    assert!(x.is_some() && x == y && y == z, "equal entries are one inode, with all its names");
    let [x, y, z] = inodes(&["f x 22", "h y x"], &["/x prefer-business"]);
    assert!(x == y && y != z, "what is replaced leaves its other names alone");
    let [x, y, z] = inodes(&["f x 22", "h y x"], &["/x prefer-agent"]);
    assert!(x == z && y != z);
    let [x, y, z] = inodes(&["f x 1", "f z 1"], &[]);
    assert!(x == z && y.is_none(), "the agent's structure counts");
}

#[test]
fn one_image_is_merged_with_nothing() {
    let alone = [image(ComponentName::Agent, &["f a 1"])];
    let merge = merged(&alone, &["/** drop"], &[]);
    assert_eq!(list(&merge.root.unwrap().tree), ["/a =1"]);
    assert_eq!((merge.report.agent, merge.report.business, merge.report.equal), (2, 0, 0));
    assert_eq!(Unused::of(&merge.report.policies).len(), 1);
}

#[test]
fn advice_groups_paths_of_one_directory() {
    let paths = [
        "etc/ld.so.cache",
        "etc/motd",
        "etc/passwd",
        "usr/share/doc/a/copyright",
        "usr/share/doc/b/copyright",
        "usr/share/doc/b.c",
        "usr/share/doc/d/copyright",
        "var/lib/dpkg/status",
        "weird\"name\\",
    ];
    let file =
        |content: &str| paths.iter().map(|path| format!("f {path} {content}")).collect::<Vec<_>>();
    let [agent, business] = [file("1"), file("22")];
    let [agent, business]: [Vec<&str>; 2] =
        [&agent, &business].map(|lines| lines.iter().map(String::as_str).collect());
    let conflicts = left(&agent, &business, &[]);
    let advised: Vec<_> = advice(&conflicts)
        .iter()
        .map(|it| format!("{} {}", it.declaration(diagnostics::Syntax::Kdl), it.paths))
        .collect();
    assert_eq!(
        advised,
        [
            "conflict \"/etc/ld.so.cache\" policy=\"drop\" 1",
            "conflict \"/etc/passwd\" policy=\"merge\" 1",
            "conflict \"/var/lib/dpkg/status\" policy=\"prefer-agent\" 1",
            "conflict \"/etc/motd\" policy=\"prefer-agent\" 1",
            "conflict \"/usr/share/doc/**\" policy=\"prefer-agent\" 4",
            "conflict \"/weird\\\"name\\\\\" policy=\"prefer-agent\" 1",
        ]
    );
}

#[test]
fn advice_has_one_line_for_a_directory_however_many_paths_are_in_it() {
    let lines = |content| (0..30_000).map(|it| format!("f m/{it} {content}")).collect::<Vec<_>>();
    let [agent, business] = [lines("1"), lines("22")];
    let [agent, business] =
        [&agent, &business].map(|it| it.iter().map(String::as_str).collect::<Vec<_>>());
    let advice = advice(&left(&agent, &business, &[]));
    let advised: Vec<_> = advice.iter().map(|it| (it.pattern.as_str(), it.paths)).collect();
    assert_eq!(advised, [("/m/**", 30_000)]);
}

/// The path of a directory, with 250 names. The link `l` in the images has it as its target.
fn deep() -> String {
    ["nnnnnnnnnnnnnnn"; 250].join("/")
}

#[test]
fn many_deep_conflicts_are_counted_and_advised_on_and_the_first_are_kept() {
    let (deep, more) = (deep(), 500);
    let lines = |content: &str| {
        let links = [format!("d {deep}"), format!("s l {deep}")];
        let files = (0..MAX_CONFLICTS + more).map(|it| format!("f l/{it:06} {content}"));
        links.into_iter().chain(files).collect::<Vec<_>>()
    };
    let [agent, business] = [lines("1"), lines("22")];
    let [agent, business] =
        [&agent, &business].map(|it| it.iter().map(String::as_str).collect::<Vec<_>>());
    let conflicts = left(&agent, &business, &[]);
    assert_eq!(
        (conflicts.count, conflicts.undeclared),
        (MAX_CONFLICTS + more, MAX_CONFLICTS + more)
    );
    assert_eq!(conflicts.first.len(), MAX_CONFLICTS);
    assert_eq!(conflicts.first[0].path, format!("/{deep}/000000").into_bytes());
    // Each directory and each file has one node in the tree of patterns, regardless of the length of its path.
    assert_eq!(conflicts.plain.places.len(), 1 + 250 + MAX_CONFLICTS + more);
    let advice = advice(&conflicts);
    let advised: Vec<_> = advice.iter().map(|it| (it.pattern.clone(), it.paths)).collect();
    assert_eq!(advised, [(format!("/{deep}/**"), MAX_CONFLICTS + more)]);
}

#[test]
fn only_accounts_that_can_be_united_are_advised_to_be() {
    let (one, other) = ("root:x:0\n", "root:x:7\n");
    let lines = [one, other].map(|text| format!("f etc/passwd {}", text.replace('\n', "|")));
    let images = both(&[&lines[0]], &[&lines[1]]);
    let conflicts = merged(&images, &[], &[one, other]).report.conflicts;
    let note = conflicts.first[0].note.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(note.starts_with("`merge` cannot combine the files: both have"), "{note}");
    assert_eq!(advice(&conflicts)[0].policy, ConflictPolicy::PreferAgent);
}

#[test]
fn names_with_stars_widen_no_advice() {
    let paths = ["*", "**", "a", "b", "c*", "d/*/x", "d/e/x"];
    let lines = |content| paths.map(|path| format!("f {path} {content}"));
    let [agent, business] = [lines("1"), lines("2")];
    let [agent, business] = [&agent, &business].map(|it| it.each_ref().map(String::as_str));
    let advice = advice(&left(&agent, &business, &[]));
    let advised: Vec<_> = advice.iter().map(|it| (it.pattern.as_str(), it.paths)).collect();
    // `/c*` matches no other path; `/*` and `/d/*/x` would.
    assert_eq!(advised, [("/a", 1), ("/b", 1), ("/c*", 1), ("/d/e/x", 1)]);
}

#[test]
fn names_that_a_boxfile_cannot_spell_are_advised_on_once() {
    let paths = ["opt/a/\u{fffd}", "opt/a/\u{fffd}\u{fffd}", "opt/b\u{fffd}/x", "opt/c/x"];
    let lines = |content| paths.map(|path| format!("f {path} {content}"));
    let [agent, business] = [lines("1"), lines("2")];
    let [agent, business] = [&agent, &business].map(|it| it.each_ref().map(String::as_str));
    let advice = advice(&left(&agent, &business, &[]));
    let advised: Vec<_> = advice.iter().map(|it| (it.pattern.as_str(), it.paths)).collect();
    assert_eq!(advised, [("/opt/a/*", 2), ("/opt/b*/x", 1), ("/opt/c/x", 1)]);
    let declared: Vec<_> =
        advice.iter().map(|it| format!("{} {}", it.pattern, it.policy.name())).collect();
    let declared: Vec<_> = declared.iter().map(String::as_str).collect();
    assert!(left(&agent, &business, &declared).is_empty());
}
