//! Tests that ranges, defaults and examples agree with the parser.

use box_contract::ComponentName;
use box_contract::network::variables;
use box_contract::rules::{ACCOUNT_FILES, MAX_SKILLS};
use serde_json::Value;

use super::{as_toml, from_toml, nodes, parsed, wrong};
use crate::schema::place::{self, SchemaPlace};
use crate::schema::{
    Argument, CONFLICT, Count, Declaration, Default, Kind, Merge, NETWORK, Property, SHARE, SKILLS,
    TOOLS, TOP,
};
use crate::syntax::tree::Data;
use crate::units::show_size;
use crate::{Reach, read, read_within};
use diagnostics::{Source, Syntax, suggest};

/// Puts a declaration in its block, in a file that has all required declarations.
fn in_place(place: &SchemaPlace, text: &str) -> String {
    let block = |open: &str| format!("{open} {{\n{text}\n}}");
    let text = match place.blocks.first().map(|block| block.name) {
        None => text.to_owned(),
        Some("network") if place.declaration.name != "allow" => {
            format!("network filtered {{\nallow \"example.com\"\n{text}\n}}")
        }
        Some("network") => block("network \"filtered\""),
        Some("task") => block("task a type=b description=c"),
        Some("cap") => block("cap nostr"),
        Some("service") => block("service a to=\"https://a.example\""),
        Some("sandbox") => block("sandbox ci"),
        Some("mcp") => match place.declaration.name {
            "header" => format!("mcp m {{\nurl \"http://127.0.0.1:1\"\n{text}\n}}"),
            "env" | "secret" => format!("mcp m {{\ncommand \"/m\"\n{text}\n}}"),
            _ => block("mcp m"),
        },
        Some(component) => block(component),
    };
    let top = place.blocks.first().unwrap_or(&place.declaration).name;
    let text = match top {
        "box" | "extends" | "profile" => text,
        _ => format!("profile p {{\n{text}\n}}"),
    };
    let name = match top {
        "box" => "",
        // The capability `http` needs a service.
        "cap" => "box b\nservice own to=\"https://own.example\"",
        // A secret of a server is declared.
        "mcp" => "box b\nsecret MCP_TOKEN",
        _ => "box b",
    };
    format!(
        "{name}\nagent {{ image \"oci:i\"; }}\nbusiness {{ image \"oci:i\"; }}\nlayout merged\n{text}\n"
    )
}

/// Returns the canonical model of a file with its profile `p`; `None` if the file has errors.
fn model(text: &str) -> Option<String> {
    let reach = Reach { up: Some(1), ..Reach::default() };
    let document =
        read_within(Source::new("Boxfile", text), Some("p"), &reach, |_| Err(String::new()));
    document.into_result().ok().map(|boxfile| boxfile.canonical())
}

#[test]
fn every_example_is_right() {
    for place in place::all() {
        assert_eq!(wrong(&in_place(place, place.declaration.example(Syntax::Kdl))), "");
    }
}

/// Replaces lists of one item by the item, as the TOML form does.
fn normal(value: Value) -> Value {
    match value {
        Value::Array(mut list) if list.len() == 1 => normal(list.remove(0)),
        Value::Array(list) => list.into_iter().map(normal).collect(),
        Value::Object(table) => {
            table.into_iter().map(|(key, value)| (key, normal(value))).collect()
        }
        other => other,
    }
}

#[test]
fn both_examples_of_a_declaration_say_the_same() {
    for place in place::all() {
        let [kdl, toml] = [Syntax::Kdl, Syntax::Toml].map(|it| place.declaration.example(it));
        let kdl = as_toml(&nodes(kdl), &[place.declaration]);
        assert_eq!(normal(kdl), normal(from_toml(toml)), "{}", place.id());
    }
}

