//! Commands that the policy asks about: `boxlaunch approvals`, `approve` and `deny`.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use crate::scenario::{Scenario, Step, bake, hello_checkout, sleeping, tools};

/// Waits until the box `asks` asks about a command whose list has this text.
const UNTIL: &str = "until boxlaunch approvals asks | grep -q";

/// Runs the first command of the list.
const APPROVE: &str =
    "boxlaunch approve asks $(boxlaunch approvals asks | sed 1d | head -n 1 | cut -d\" \" -f1)";

/// Changes the permissions of a file, about which only the preset of the other box asks.
const DEVELOPMENT: &str = "boxlaunch exec hasty touch /tmp/file
boxlaunch exec --json hasty chmod 600 /tmp/file; boxlaunch check-command --json /asks -- chmod 600 /tmp/file";

/// Returns a script that runs `command` beside the lines of `meanwhile`, once the box asks about it. It prints the output of the
/// command, its standard error and its status at the end.
fn beside(command: &str, asked: &str, meanwhile: &str) -> String {
    format!(
        "{command} >/tmp/one 2>/tmp/err & own=$!
{UNTIL} \"{asked}\"; do sleep 0.1; done
{meanwhile}
wait $own; echo status $?; cat /tmp/one /tmp/err"
    )
}

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    hello_checkout(dir.path());
    let made = |name: &str, preset: &str, timeout: &str| {
        let policy = format!(
            "sandbox \"{preset}\" fallback=\"warn\" ask-timeout=\"{timeout}\" {{\n    ask \"echo *\"\n    forbid \"ls *\"\n}}\n"
        );
        let text = sleeping(name).replace("pids=32", "pids=200").replace("32MiB", "64MiB");
        let (boxfile, bundle) = (dir.path().join("Boxfile"), dir.path().join(name));
        fs::write(&boxfile, text + &policy).unwrap();
        bake(&boxfile, &tools.programs.box_init, &bundle);
        bundle
    };
    let (asks, hasty) = (made("asks", "ci", "90s"), made("hasty", "development", "2s"));
    let agent = "boxlaunch exec -e PATH=/a3s/bin:/bin --in agent asks --";
    Scenario::default()
        .step("run", "boxlaunch run -d --name asks /asks")
        .script(
            20,
            "approve",
            &beside(
                "boxlaunch exec asks echo one",
                "echo one",
                &format!("boxlaunch approve asks; echo without a number $?; {APPROVE}"),
            ),
        )
        .script(
            20,
            "list",
            &beside(
                "boxlaunch exec -w /tmp -e A=one -e API_TOKEN=two asks echo listed",
                "echo listed",
                "boxlaunch approvals --json asks; boxlaunch deny --json asks",
            ),
        )
        .script(20, "deny", &beside("boxlaunch exec asks echo two", "echo two", "boxlaunch deny asks"))
        .script(
            20,
            "always",
            &(beside("boxlaunch exec asks echo three", "echo three", &format!("{APPROVE} --always"))
                + "; boxlaunch exec asks echo three; echo status $?"),
        )
        .script(20, "forbidden", "boxlaunch exec asks ls /; echo status $?; boxlaunch approvals asks")
        .script(
            20,
            "none",
            "boxlaunch approve asks; echo status $?; boxlaunch deny --json asks 7; echo status $?",
        )
        .script(
            20,
            "several",
            &beside(
                "boxlaunch exec asks echo four",
                "echo four",
                &format!(
                    "boxlaunch exec asks echo five >/dev/null 2>&1 &
{UNTIL} \"echo five\"; do sleep 0.1; done
boxlaunch approve asks; echo status $?; boxlaunch approve asks 999; echo status $?
for it in $(boxlaunch approvals asks | sed 1d | cut -d\" \" -f1); do boxlaunch approve asks $it; done"
                ),
            ),
        )
        .script(
            20,
            "input",
            &beside("(echo sent early | boxlaunch exec -i asks echo read)", "echo read", APPROVE),
        )
        .script(20, "agent", &beside(&format!("{agent} box-exec echo six"), "for the agent", APPROVE))
        .script(20, "agent-denied", &beside(&format!("{agent} box-exec echo six"), "echo six", "boxlaunch deny asks"))
        .script(20, "agent-forbidden", &format!("{agent} box-exec ls /; echo status $?"))
        .script(20, "cancelled", &beside("boxlaunch exec asks echo seven", "echo seven", "kill $own"))
        .script(5, "nothing-left", "boxlaunch approvals asks")
        .script(
            90,
            "flood",
            &format!(
                "echo 'for i in $(seq 100); do box-exec echo $i & done; wait' >/tmp/flood.sh
boxlaunch cp --in agent /tmp/flood.sh asks:/tmp/flood.sh; {agent} sh /tmp/flood.sh >/tmp/flood 2>&1 &
until [ $(boxlaunch approvals asks | wc -l) -ge 49 ]; do sleep 0.5; done
sleep 1; boxlaunch approvals asks | sed 1d | wc -l; boxlaunch stop asks; wait"
            ),
        )
        .script(20, "foreground", "boxlaunch run /hasty -- echo eight </dev/null; echo status $?")
        .step("hasty", "boxlaunch run -d --name hasty /hasty")
        .script(20, "late", "boxlaunch exec hasty echo nine; echo status $?; boxlaunch approvals hasty")
        .script(20, "development", DEVELOPMENT)
        .script(10, "end", "boxlaunch stop hasty")
        .start(&tools.host.clone().disk(asks, "/asks").disk(hasty, "/hasty"))
});

