//! Properties of the merge of any two images.

use std::collections::BTreeMap;

use box_tree::listing::{Listing, Origins};
use box_tree::{Inode, Origin};
use proptest::prelude::*;

use super::super::MAX_ADVICE;
use super::*;
use box_tree::FieldDifference;

fn line() -> impl Strategy<Value = String> {
    let path = prop_oneof!["[abc]", "[abc]/[abc]", "[abc]/[abc]/[abc]"];
    prop_oneof![
        (path.clone(), "7[05]5").prop_map(|(path, mode)| format!("d {path} {mode}")),
        (path.clone(), "[xy]{1,2}", "[0-3]")
            .prop_map(|(path, text, time)| format!("f {path} {text} {time}")),
        (path.clone(), "[ab]").prop_map(|(path, target)| format!("s {path} {target}")),
        (path.clone(), path.clone()).prop_map(|(path, target)| format!("h {path} {target}")),
        path.clone().prop_map(|path| format!("w {path}")),
        path.prop_map(|path| format!("o {path}")),
    ]
}

/// Generates layers. Changes that cannot be applied are left out.
fn layers() -> impl Strategy<Value = Vec<LayerIndex>> {
    let drawn = prop::collection::vec(prop::collection::vec(line(), 1..10), 1..4);
    drawn.prop_map(|drawn| {
        let mut layers: Vec<LayerIndex> = Vec::new();
        for lines in drawn {
            layers.push(LayerIndex::default());
            for line in lines {
                let mut longer = layers.clone();
                longer.last_mut().unwrap().changes.push(change(&line));
                let digest = Digest::from_bytes([0; 32]);
                let named = longer.iter().map(|layer| (digest, layer));
                if flatten(ComponentName::Agent, named).is_ok() {
                    layers = longer;
                }
            }
        }
        layers
    })
}

/// The contents of account files. The last two cannot be united with each other, because their lines for `app` differ.
const ACCOUNTS: [&str; 3] = ["root:x:0|", "root:x:0|app:x:1|", "root:x:0|app:x:2|"];

/// Generates lines of files in few directories, with some files that need a policy with their exact path.
fn files() -> impl Strategy<Value = Vec<String>> {
    let path = prop_oneof![
        4 => "[ab]/[a-f]{1,2}(/[a-f]){0,2}",
        1 => "[a-z]{2}",
        1 => Just("etc/ld.so.cache".to_owned()),
        1 => Just("var/lib/dpkg/status".to_owned()),
    ];
    let file = (path, "[xy]").prop_map(|(path, text)| format!("f {path} {text}"));
    let mode = ("[ab](/[a-f]{1,2})?", "7[05]5").prop_map(|(path, mode)| format!("d {path} {mode}"));
    let account = (prop_oneof!["etc/passwd", "etc/group"], prop::sample::select(&ACCOUNTS[..]))
        .prop_map(|(path, text)| format!("f {path} {text}"));
    prop::collection::vec(prop_oneof![20 => file, 3 => mode, 2 => account], 1..120)
}

/// Returns an image of `lines`, without the lines that cannot be applied after the lines before them.
fn image_of(component: ComponentName, lines: &[String]) -> FlatImage {
    let mut layer = LayerIndex::default();
    for line in lines {
        layer.changes.push(change(line));
        if flatten(component, [(Digest::from_bytes([0; 32]), &layer)]).is_err() {
            layer.changes.pop();
        }
    }
    flat(component, &[layer])
}

fn images() -> impl Strategy<Value = [FlatImage; 2]> {
    (layers(), layers()).prop_map(|(agent, business)| {
        [flat(ComponentName::Agent, &agent), flat(ComponentName::Business, &business)]
    })
}

/// Returns the merged root as bytes, origins included.
fn bytes(merge: &Merge) -> Option<Vec<u8>> {
    let tree = merge.root.as_ref()?.tree.clone();
    Some(Listing { tree, origins: Origins::default() }.encode().unwrap())
}

/// Returns the inodes of a tree by their paths.
fn paths(tree: &Tree) -> BTreeMap<Vec<u8>, InodeId> {
    entries(tree).collect()
}

/// Returns whether two entries are the same, except for their names and the attributes of a directory that no layer
/// lists.
fn is(found: &Inode, expected: &Inode) -> bool {
    match (&found.kind, &expected.kind) {
        (Kind::Directory(_), Kind::Directory(_)) => {
            expected.origin == Origin::Generated || found.meta == expected.meta
        }
        (found_kind, kind) => found_kind == kind && found.meta == expected.meta,
    }
}

/// Returns whether a parent of a path is not a directory.
fn is_cut_off(path: &[u8], tree: &Tree) -> bool {
    let ends = (1..path.len()).filter(|at| path[*at] == b'/');
    let above = paths(tree);
    ends.filter_map(|end| above.get(&path[..end])).any(|id| tree.inode(*id).names().is_none())
}

