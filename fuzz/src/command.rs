//! The target for lines that an agent wants to run.

use std::sync::OnceLock;

use box_contract::SandboxPlan;
use command_policy::{Classifier, Decision};

/// A line that no policy lets run.
const FORBIDDEN: &str = "rm -rf /";

/// The rules that are tried: those of two presets, and patterns of a Boxfile.
fn classifiers() -> &'static [Classifier; 2] {
    static ALL: OnceLock<[Classifier; 2]> = OnceLock::new();
    ALL.get_or_init(|| {
        let rest = r#""fallback":"strict","max-output-bytes":4096"#;
        let own = r#""allow":["cargo *","make"],"ask":["git push*"],"forbid":["curl *"]"#;
        let plans = [
            format!(r#"{{"preset":"default",{rest}}}"#),
            format!(r#"{{"preset":"development",{rest},{own}}}"#),
        ];
        plans.map(|it| {
            let plan: SandboxPlan = serde_json::from_str(&it).expect("a policy");
            Classifier::new(&plan)
        })
    })
}

/// Classifies the bytes as a line for a shell. The answer is the same again and with a line's end, nothing that follows a forbidden
/// line makes it harmless, and a shell gives no more than its line.
pub fn command(bytes: &[u8]) {
    let Ok(line) = std::str::from_utf8(bytes) else { return };
    for rules in classifiers() {
        let ruling = rules.classify_line(line);
        assert_eq!(rules.classify_line(line), ruling, "another answer");
        let is_asked = ruling.decision != Decision::Run;
        assert!(!is_asked || (ruling.rule.is_some() && !ruling.reason.is_empty()), "{ruling:?}");
        // A backslash before the end of a line joins it with the next one.
        if !line.ends_with('\\') {
            let ended = rules.classify_line(&format!("{line}\n"));
            assert_eq!(ended.decision, ruling.decision, "with the line's end");
        }
        let after = rules.classify_line(&format!("{FORBIDDEN}\n{line}"));
        assert_eq!(after.decision, Decision::Forbid, "after a forbidden line: {after:?}");
        let nested = rules.classify(&["sh", "-c", line]);
        assert!(nested.decision >= ruling.decision, "sh -c: {nested:?}, and not {ruling:?}");
    }
}
