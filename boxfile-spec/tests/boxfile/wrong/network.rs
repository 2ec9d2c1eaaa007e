//! The network of the guest (X-14).

use insta::assert_snapshot;

use crate::{file_errors, read, shown};

#[test]
fn a_mode_is_one_of_four() {
    assert_snapshot!(file_errors(r#"network "filterd""#), @r#"
    error: `network` cannot be `filterd`
      --> Boxfile:3:9
       |
     3 | network "filterd"
       |         ^^^^^^^^^ no such choice
       |
       = help: did you mean "filtered"?
    "#);
    assert_snapshot!(file_errors(r#"network "host""#), @r#"
    error: `network` cannot be `host`
      --> Boxfile:3:9
       |
     3 | network "host"
       |         ^^^^^^ no such choice
       |
       = help: write one of "none", "filtered", "shared", "cap-only"
    "#);
    assert_snapshot!(file_errors("network {\n    allow \"example.com\"\n}"), @r#"
    error: `network` needs a mode
      --> Boxfile:3:1
       |
     3 | network {
       | ^^^^^^^ without a mode
       |
       = help: for example
             network "filtered" {
                 allow "api.example.com" "*.example.org"
             }
    "#);
}

#[test]
fn only_a_filter_has_something_to_allow() {
    assert_snapshot!(file_errors(r#"network "shared" {
    allow "example.com"
    deny "uploads.example.com"
}"#), @r#"
    error: `allow` needs the network mode `filtered`
      --> Boxfile:4:5
       |
     4 |     allow "example.com"
       |     ^^^^^ has no effect here
       |
       = help: write `network "filtered" { … }`, or remove `allow`

    error: `deny` needs the network mode `filtered`
      --> Boxfile:5:5
       |
     5 |     deny "uploads.example.com"
       |     ^^^^ has no effect here
       |
       = help: write `network "filtered" { … }`, or remove `deny`
    "#);
}

#[test]
fn a_peer_is_a_domain_an_address_or_a_network() {
    assert_snapshot!(file_errors(r#"network "filtered" {
    allow "https://api.example.com/v1" "example.com:443" "localhost" "*" "10.0.0.0/33" "10.0.0.256" 443
    alow "x"
}"#), @r#"
    error: `https://api.example.com/v1` is neither a domain nor an address
      --> Boxfile:4:11
       |
     4 |     allow "https://api.example.com/v1" "example.com:443" "localhost" "*" "10.0.0.0/33" "10.0.0.256" 443
       |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ not a peer
       |
       = help: name the host alone, without scheme, port and path: "api.example.com"

    error: `example.com:443` is neither a domain nor an address
      --> Boxfile:4:40
       |
     4 |     allow "https://api.example.com/v1" "example.com:443" "localhost" "*" "10.0.0.0/33" "10.0.0.256" 443
       |                                        ^^^^^^^^^^^^^^^^^ not a peer
       |
       = help: name the host alone, without scheme, port and path: "example.com"

    error: `localhost` is neither a domain nor an address
      --> Boxfile:4:58
       |
     4 |     allow "https://api.example.com/v1" "example.com:443" "localhost" "*" "10.0.0.0/33" "10.0.0.256" 443
       |                                                          ^^^^^^^^^^^ not a peer
       |
       = help: write a domain, all below one, an address or a network: "api.example.com", "*.example.com", "10.1.0.7", "10.1.0.0/16"

    error: `*` is neither a domain nor an address
      --> Boxfile:4:70
       |
     4 |     allow "https://api.example.com/v1" "example.com:443" "localhost" "*" "10.0.0.0/33" "10.0.0.256" 443
       |                                                                      ^^^ not a peer
       |
       = help: write a domain, all below one, an address or a network: "api.example.com", "*.example.com", "10.1.0.7", "10.1.0.0/16"

    error: `10.0.0.0/33` is neither a domain nor an address
      --> Boxfile:4:74
       |
     4 |     allow "https://api.example.com/v1" "example.com:443" "localhost" "*" "10.0.0.0/33" "10.0.0.256" 443
       |                                                                          ^^^^^^^^^^^^^ not a peer
       |
       = help: after the `/` of a network comes its length in bits, at most 32, or 128 for IPv6: "10.1.0.0/16"

    error: `10.0.0.256` is neither a domain nor an address
      --> Boxfile:4:88
       |
     4 |     allow "https://api.example.com/v1" "example.com:443" "localhost" "*" "10.0.0.0/33" "10.0.0.256" 443
       |                                                                                        ^^^^^^^^^^^^ not a peer
       |
       = help: write a domain, all below one, an address or a network: "api.example.com", "*.example.com", "10.1.0.7", "10.1.0.0/16"

    error: `allow` takes a string, not the number 443
      --> Boxfile:4:101
       |
     4 |     allow "https://api.example.com/v1" "example.com:443" "localhost" "*" "10.0.0.0/33" "10.0.0.256" 443
       |                                                                                                     ^^^ expected a string
       |
       = help: write it in quotes: "443"

    error: unknown declaration `alow`
      --> Boxfile:5:5
       |
     5 |     alow "x"
       |     ^^^^ no such declaration here
       |
       = help: did you mean `allow`?
    "#);
}

#[test]
fn a_network_that_lets_nothing_through() {
    assert_snapshot!(file_errors("network \"filtered\""), @r#"
    error: without an `allow`, the network mode `filtered` lets nothing through
      --> Boxfile:3:9
       |
     3 | network "filtered"
       |         ^^^^^^^^^^ without `allow`
       |
       = help: write "none", or say what may be reached:
             network "filtered" {
                 allow "api.example.com" "*.example.org"
             }
    "#);
    assert_snapshot!(file_errors("network \"filtered\" {\n    deny \"example.com\"\n}"), @r#"
    error: without an `allow`, the network mode `filtered` lets nothing through
      --> Boxfile:3:9
       |
     3 | network "filtered" {
       |         ^^^^^^^^^^ without `allow`
       |
       = help: write "none", or say what may be reached:
             network "filtered" {
                 allow "api.example.com" "*.example.org"
             }
    "#);
    assert_snapshot!(file_errors("network \"cap-only\""), @r#"
    error: without a `cap`, the network mode `cap-only` lets nothing through
      --> Boxfile:3:9
       |
     3 | network "cap-only"
       |         ^^^^^^^^^^ without `cap`
       |
       = help: declare one, such as `cap "http"`, or write "none"
    "#);
    let toml = "box = \"b\"\nagent.image = \"oci:i\"\nnetwork = \"cap-only\"\n";
    assert_snapshot!(shown(&read(&[("Boxfile.toml", toml)], None)), @r#"
    error: without a `cap`, the network mode `cap-only` lets nothing through
      --> Boxfile.toml:3:11
       |
     3 | network = "cap-only"
       |           ^^^^^^^^^^ without `cap`
       |
       = help: declare one, such as `[cap.http]`, or write "none"
    "#);
}
