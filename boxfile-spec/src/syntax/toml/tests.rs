use proptest::prelude::*;
use proptest::sample::select;
use testkit::hostile::replace_each;
use toml::de::{DeTable, DeValue};

use super::table::{Content, Item, Table};
use super::*;
use crate::schema::Declaration;
use crate::syntax::tree::{Data, Node};
use diagnostics::{Diagnostic, Source, Syntax};

/// The beginning of each block in KDL and in TOML, with the required parts of the block: the
/// declaration's name, the KDL text, the TOML header, and the TOML lines below the header.
const BLOCKS: [(&str, &str, &str, &str); 9] = [
    ("agent", "agent {", "agent", ""),
    ("business", "business {", "business", ""),
    ("network", "network \"filtered\" {", "network", "mode = \"filtered\""),
    ("cap", "cap \"nostr\" {", "cap.nostr", ""),
    ("sandbox", "sandbox \"default\" {", "sandbox", "preset = \"default\""),
    (
        "task",
        "task \"t\" type=\"t\" description=\"d\" {",
        "task",
        "id = \"t\"\ntype = \"t\"\ndescription = \"d\"",
    ),
    (
        "service",
        "service \"s\" to=\"https://a.example\" {",
        "service.s",
        "to = \"https://a.example\"",
    ),
    ("mcp", "mcp \"m\" {", "mcp.m", ""),
    ("profile", "profile \"ci\" {", "profile.ci", ""),
];

/// The base file of every example. It has the declarations that an example lacks to be complete.
const BASE: &str = "box \"b\"\nagent { image \"oci:i\"; }\nbusiness { image \"oci:j\"; }\nlayout \"merged\"\n\
                    service \"own\" to=\"https://own.example\"\nsecret \"MCP_TOKEN\"\n";

/// The example of a declaration, inside the blocks that it needs, in both syntaxes.
struct Example {
    kdl: String,
    toml: String,
}

impl Example {
    fn new(blocks: &[&Declaration], declaration: &Declaration) -> Self {
        let [kdl, toml] = [Syntax::Kdl, Syntax::Toml].map(|it| declaration.example(it));
        let blocks: Vec<_> = blocks
            .iter()
            .map(|block| BLOCKS.iter().find(|(name, ..)| *name == block.name).unwrap())
            .collect();
        let open: String = blocks.iter().map(|(_, open, ..)| format!("{open}\n")).collect();
        // `deny` and `limits` require an `allow`, and the other parts of an MCP server its program or URL.
        let [needed, also] = match (blocks.last().map(|(name, ..)| *name), declaration.name) {
            (Some("network"), "deny" | "limits") => {
                ["allow \"example.com\"\n", "\nallow = \"example.com\""]
            }
            (Some("mcp"), "env" | "secret") => ["command \"/m\"\n", "\ncommand = \"/m\""],
            (Some("mcp"), "header") => {
                ["url \"http://127.0.0.1:1\"\n", "\nurl = \"http://127.0.0.1:1\""]
            }
            _ => ["", ""],
        };
        let path = blocks.iter().map(|(_, _, name, _)| *name).collect::<Vec<_>>().join(".");
        let toml = match blocks.last() {
            None => toml.to_owned(),
            Some(_) if toml.starts_with('[') => toml.replacen('[', &format!("[{path}."), 1),
            Some((.., required)) => format!("[{path}]\n{required}\n{toml}{also}"),
        };
        let close = "}\n".repeat(blocks.len());
        Self { kdl: format!("{open}{needed}{kdl}\n{close}"), toml }
    }

    /// Returns the canonical form of the KDL text and of the TOML text; for an invalid text, its
    /// errors.
    fn canonical(&self) -> [String; 2] {
        let extends = |text: &str, prefix: &str| {
            if text.starts_with("extends") { text.to_owned() } else { format!("{prefix}{text}") }
        };
        [
            canonical(Source::new("Boxfile", extends(&self.kdl, "extends \"base\"\n"))),
            canonical(Source::new("Boxfile.toml", extends(&self.toml, "extends = \"base\"\n"))),
        ]
    }
}

fn canonical(source: Source) -> String {
    let profile = source.text.contains("profile").then_some("ci");
    let reach = crate::Reach { up: Some(1), ..crate::Reach::default() };
    let document = crate::read_within(source, profile, &reach, |_| Ok(Source::new("base", BASE)));
    let sources = document.sources.clone();
    match document.into_result() {
        Ok(boxfile) => boxfile.canonical(),
        Err(errors) => errors.render(&sources),
    }
}