#[test]
fn texts_are_whole_sentences() {
    for SchemaPlace { declaration, .. } in place::all() {
        let args =
            declaration.first.iter().chain(&declaration.rest).map(|it| declaration.doc(it.name));
        let props = declaration.props.iter().map(|it| declaration.doc(it.name));
        for text in args.chain(props).chain([declaration.summary()]) {
            assert!(text.starts_with(|c: char| c.is_uppercase() || c == '`'), "{text}");
            assert!(text.ends_with('.') && !text.contains("  "), "{text}");
        }
    }
    for place in place::all() {
        for word in words(place.declaration) {
            assert!(!place.declaration.doc(word).is_empty(), "{}: {word}", place.id());
        }
        let details = place.declaration.details();
        assert!(details.is_empty() || details.ends_with('.'), "{details}");
        assert!(!details.contains("  ") && !details.contains(" \n"), "{details}");
    }
    let ids: Vec<String> = place::all().iter().map(SchemaPlace::id).collect();
    for (id, _) in place::sections() {
        assert!(ids.iter().any(|it| it == id), "there is no `{id}` to explain");
    }
}

/// Returns the words to choose from in the arguments and properties of a declaration.
fn words(declaration: &Declaration) -> Vec<&'static str> {
    let args = declaration.first.iter().chain(&declaration.rest).map(|it| it.kind);
    let lists =
        args.chain(declaration.props.iter().map(|it| it.kind)).filter_map(|kind| match kind {
            Kind::OneOf(words) => Some(words),
            _ => None,
        });
    lists.flatten().copied().collect()
}

fn details(declaration: &Declaration) -> &'static str {
    declaration.details()
}

#[test]
fn lists_are_replaced_as_the_reference_says() {
    for SchemaPlace { declaration, .. } in place::all() {
        let list = declaration.rest.is_some();
        assert!(!list || declaration.merge == Merge::Replace, "{}", declaration.name);
    }
}

/// Returns values of a kind, as they are written in KDL.
fn some(kind: Kind) -> Vec<String> {
    match kind {
        Kind::OneOf(choices) => choices.iter().map(|it| format!("\"{it}\"")).collect(),
        Kind::Bool => vec!["#true".to_owned(), "#false".to_owned()],
        Kind::MountPoint | Kind::FilePlace => vec!["\"/x\"".to_owned()],
        Kind::ServiceUrl => vec!["\"https://a.example\"".to_owned()],
        Kind::Size { .. } => vec!["\"1GiB\"".to_owned()],
        Kind::Integer { most, .. } => vec![most.to_string()],
        _ => vec!["\"x\"".to_owned()],
    }
}

/// Writes a declaration with each choice of its first argument, with its required properties except
/// `but`, and with the text `last` in place of `but`.
fn statements(declaration: &Declaration, but: &str, last: &str) -> Vec<String> {
    let needed = |prop: &&Property| prop.required && prop.name != but;
    let props = declaration.props.iter().filter(needed);
    let props: String = props.map(|it| format!(" {}={}", it.name, some(it.kind)[0])).collect();
    let first = |first: &Argument| some(first.kind);
    let args = declaration.first.as_ref().map_or_else(|| vec![String::new()], first);
    let statement = |arg: &String| format!("{} {arg}{props}{last}", declaration.name);
    args.iter().map(statement).collect()
}

/// Returns the bounds of a kind, the text that messages have for them, and the unit of its numbers.
fn bounds(kind: Kind) -> Option<(u64, u64, String, &'static str)> {
    match kind {
        Kind::Integer { least, most } => Some((least, most, format!("{least} to {most}"), "")),
        Kind::Size { least, most } => {
            Some((least, most, format!("{} to {}", show_size(least), show_size(most)), "B"))
        }
        _ => None,
    }
}

