//! The built-in tools of a coding agent: one table of names for all that declare or require them.

use crate::suggest::nearest;

/// The canonical names, each with what else it is called.
const TOOLS: [(&str, &[&str]); 12] = [
    ("ask_user", &[]),
    ("bash", &["shell"]),
    ("edit_file", &["edit"]),
    ("git_commit", &[]),
    ("git_diff", &[]),
    ("git_status", &[]),
    ("glob", &[]),
    ("grep", &["search"]),
    ("read_file", &["read"]),
    ("web_fetch", &["fetch"]),
    ("web_search", &[]),
    ("write_file", &["write"]),
];

/// Returns the canonical name of a tool, or what to say about a name that is none.
///
/// Letters may be of either case.
pub(crate) fn canonical(name: &str) -> Result<&'static str, String> {
    let lower = name.to_ascii_lowercase();
    let is = |(canonical, aliases): &&(&str, &[&str])| {
        *canonical == lower || aliases.contains(&lower.as_str())
    };
    if let Some((canonical, _)) = TOOLS.iter().find(is) {
        return Ok(canonical);
    }
    let names = TOOLS.map(|(canonical, _)| canonical);
    Err(nearest(&lower, &names).map_or_else(
        || format!("the tools are {}", names.join(", ")),
        |meant| format!("did you mean \"{meant}\"?"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_to_its_canonical_one() {
        for (name, tool) in
            [("read", "read_file"), ("read_file", "read_file"), ("Bash", "bash"), ("glob", "glob")]
        {
            assert_eq!(canonical(name), Ok(tool));
        }
        assert_eq!(canonical("bsh"), Err("did you mean \"bash\"?".to_owned()));
        assert!(canonical("teleport").unwrap_err().starts_with("the tools are ask_user, bash"));
    }
}
