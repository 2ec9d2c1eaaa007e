//! Suggestions for misspelt names, and the names of the built-in tools.

/// Returns the candidate nearest to `name`: at most two edits away, one for a candidate of three
/// letters or less (there, two edits turn anything into anything). Case makes no difference.
///
/// An edit is an insertion, deletion, replacement or swap of neighbours.
pub fn nearest<'c>(name: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let name = name.to_lowercase();
    // Comparing takes long, and other lengths are more than two edits away.
    let length = name.chars().count();
    let close = |candidate: &&str| candidate.chars().count().abs_diff(length) <= 2;
    let close = candidates.iter().copied().filter(close);
    close
        .map(|candidate| (strsim::osa_distance(&name, &candidate.to_lowercase()), candidate))
        .filter(|(edits, candidate)| *edits <= (candidate.len() / 3).clamp(1, 2))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Asks whether a name was meant, for the help of a message.
pub(crate) fn did_you_mean(name: &str) -> String {
    format!("did you mean `{name}`?")
}

/// The canonical names of a coding agent's built-in tools, each with what else it is called.
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

/// Returns the canonical name of a tool, or the help for an unknown one.
///
/// Letters may be of either case.
pub(crate) fn builtin_tool(name: &str) -> Result<&'static str, String> {
    let lower = name.to_ascii_lowercase();
    let is = |(canonical, aliases): &&(&str, &[&str])| {
        *canonical == lower || aliases.contains(&lower.as_str())
    };
    if let Some((canonical, _)) = TOOLS.iter().find(is) {
        return Ok(canonical);
    }
    let names = TOOLS.map(|(canonical, _)| canonical);
    Err(match nearest(&lower, &names) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => format!("the tools are {}", names.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 7] = ["agent", "business", "env", "vm", "cpu-weight", "net", "Readme"];

    #[test]
    fn slips_of_the_finger_are_recognised() {
        for (typed, meant) in [
            ("agnet", "agent"),
            ("Agent", "agent"),
            ("agents", "agent"),
            ("bussines", "business"),
            ("evn", "env"),
            ("cpu_weight", "cpu-weight"),
            ("cpuweight", "cpu-weight"),
            ("READM", "Readme"),
        ] {
            assert_eq!(nearest(typed, &NAMES), Some(meant), "{typed}");
        }
    }

    #[test]
    fn distant_names_are_not_suggested() {
        for typed in ["", "x", "xx", "network", "volume", &"agent".repeat(1000)] {
            assert_eq!(nearest(typed, &NAMES), None, "{typed:.20}");
        }
    }

    #[test]
    fn every_name_leads_to_its_canonical_one() {
        for (name, tool) in
            [("read", "read_file"), ("read_file", "read_file"), ("Bash", "bash"), ("glob", "glob")]
        {
            assert_eq!(builtin_tool(name), Ok(tool));
        }
        assert_eq!(builtin_tool("bsh"), Err("did you mean \"bash\"?".to_owned()));
        assert!(builtin_tool("teleport").unwrap_err().starts_with("the tools are ask_user, bash"));
    }
}
