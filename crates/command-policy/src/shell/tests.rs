use proptest::prelude::*;

use super::*;

/// Returns the words of all simple commands, also of those inside others.
fn commands(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    collect(&parse(line).unwrap(), &mut all);
    all
}

fn collect(script: &Script, all: &mut Vec<String>) {
    for command in script.pipelines.iter().flat_map(|it| &it.commands) {
        let mut words: Vec<&Word> = command.redirects.iter().map(|it| &it.target).collect();
        match &command.kind {
            Kind::Simple(simple) => {
                let texts: Vec<_> = simple.words.iter().map(|it| it.text.as_str()).collect();
                if !texts.is_empty() {
                    all.push(texts.join(" "));
                }
                words.extend(simple.words.iter().chain(&simple.values));
            }
            Kind::Group(script) | Kind::Subshell(script) | Kind::Function(_, script) => {
                collect(script, all);
            }
        }
        words.iter().flat_map(|it| &it.scripts).for_each(|it| collect(it, all));
    }
}

#[test]
fn quotes_and_escapes_are_removed() {
    for line in [
        "rm x",
        "'rm' x",
        "\"rm\" x",
        "r''m x",
        "\\rm x",
        "r\\m x",
        "$'rm' x",
        "$'\\x72\\155' x",
        "$\"rm\" x",
        "rm \\\n x",
        "{rm,x}",
        "a=rm; $a x",
        "a=r b=m; $a${b} x",
        "rm x # comment",
        "rm${IFS}x",
        "rm$IFS'x'",
    ] {
        assert_eq!(commands(line), ["rm x"], "{line}");
    }
}

#[test]
fn all_commands_of_a_line_are_found() {
    for line in [
        "a; b",
        "a && b",
        "a || b",
        "a | b",
        "a |& b",
        "a & b",
        "a\nb",
        "(a; b)",
        "{ a; b; }",
        "a;b",
        "if a; then b; fi",
        "while a; do b; done",
        "until a\ndo b\ndone",
        "case x in y) a;; *) b;; esac",
        "case x in (y) a;& z | w) b; esac",
        "f() { a; b; }",
        "function f { a; b; }",
        "for x in 1 2; do a; b; done",
        "for ((i=0;i<3;i++)); do a; b; done",
        "! a; b",
        "time -p a; b",
        "((a); b)",
        "[[ x && y ]] && a; b",
        "a <<EOF; b\n$x\nEOF",
        "a <<-'E'\n$(c)\n\tE\nb",
        "a <<E <<F\n1\nE\n2\nF\nb",
        "if a\nthen :\nfi > x; b",
    ] {
        let found: Vec<_> =
            commands(line).into_iter().filter(|it| it == "a" || it == "b").collect();
        assert_eq!(found, ["a", "b"], "{line}");
    }
}

#[test]
fn commands_inside_words_are_found() {
    for line in [
        "a $(b)",
        "a `b`",
        "a \"$(b)\"",
        "a \"`b`\"",
        "a <(b)",
        "a >(b)",
        "a ${x:-$(b)}",
        "a $((1 + $(b)))",
        "a \"${x:-`b`}\"",
        "a > $(b)",
        "a <<E\n$(b)\nE",
        "a <<< \"$(b)\"",
        "a $((b); :)",
    ] {
        let found = commands(line);
        assert!(found.iter().any(|it| it == "b"), "{line}: {found:?}");
        assert!(found[0].starts_with('a'), "{line}: {found:?}");
    }
    assert_eq!(commands("a '$(b)' \\$\\(c\\)").len(), 1);
}

#[test]
fn what_is_no_command_line_is_unreadable() {
    for line in [
        "a 'b",
        "a \"b",
        "a $(b",
        "a `b",
        "(a",
        "{ a",
        "if a",
        "if a; then b",
        "a)",
        "fi",
        "a | | b",
        "a ${b",
        "a >",
        "a <<",
        "a b(c)",
        "case x y",
        ";; a",
        "for x in a b",
        "[[ a",
        "x=(a",
        "&& a",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
    let deep = "$(".repeat(100);
    assert_eq!(parse(&deep), Err(Unreadable("its commands are nested too deeply")));
    let documents = "cat <<E \"\n\"\n".repeat(5000);
    assert_eq!(parse(&documents), Err(Unreadable("its here-documents are too long together")));
    let words = "{a,b}".repeat(20);
    assert_eq!(parse(&words), Err(Unreadable("it expands to too many words")));
}

#[test]
fn a_variable_has_all_its_values() {
    let words = |line: &str| {
        let script = parse(line).unwrap();
        let Some(Command { kind: Kind::Simple(simple), .. }) =
            script.pipelines.last().map(|it| it.commands[0].clone())
        else {
            panic!("{line}");
        };
        simple.words
    };
    let last = words("x=a; x=b; echo $x");
    let texts: Vec<_> = last.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(texts, ["echo", "a", "b"]);
    assert!(last[2].is_unknown);
    assert!(words("x=a; read x; $x")[0].is_unknown);
    assert!(!words("x=a; $x")[0].is_unknown);
}

proptest! {
    #[test]
    fn any_text_ends(text in "\\PC{0,200}") {
        drop(parse(&text));
    }

    #[test]
    fn any_text_of_a_shell_ends(parts in prop::collection::vec(
        prop::sample::select(vec![
            "a", "$", "(", ")", "{", "}", "'", "\"", "`", "\\", ";", "&", "|", "<", ">", "\n", " ", "#", "=",
            "if", "then", "fi", "do", "done", "case", "in", "esac", "for", "[[", "]]", "<<E", "${x:-", "$((",
            "x=", "$x", ",", "*", "~", "!", "function ",
        ]),
        0..60,
    )) {
        drop(parse(&parts.concat()));
        drop(parse(&parts.join(" ")));
    }
}
