//! The network of the guest.

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
    deny "uploads.example.com" port=80
    limits names=1
}"#), @r#"
    warning: a box gets the network of its host only with an option of `boxlaunch run`
      --> Boxfile:3:9
       |
     3 | network "shared" {
       |         ^^^^^^^^ refused without the option
       |
       = help: run the box with `boxlaunch run --network shared`; to reach some hosts on the internet, `filtered` needs no option

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

    error: `limits` needs the network mode `filtered`
      --> Boxfile:7:5
       |
     7 |     limits names=1
       |     ^^^^^^ has no effect here
       |
       = help: write `network "filtered" { … }`, or remove `limits`
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
       = help: name the port by itself: `allow "example.com" port=443`

    error: `localhost` is neither a domain nor an address
      --> Boxfile:4:58
       |
     4 |     allow "https://api.example.com/v1" "example.com:443" "localhost" "*" "10.0.0.0/33" "10.0.0.256" 443
       |                                                          ^^^^^^^^^^^ not a peer
       |
       = help: `localhost` is the box itself; the host's loopback, which `boxlaunch run --network-local localhost` allows, is "127.0.0.1"

    error: `*` is neither a domain nor an address
      --> Boxfile:4:70
       |
     4 |     allow "https://api.example.com/v1" "example.com:443" "localhost" "*" "10.0.0.0/33" "10.0.0.256" 443
       |                                                                      ^^^ not a peer
       |
       = help: write a domain of at least two parts, all its subdomains, an address or a network: "api.example.com", "*.example.com", "10.1.0.7", "10.1.0.0/16"

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
       = help: write a domain of at least two parts, all its subdomains, an address or a network: "api.example.com", "*.example.com", "10.1.0.7", "10.1.0.0/16"

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
fn a_port_is_a_number_from_1_to_65535() {
    assert_snapshot!(file_errors(r#"network "filtered" {
    allow "a.example" port=0
    allow "b.example" port=65536
    deny "c.example" port="22"
    deny port=22
    allow "d.example" prot=22
    allow "e.example:22" "https://f.example:8443/v1"
    deny "g.example:x" "[::1]:22"
}"#), @r#"
    error: `port` is out of range
      --> Boxfile:4:28
       |
     4 |     allow "a.example" port=0
       |                            ^ must be from 1 to 65535

    error: `port` is out of range
      --> Boxfile:5:28
       |
     5 |     allow "b.example" port=65536
       |                            ^^^^^ must be from 1 to 65535

    error: `port` takes a whole number, not the string `22`
      --> Boxfile:6:27
       |
     6 |     deny "c.example" port="22"
       |                           ^^^^ expected a whole number
       |
       = help: write it without quotes: 22

    error: `deny` needs a peer
      --> Boxfile:7:5
       |
     7 |     deny port=22
       |     ^^^^ without a peer
       |
       = help: for example
             deny "uploads.example.org"
             deny "api.example.com" port=80

    error: `allow` has no property `prot`
      --> Boxfile:8:23
       |
     8 |     allow "d.example" prot=22
       |                       ^^^^ no such property
       |
       = help: did you mean `port`?

    error: `e.example:22` is neither a domain nor an address
      --> Boxfile:9:11
       |
     9 |     allow "e.example:22" "https://f.example:8443/v1"
       |           ^^^^^^^^^^^^^^ not a peer
       |
       = help: name the port by itself: `allow "e.example" port=22`

    error: `https://f.example:8443/v1` is neither a domain nor an address
      --> Boxfile:9:26
       |
     9 |     allow "e.example:22" "https://f.example:8443/v1"
       |                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^ not a peer
       |
       = help: name the port by itself: `allow "f.example" port=8443`

    error: `g.example:x` is neither a domain nor an address
       --> Boxfile:10:10
        |
     10 |     deny "g.example:x" "[::1]:22"
        |          ^^^^^^^^^^^^^ not a peer
        |
        = help: name the host alone, without scheme, port and path: "g.example"

    error: `[::1]:22` is neither a domain nor an address
       --> Boxfile:10:24
        |
     10 |     deny "g.example:x" "[::1]:22"
        |                        ^^^^^^^^^^ not a peer
        |
        = help: write a domain of at least two parts, all its subdomains, an address or a network: "api.example.com", "*.example.com", "10.1.0.7", "10.1.0.0/16"
    "#);
    let toml = r#"box = "b"
agent.image = "oci:i"

[network]
mode = "filtered"
allow = ["a.example", { port = 22 }, { peer = "b.example", port = 0 }, { peer = "c.example", ports = [1] }, { peers = ["d.example"] }]
deny = [["e.example"], "f.example:22", { peer = "g.example:22" }]
"#;
    assert_snapshot!(shown(&read(&[("Boxfile.toml", toml)], None)), @r#"
    error: `allow` needs a peer
      --> Boxfile.toml:6:23
       |
     6 | allow = ["a.example", { port = 22 }, { peer = "b.example", port = 0 }, { peer = "c.example", ports = [1] }, { peers = ["…
       |                       ^ without a peer
       |
       = help: for example `allow = ["api.example.com", "*.example.org", { peer = "db.example.com", port = 5432 }]`

    error: `port` is out of range
      --> Boxfile.toml:6:67
       |
     6 | …ample", { port = 22 }, { peer = "b.example", port = 0 }, { peer = "c.example", ports = [1] }, { peers = ["d.example"] }]
       |                                                      ^ must be from 1 to 65535

    error: `allow` has no property `ports`
      --> Boxfile.toml:6:94
       |
     6 | …ample", { port = 22 }, { peer = "b.example", port = 0 }, { peer = "c.example", ports = [1] }, { peers = ["d.example"] }]
       |                                                                                 ^^^^^ no such property
       |
       = help: did you mean `port`?

    error: `allow` needs `peer`
      --> Boxfile.toml:6:109
       |
     6 | …ample", { port = 22 }, { peer = "b.example", port = 0 }, { peer = "c.example", ports = [1] }, { peers = ["d.example"] }]
       |                                                                                                ^ without `peer`
       |
       = help: for example `allow = ["api.example.com", "*.example.org", { peer = "db.example.com", port = 5432 }]`

    error: `deny` takes a string, not a list
      --> Boxfile.toml:7:9
       |
     7 | deny = [["e.example"], "f.example:22", { peer = "g.example:22" }]
       |         ^^^^^^^^^^^^^ expected a string
       |
       = help: write one string in quotes

    error: `f.example:22` is neither a domain nor an address
      --> Boxfile.toml:7:24
       |
     7 | deny = [["e.example"], "f.example:22", { peer = "g.example:22" }]
       |                        ^^^^^^^^^^^^^^ not a peer
       |
       = help: name the port by itself: `{ peer = "f.example", port = 22 }`

    error: `g.example:22` is neither a domain nor an address
      --> Boxfile.toml:7:49
       |
     7 | deny = [["e.example"], "f.example:22", { peer = "g.example:22" }]
       |                                                 ^^^^^^^^^^^^^^ not a peer
       |
       = help: name the port by itself: `{ peer = "g.example", port = 22 }`
    "#);
}

#[test]
fn limits_have_bounds() {
    assert_snapshot!(file_errors(r#"network "filtered" {
    allow "a.example"
    limits connections=513 rate="63KiB" names=0
    limits rate="17GiB"
}"#), @r#"
    error: `connections` is out of range
      --> Boxfile:5:24
       |
     5 |     limits connections=513 rate="63KiB" names=0
       |                        ^^^ must be from 1 to 512

    error: `rate` is 63KiB, which is less than 64KiB
      --> Boxfile:5:33
       |
     5 |     limits connections=513 rate="63KiB" names=0
       |                                 ^^^^^^^ must be from 64KiB to 16GiB
       |
       = help: write `rate="64KiB"`

    error: `names` is out of range
      --> Boxfile:5:47
       |
     5 |     limits connections=513 rate="63KiB" names=0
       |                                               ^ must be from 1 to 100000

    error: `limits` is declared twice
      --> Boxfile:6:5
       |
     5 |     limits connections=513 rate="63KiB" names=0
       |     ------ declared first
     6 |     limits rate="17GiB"
       |     ^^^^^^ declared again
       |
       = help: keep one of them and remove the others
    "#);
    assert_snapshot!(file_errors(r#"network "filtered" {
    allow "a.example"
    limits connections="64" rate=1000 name=7
    deny
}"#), @r#"
    error: `connections` takes a whole number, not the string `64`
      --> Boxfile:5:24
       |
     5 |     limits connections="64" rate=1000 name=7
       |                        ^^^^ expected a whole number
       |
       = help: write it without quotes: 64

    error: `rate` has no unit
      --> Boxfile:5:34
       |
     5 |     limits connections="64" rate=1000 name=7
       |                                  ^^^^ a bare number
       |
       = help: write `rate="1000MiB"`, or `rate="1000B"` for bytes

    error: `limits` has no property `name`
      --> Boxfile:5:39
       |
     5 |     limits connections="64" rate=1000 name=7
       |                                       ^^^^ no such property
       |
       = help: did you mean `names`?

    error: `deny` needs a peer
      --> Boxfile:6:5
       |
     6 |     deny
       |     ^^^^ without a peer
       |
       = help: for example
             deny "uploads.example.org"
             deny "api.example.com" port=80
    "#);
    assert_snapshot!(file_errors(r#"network "filtered" {
    allow "a.example"
    limits
    connections 64
}"#), @r#"
    error: `limits` is empty
      --> Boxfile:5:5
       |
     5 |     limits
       |     ^^^^^^ nothing is given
       |
       = help: for example `limits connections=64 rate="10MiB" names=100`

    error: unknown declaration `connections`
      --> Boxfile:6:5
       |
     6 |     connections 64
       |     ^^^^^^^^^^^ no such declaration here
       |
       = help: write `limits connections=64`
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
       = help: write "none", or declare which hosts may be reached:
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
       = help: write "none", or declare which hosts may be reached:
             network "filtered" {
                 allow "api.example.com" "*.example.org"
             }
    "#);
    assert_snapshot!(file_errors("network \"cap-only\""), @r#"
    error: without a `service`, the network mode `cap-only` lets nothing through
      --> Boxfile:3:9
       |
     3 | network "cap-only"
       |         ^^^^^^^^^^ without `service`
       |
       = help: declare one, such as `service "model"`, or write "none"
    "#);
    let toml = "box = \"b\"\nagent.image = \"oci:i\"\nnetwork = \"cap-only\"\n";
    assert_snapshot!(shown(&read(&[("Boxfile.toml", toml)], None)), @r#"
    error: without a `service`, the network mode `cap-only` lets nothing through
      --> Boxfile.toml:3:11
       |
     3 | network = "cap-only"
       |           ^^^^^^^^^^ without `service`
       |
       = help: declare one, such as `[service.model]`, or write "none"
    "#);
}

#[test]
fn what_only_the_command_line_gives_is_a_warning() {
    let warnings = |name: &str, lines: &str| {
        let head = match name {
            "Boxfile" => "box b\nagent { image \"oci:i\"; }\n",
            _ => "box = \"b\"\n[agent]\nimage = \"oci:i\"\n",
        };
        let document = read(&[(name, &format!("{head}{lines}\n"))], None);
        assert!(document.boxfile.is_some());
        shown(&document)
    };
    let rules = "network filtered {\n    allow \"api.example.com\" \"127.0.0.1\" port=9999\n    allow \"0.0.0.0/0\" \"8.8.8.8\"\n    \
                 deny \"10.0.0.0/8\"\n}";
    assert_snapshot!(warnings("Boxfile", rules), @r#"
    warning: this address is not on the internet (loopback): a box reaches it only with an option of `boxlaunch run`
      --> Boxfile:4:29
       |
     4 |     allow "api.example.com" "127.0.0.1" port=9999
       |                             ^^^^^^^^^^^ refused without the option
       |
       = help: run the box with `boxlaunch run --network-local 127.0.0.1:9999`

    warning: this network is not entirely on the internet (this host): a box reaches it only with an option of `boxlaunch run`
      --> Boxfile:5:11
       |
     5 |     allow "0.0.0.0/0" "8.8.8.8"
       |           ^^^^^^^^^^^ refused without the option
       |
       = help: run the box with `boxlaunch run --network-local 0.0.0.0/0`
    "#);
    assert_snapshot!(warnings("Boxfile", "network shared"), @"
    warning: a box gets the network of its host only with an option of `boxlaunch run`
      --> Boxfile:3:9
       |
     3 | network shared
       |         ^^^^^^ refused without the option
       |
       = help: run the box with `boxlaunch run --network shared`; to reach some hosts on the internet, `filtered` needs no option
    ");
    let toml = "[network]\nmode = \"filtered\"\nallow = [{ peer = \"127.0.0.1\", port = 9999 }]";
    assert_snapshot!(warnings("Boxfile.toml", toml), @r#"
    warning: this address is not on the internet (loopback): a box reaches it only with an option of `boxlaunch run`
      --> Boxfile.toml:6:19
       |
     6 | allow = [{ peer = "127.0.0.1", port = 9999 }]
       |                   ^^^^^^^^^^^ refused without the option
       |
       = help: run the box with `boxlaunch run --network-local 127.0.0.1:9999`
    "#);
    let public = "network filtered { allow \"api.example.com\" \"8.8.8.8\"; }";
    assert_eq!(warnings("Boxfile", public), "");
}
