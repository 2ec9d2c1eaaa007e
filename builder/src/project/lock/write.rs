//! Writes a lock as text.

use super::{FORMAT_VERSION, Lock, LockEntry};
use diagnostics::Syntax;
use diagnostics::in_quotes;

/// The beginning of the first line of every written lock.
pub(super) const MARK: &str = "# Written by boxbuild: ";

/// See [`Lock::write`].
pub(super) fn write(lock: &Lock) -> String {
    // The comment at the top explains the origin of the file, and how to change it.
    let mut out = format!(
        "{MARK}what each part of the Boxfile was when it was last resolved.\n\
         # Do not edit. `boxbuild lock` follows the Boxfile; \
         `boxbuild update [NAME...]` resolves again.\n\
         version = {FORMAT_VERSION}\n\
         epoch = {}\n",
        lock.epoch()
    );
    lock.entries().for_each(|entry| push_entry(&mut out, entry));
    out
}

fn push_entry(out: &mut String, entry: &LockEntry) {
    out.push_str("\n[[entry]]\n");
    push_text(out, "name", &entry.name);
    push_text(out, "kind", entry.kind.name());
    push_text(out, "source", &entry.source);
    if let Some(platform) = entry.platform {
        push_text(out, "platform", platform.name());
    }
    push_text(out, "digest", &entry.digest.to_string());
    out.push_str(&format!("size = {}\n", entry.size));
    if !entry.layers.is_empty() {
        let layers = entry.layers.iter().map(|layer| format!("    \"{layer}\",\n"));
        out.push_str(&format!("layers = [\n{}]\n", layers.collect::<String>()));
    }
}

fn push_text(out: &mut String, name: &str, text: &str) {
    out.push_str(&format!("{name} = {}\n", in_quotes(Syntax::Toml, text)));
}
