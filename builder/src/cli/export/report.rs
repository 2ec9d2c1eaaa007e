//! What `boxbuild export` tells.

use std::path::Path;

use box_inspect::export::LeftOut;
use serde_json::json;

use super::super::terminal;
use super::{Args, Exported, Format};

/// Tells what was exported.
pub(super) fn report(args: &Args, exported: &Exported) {
    let Exported { output, component, .. } = exported;
    if args.json {
        let LeftOut { devices, set_id, xattrs } = exported.left_out;
        let left_out = json!({ "devices": devices, "set_id": set_id, "xattrs": xattrs });
        let report = json!({
            "box": exported.of,
            "format": args.format.name(),
            "component": component.map(|it| it.name()),
            "output": output,
            "tree": exported.tree,
            "digest": exported.written.map(|it| it.digest),
            "bytes": exported.written.map(|it| it.size),
            "left_out": (args.format == Format::Dir).then_some(left_out),
        });
        return terminal::json(&report.to_string());
    }
    if output == Path::new("-") {
        return;
    }
    for line in left_out(exported.left_out) {
        terminal::note(&format!("note: {line}"));
    }
    terminal::note(&format!("exported: {}", output.display()));
    let digest = exported.written.map(|it| it.digest.to_string());
    terminal::result(&digest.unwrap_or_else(|| exported.tree.to_string()));
}

/// Says what a directory lacks of the tree.
fn left_out(left_out: LeftOut) -> Vec<String> {
    let LeftOut { devices, set_id, xattrs } = left_out;
    let lines = [
        (devices, "devices that only root can make"),
        (set_id, "set-uid and set-gid bits, which are for the owners in the box"),
        (xattrs, "extended attributes that only root can set or the file system does not take"),
    ];
    let told = lines.into_iter().filter(|(count, _)| *count > 0);
    told.map(|(count, what)| format!("left out {what}: {count}")).collect()
}