fn step(name: &str) -> &'static Step {
    let step = &STEPS[name];
    println!("{}\n{}", step.stdout, step.stderr);
    step
}

/// Asserts that a step has printed all of these texts.
#[track_caller]
fn shows(name: &str, texts: &[&str]) {
    let step = step(name);
    for text in texts {
        assert!(step.stdout.contains(text), "{text} is not in {step:?}");
    }
}

const NO: &str = "denied: a person said no; the policy asks about this command (echo *)";

fn an_approved_command_runs_and_a_denied_one_does_not() {
    shows("approve", &["without a number 2\n", "approved 1: echo one\n", "status 0\none\n"]);
    let unnamed = &step("approve").stderr;
    assert!(unnamed.contains("a command of the box asks waits: 1 (echo one)"), "{unnamed}");
    shows(
        "approve",
        &["boxlaunch: echo one (echo *", "waits for approval: boxlaunch approve asks 1, or deny\n"],
    );
    shows("deny", &["denied 3: echo two\n", "status 126\n", NO]);
    shows("input", &["status 0\nread\n"]);
}

fn the_list_has_what_a_person_needs() {
    let step = step("list");
    let lines: Vec<&str> = step.stdout.lines().collect();
    let report: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
    crate::schema::assert_fits("approvals", &report);
    let question = &report["questions"][0];
    assert_eq!(question["argv"], serde_json::json!(["echo", "listed"]));
    for (field, expected) in [("by", "host"), ("workdir", "/tmp"), ("rule", "echo *")] {
        assert_eq!(question[field], expected, "{question}");
    }
    assert_eq!(question["env"], serde_json::json!(["A=one", "API_TOKEN=…"]));
    assert!(question["seconds_left"].as_u64().unwrap() <= 90, "{question}");
    assert!(!lines[0].contains("two"), "the value of a secret is not listed");
    let answer: serde_json::Value = serde_json::from_str(lines[1]).unwrap();
    crate::schema::assert_fits("approval", &answer);
    assert_eq!(answer["answer"], "deny");
}

fn an_approval_for_the_rest_of_the_run_holds_for_the_same_command() {
    shows("always", &["status 0\nthree\n", "three\nstatus 0\n"]);
}

fn what_is_forbidden_is_not_asked_about() {
    shows("forbidden", &["status 126\nno command waits for approval\n"]);
    let refused = &step("forbidden").stderr;
    assert!(refused.contains("forbidden by the policy (ls *)"), "{refused}");
    shows("agent-forbidden", &["status 126\n"]);
    assert!(step("agent-forbidden").stderr.contains("forbidden by the policy (ls *)"));
}

fn the_preset_for_development_asks_less() {
    let lines = step("development").stdout.lines();
    let reports: Vec<serde_json::Value> =
        lines.map(|it| serde_json::from_str(it).unwrap()).collect();
    let [result, decision] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!(result["status"], 0, "{result}");
    assert_eq!(result["sandbox"]["preset"], "development", "{result}");
    assert_eq!(decision["decision"], "ask", "{decision}");
    assert_eq!(decision["rule"], "file-permission", "{decision}");
}

fn an_answer_needs_a_question() {
    shows("none", &["status 1\n"]);
    assert!(step("none").stderr.contains("no command of the box asks waits for approval"));
    shows("several", &["status 2\nstatus 1\n", "status 0\nfour\n"]);
    let refused = &step("several").stderr;
    assert!(refused.contains("several commands of the box asks wait: "), "{refused}");
    assert!(refused.contains("waits with the number 999"), "{refused}");
}

fn commands_of_the_agent_wait_too() {
    shows("agent", &["status 0\nsix\n"]);
    shows("agent-denied", &["status 126\n", NO]);
    let count: usize = step("flood").stdout.lines().next().unwrap().trim().parse().unwrap();
    assert_eq!(count, 48, "so many commands of the agent wait at once");
}

fn a_command_waits_no_longer_than_its_caller_and_its_time() {
    shows("cancelled", &["status 143\n"]);
    assert_eq!(step("nothing-left").stdout, "no command waits for approval\n");
    shows("late", &["status 126\nno command waits for approval\n"]);
    let late = &step("late").stderr;
    assert!(late.contains("denied: nobody answered within 2s"), "{late}");
    shows("foreground", &["status 126\n"]);
    let foreground = &step("foreground").stderr;
    assert!(foreground.contains("denied: nobody is there to ask"), "{foreground}");
}

tests![
    an_approved_command_runs_and_a_denied_one_does_not,
    the_list_has_what_a_person_needs,
    an_approval_for_the_rest_of_the_run_holds_for_the_same_command,
    what_is_forbidden_is_not_asked_about,
    the_preset_for_development_asks_less,
    an_answer_needs_a_question,
    commands_of_the_agent_wait_too,
    a_command_waits_no_longer_than_its_caller_and_its_time
];
