//! Errors of files that extend base files.

use insta::assert_snapshot;

use crate::{read, shown};

const BASE: &str = "agent {\n    image \"oci:i\"\n    limits memory=\"1GiB\"\n}\n";

fn show(files: &[(&str, &str)]) -> String {
    shown(&read(files, None))
}

#[test]
fn a_base_that_cannot_be_read() {
    assert_snapshot!(show(&[("Boxfile", "box b\nextends \"base.Boxfile\"\n")]), @r#"
    error: cannot extend `base.Boxfile`: there is no such file
      --> Boxfile:2:9
       |
     2 | extends "base.Boxfile"
       |         ^^^^^^^^^^^^^^ named here
       |
       = help: name a file of the checkout, relative to the directory of this one
    "#);
}

#[test]
fn a_base_must_be_in_the_checkout() {
    assert_snapshot!(show(&[("Boxfile", "box b\nextends \"/etc/base.Boxfile\"\n")]), @r#"
    error: a base file must be inside the checkout
      --> Boxfile:2:9
       |
     2 | extends "/etc/base.Boxfile"
       |         ^^^^^^^^^^^^^^^^^^^ an absolute path
       |
       = help: a base is checked in with what extends it: name it relative to this file, such as "../base.Boxfile"
    "#);
    assert_snapshot!(show(&[
        ("Boxfile", "box b\nextends \"a\"\n"),
        ("a", "extends \"/b\"\nport 80\n"),
        ("/b", BASE),
    ]), @r#"
    error: a base file must be inside the checkout
      --> a:1:9
       |
     1 | extends "/b"
       |         ^^^^ an absolute path
       |
       = help: a base is checked in with what extends it: name it relative to this file, such as "../base.Boxfile"

    error: `port` does not belong here
      --> a:2:1
       |
     2 | port 80
       | ^^^^ not allowed here
       |
       = help: it belongs inside `agent { … }`
    "#);
    assert_snapshot!(show(&[("Boxfile", "box b\nextends \"a\\nerror: forged\"\n")]), @r#"
    error: `extends` contains the invisible character U+000A
      --> Boxfile:2:9
       |
     2 | extends "a\nerror: forged"
       |         ^^^^^^^^^^^^^^^^^^ not what it looks like
       |
       = help: remove the character; if the file has it in its name, rename the file
    "#);
}

#[test]
fn a_name_that_a_terminal_would_obey_is_shown_and_not_obeyed() {
    let main = "extends base\nbox b\nshare s guest=\"/s\"\n";
    let document =
        boxfile_spec::read(diagnostics::Source::new("\u{1b}[2J\nBoxfile", main), None, |_| {
            let text = format!("{BASE}share t guest=\"/s\"\n");
            Ok(diagnostics::Source::new("\u{9b}2J\u{202e}base", text))
        });
    assert_snapshot!(shown(&document), @r#"
    error: `/s` is used twice
      --> �2J�base:5:15
       |
     5 | share t guest="/s"
       |               ^^^^ the place of this `share`
       |
      ::: �[2J�Boxfile:3:15
       |
     3 | share s guest="/s"
       |               ---- the place of this `share`
       |
       = help: give one of them another path, or remove it
    "#);
}

#[test]
fn a_text_by_itself_extends_nothing() {
    assert_snapshot!(crate::errors("box b\nextends \"base.Boxfile\"\n"), @r#"
    error: cannot extend `base.Boxfile`: there is no such file
      --> Boxfile:2:9
       |
     2 | extends "base.Boxfile"
       |         ^^^^^^^^^^^^^^ named here
       |
       = help: name a file of the checkout, relative to the directory of this one
    "#);
}

#[test]
fn a_base_is_no_url() {
    assert_snapshot!(show(&[("Boxfile", "box b\nextends \"https://x/base\"\n")]), @r#"
    error: a base file must be inside the checkout
      --> Boxfile:2:9
       |
     2 | extends "https://x/base"
       |         ^^^^^^^^^^^^^^^^ a URL
       |
       = help: a base is checked in with what extends it: name it relative to this file, such as "../base.Boxfile"
    "#);
}

#[test]
fn extends_names_one_path() {
    assert_snapshot!(show(&[("Boxfile", "box b\nextends\n")]), @r#"
    error: `extends` needs a path
      --> Boxfile:2:1
       |
     2 | extends
       | ^^^^^^^ without a path
       |
       = help: for example `extends "../base.Boxfile"`
    "#);
    assert_snapshot!(show(&[("Boxfile", "box b\nextends \"a\" \"b\"\n"), ("a", BASE)]), @r#"
    error: unexpected argument: the string `b`
      --> Boxfile:2:13
       |
     2 | extends "a" "b"
       |             ^^^ one too many
       |
       = help: remove it
    "#);
    assert_snapshot!(show(&[("Boxfile", "box b\nextends \"a\"\nextends \"b\"\n"), ("a", BASE)]), @r#"
    error: a file extends one other file
      --> Boxfile:3:1
       |
     2 | extends "a"
       | ------- the first
     3 | extends "b"
       | ^^^^^^^ the second
       |
       = help: let one of the two bases extend the other
    "#);
    assert_snapshot!(show(&[("Boxfile", "box b\nextends ../base.Boxfile\n")]), @r#"
    error: `../base.Boxfile` must be in quotes
      --> Boxfile:2:9
       |
     2 | extends ../base.Boxfile
       |         ^^^^^^^^^^^^^^^ a bare word cannot contain this
       |
       = help: write `"../base.Boxfile"`
    "#);
    assert_snapshot!(show(&[("Boxfile", "box b\nextend \"../base.Boxfile\"\n")]), @r#"
    error: unknown declaration `extend`
      --> Boxfile:2:1
       |
     2 | extend "../base.Boxfile"
       | ^^^^^^ no such declaration here
       |
       = help: did you mean `extends`?
    "#);
}

#[test]
fn files_that_extend_each_other_in_a_circle() {
    assert_snapshot!(show(&[
        ("Boxfile", "box b\nextends \"x/a\"\n"),
        ("x/a", "extends \"../b\"\n"),
        ("b", "extends \"./x/a\"\n"),
    ]), @r#"
    error: cannot extend `x/a`: the files extend one another in a circle
      --> b:1:9
       |
     1 | extends "./x/a"
       |         ^^^^^^^ named here
       |
       = help: remove `extends` from one of them
    "#);
    assert_snapshot!(show(&[("Boxfile", "box b\nextends \"Boxfile\"\n"), ("Boxfile", "box b\nextends \"Boxfile\"\n")]), @r#"
    error: cannot extend `Boxfile`: the files extend one another in a circle
      --> Boxfile:2:9
       |
     2 | extends "Boxfile"
       |         ^^^^^^^^^ named here
       |
       = help: remove `extends` from one of them
    "#);
}

#[test]
fn a_chain_that_is_too_long() {
    let names: Vec<String> = (0..10).map(|index| format!("base{index}")).collect();
    let texts: Vec<String> = (1..11).map(|index| format!("extends \"base{index}\"\n")).collect();
    let mut files = vec![("Boxfile", "box b\nextends \"base0\"\n")];
    files.extend(names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())));
    assert_snapshot!(show(&files), @r#"
    error: cannot extend `base8`: more than 8 files extend one another
      --> base7:1:9
       |
     1 | extends "base8"
       |         ^^^^^^^ named here
       |
       = help: merge some of the base files into one
    "#);
}

#[test]
fn an_error_of_the_base_is_shown_in_the_base() {
    assert_snapshot!(show(&[
        ("Boxfile", "box b\nextends \"../base.Boxfile\"\nvm cpus=0\n"),
        ("../base.Boxfile", "agent {\n    imgae \"oci:i\"\n    port 0\n}\n"),
    ]), @r#"
    error: `cpus` is out of range
      --> Boxfile:3:9
       |
     3 | vm cpus=0
       |         ^ must be from 1 to 16

    error: unknown declaration `imgae`
      --> ../base.Boxfile:2:5
       |
     2 |     imgae "oci:i"
       |     ^^^^^ no such declaration here
       |
       = help: did you mean `image`?

    error: `port` is out of range
      --> ../base.Boxfile:3:10
       |
     3 |     port 0
       |          ^ must be from 1 to 65535
    "#);
}

#[test]
fn a_clash_of_two_files_is_shown_in_both() {
    assert_snapshot!(show(&[
        ("Boxfile", "box b\nextends \"../base.Boxfile\"\nvm memory=\"512MiB\"\nshare \"x\" guest=\"/data\"\n"),
        ("../base.Boxfile", &format!("{BASE}\nshare \"data\" guest=\"/data\"\n")),
    ]), @r#"
    error: the components may take 1GiB, which leaves no memory for the VM itself
      --> Boxfile:3:11
       |
     3 | vm memory="512MiB"
       |           ^^^^^^^^ must be more than 1GiB
       |
      ::: ../base.Boxfile:3:19
       |
     3 |     limits memory="1GiB"
       |                   ------ may take 1GiB
       |
       = help: write `memory="1280MiB"`, or lower the limits

    error: `/data` is used twice
      --> ../base.Boxfile:6:20
       |
     6 | share "data" guest="/data"
       |                    ^^^^^^^ the place of this `share`
       |
      ::: Boxfile:4:17
       |
     4 | share "x" guest="/data"
       |                 ------- the place of this `share`
       |
       = help: give one of them another path, or remove it
    "#);
}

#[test]
fn a_duplicate_in_one_file_is_an_error_over_a_base_too() {
    assert_snapshot!(show(&[
        ("Boxfile", "box b\nextends \"base\"\nvm cpus=1\nvm cpus=2\nskill \"a\" path=\"a\"\nskill \"a\" path=\"b\"\n"),
        ("base", &format!("{BASE}vm cpus=3\nskill \"a\" path=\"c\"\n")),
    ]), @r#"
    error: `vm` is declared twice
      --> Boxfile:4:1
       |
     3 | vm cpus=1
       | -- declared first
     4 | vm cpus=2
       | ^^ declared again
       |
       = help: keep one of them and remove the others

    error: the skill `a` is declared twice
      --> Boxfile:6:7
       |
     5 | skill "a" path="a"
       |       --- declared first
     6 | skill "a" path="b"
       |       ^^^ declared again
       |
       = help: give one of them another name, or remove it
    "#);
}

#[test]
fn a_base_that_is_too_long_or_not_closed() {
    let long = format!("//{}", "x".repeat(boxfile_spec::MAX_SOURCE));
    assert_snapshot!(show(&[("Boxfile", "box b\nextends \"a\"\n"), ("a", &long)]).replace(&"x".repeat(40), "x"), @"
    error: the file has more than 1048576 bytes
      --> a:1:1
       |
     1 | //xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
       | ^ not read
       |
       = help: a Boxfile holds declarations only; put files into images and skills
    ");
    assert_snapshot!(show(&[("Boxfile", "box b\nextends \"a\"\n"), ("a", "agent {\n")]), @"
    error: this block is never closed
      --> a:1:7
       |
     1 | agent {
       |       ^ opened here
       |
       = help: close it with `}`
    ");
}

#[test]
fn a_line_of_the_base_that_cannot_be_read_makes_nothing_missing() {
    assert_snapshot!(show(&[
        ("Boxfile", "box b\nextends \"base\"\nagent { port 80; }\n"),
        ("base", "agent [x] {\n    image \"oci:i\"\n}\n"),
    ]), @r#"
    error: `[` has no meaning here
      --> base:1:7
       |
     1 | agent [x] {
       |       ^^^ unexpected
       |
       = help: values follow one another with spaces between them: `args "a" "b"`
    "#);
}

#[test]
fn what_is_overridden_is_right_all_the_same() {
    let main = "extends base\nbox b\nvm cpus=1\nagent {\n port 80\n env A=\"1\" TOKEN=\"\"\n args x\n}\n\
                network none\nprofile ci { vm cpus=2; }\n";
    let base = "box 3\nvm cpus=\"two\"\nagent {\n image \"oci:i\"\n port\n env A=1 TOKEN=\"ghp_0123456789abcdef\"\n \
                args #true\n}\nnetwork shared { alow x; }\nprofile ci { vm cpus=0; }\n";
    assert_snapshot!(show(&[("Boxfile", main), ("base", base)]), @r#"
    error: `box` takes a string, not the number 3
      --> base:1:5
       |
     1 | box 3
       |     ^ expected a string
       |
       = help: write it in quotes: "3"

    error: `cpus` takes a whole number, not the string `two`
      --> base:2:9
       |
     2 | vm cpus="two"
       |         ^^^^^ expected a whole number

    error: `port` needs a number
      --> base:5:2
       |
     5 |  port
       |  ^^^^ without a number
       |
       = help: for example `port 4088`

    error: `A` takes a string, not the number 1
      --> base:6:8
       |
     6 |  env A=1 TOKEN="********************"
       |        ^ expected a string
       |
       = help: write it in quotes: "1"

    error: `TOKEN` looks like a secret written as a plain value
      --> base:6:16
       |
     6 |  env A=1 TOKEN="********************"
       |                ^^^^^^^^^^^^^^^^^^^^^^ it would be in the checkout and in every box
       |
       = help: declare it by name alone, outside of the component: `secret "TOKEN"` (`boxlaunch run --secret` gives its value); if it is not a secret, write `plain-env TOKEN=…`

    error: `args` takes a string, not `#true`
      --> base:7:7
       |
     7 |  args #true
       |       ^^^^^ expected a string
       |
       = help: write it in quotes: "true"

    error: unknown declaration `alow`
      --> base:9:18
       |
     9 | network shared { alow x; }
       |                  ^^^^ no such declaration here
       |
       = help: did you mean `allow`?

    error: `cpus` is out of range
       --> base:10:22
        |
     10 | profile ci { vm cpus=0; }
        |                      ^ must be from 1 to 16
    "#);
}

#[test]
fn what_a_base_lacks_may_be_in_what_overrides_it() {
    let base = "agent kind=local_binary {\n health exec \"/bin/check\"\n}\nbudget ready=\"10s\"\n\
                conflict \"/a\" policy=drop\nvm memory=\"400MiB\"\nskill s mode=mount\nnetwork cap-only\n\
                share s guest=\"/s\" component=business\n";
    let main = "extends base\nbox b\nagent kind=oci_image {\n image \"oci:i\"\n limits memory=\"64MiB\"\n}\n\
                budget ready=\"10s\" total=\"20s\"\nbusiness {\n image \"oci:i\"\n limits memory=\"64MiB\"\n}\n\
                layout merged\nconflict \"/a\" policy=drop\nvm memory=\"500MiB\"\n\
                skill s path=s\nnetwork none\nshare s component=agent\n";
    assert_snapshot!(show(&[("Boxfile", main), ("base", base)]), @"");
}
