//! Tests that docs/hostile-input.md has the same limits as the code.

use std::fs;

use box_cache::{MAX_ATTACHED, MAX_ATTACHMENT, MAX_ATTACHMENTS};
use box_contract::rules::{MAX_AGENT_DESCRIPTION, MAX_AGENTS, MAX_MCP_SERVERS, MAX_SKILLS};
use box_contract::wire::{
    MAX_QUESTION, MAX_QUESTIONS, MAX_VERIFICATION_OUTPUT, MAX_VERIFICATION_REASON,
};
use box_delta::{MAX_FRAME, MAX_PREFIX, MAX_SOURCES};
use box_registry::{MAX_DELTAS_MANIFEST, MAX_FETCHED, MAX_REFERRER};
use box_tree::MAX_DETOURS;
use box_tree::listing::{LISTING_BYTES, LISTING_MEMORY, MAX_METADATA_BYTES};
use box_tree::memory::MAX_LAYERS;
use boxfile_spec::{MAX_ADDED, MAX_DECLARED};
use checkout::{dotenv, skill_md};
use diagnostics::MAX_KEPT;
use oci_layer::{Limits, MAX_ENTRIES, SMALL_UNPACKED_BYTES, UNPACKED_GROWTH};
use oci_registry::{MAX_LIST, MAX_MANIFEST, MAX_PAGES, MAX_REFERRERS};
use testbed::Workspace;

/// Formats a number with commas: `12,000`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let group = |(at, digit): (usize, char)| {
        let comma = (at > 0 && (digits.len() - at).is_multiple_of(3)).then_some(',');
        comma.into_iter().chain([digit])
    };
    digits.char_indices().flat_map(group).collect()
}

#[test]
fn the_limits_are_those_of_the_page() {
    let page = fs::read_to_string(Workspace::find().path("docs/hostile-input.md")).unwrap();
    let layer = Limits::default();
    let together = "of all layers of a box together, each as often as it is applied,";
    let (growth, small, large) =
        (layer.growth, layer.small_archive_bytes >> 20, layer.archive_bytes >> 30);
    let (names, all_names) = (layer.index_bytes >> 20, MAX_METADATA_BYTES >> 20);
    assert_eq!(MAX_AGENTS, MAX_MCP_SERVERS, "one row has both");
    let rows = [
        format!("a path over {},", layer.path_bytes),
        format!(
            "at most {} KiB of output and {} KiB of reason.",
            MAX_VERIFICATION_OUTPUT >> 10,
            MAX_VERIFICATION_REASON >> 10
        ),
        format!("has at most {} KiB, and at most {MAX_QUESTIONS} wait.", MAX_QUESTION >> 10),
        format!(
            "| bytes, uncompressed | {growth} times the blob's, but at least {small} MiB, and at most {large} GiB |"
        ),
        format!("| entries | {}; {together} {} |", grouped(layer.entries), grouped(MAX_ENTRIES)),
        format!("with 128 bytes for each entry | {names} MiB; {together} {all_names} MiB |"),
        format!("| parts of a path | {} |", layer.depth),
        format!("| PAX header of one entry | {} MiB |", layer.header_bytes >> 20),
        format!("| attributes of one entry | {} KiB |", layer.xattr_bytes >> 10),
        format!("| index, manifest | {} MiB each |", MAX_MANIFEST >> 20),
        format!(
            "| bytes, uncompressed | {UNPACKED_GROWTH} times their blobs, but at least {} MiB |",
            SMALL_UNPACKED_BYTES >> 20
        ),
        format!(
            "760 bytes for a directory that no entry names, and in the tree for every directory | {} MiB |",
            MAX_LAYERS >> 20
        ),
        format!("and the items of lists | {} |", grouped(MAX_DECLARED)),
        format!("| skills, those of its directory of skills included | {MAX_SKILLS} |"),
        format!("add to the paths in them | {} MiB |", MAX_ADDED >> 20),
        format!(
            "| bytes of a `SKILL.md`, and of an agent definition | {} MiB, of which",
            skill_md::MAX_SKILL_MD >> 20
        ),
        format!("| agent definitions; MCP servers | {MAX_AGENTS} each |"),
        format!(
            "| characters in the description of an agent definition | {MAX_AGENT_DESCRIPTION} |"
        ),
        format!("its frontmatter has at most {} KiB |", skill_md::MAX_FRONTMATTER >> 10),
        format!("| bytes of an `env-file` | {} MiB |", dotenv::MAX_DOTENV >> 20),
        format!("the links of a skill, and the paths to them | {} |", grouped(MAX_DETOURS)),
        format!(
            "of one `SKILL.md` or one `env-file`; warnings about all its skills | {MAX_KEPT} |"
        ),
        format!("Its listing may have {} MiB,", LISTING_BYTES >> 20),
        format!("and {} MiB of memory for all entries", LISTING_MEMORY >> 20),
        format!(
            "| an attachment, such as a bundle; its manifest | {} MiB; {} KiB |",
            MAX_ATTACHMENT >> 20,
            MAX_REFERRER >> 10
        ),
        format!("fetched to choose from them | {} MiB together,", MAX_FETCHED >> 20),
        format!(
            "| 4 manifests of the list, of {} MiB each; {MAX_SOURCES} sources of a delta,",
            MAX_DELTAS_MANIFEST >> 20
        ),
        format!("a prefix of {} MiB; frames that make {} MiB;", MAX_PREFIX >> 20, MAX_FRAME >> 20),
        format!("that are kept | {MAX_ATTACHMENTS}, and {} MiB together.", MAX_ATTACHED >> 20),
        format!(
            "| attachments | {MAX_ATTACHMENTS} for each box, and {} MiB together |",
            MAX_ATTACHED >> 20
        ),
        format!(
            "| the first {MAX_REFERRERS} entries; {MAX_PAGES} pages with {} MiB together.",
            MAX_LIST >> 20
        ),
    ];
    for row in rows {
        assert!(page.contains(&row), "docs/hostile-input.md does not have: {row}");
    }
}
