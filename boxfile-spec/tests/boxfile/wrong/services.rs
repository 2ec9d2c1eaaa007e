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
       = help: write `https://`, a host in lower case, perhaps a port and a path, and no slash at the end: "https://api.example.com/v1"

    error: `host` is not a header for a credential
      --> Boxfile:4:12
       |
     4 |     header "Host" secret="A"
       |            ^^^^^^ not such a header
       |
       = help: name the header in which the service wants the secret: "authorization", "x-api-key"

    error: `ä` cannot be in a header
      --> Boxfile:5:38
       |
     5 |     header "x-key" secret="B" prefix="ä"
       |                                      ^^^ not printable ASCII
       |
       = help: write what is before the secret in the header: "Bearer "

    error: `post /a` is not a request
      --> Boxfile:6:11
       |
     6 |     allow "post /a"
       |           ^^^^^^^^^ not METHOD PATH
       |
       = help: write a method in capitals or `*`, and a path below `to`, in which `*` stands for anything: "POST /messages*"
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