/// Calls `check` for every declaration, with the blocks that contain it.
fn each(
    blocks: &[&'static Declaration],
    known: &[&'static Declaration],
    check: &mut impl FnMut(&[&'static Declaration], &'static Declaration),
) {
    for declaration in known {
        check(blocks, declaration);
        each(&[blocks, &[declaration]].concat(), declaration.children, check);
    }
}

#[test]
fn each_example_says_the_same_in_both_syntaxes() {
    let plain = canonical(Source::new("Boxfile", BASE));
    let (mut defaults, mut wrong) = (Vec::new(), Vec::new());
    let mut count = 0;
    each(&[], schema::TOP, &mut |blocks, declaration| {
        let example = Example::new(blocks, declaration);
        let [kdl, toml] = example.canonical();
        if kdl != toml || !kdl.starts_with('{') {
            wrong.push(format!("{}\n{kdl}\n{}\n{toml}", example.kdl, example.toml));
        }
        let name = [blocks, &[declaration]].concat().iter().map(|it| it.name).collect::<Vec<_>>();
        if kdl == plain {
            defaults.push(name.join("."));
        }
        count += 1;
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert_eq!(defaults, ["agent.limits", "profile.agent.limits"]);
    assert!(count > 80, "{count}");
}

#[test]
fn no_key_of_a_table_can_mean_two_things() {
    each(&[], schema::TOP, &mut |_, declaration| {
        let arguments = declaration.first.iter().chain(&declaration.rest).map(|it| it.name);
        let props = declaration.props.iter().map(|it| it.name);
        let children = declaration.children.iter().map(|it| it.name);
        let mut names: Vec<&str> = arguments.chain(props).chain(children).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{}: {names:?}", declaration.name);
    });
}

fn read(source: &str, sink: &Sink) -> Tree {
    super::read(source, &mut Allowance::default(), sink)
}

fn document(source: &str) -> (document::Document, Vec<Diagnostic>) {
    let sink = Sink::default();
    let document = document::read(source, &mut Allowance::default(), &sink);
    (document, sink.into_found())
}

/// Checks that our tables equal the `toml` crate's tables, in any order.
fn assert_same(ours: &Table, theirs: &DeTable<'_>, source: &str) {
    assert_eq!(ours.entries.len(), theirs.len(), "{source}");
    for (name, item) in &ours.entries {
        let theirs = theirs.get(name.value.as_str()).expect(source);
        assert_same_item(item, theirs.get_ref(), source);
        if !matches!(item.content, Content::Table(_)) {
            let range = item.span.offset..item.span.end();
            assert_eq!(range, theirs.span(), "{source}");
        }
    }
}

fn assert_same_item(ours: &Item, theirs: &DeValue<'_>, source: &str) {
    match (&ours.content, theirs) {
        (Content::Table(ours), DeValue::Table(theirs)) => assert_same(ours, theirs, source),
        (Content::List(ours), DeValue::Array(theirs)) => {
            assert_eq!(ours.len(), theirs.len(), "{source}");
            let pairs = ours.iter().zip(theirs.iter());
            pairs.for_each(|(ours, theirs)| assert_same_item(ours, theirs.get_ref(), source));
        }
        (Content::Value(Data::Text(ours)), DeValue::String(theirs)) => assert_eq!(ours, theirs),
        (Content::Value(Data::Truth(ours)), DeValue::Boolean(theirs)) => assert_eq!(ours, theirs),
        (Content::Value(Data::Integer(ours)), DeValue::Integer(theirs)) => {
            assert_eq!(Ok(*ours), i128::from_str_radix(theirs.as_str(), theirs.radix()));
        }
        (Content::Value(Data::Float(_)), DeValue::Float(_) | DeValue::Integer(_))
        | (Content::Value(Data::Other(_)), DeValue::Datetime(_)) => {}
        (ours, theirs) => panic!("{ours:?} is not {theirs:?} in {source}"),
    }
}

/// Checks that this reader and the `toml` crate both find the same tables in a text, or both refuse
/// the text.
fn assert_agrees(source: &str) {
    let (ours, found) = document(source);
    match DeTable::parse(source) {
        Ok(theirs) => {
            // The crate accepts numbers of any length, and `0x`.
            if found.iter().any(|error| error.message().contains("number")) {
                return;
            }
            assert_eq!(found, [], "{source}");
            assert_same(&ours.root, theirs.get_ref(), source);
        }
        Err(error) => assert!(!found.is_empty(), "{error} in {source:?}"),
    }
    for error in &found {
        assert!(error.labels().iter().all(|label| label.span.end() <= source.len()));
    }
    // The conversion to nodes must not panic, either.
    let sink = Sink::default();
    check_spans(&read(source, &sink).nodes, source);
}

/// Checks that every node's span covers its name.
fn check_spans(nodes: &[Node], source: &str) {
    for node in nodes {
        let shown = &source[node.name.span.offset..node.name.span.end()];
        let plain = !shown.contains('\\');
        let quote = shown.chars().next().filter(|c| matches!(c, '"' | '\''));
        let name = quote.map_or(shown, |_| &shown[1..shown.len() - 1]);
        // The span of a keyed declaration is the span of its key; the span of a table in a list is
        // its brace.
        let key = node.args.first().map(|key| &key.data);
        let keyed = key.is_some_and(|key| *key == Data::Text(name.to_owned()));
        assert!(!plain || keyed || name == "{" || name == node.name.value, "{source}");
        assert!(node.args.iter().all(|value| value.span.end() <= source.len()));
        check_spans(node.children(), source);
    }
}

fn value() -> impl Strategy<Value = String> {
    let scalar = select(vec![
        "1",
        "-0x1F",
        "0x1f",
        "1_000",
        "1.5e3",
        "inf",
        "true",
        "\"a\"",
        "'é # ]'",
        "\"\\u00e9\\\"\"",
        "\"\"\"\n a\"\" \n\"\"\"",
        "'''\n[x]\n'''",
        "2024-01-02",
        "2024-01-02 03:04:05Z",
        "07:32:00",
        "99999999999999999999999999999999999999999999",
        "bare",
        "\"open",
        "01",
        "",
    ])
    .prop_map(str::to_owned);
    scalar.prop_recursive(3, 12, 4, |inner| {
        let space = || select(vec!["", " ", "\n", " # ] } \"\n", "\r\n"]);
        let list =
            proptest::collection::vec((space(), inner.clone(), space()), 0..4).prop_map(|items| {
                let items: Vec<String> = items
                    .iter()
                    .map(|(before, item, after)| format!("{before}{item}{after}"))
                    .collect();
                format!("[{}]", items.join(","))
            });
        let table = proptest::collection::vec((space(), key(), inner), 0..4).prop_map(|items| {
            let items: Vec<String> =
                items.iter().map(|(space, key, item)| format!("{space}{key} = {item}")).collect();
            format!("{{{}}}", items.join(","))
        });
        prop_oneof![list, table]
    })
}

fn key() -> impl Strategy<Value = String> {
    let part =
        select(vec!["a", "b", "c", "\"a\"", "'d e'", "1", "agent", "skill", "path", "\"\\u0061\""]);
    proptest::collection::vec(part, 1..4).prop_map(|parts| parts.join("."))
}

fn line() -> impl Strategy<Value = String> {
    let end = || select(vec!["\n", "\r\n", " # \" [\n", "\n\n"]);
    prop_oneof![
        3 => (key(), select(vec!["=", " = ", "\t=", " "]), value(), end())
            .prop_map(|(key, equals, value, end)| format!("{key}{equals}{value}{end}")),
        2 => (key(), end()).prop_map(|(key, end)| format!("[ {key} ]{end}")),
        1 => end().prop_map(str::to_owned),
    ]
}

/// Tokens of the language. Random sequences of them reach more of the reader than random
/// characters.
fn fragments() -> impl Strategy<Value = String> {
    let fragment = select(vec![
        "box",
        "agent",
        "skill",
        "image",
        "env",
        "[",
        "]",
        "[[",
        "]]",
        "{",
        "}",
        "=",
        " = ",
        ",",
        ".",
        "\n",
        "\r\n",
        "\r",
        "#",
        "\"",
        "'",
        "\"\"\"",
        "'''",
        "\\",
        "\"oci:a\"",
        "true",
        "#true",
        "1",
        "-",
        "+",
        "0x",
        "_",
        "2024-01-01",
        ":",
        " ",
        "\t",
        "é",
        "\u{0}",
        "\u{feff}",
        "//",
        "“",
        "[agent]\n",
        "box = \"b\"\n",
        "a.b",
        "kind = ",
        "1979-05-27T07:32:00Z",
    ]);
    proptest::collection::vec(fragment, 0..40).prop_map(|fragments| fragments.concat())
}

const VALID: &str = "box = \"b\"\nskill.greet.path = \"skills/greet\"\n\n[agent]\nimage = \"oci:i\"\n\
    args = [\n  \"a\", # one\n  'b',\n]\nenv = { A = \"x\", B = '''y''' }\n\n[agent.limits]\n\
    memory = \"64MiB\"\npids = 1_0\n\n[cap.payments]\n[profile.ci.vm]\ncpus = 0x1\n";

proptest! {
    #[test]
    fn a_text_has_the_tables_that_the_toml_crate_finds(
        lines in proptest::collection::vec(line(), 0..6),
    ) {
        assert_agrees(&lines.concat());
    }

    #[test]
    fn any_text_is_read(source in "(\\PC|[\\s\\x00-\\x1f\\[\\]{}\"'#=.,\\\\]){0,120}") {
        // The crate accepts lists of tables, which no Boxfile has.
        prop_assume!(!source.contains("[["));
        assert_agrees(&source);
    }

    #[test]
    fn any_fragments_are_read(source in fragments()) {
        if source.contains("[[") {
            read(&source, &Sink::default());
        } else {
            assert_agrees(&source);
        }
    }

    #[test]
    fn any_change_of_a_valid_text_is_read(
        changes in proptest::collection::vec((any::<usize>(), 0usize..12, fragments()), 1..4),
    ) {
        let source = replace_each(VALID, &changes);
        if source.contains("[[") {
            read(&source, &Sink::default());
        } else {
            assert_agrees(&source);
        }
    }

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        read(&String::from_utf8_lossy(&bytes), &Sink::default());
    }
}

#[test]
fn a_byte_order_mark_and_crlf_change_nothing() {
    assert_agrees(VALID);
    assert_agrees(&format!("\u{feff}{}", VALID.replace('\n', "\r\n")));
}

fn messages(source: &str) -> Vec<String> {
    let found = document(source).1;
    found.iter().map(|error| error.message().to_owned()).collect()
}

#[test]
fn tables_and_lists_may_be_nested_64_deep_and_no_deeper() {
    let lists = |depth| format!("a = {}{}\n", "[".repeat(depth), "]".repeat(depth));
    let tables = |depth| format!("a = {}1{}\n", "{ a = ".repeat(depth), "}".repeat(depth));
    let dotted = |depth| format!("a{} = 1\n", ".a".repeat(depth));
    let headers = |depth: usize| format!("[a{}]\nb = 1\n", ".a".repeat(depth - 1));
    let mixed = |depth: usize| {
        let inner = depth / 4;
        let value = format!("{}1{}", "{ a.a = ".repeat(inner), "}".repeat(inner));
        format!("[a{}]\nb = {value}\n", ".a".repeat(depth - 2 * inner - 1))
    };
    let all: [&dyn Fn(usize) -> String; 5] = [&lists, &tables, &dotted, &headers, &mixed];
    for nested in all {
        assert_eq!(messages(&nested(64)), [""; 0], "{}", nested(64));
        for depth in [65, 66, 100_000] {
            let reported = messages(&nested(depth));
            let deep = "tables and lists are nested more than 64 deep";
            assert!(!reported.is_empty() && reported.iter().all(|it| it == deep), "{reported:?}");
        }
    }
}

/// Pieces that a hostile file could repeat up to the greatest length of a file.
const PIECES: [&str; 36] = [
    "[", "]", "[[", "{", "}", "a={", "a=[", "a={a=", "{a=", "[{a=", "a.", ".", ",", "=", "a=\n",
    "a=[\n", "a={\n", "a={b=1\n", "[a.b]\n", "[a\n", "[[a]]\n", "a=1\n", "a.b=1\n", "\"", "'",
    "\"\"\"", "'''\n", "\\", "#", "#\n", "\r", "\u{0}", "é", "a b\n", "a:\n", "-",
];

#[test]
fn no_repeated_piece_overflows_the_stack() {
    let run = || {
        for piece in PIECES {
            for prefix in ["", "a = ", "[agent]\n", "a = \"\"\"\n"] {
                read(&format!("{prefix}{}", piece.repeat(2000)), &Sink::default());
            }
        }
        // The greatest length of a file.
        for piece in ["[", "a={a=", "{a=", "a."] {
            read(&piece.repeat(crate::MAX_SOURCE / piece.len()), &Sink::default());
        }
    };
    // Each of the 64 levels of `toml_parser` takes 5 KiB of stack without optimization.
    let thread = std::thread::Builder::new().stack_size(512 << 10).spawn(run);
    thread.expect("a thread").join().expect("no panic");
}

#[test]
fn an_error_leaves_the_rest_readable() {
    let source = "box = b\nplatform = [1 2]\nvm = 5\n[agent\nimage = \"a\"\n[skills\n";
    let (document, found) = document(source);
    assert_eq!(found.len(), 4);
    let names: Vec<&str> =
        document.root.entries.iter().map(|(name, _)| name.value.as_str()).collect();
    assert_eq!(names, ["box", "platform", "vm", "agent", "skills"]);
    assert!(document.complete);
    assert!(!read("box = \"\"\"b\n[agent]\n", &Sink::default()).complete);
    assert!(!read("platform = [1,\nvm = 5\n", &Sink::default()).complete);
    assert!(!read("[agent limits]\n", &Sink::default()).complete);
}