proptest! {
    #[test]
    fn the_order_in_which_images_are_read_makes_no_difference([agent, business] in images()) {
        for declared in [&[][..], &["/** prefer-agent"], &["/a/** drop", "/** prefer-business"]] {
            let one = merged(&[copy(&agent), copy(&business)], declared, &[]);
            let other = merged(&[copy(&business), copy(&agent)], declared, &[]);
            prop_assert_eq!(&one.report, &other.report);
            prop_assert_eq!(bytes(&one), bytes(&other));
        }
    }

    #[test]
    fn what_is_advised_is_short_and_decides_everything(agent in files(), business in files()) {
        let images = [
            image_of(ComponentName::Agent, &agent),
            image_of(ComponentName::Business, &business),
        ];
        let texts = ACCOUNTS.map(|text| text.replace('|', "\n"));
        let texts = texts.each_ref().map(String::as_str);
        let conflicts = merged(&images, &[], &texts).report.conflicts;
        let advice = advice(&conflicts);
        prop_assert!(advice.len() <= MAX_ADVICE);
        prop_assert!(advice.len() <= conflicts.count);
        prop_assert_eq!(advice.iter().map(|it| it.paths).sum::<usize>(), conflicts.count);
        let declared: Vec<_> =
            advice.iter().map(|it| format!("{} {}", it.pattern, it.policy.name())).collect();
        let declared: Vec<_> = declared.iter().map(String::as_str).collect();
        prop_assert!(merged(&images, &declared, &texts).report.conflicts.is_empty());
    }

    #[test]
    fn conflicts_are_symmetric(agent in layers(), business in layers()) {
        use ComponentName::{Agent, Business};

        let one = merged(&[flat(Agent, &agent), flat(Business, &business)], &[], &[]).report;
        let other = merged(&[flat(Agent, &business), flat(Business, &agent)], &[], &[]).report;
        let swapped = other.conflicts.first.iter().map(|conflict| {
            let FieldDifference { field, values: [agent, business] } = conflict.difference.clone();
            let sides = [conflict.sides[1], conflict.sides[0]].map(|side| (side.kind, side.size, side.below));
            (conflict.path.clone(), field, [business, agent], sides)
        });
        let plain = one.conflicts.first.iter().map(|conflict| {
            let FieldDifference { field, values } = conflict.difference.clone();
            let sides = conflict.sides.map(|side| (side.kind, side.size, side.below));
            (conflict.path.clone(), field, values, sides)
        });
        prop_assert_eq!(plain.collect::<Vec<_>>(), swapped.collect::<Vec<_>>());
        prop_assert_eq!((one.agent, one.business, one.equal), (other.business, other.agent, other.equal));
    }

    #[test]
    fn an_image_merged_with_itself_is_itself(layers in layers()) {
        let images = [flat(ComponentName::Agent, &layers), flat(ComponentName::Business, &layers)];
        let merge = merged(&images, &[], &[]);
        let tree = merge.root.unwrap().tree;
        prop_assert_eq!(tree.digest(), images[0].tree.digest());
        prop_assert_eq!((merge.report.agent, merge.report.business), (0, 0));
    }

    /// Layers hide many entries here, but no layer hides an entry of the other image.
    #[test]
    fn the_preferred_image_is_complete_and_the_other_fills_the_gaps(
        [agent, business] in images(), prefer_agent in any::<bool>(),
    ) {
        let policy = if prefer_agent { "/** prefer-agent" } else { "/** prefer-business" };
        let (first, second) = if prefer_agent { (&agent, &business) } else { (&business, &agent) };
        let (first, second) = (&first.tree, &second.tree);
        let tree = merged(&[copy(&agent), copy(&business)], &[policy], &[]).root.unwrap().tree;
        let (found, first_paths) = (paths(&tree), paths(first));
        for (path, id) in &first_paths {
            let entry = found.get(path).map(|id| tree.inode(*id));
            let expected = first.inode(*id);
            let same = |entry: &Inode| {
                // An entry of both images has the time of the agent's image.
                let time = Meta { mtime: entry.meta.mtime, ..expected.meta.clone() };
                is(entry, expected) || is(entry, &Inode { meta: time, ..expected.clone() })
            };
            prop_assert!(entry.is_some_and(same), "{}", String::from_utf8_lossy(path));
        }
        let mut count = first_paths.len();
        for (path, id) in paths(second) {
            if first_paths.contains_key(&path) || is_cut_off(&path, first) {
                continue;
            }
            count += 1;
            let entry = found.get(&path).map(|id| tree.inode(*id));
            let expected = second.inode(id);
            let same = |entry: &Inode| {
                let time = Meta { mtime: entry.meta.mtime, ..expected.meta.clone() };
                is(entry, &Inode { meta: time, ..expected.clone() })
            };
            prop_assert!(entry.is_some_and(same), "{}", String::from_utf8_lossy(&path));
        }
        prop_assert_eq!(found.len(), count, "nothing else is there");
    }

    #[test]
    fn hard_links_of_the_agents_image_stay([agent, business] in images()) {
        let images = [copy(&agent), copy(&business)];
        let tree = merged(&images, &["/** prefer-agent"], &[]).root.unwrap().tree;
        let (found, own, others) = (paths(&tree), paths(&agent.tree), paths(&business.tree));
        for (one, id) in &own {
            for (other, second) in &own {
                prop_assert_eq!(id == second, found[one] == found[other]);
            }
        }
        let new: Vec<_> = others
            .iter()
            .filter(|(path, _)| !own.contains_key(*path) && found.contains_key(*path))
            .collect();
        for (one, id) in &new {
            for (other, second) in &new {
                prop_assert!(id != second || found[*one] == found[*other]);
            }
        }
    }
}

fn copy(image: &FlatImage) -> FlatImage {
    let FlatImage { component, process, tree } = image;
    FlatImage { component: *component, process: process.clone(), tree: tree.clone() }
}