/// Checks that the message about a value out of bounds names the bounds, and that the bounds themselves are accepted.
fn assert_bounded(kind: Kind, write: impl Fn(&str) -> Vec<String>) {
    let Some((least, most, range, unit)) = bounds(kind) else { return };
    let numbers = [(Some(least), true), (Some(most), true), (least.checked_sub(1), false)];
    for (number, fits) in numbers.into_iter().chain([(Some(most + 1), false)]) {
        let Some(number) = number else { continue };
        let quote = if unit.is_empty() { "" } else { "\"" };
        let texts = write(&format!("{quote}{number}{unit}{quote}"));
        let named = texts.iter().any(|text| wrong(text).contains(&format!("must be from {range}")));
        assert_eq!(named, !fits, "{texts:?}");
    }
}

#[test]
fn ranges_are_those_of_the_parser() {
    for place in place::all() {
        let declaration = place.declaration;
        let whole = |texts: Vec<String>| texts.iter().map(|it| in_place(place, it)).collect();
        if let Some(first) = &declaration.first {
            assert_bounded(first.kind, |number| {
                vec![in_place(place, &format!("{} {number}", declaration.name))]
            });
        }
        for prop in declaration.props {
            assert_bounded(prop.kind, |number| {
                whole(statements(declaration, prop.name, &format!(" {}={number}", prop.name)))
            });
        }
    }
}

#[test]
fn defaults_are_those_of_the_parser() {
    let mut checked = 0;
    for place in place::all() {
        for prop in place.declaration.props {
            let Default::Always(default) = prop.default else { continue };
            let written = match default.data() {
                Data::Truth(truth) => format!(" {}=#{truth}", prop.name),
                Data::Integer(number) => format!(" {}={number}", prop.name),
                Data::Text(text) => format!(" {}=\"{text}\"", prop.name),
                other => panic!("no default is {other:?}"),
            };
            let models = |last: &str| {
                let texts = statements(place.declaration, prop.name, last).into_iter();
                let declared = |text: &String| in_place(place, text);
                // A declaration without values is refused; leaving it out gives the same model.
                let absent = || model(&in_place(place, ""));
                let models = texts.filter_map(|text| {
                    let absent = || if last.is_empty() { absent() } else { None };
                    model(&declared(&text)).or_else(absent)
                });
                models.collect::<Vec<_>>()
            };
            let explicit = models(&written);
            let implicit = models("");
            assert!(!explicit.is_empty(), "{} of {}", prop.name, place.id());
            assert!(explicit.iter().all(|it| implicit.contains(it)), "{}", prop.name);
            checked += 1;
        }
    }
    assert!(checked > 15, "{checked}");
}

/// Pairs of declarations with the same meaning: without a property whose default depends on another setting, and with
/// the default that the reference documents.
const DEPENDENT: [[&str; 2]; 16] = [
    ["agent { image i; }", "agent kind=oci_image { image i; }"],
    ["agent { binary p; }", "agent kind=local_binary { binary p; }"],
    [
        "agent { binary \"http://h/p\" sha256=\"X\"; }",
        "agent kind=remote_binary { binary \"http://h/p\" sha256=\"X\"; }",
    ],
    ["agent { image i; }", "agent { image i; namespaces hostname=agent-host; }"],
    ["business { image i; }", "business { image i; namespaces hostname=business-host; }"],
    ["agent { image i; }", "agent { image i; limits memory=\"512MiB\" pids=100 cpu-weight=20; }"],
    ["agent { image i; }", "agent { image i; limits cpu-shares=512; }"],
    ["business { image i; }", "business { image i; limits memory=\"1GiB\" pids=200; }"],
    ["business { image i; }", "business { image i; limits cpu-weight=39; }"],
    ["business { image i; }", "business { image i; limits cpu-shares=1024; }"],
    ["publish 3000", "publish 3000 host=3000"],
    ["sandbox ci", "sandbox ci fallback=strict"],
    ["sandbox development", "sandbox development fallback=warn"],
    ["agent { image i; }", "agent { image i; }\nvm memory=\"768MiB\""],
    ["agent { image i; }", "agent { image i; }\nbudget total=\"5s\""],
    ["agent { binary p; }", "agent { binary p; }\nbudget total=\"3s\""],
];

