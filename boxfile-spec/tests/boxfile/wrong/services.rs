//! Errors in `service`.

use insta::assert_snapshot;

use crate::{file_errors, read, shown};

#[test]
fn a_service_without_tls_or_with_a_header_of_the_message() {
    assert_snapshot!(file_errors(r#"service "a" to="http://a.example" {
    header "Host" secret="A"
    header "x-key" secret="B" prefix="ä"
    allow "post /a"
}"#), @r#"
    error: `http://a.example` is not the URL of a service
      --> Boxfile:3:16
       |
     3 | service "a" to="http://a.example" {
       |                ^^^^^^^^^^^^^^^^^^ not https://HOST/PATH
       |
       = help: write `https://`: without TLS, the secret would be readable on the way

    error: `host` is not a header for a credential
      --> Boxfile:4:12
       |
     4 |     header "Host" secret="A"
       |            ^^^^^^ not such a header
       |
       = help: name the header alone in which the service wants the secret, such as "authorization" or "x-api-key"; the host sets `host` and the headers of the message itself

    error: `ä` cannot be before a secret
      --> Boxfile:5:38
       |
     5 |     header "x-key" secret="B" prefix="ä"
       |                                      ^^^ not such a text
       |
       = help: write the short words before the secret in the header, and nothing of the secret: "Bearer "

    error: `post /a` is not a request
      --> Boxfile:6:11
       |
     6 |     allow "post /a"
       |           ^^^^^^^^^ not METHOD PATH
       |
       = help: write one string of a method in capitals, or `*`, and a path below `to` without `..` and without a query, in which `*` stands for anything: "POST /messages*"
    "#);
}

#[test]
fn a_secret_or_variable_that_is_also_in_the_box() {
    assert_snapshot!(file_errors(r#"secret "KEY"
service "a" to="https://a.example" env="A_URL" { header "x-key" secret="KEY"; }
service "b" to="https://b.example" env="A_URL"
service "c" to="https://c.example" component="business"
"#), @r#"
    error: the secret `KEY` would be in the box, too
      --> Boxfile:3:8
       |
     3 | secret "KEY"
       |        ^^^^^ also declared here
     4 | service "a" to="https://a.example" env="A_URL" { header "x-key" secret="KEY"; }
       |                                                                        ----- the host adds it here
       |
       = help: remove this `secret`: the host adds it to the requests of the service

    error: `A_URL` is given twice
      --> Boxfile:5:40
       |
     4 | service "a" to="https://a.example" env="A_URL" { header "x-key" secret="KEY"; }
       |                                        ------- given first
     5 | service "b" to="https://b.example" env="A_URL"
       |                                        ^^^^^^^ given again
       |
       = help: remove one of them

    error: the file declares no business application
      --> Boxfile:6:46
       |
     6 | service "c" to="https://c.example" component="business"
       |                                              ^^^^^^^^^^ not declared
       |
       = help: write `component="agent"`, or declare `business { … }`
    "#);
}

#[test]
fn a_service_outside_the_internet_needs_an_option() {
    let text = "box b\nagent { image \"oci:i\"; }\nservice a to=\"https://10.0.0.7:8443\"";
    let document = read(&[("Boxfile", text)], None);
    assert!(document.boxfile.is_some());
    assert_snapshot!(shown(&document), @r#"
    warning: this address is not on the internet (private): a box reaches it only with an option of `boxlaunch run`
      --> Boxfile:3:14
       |
     3 | service a to="https://10.0.0.7:8443"
       |              ^^^^^^^^^^^^^^^^^^^^^^^ refused without the option
       |
       = help: run the box with `boxlaunch run --network-local 10.0.0.7:8443`
    "#);
}

#[test]
fn the_help_for_a_url_names_its_fault() {
    let help = |to: &str| {
        let errors = file_errors(&format!("service a to=\"{to}\""));
        errors
            .lines()
            .filter_map(|it| it.split_once("= help: "))
            .map(|it| it.1.to_owned())
            .collect::<String>()
    };
    for (to, expected) in [
        ("https://api.example.com/v1/", "write \"https://api.example.com/v1\""),
        ("https://API.example.com", "write \"https://api.example.com\""),
        ("api.example.com", "write \"https://api.example.com\""),
        ("https://api.example.com?a=b", "remove the query: each request has its own"),
        (
            "https://me:pw@api.example.com",
            "a service takes no user and no password: remove what is in front of the `@`",
        ),
    ] {
        assert_eq!(help(to), expected, "{to}");
    }
    assert!(help("ftp://a b").starts_with("write `https://`, a host in lower case"));
}

#[test]
fn a_value_in_place_of_a_name_is_not_repeated() {
    let errors = file_errors(
        "service a to=\"https://a.example\" {\n    header x-key secret=\"sk-ant-api03-0123456789abcdef\"\n}",
    );
    assert!(!errors.to_lowercase().contains("0123456789abcdef"), "{errors}");
}

#[test]
fn what_is_probably_a_mistake_is_a_warning() {
    let text = "box b\nagent { image \"oci:i\"; }\nservice a to=\"https://a.example/v1\" {\n    header authorization secret=KEY prefix=Bearer\n    \
                allow \"POST /v1/messages\" \"GET /v1x\"\n}";
    let document = read(&[("Boxfile", text)], None);
    assert!(document.boxfile.is_some());
    assert_snapshot!(shown(&document), @r#"
    warning: there is nothing between this text and the secret
      --> Boxfile:4:44
       |
     4 |     header authorization secret=KEY prefix=Bearer
       |                                            ^^^^^^ without a space
       |
       = help: end it with a space, unless the service wants it so: "Bearer "

    warning: the server gets /v1/v1/messages: paths of requests are below `to`
      --> Boxfile:5:11
       |
     5 |     allow "POST /v1/messages" "GET /v1x"
       |           ^^^^^^^^^^^^^^^^^^^ begins with the path of `to`
       |
       = help: write "POST /messages"
    "#);
}

#[test]
fn a_variable_of_a_service_is_no_secret() {
    let errors = file_errors("secret A_URL\nservice a to=\"https://a.example\" env=A_URL");
    assert!(
        errors.starts_with("error: the variable `A_URL` has its value from the service"),
        "{errors}"
    );
}
