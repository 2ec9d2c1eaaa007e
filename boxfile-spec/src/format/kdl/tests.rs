use insta::assert_snapshot;

use super::*;

/// Formats a text, and checks that the result is stable.
fn format(source: &str) -> String {
    let formatted = format_kdl(source).unwrap();
    assert_eq!(format_kdl(&formatted).as_ref(), Some(&formatted));
    formatted
}

#[test]
fn the_examples_are_formatted() {
    for source in [
        include_str!("../../../../Boxfile.example"),
        include_str!("../../../../examples/hello/Boxfile"),
    ] {
        assert_eq!(format(source), source);
    }
}

#[test]
fn spaces_and_indentation() {
    assert_snapshot!(format(
        "box   \"hello\"\n\tagent{\n image  \"x\"   \n      port\t4088\n  }"
    ), @r#"
    box "hello"
    agent {
        image "x"
        port 4088
    }
    "#);
}

#[test]
fn properties() {
    assert_snapshot!(format(
        "env A = \"1\"  B= \"2\" C =\"3\" \\\n  D \\\n = \\\n 4"
    ), @r#"
    env A="1" B="2" C="3" \
        D=4
    "#);
}

#[test]
fn statements_on_one_line() {
    assert_snapshot!(format(
        "box \"a\";agent { image \"x\"; port 1;; }; vm cpus=1 // one\n"
    ), @r#"
    box "a"
    agent {
        image "x"
        port 1
    }
    vm cpus=1 // one
    "#);
}

#[test]
fn empty_blocks() {
    assert_snapshot!(format(
        "agent {\n\n}\nbusiness { // nothing\n}\nvm{}\n\
         budget /* none */ { /* of it */ }"
    ), @"
    agent {}
    business { // nothing
    }
    vm {}
    budget /* none */ {
        /* of it */
    }
    ");
}

#[test]
fn blank_lines() {
    assert_snapshot!(format(
        "\n\n\nbox \"a\"\n\n\n\nagent {\n\n  \
         image \"x\"\n\n\n  port 1\n\n}\n// end\n\n\n"
    ), @r#"
    box "a"

    agent {
        image "x"

        port 1
    }
    // end
    "#);
}

#[test]
fn comments_at_line_ends() {
    assert_snapshot!(format(
        "agent { // the agent\n\n  image \"oci:agent\" // from here\n  port 1// there\n\n  \
         workdir \"/w\"    // apart\n}// done\nvm cpus=1 // of\nbox \"a\"   //   the box   \n"
    ), @r#"
    agent { // the agent
        image "oci:agent" // from here
        port 1            // there

        workdir "/w" // apart
    } // done
    vm cpus=1 // of
    box "a"   //   the box
    "#);
}

#[test]
fn a_long_line_does_not_move_the_comments_of_others() {
    let long = format!("a 1 // x\nargs \"{}\" // y\nabc 2 // z\n", "-".repeat(80));
    assert_eq!(format(&long), long);
}

#[test]
fn block_comments() {
    assert_snapshot!(format(
        "/* a\r\n   b  \r\n*/\r\nbox/*c*/\"x\"/* d */\r\n\
         agent { /* e */ image /* f */ \"i\"; /* g */ }"
    ), @r#"
    /* a
       b
    */
    box /*c*/ "x" /* d */
    agent {
        /* e */ image /* f */ "i"
        /* g */
    }
    "#);
}

#[test]
fn slashdash_comments() {
    assert_snapshot!(format(
        "/-  box \"a\"\n/-\n\n agent {image \"x\";port 1}\nvm /- cpus=1 memory=\"1GiB\"\n\
         env /-  A=1\nbudget /-{a;b} {c}\n/- // why\nlayout \"split\"\n/- /* why */ skill"
    ), @r#"
    /-box "a"
    /-agent {
        image "x"
        port 1
    }
    vm /-cpus=1 memory="1GiB"
    env /-A=1
    budget /-{
        a
        b
    } {
        c
    }
    /- // why
        layout "split"
    /- /* why */ skill
    "#);
}

#[test]
fn continued_lines() {
    assert_snapshot!(format(
        "args \"a\" \\\n\"b\"\\ // why\n  \\ // and\n        \"c\" \\ /* d */\n  \\\n  \"e\"\n\
         agent \\\n {\nentrypoint \"x\" \\//1\n\"y\"//2\n}"
    ), @r#"
    args "a" \
        "b" \ // why
        \     // and
        "c" /* d */ \
        "e"
    agent {
        entrypoint "x" \ //1
            "y" //2
    }
    "#);
}

#[test]
fn continuations_that_join_nothing() {
    assert_snapshot!(format(
        "box \"a\" \\\n\nvm cpus=1 \\\n // c\n\\ // d\n\
         layout \"split\"; \\\n\\\n budget \\ // e"
    ), @r#"
    box "a"

    vm cpus=1
    // c
    // d
    layout "split"
    budget // e
    "#);
}

#[test]
fn texts_are_not_touched() {
    assert_snapshot!(format(
        "a  \"x  {;}//\\\"  y\"   #\"raw  \\ \"#  #\"a\"#\n\
         b   \"\"\"\n  one  \n\n\n     two\n  \"\"\"   // end\nc \"\\\n    joined\"  x"
    ), @r##"
    a "x  {;}//\"  y" #"raw  \ "# #"a"#
    b """
      one  


         two
      """ // end
    c "\
        joined" x
    "##);
}

#[test]
fn line_ends_become_line_feeds() {
    let source = "\u{feff}box \"a\"\r\n\r\nagent {\r\n  image \"x\" // c\r\n}\rvm\u{2028}";
    let expected = "\u{feff}box \"a\"\n\nagent {\n    image \"x\" // c\n}\nvm\n";
    assert_eq!(format(source), expected);
}

#[test]
fn nothing_gives_nothing() {
    assert_eq!(format(""), "");
    assert_eq!(format(" \n\n ;\t\r\n"), "");
    assert_eq!(format("\u{feff}\n"), "\u{feff}");
}

#[test]
fn slashdash_comments_may_be_malformed() {
    let source = "agent {\n    /-image oci:a/b C:\\x\\\\y (\n    image \"c\"\n}\n";
    assert_eq!(format(source), source);
}

#[test]
fn a_text_without_a_layout_is_refused() {
    for source in [
        "box \"a",
        "a \"\"\"\n",
        "a #\"\n\"#",
        "/* /* */",
        "agent {",
        "}",
        "a { } }",
        "a \\ b",
        "a\n\u{feff}",
        "/-",
        "a { /- }",
        "/-;a",
        "/- /- a",
    ] {
        assert_eq!(format_kdl(source), None, "{source}");
    }
    let nested = |depth| format!("{}{}", "a{".repeat(depth), "}".repeat(depth));
    assert!(format_kdl(&nested(64)).is_some());
    assert_eq!(format_kdl(&nested(65)), None);
}
