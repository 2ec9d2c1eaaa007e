//! Errors in `ssh-agent`, and in what other declarations have in common with it.

use insta::assert_snapshot;

use crate::{errors, file_errors};

#[test]
fn an_agent_for_a_component_that_is_not_there() {
    assert_snapshot!(file_errors("ssh-agent component=\"business\""), @r#"
    error: the file declares no business application
      --> Boxfile:3:21
       |
     3 | ssh-agent component="business"
       |                     ^^^^^^^^^^ not declared
       |
       = help: write `component="agent"`, or declare `business { … }`
    "#);
    for wrong in ["ssh-agent component=\"all\"", "ssh-agent \"agent\"", "ssh-agent { confirm; }"] {
        assert!(file_errors(wrong).starts_with("error: "), "{wrong}");
    }
}

#[test]
fn a_variable_that_is_set_to_something_else() {
    let env =
        "box \"b\"\nagent {\n    image \"oci:i\"\n    env SSH_AUTH_SOCK=\"/x\"\n}\nssh-agent\n";
    assert_snapshot!(errors(env), @r#"
    error: the variable `SSH_AUTH_SOCK` has its value from `ssh-agent`
      --> Boxfile:4:9
       |
     4 |     env SSH_AUTH_SOCK="/x"
       |         ^^^^^^^^^^^^^ declared again
    ...
     6 | ssh-agent
       | --------- set to the path of the agent's socket
       |
       = help: remove it, or `ssh-agent`
    "#);
    let refused = "error: the variable `SSH_AUTH_SOCK` has its value from `ssh-agent`";
    for lines in [
        "service \"s\" to=\"https://a.example\" env=\"SSH_AUTH_SOCK\"",
        "secret \"SSH_AUTH_SOCK\"",
        "secret \"SSH_AUTH_SOCK\" component=\"both\"",
    ] {
        let found = file_errors(&format!("ssh-agent\n{lines}"));
        assert!(found.starts_with(refused), "{lines}: {found}");
    }
    for variable in ["env SSH_AUTH_SOCK", "plain-env SSH_AUTH_SOCK=\"/x\""] {
        let found = errors(&env.replace("env SSH_AUTH_SOCK=\"/x\"", variable));
        assert!(found.starts_with(refused), "{variable}: {found}");
    }
}

#[test]
fn a_path_that_something_else_has() {
    assert_snapshot!(file_errors("ssh-agent\nshare \"run\" guest=\"/run\""), @r#"
    error: `/run/ssh-agent.sock` is inside `/run`, which is already in use
      --> Boxfile:3:1
       |
     3 | ssh-agent
       | ^^^^^^^^^ the place of this `ssh-agent`
     4 | share "run" guest="/run"
       |                   ------ the place of this `share`
       |
       = help: choose paths that are not inside one another
    "#);
    assert_snapshot!(file_errors("ssh-agent\nsecret \"K\" path=\"/run/ssh-agent.sock\""), @r#"
    error: `/run/ssh-agent.sock` is used twice
      --> Boxfile:4:17
       |
     3 | ssh-agent
       | --------- the place of this `ssh-agent`
     4 | secret "K" path="/run/ssh-agent.sock"
       |                 ^^^^^^^^^^^^^^^^^^^^^ the place of this `secret`
       |
       = help: give one of them another path, or remove it
    "#);
    for lines in
        ["volume \"v\" guest=\"/run/ssh-agent.sock\"", "scratch \"s\" guest=\"/run\" size=\"1MiB\""]
    {
        let found = file_errors(&format!("ssh-agent\n{lines}"));
        assert!(found.starts_with("error: `/run/ssh-agent.sock` is "), "{lines}: {found}");
    }
    let file = "box \"b\"\nagent {\n    image \"oci:i\"\n    file \"f\" to=\"/run/ssh-agent.sock\"\n}\nssh-agent\n";
    let found = errors(file);
    assert!(found.starts_with("error: `/run/ssh-agent.sock` is used twice"), "{found}");
}
