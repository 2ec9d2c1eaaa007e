//! Secrets are declared by name alone, and refused as plain values.

use insta::assert_snapshot;

use crate::{agent_errors, errors, file_errors, read, shown};

#[test]
fn a_variable_with_the_name_of_a_secret() {
    assert_snapshot!(agent_errors(r#"    env OPENAI_API_KEY="abc" LOG="info" db_password="x""#), @r#"
    error: `OPENAI_API_KEY` looks like a secret written as a plain value
      --> Boxfile:4:24
       |
     4 |     env OPENAI_API_KEY="***" LOG="info" db_password="*"
       |                        ^^^^^ it would be in the checkout and in every box
       |
       = help: declare it by name alone, outside of the component: `secret "OPENAI_API_KEY"` (`boxlaunch run --secret` gives its value); if it is not a secret, write `plain-env OPENAI_API_KEY=…`

    error: `db_password` looks like a secret written as a plain value
      --> Boxfile:4:53
       |
     4 |     env OPENAI_API_KEY="***" LOG="info" db_password="*"
       |                                                     ^^^ it would be in the checkout and in every box
       |
       = help: declare it by name alone, outside of the component: `secret "db_password"` (`boxlaunch run --secret` gives its value); if it is not a secret, write `plain-env db_password=…`
    "#);
}

#[test]
fn a_variable_with_the_value_of_a_token() {
    assert_snapshot!(agent_errors(r#"    env GITHUB="ghp_0123456789abcdef0123456789abcdef0123""#), @r#"
    error: `GITHUB` looks like a secret written as a plain value
      --> Boxfile:4:16
       |
     4 |     env GITHUB="****************************************"
       |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ it would be in the checkout and in every box
       |
       = help: declare it by name alone, outside of the component: `secret "GITHUB"` (`boxlaunch run --secret` gives its value); if it is not a secret, write `plain-env GITHUB=…`
    "#);
}

#[test]
fn numbers_public_keys_and_the_like_are_no_secrets() {
    let boxfile = boxfile_spec::parse(
        "box b\nagent {\n image \"oci:i\"\n env MAX_TOKEN=\"4096\" REQUIRE_AUTH=\"basic\" \
         TOKEN_LIMIT=\"none\" PUBLIC_KEY=\"-----BEGIN PUBLIC KEY-----\"\n}\n",
    );
    assert_eq!(boxfile.unwrap().agent.component.env.len(), 4);
}

#[test]
fn a_variable_that_is_a_secret_as_well() {
    assert_snapshot!(errors(r#"box b
agent { image "oci:i"; env LOG="x" DB="a"; plain-env API_KEY="b"; }
business { image "oci:j"; env DB="c" LOG="d"; plain-env API_KEY="e"; }
secret DB component=both
secret API_KEY path="/run/api-key""#), @r#"
    error: `DB` is a secret and a plain value at once
      --> Boxfile:2:36
       |
     2 | agent { image "oci:i"; env LOG="x" DB="*"; plain-env API_KEY="*"; }
       |                                    ^^ a plain value here
    ...
     4 | secret DB component=both
       |        -- declared as a secret
       |
       = help: remove the plain value: the launcher hands the secret over; or rename one of them

    error: `API_KEY` is a secret and a plain value at once
      --> Boxfile:2:54
       |
     2 | agent { image "oci:i"; env LOG="x" DB="*"; plain-env API_KEY="*"; }
       |                                                      ^^^^^^^ a plain value here
    ...
     5 | secret API_KEY path="/run/api-key"
       |        ------- declared as a secret
       |
       = help: remove the plain value: the launcher hands the secret over; or rename one of them

    error: `DB` is a secret and a plain value at once
      --> Boxfile:3:31
       |
     3 | business { image "oci:j"; env DB="*" LOG="d"; plain-env API_KEY="*"; }
       |                               ^^ a plain value here
     4 | secret DB component=both
       |        -- declared as a secret
       |
       = help: remove the plain value: the launcher hands the secret over; or rename one of them
    "#);
}

#[test]
fn a_variable_of_the_component_that_does_not_get_the_secret_is_its_own() {
    let boxfile = "box b\nagent { image \"oci:i\"; }\nbusiness { image \"oci:j\"; env DB=\"x\"; }\nsecret DB\n";
    assert!(boxfile_spec::parse(boxfile).is_ok());
}

#[test]
fn a_secret_of_the_base_and_a_variable_over_it() {
    assert_snapshot!(shown(&read(
        &[
            ("Boxfile", "extends base\nbox b\nagent { env DB=\"x\"; }\n"),
            ("base", "agent { image \"oci:i\"; }\nsecret DB\n"),
        ],
        None,
    )), @r#"
    error: `DB` is a secret and a plain value at once
      --> Boxfile:3:13
       |
     3 | agent { env DB="*"; }
       |             ^^ a plain value here
       |
      ::: base:2:8
       |
     2 | secret DB
       |        -- declared as a secret
       |
       = help: remove the plain value: the launcher hands the secret over; or rename one of them
    "#);
}

#[test]
fn a_secret_is_named_as_a_variable_is() {
    assert_snapshot!(file_errors(r#"secret "api-key"
secret "1"
secret
secret "TOKEN" path="token"
secret "KEY" value="sk-1""#), @r#"
    error: `api-key` is not the name of a variable
      --> Boxfile:3:8
       |
     3 | secret "api-key"
       |        ^^^^^^^^^ not a variable's name
       |
       = help: write the name of an environment variable: "API_KEY"

    error: `1` is not the name of a variable
      --> Boxfile:4:8
       |
     4 | secret "1"
       |        ^^^ not a variable's name
       |
       = help: a secret's name has letters, digits and `_`, and does not begin with a digit

    error: `secret` needs a name
      --> Boxfile:5:1
       |
     5 | secret
       | ^^^^^^ without a name
       |
       = help: for example `secret "API_KEY" path="/run/secrets/api-key"`

    error: `path` takes an absolute path, not `token`
      --> Boxfile:6:21
       |
     6 | secret "TOKEN" path="token"
       |                     ^^^^^^^ a relative path
       |
       = help: write "/token"

    error: `secret` has no property `value`
      --> Boxfile:7:14
       |
     7 | secret "KEY" value="****"
       |              ^^^^^ no such property
       |
       = help: its properties: `path`, `component`; `boxlaunch run --secret` gives its value
    "#);
}

#[test]
fn a_secret_is_declared_once_and_is_given_to_a_component_that_there_is() {
    assert_snapshot!(file_errors(r#"secret "TOKEN"
secret "TOKEN" component="agnet""#), @r#"
    error: the secret `TOKEN` is declared twice
      --> Boxfile:4:8
       |
     3 | secret "TOKEN"
       |        ------- declared first
     4 | secret "TOKEN" component="agnet"
       |        ^^^^^^^ declared again
       |
       = help: give one of them another name, or remove it

    error: `component` cannot be `agnet`
      --> Boxfile:4:26
       |
     4 | secret "TOKEN" component="agnet"
       |                          ^^^^^^^ no such choice
       |
       = help: did you mean "agent"?
    "#);
    assert_snapshot!(file_errors(r#"secrets "TOKEN""#), @r#"
    error: unknown declaration `secrets`
      --> Boxfile:3:1
       |
     3 | secrets "TOKEN"
       | ^^^^^^^ no such declaration here
       |
       = help: did you mean `secret`?
    "#);
}

#[test]
fn secrets_in_command_lines_and_tasks_are_errors_and_not_shown() {
    assert_snapshot!(errors(r#"box "x"
agent {
    image "oci:a"
    entrypoint "/bin/agent" "--api-key=hunter2"
    args "--password" "hunter2" "--verbose"
    health "exec" "/bin/check" "-H" "ghp_0123456789abcdef0123"
}
business {
    image "oci:b"
    args "/bin/sh" "-c" "exec app --token=hunter2"
    env DB_PASSWORD="hunter2" LOG="info"
}
task "t" type="fix" description="clone with AKIA0123456789ABCDEF"
"#), @r#"
    error: `--api-key` looks like a secret written as a plain value
      --> Boxfile:4:29
       |
     4 |     entrypoint "/bin/agent" "*****************"
       |                             ^^^^^^^^^^^^^^^^^^^ it would be in the checkout and in every box
       |
       = help: declare it by name alone, outside of the component: `secret "API_KEY"`; the program then has it as the environment variable `API_KEY` (`boxlaunch run --secret` gives its value)

    error: `--password` looks like a secret written as a plain value
      --> Boxfile:5:23
       |
     5 |     args "--password" "*******" "--verbose"
       |                       ^^^^^^^^^ it would be in the checkout and in every box
       |
       = help: declare it by name alone, outside of the component: `secret "PASSWORD"`; the program then has it as the environment variable `PASSWORD` (`boxlaunch run --secret` gives its value)

    error: `health` contains what looks like a secret
      --> Boxfile:6:37
       |
     6 |     health "exec" "/bin/check" "-H" "************************"
       |                                     ^^^^^^^^^^^^^^^^^^^^^^^^^^ it would be in the checkout and in every box
       |
       = help: declare it by name alone, outside of the component: `secret "API_TOKEN"`; the program then has it as the environment variable `API_TOKEN` (`boxlaunch run --secret` gives its value)

    error: `--token` looks like a secret written as a plain value
       --> Boxfile:10:25
        |
     10 |     args "/bin/sh" "-c" "************************"
        |                         ^^^^^^^^^^^^^^^^^^^^^^^^^^ it would be in the checkout and in every box
        |
        = help: declare it by name alone, outside of the component: `secret "TOKEN" component="business"`; the program then has it as the environment variable `TOKEN` (`boxlaunch run --secret` gives its value)

    error: `DB_PASSWORD` looks like a secret written as a plain value
       --> Boxfile:11:21
        |
     11 |     env DB_PASSWORD="*******" LOG="info"
        |                     ^^^^^^^^^ it would be in the checkout and in every box
        |
        = help: declare it by name alone, outside of the component: `secret "DB_PASSWORD" component="business"` (`boxlaunch run --secret` gives its value); if it is not a secret, write `plain-env DB_PASSWORD=…`

    error: `description` contains what looks like a secret
       --> Boxfile:13:33
        |
     13 | task "t" type="fix" description="*******************************"
        |                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ it would be in the checkout and in every box
        |
        = help: declare it by name alone, outside of the component: `secret "API_TOKEN"`; the program then has it as the environment variable `API_TOKEN` (`boxlaunch run --secret` gives its value)
    "#);
}

#[test]
fn a_secret_of_both_components_is_declared_for_both() {
    assert_snapshot!(errors(r#"box "x"
agent {
    image "oci:a"
    env API_TOKEN="hunter2"
}
business {
    image "oci:b"
    env API_TOKEN="hunter2"
}
"#), @r#"
    error: `API_TOKEN` looks like a secret written as a plain value
      --> Boxfile:4:19
       |
     4 |     env API_TOKEN="*******"
       |                   ^^^^^^^^^ it would be in the checkout and in every box
       |
       = help: declare it by name alone, outside of the component: `secret "API_TOKEN" component="both"` (`boxlaunch run --secret` gives its value); if it is not a secret, write `plain-env API_TOKEN=…`

    error: `API_TOKEN` looks like a secret written as a plain value
      --> Boxfile:8:19
       |
     8 |     env API_TOKEN="*******"
       |                   ^^^^^^^^^ it would be in the checkout and in every box
       |
       = help: declare it by name alone, outside of the component: `secret "API_TOKEN" component="both"` (`boxlaunch run --secret` gives its value); if it is not a secret, write `plain-env API_TOKEN=…`
    "#);
    let document = read(
        &[(
            "Boxfile.toml",
            r#"box = "x"
[agent]
image = "oci:a"
[business]
image = "oci:b"
env = { DB_PASSWORD = 'hunter2' }
"#,
        )],
        None,
    );
    assert_snapshot!(shown(&document), @r#"
    error: `DB_PASSWORD` looks like a secret written as a plain value
      --> Boxfile.toml:6:23
       |
     6 | env = { DB_PASSWORD = '*******' }
       |                       ^^^^^^^^^ it would be in the checkout and in every box
       |
       = help: declare it by name alone, outside of the component: `[secret.DB_PASSWORD]` with `component = "business"` (`boxlaunch run --secret` gives its value); if it is not a secret, put it under `plain-env` instead of `env`
    "#);
}

/// Neither the text nor the data of any message contains a secret of the line that the message is
/// about.
#[test]
fn no_message_shows_a_secret_of_a_faulty_line() {
    for (name, line) in [
        ("Boxfile", "agent { args \"--token=hunter2\" \"--password\" \"hunter2\"; }"),
        ("Boxfile", "agent { evn API_TOKEN=\"hunter2\"; }"),
        ("Boxfile", "secret \"X\" value=\"hunter2\""),
        ("Boxfile", "secret \"API_TOKEN\" \"hunter2\""),
        ("Boxfile", "agent { env API_TOKEN=\"hunter2 }"),
        ("Boxfile", "API_TOKEN = hunter2"),
        ("Boxfile", "API_TOKEN = hunters"),
        ("Boxfile", "API_TOKEN = [hunters, hunter2]"),
        ("Boxfile", "API_TOKEN = 'hunter2'"),
        ("Boxfile", "MINE = ghp_hunter20123456789abcdefghijklmnopqrst"),
        ("Boxfile", "agent { workdir ghp_hunter20123456789abcdefghijklmnopqrst; }"),
        ("Boxfile", "agent { workdir \"ghp_hunter20123456789abcdefghijklmnopqrst\"; }"),
        ("Boxfile.toml", "API_TOKEN: hunters"),
        ("Boxfile", "agent { env API_TOKEN \"hunter2\"; }"),
        ("Boxfile.toml", "agent.env = { API_TOKEN = \"a\", DB_PASSWORD = hunter2 }"),
        ("Boxfile.toml", "agent.args = [\"--token=hunter2\", \"--password\", \"hunter2\"]"),
        ("Boxfile.toml", "agent.evn.API_TOKEN = 'hunter2"),
        (
            "Boxfile.toml",
            "[profile.ci.agent]\nargs = [\"--token=hunter2\", \"--password\", \"hunter2\"]",
        ),
    ] {
        let document = read(&[(name, line)], None);
        assert!(!document.found.is_empty(), "{line}");
        for error in &document.found {
            let text = error.render(&document.sources);
            assert!(!text.contains("hunter"), "{text}");
            let data = format!("{:?}", error.redacted(&document.sources));
            assert!(!data.contains("hunter"), "{data}");
        }
    }
}

#[test]
fn no_more_secrets_and_variables_than_a_box_can_be_given() {
    let declared = |secrets: usize, agent: usize, business: usize| {
        let many = |line: &str, count| {
            (0..count).map(|it| format!("    {line}{it}\n")).collect::<String>()
        };
        errors(&format!(
            "box x\nagent {{\n    image \"oci:a\"\n{}}}\nbusiness {{\n    image \"oci:b\"\n{}}}\n{}",
            many("env A", agent),
            many("plain-env B", business),
            many("secret S", secrets),
        ))
    };
    for (found, at, message) in [
        (declared(257, 0, 0), "secret S", "a box has at most 256 secrets"),
        (
            declared(0, 200, 57),
            "plain-env B56",
            "a box has at most 256 variables that are given at launch",
        ),
    ] {
        assert!(found.starts_with(&format!("error: {message}\n")), "{found}");
        assert!(found.contains(at) && found.matches("error: ").count() == 1, "{found}");
    }
    let most: String = (0..256).map(|it| format!("secret S{it}\n")).collect();
    let text = format!("box x\nagent {{ image \"oci:a\"; }}\n{most}");
    assert!(read(&[("Boxfile", &text)], None).boxfile.is_some());
}

#[test]
fn the_name_of_a_declaration_is_not_hidden() {
    let toml = "box = \"b\"\n[agent]\nimage = \"oci:i\"\n[secret.KEY]\nvalue = \"topsecret\"\n";
    assert_snapshot!(shown(&read(&[("Boxfile.toml", toml)], None)), @r#"
    error: `secret` has no property `value`
      --> Boxfile.toml:5:1
       |
     5 | value = "*********"
       | ^^^^^ no such property
       |
       = help: its properties: `path`, `component`; `boxlaunch run --secret` gives its value
    "#);
}
