//! Suggestions for misspelt names, and the names of built-in tools.

/// The maximum number of letters of a compared text. The time of a comparison grows with the product of the lengths,
/// and a name from an image can have any length.
const MAX_LETTERS: usize = 64;
/// The maximum number of candidates that are compared. An image may have a million names.
const MAX_COMPARED: usize = 10_000;

/// Returns the candidate nearest to `name`, at most two edits away. For a candidate of up to five letters, at most one
/// edit, because two edits would match unrelated short names. Case is ignored.
///
/// An edit is an insertion, a deletion, a replacement, or a swap of neighbours. A text of more than 64 letters has no
/// nearest candidate. Only the first 10,000 candidates of a similar length are compared.
///
/// # Examples
/// ```
/// use diagnostics::suggest::nearest;
///
/// assert_eq!(nearest("entripoint", &["entrypoint", "workdir"]), Some("entrypoint"));
/// assert_eq!(nearest("port", &["entrypoint", "workdir"]), None);
/// ```
pub fn nearest<'c>(name: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let lower = name.to_lowercase();
    comparable(name, candidates)
        .map(|candidate| (strsim::osa_distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(edits, candidate)| *edits <= (candidate.len() / 3).clamp(1, 2))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Returns the candidates of a similar length. Other candidates are more than two edits away.
fn comparable<'c>(name: &str, candidates: &[&'c str]) -> impl Iterator<Item = &'c str> {
    let letters = |text: &str| text.chars().take(MAX_LETTERS + 1).count();
    let length = letters(name);
    let is_close = move |candidate: &&str| {
        let other = letters(candidate);
        length.max(other) <= MAX_LETTERS && other.abs_diff(length) <= 2
    };
    candidates.iter().copied().filter(is_close).take(MAX_COMPARED)
}

/// Returns the question whether a name was meant, for a help.
pub fn did_you_mean(name: &str) -> String {
    format!("did you mean `{name}`?")
}

/// The canonical names of a coding agent's built-in tools, each with its aliases.
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

/// Returns the canonical name of a tool, or the help for an unknown tool. Case is ignored.
pub fn builtin_tool(name: &str) -> Result<&'static str, String> {
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

/// Returns the built-in tool that was probably meant by a name. `None` if the name is a tool's, or resembles none: an agent may have
/// further tools. Case and underscores are ignored, so that `WebFetch` is `web_fetch`.
pub fn misspelt_tool(name: &str) -> Option<&'static str> {
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let mut names: Vec<&'static str> = Vec::new();
    for (canonical, aliases) in TOOLS {
        names.push(canonical);
        names.extend(aliases);
    }
    let own = plain(name);
    if names.iter().any(|it| plain(it) == own) { None } else { nearest(name, &names) }
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
    fn a_long_name_is_compared_with_nothing() {
        let at_most = "a".repeat(MAX_LETTERS);
        assert_eq!(nearest(&at_most[1..], &[&at_most]), Some(&*at_most));
        for length in [MAX_LETTERS + 1, 1_000_000] {
            let (one, other) = ("a".repeat(length), "b".repeat(length));
            assert_eq!(nearest(&one, &[&other, &one]), None, "{length}");
            assert_eq!(nearest(&one[..MAX_LETTERS], &[&one]), None, "{length}");
            assert_eq!(nearest(&one, &[&one[..MAX_LETTERS]]), None, "{length}");
        }
    }

    #[test]
    fn a_name_is_compared_with_so_many_others() {
        let many = vec!["others"; 10 * MAX_COMPARED];
        assert_eq!(comparable("agents", &many).count(), MAX_COMPARED);
        let distant = vec!["of another length"; 2 * MAX_COMPARED];
        let candidates = [distant, vec!["agent"]].concat();
        assert_eq!(
            nearest("agents", &candidates),
            Some("agent"),
            "candidates of other lengths do not count"
        );
    }

    #[test]
    fn tools_of_other_agents_are_no_misspellings() {
        for tool in
            ["Read", "WebFetch", "Bash", "Task", "Agent", "Skill", "NotebookEdit", "TodoWrite"]
        {
            assert_eq!(misspelt_tool(tool), None, "{tool}");
        }
        for (typed, meant) in [("Wirte", "write"), ("Gerp", "grep"), ("web_serch", "web_search")] {
            assert_eq!(misspelt_tool(typed), Some(meant));
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
