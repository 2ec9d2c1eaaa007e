use insta::assert_snapshot;

use super::*;

/// Formats a text, and checks that the result is stable and has the same meaning.
fn format(source: &str) -> String {
    let formatted = format_toml(source).unwrap();
    assert_eq!(format_toml(&formatted).as_ref(), Some(&formatted));
    assert_eq!(formatted.parse::<::toml::Table>(), source.parse());
    formatted
}

#[test]
fn keys_and_values() {
    assert_snapshot!(format(
        "box=\"a\"\n  a . b   =  1.5\n\"q\" .c= 1979-05-27   \nd\t=\t1979-05-27 07:32:00.5  # day"
    ), @r#"
    box = "a"
    a.b = 1.5
    "q".c = 1979-05-27
    d = 1979-05-27 07:32:00.5 # day
    "#);
}

#[test]
fn tables_stand_apart() {
    assert_snapshot!(format(
        "box = \"a\"\n[ agent ]\n\n\n  image=\"x\"\n\n\n  port=1\n\
         [agent . limits]\nmemory=\"1GiB\"\n\n\n\n[[ skill ]]\n[[skill]]"
    ), @r#"
    box = "a"

    [agent]
    image = "x"

    port = 1

    [agent.limits]
    memory = "1GiB"

    [[skill]]

    [[skill]]
    "#);
}

#[test]
fn a_comma_that_is_left_out_decides_about_no_space() {
    for (text, expected) in [("{.,}", "{.}\n"), ("a = {b = 1,}", "a = { b = 1 }\n")] {
        for text in [text, expected] {
            assert_eq!(format_toml(text).as_deref(), Some(expected));
        }
    }
}

#[test]
fn comments_go_with_the_table_below_them() {
    assert_snapshot!(format(
        "# the file\n\n# the box\nbox = \"a\"\n\
         # the agent,\n# here\n[agent]\n\
         # what\nimage = \"x\"\n# the end\n\n[vm] # the machine\n\ncpus = 1"
    ), @r#"
    # the file

    # the box
    box = "a"

    # the agent,
    # here
    [agent]
    # what
    image = "x"
    # the end

    [vm] # the machine
    cpus = 1
    "#);
}

#[test]
fn comments_at_line_ends() {
    assert_snapshot!(format(
        "a = 1    #   one  \nlonger = 2# two\n\nb = 3 # apart\n# alone"
    ), @"
    a = 1      #   one
    longer = 2 # two

    b = 3 # apart
    # alone
    ");
}

#[test]
fn arrays_on_one_line() {
    assert_snapshot!(format(
        "a=[ ]\nb=[1,2 ,3,]\nc = [ [\"x\"],[ 'y' , \"z\",] ]\nd = [[\n], []]"
    ), @r#"
    a = []
    b = [1, 2, 3]
    c = [["x"], ['y', "z"]]
    d = [[], []]
    "#);
}

#[test]
fn arrays_over_several_lines() {
    assert_snapshot!(format(
        "args = [ \"a\",\n\"b\", \"c\"]\n\
         empty = [\n\n]\ndeep = [\n[1,2],\n[\n3\n]]\nhug = [[\n1]]"
    ), @r#"
    args = [
        "a",
        "b",
        "c",
    ]
    empty = []
    deep = [
        [1, 2],
        [
            3,
        ],
    ]
    hug = [[
        1,
    ]]
    "#);
}

#[test]
fn comments_in_arrays() {
    assert_snapshot!(format(
        "a = [ # all\n\n1, # one\n222 # two\n, 3\n\n\n# three\n , # and\n4 # four\n # end\n] # done"
    ), @"
    a = [ # all
        1,   # one
        222, # two
        3,

        # three
        # and
        4, # four
        # end
    ] # done
    ");
}

#[test]
fn inline_tables() {
    assert_snapshot!(format(
        "a={}\nb={x=1,y . z=[1,2],}\n\
         skills = [ {name=\"a\"},{name = \"b\" }\n]"
    ), @r#"
    a = {}
    b = { x = 1, y.z = [1, 2] }
    skills = [
        { name = "a" },
        { name = "b" },
    ]
    "#);
}

#[test]
fn inline_tables_over_several_lines() {
    assert_snapshot!(format(
        "a = { x = 1,\ny = [\n1\n], # two\n z = 3 # three\n}"
    ), @"
    a = {
        x = 1,
        y = [
            1,
        ], # two
        z = 3, # three
    }
    ");
}

#[test]
fn texts_are_not_touched() {
    assert_snapshot!(format(
        "a=\"x  # = [,] \\\"  y\"\nb='c:\\  '\nc=\"\"\"\n  one  \n\n\n   two\"\"\"\"   # end\n\
         d = [ '''\n x ''' ,  '''y''',]"
    ), @r#"
    a = "x  # = [,] \"  y"
    b = 'c:\  '
    c = """
      one  


       two"""" # end
    d = ['''
     x ''', '''y''']
    "#);
}

#[test]
fn line_ends_become_line_feeds() {
    let source = "\u{feff}box = \"a\"\r\n\r\n\r\n[agent]\r\nimage = \"x\" # c\r\n";
    assert_eq!(format(source), "\u{feff}box = \"a\"\n\n[agent]\nimage = \"x\" # c\n");
}

#[test]
fn nothing_gives_nothing() {
    assert_eq!(format(""), "");
    assert_eq!(format(" \n\r\n\t"), "");
    assert_eq!(format("\u{feff}\n"), "\u{feff}");
}

#[test]
fn a_text_without_a_layout_is_refused() {
    for source in [
        "a = \"b",
        "a = 'b",
        "a = \"b\\\"",
        "a = \"\"\"b\"\"",
        "a = '''",
        "a = \"\\q\"",
        "a = [1",
        "a = 1]",
        "a = [1}",
        "a = {b = 1]",
        "a, b",
        "a = [,]",
        "a = [1,,]",
        "a = [1\n2]",
        "a = [1 # c\n2]",
        "a = { b = # c\n 1 }",
        "[a,]",
        "[a\n]",
        "a = 1\rb = 2",
        "# \u{7}",
        "\n\u{feff}a = 1",
    ] {
        assert_eq!(format_toml(source), None, "{source}");
    }
    let nested = |depth| format!("a = {}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(format_toml(&nested(64)).is_some());
    assert_eq!(format_toml(&nested(65)), None);
}