#[test]
fn defaults_that_depend_on_something_else_are_those_of_the_parser() {
    let model = |text: &str| {
        let agent = if text.starts_with("agent") { "" } else { "agent { image i; }\n" };
        let text = format!("box b\n{agent}{}", text.replace('X', &"0".repeat(64)));
        parsed(&text).into_result().expect(&text).canonical()
    };
    for [without, with] in DEPENDENT {
        assert_eq!(model(without), model(with), "{with}");
    }
    let limited = "agent { image i; limits memory=\"4100KiB\"; }\nbusiness { image i; }";
    assert_eq!(model(limited), model(&format!("{limited}\nvm memory=\"1285MiB\"")));
}

#[test]
fn a_rule_without_a_port_is_about_the_ports_that_the_reference_says() {
    let rules = |more: &str| {
        let text = format!(
            "box b\nagent {{ image i; }}\nnetwork filtered {{ allow \"a.example\"\n{more}\n}}"
        );
        let network = parsed(&text).into_result().expect(&text).network;
        egress_rules::Rules::try_from(&network).unwrap()
    };
    assert_eq!(rules("").ports("a.example"), [80, 443]);
    let other = "allow \"a.example\" port=8443\n";
    assert_eq!(rules(other).ports("a.example"), [80, 443, 8443]);
    assert!(rules(&format!("{other}deny \"a.example\"")).ports("a.example").is_empty());
}

#[test]
fn the_numbers_of_the_prose_are_those_of_the_parser() {
    let agent = "box b\nagent { image \"oci:i\"; }\n";
    let chain = |length: usize| {
        let main = Source::new("Boxfile", format!("extends \"1\"\n{agent}"));
        let document = read(main, None, |path| {
            let number: usize = path.parse().unwrap();
            let next = (number < length).then(|| format!("extends \"{}\"", number + 1));
            Ok(Source::new(path, next.unwrap_or_default()))
        });
        document.found.is_empty()
    };
    assert_eq!([chain(8), chain(9)], [true, false]);
    let profiles = |count: usize| {
        let profiles: String = (0..count).map(|index| format!("profile p{index}\n")).collect();
        parsed(&format!("{agent}{profiles}")).found.is_empty()
    };
    assert_eq!([profiles(16), profiles(17)], [true, false]);
    assert!(details(&SKILLS).contains(&format!("at most {MAX_SKILLS} skills")));
    let limits = (crate::MAX_SOURCE, crate::syntax::tree::MAX_DEPTH, crate::MAX_DECLARED);
    assert_eq!(limits, (1 << 20, 64, 50_000));
}

#[test]
fn the_lists_in_the_details_are_whole() {
    let all = suggest::builtin_tool("teleport").unwrap_err();
    for tool in all.trim_start_matches("the tools are ").split(", ") {
        assert!(details(&TOOLS).contains(&format!("`{tool}`")), "{tool}");
    }
    for tool in details(&TOOLS).split('`').skip(1).step_by(2).filter(|it| !it.contains('/')) {
        assert!(suggest::builtin_tool(tool).is_ok(), "{tool}");
    }
    for (name, _) in variables(ComponentName::Agent, "host") {
        assert!(details(&NETWORK).contains(&format!("`{}`", name.to_ascii_uppercase())), "{name}");
    }
    let merge = CONFLICT.doc("merge");
    assert!(ACCOUNT_FILES.iter().all(|file| merge.contains(&format!("`{file}`"))));
    let taken = details(&SHARE).split('`').filter(|part| part.starts_with('/'));
    for path in taken {
        let text = format!("box b\nagent {{ image \"oci:i\"; }}\nshare s guest=\"{path}\"");
        assert!(wrong(&text).contains("the guest has its own"), "{path}");
    }
}

#[test]
fn only_single_declarations_are_required() {
    let required: Vec<&str> =
        TOP.iter().filter(|it| it.count == Count::Required).map(|it| it.name).collect();
    assert_eq!(required, ["box", "agent"]);
}
