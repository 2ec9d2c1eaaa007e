//! Skills that are loaded while a box runs: the box's programs see them at once, and cannot change them.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use serde_json::json;

use crate::page::{self, assert_page};
use crate::scenario::{Scenario, Step, bake, hello_checkout, tools};
use crate::schema::assert_fits;

const PAGE: &str = include_str!("../../docs/skills.md");
/// A box without skills, whose business component has no separate mount namespace.
const PLAIN: &str = r#"box "plain"
agent {
    image "oci:images/business"
    entrypoint "/bin/sh" "-c" "exec sleep 1000"
    health "none"
    user "0"
    limits memory="64MiB" pids=32
}
business {
    image "oci:images/business"
    namespaces mount=#false
    user "1001:1002"
    limits memory="64MiB" pids=32
}
vm cpus=1 memory="256MiB"
"#;

/// A skill with a prompt.
const EXTRA: &str =
    "---\nname: extra\ndescription: Has a prompt.\nsystem_prompt: prompts/system.md\n---\n";

/// Makes skills on the virtual host, several of which are malformed or too large.
const MAKE: &str = r#"skill() {
    mkdir -p /tmp/skills/$1/tools; printf -- '---\nname: %s\n%b\n---\n' $1 "$2" >/tmp/skills/$1/SKILL.md
}
skill notes 'description: Keeps notes.\nversion: 1.0\nauthor: Somebody\ntools:\n  - script: tools/run.sh'
printf '#!/bin/sh\necho run\n' >/tmp/skills/notes/tools/run.sh
ln -s tools/run.sh /tmp/skills/notes/run; chown -R 5:5 /tmp/skills/notes; chmod 700 /tmp/skills/notes
skill other 'description: Is another one.'
skill greet 'description: Is not the one of the box.'
skill evil 'description: "\\e[2Jevil"'
skill long "description: $(head -c 2000 /dev/zero | tr '\0' x)"
skill large 'description: Is large.'; head -c 9000000 /dev/zero >/tmp/skills/large/data
skill huge 'description: Is huge.'; head -c 70000000 /dev/zero >/tmp/skills/huge/data
mkdir /tmp/skills/none /tmp/skills/Wrong; echo x >/tmp/skills/none/file; cp /tmp/skills/other/SKILL.md /tmp/skills/Wrong
mv /tmp/skills/other /tmp/skills/another; cp -r /tmp/skills/another /tmp/skills/other"#;

/// `seen COMPONENT BOX` lists the skills in a component, runs one, and tries to change the directory.
const SEEN: &str = "seen() {
boxlaunch exec --in $1 --user 0 $2 -- sh -c 'cd /a3s/skills; ls; /a3s/skills/notes/run 2>&1; stat -c \"%u:%g %a\" notes notes/SKILL.md notes/tools/run.sh
    for it in \"touch new\" \"mkdir notes/new\" \"rm -r notes\" \"mv notes x\" \"umount /a3s/skills\" \"chmod 777 notes\" \"rmdir /a3s/skills\" \"mv /a3s/skills /a3s/old\"; do
        $it 2>/dev/null && echo \"$it: done\"; done; cat notes/SKILL.md | grep version' 2>&1
}";
const LIFE: &str = "boxlaunch run -q -d --name plain /plain >/dev/null; boxlaunch skills plain
boxlaunch skills plain load /tmp/skills/notes; boxlaunch skills plain
seen agent plain; seen business plain
sed -i 's/^version: .*/version: 2.0/' /tmp/skills/notes/SKILL.md; rm /tmp/skills/notes/run; ln -s tools/run.sh /tmp/skills/notes/run2
cd /tmp/skills/notes; boxlaunch skills plain load . ../another/../other
boxlaunch exec --in business plain -- sh -c 'cd /a3s/skills; ls . notes; grep version notes/SKILL.md'
boxlaunch skills plain --json; boxlaunch skills plain unload notes other; boxlaunch exec --in agent plain ls -A /a3s/skills | wc -l
boxlaunch skills plain; boxlaunch skills plain unload notes; echo $?";
/// Loads skills into a box that has a baked skill, `greet`, a mounted one, `hot`, and the baked skill of a directory of skills,
/// `extra`. None can be replaced. The agent's image has no shell.
const BAKED: &str = "mkdir /tmp/hot; echo first >/tmp/hot/SKILL.md
boxlaunch run -q -d --name baked --skill hot=/tmp/hot /both >/dev/null
boxlaunch skills baked; boxlaunch skills baked load /tmp/skills/other /tmp/skills/notes; boxlaunch skills baked
boxlaunch cp --in agent baked:/a3s/skills/. - | tar -t
boxlaunch exec baked /a3s/skills/greet/tools/greet.sh you; seen business baked
boxlaunch exec baked cat /a3s/skills/extra/prompts/system.md /a3s/skills/hot/SKILL.md; (boxlaunch exec -u 0 baked touch /a3s/skills/hot/x) 2>&1 | grep -o Read-only
boxlaunch inspect --json baked | grep -c 'Greets somebody'
boxlaunch skills baked load /tmp/skills/greet; echo $?; boxlaunch skills baked unload greet; echo $?
mv /tmp/hot /tmp/skills/hot; boxlaunch skills baked load /tmp/skills/hot; echo $?";
/// Loads skills that are refused. They leave nothing behind, and the skills that were loaded before stay.
const WRONG: &str = "cd /tmp/skills; for it in evil long none Wrong another missing huge; do
    boxlaunch skills baked load $it; echo $it $?; done
boxlaunch skills baked load other large; echo $?
boxlaunch skills baked load other missing; boxlaunch skills nobody; echo $?; boxlaunch skills baked load --json evil
boxlaunch skills baked unload ../greet; echo $?; boxlaunch exec --in agent --user 0 baked true 2>/dev/null
boxlaunch skills baked | cut -c1-30; boxlaunch stats baked | grep -c agent";
/// Before the first skill is loaded, a program of the agent puts a symbolic link, a file and a directory at `/a3s/skills`.
const HOSTILE: &str = "in_agent() { boxlaunch exec --in agent plain -- sh -c \"$1\"; }
boxlaunch rm -f plain >/dev/null; boxlaunch run -d --name plain /plain >/dev/null
for trick in 'ln -s /tmp /a3s/skills' 'rm /a3s/skills; echo >/a3s/skills' 'rm /a3s/skills; mkdir -p /a3s/skills/own'; do
    in_agent \"$trick\"; boxlaunch skills plain load /tmp/skills/notes; echo $?
done
in_agent 'rm -r /a3s/skills/own'; boxlaunch skills plain load /tmp/skills/notes; in_agent 'ls /a3s/skills /tmp'
boxlaunch exec plain -- ls /a3s/skills
boxlaunch rm -f plain baked >/dev/null; boxlaunch skills plain; echo $?";

/// Starts a box that has a baked skill and declares a mounted one, and a box without skills, with all skills of a directory.
const DIRECTORY: &str = "mkdir -p /tmp/dir/hot /tmp/skills/later; cp -r /tmp/skills/another /tmp/dir/other
cp -r /tmp/skills/notes /tmp/dir; chmod -R a+rX /tmp/dir; chmod +x /tmp/dir/notes/tools/run.sh; echo text >/tmp/dir/README
printf -- '---\nname: hot\ndescription: Is mounted.\n---\nfirst\n' >/tmp/dir/hot/SKILL.md
printf -- '---\nname: later\ndescription: Is more.\n---\n' >/tmp/skills/later/SKILL.md
boxlaunch run -q -d --name dir --skills /tmp/dir /both >/dev/null; boxlaunch skills dir
boxlaunch exec --in business --user 0 dir -- sh -c 'cd /a3s/skills; ls; notes/tools/run.sh; tail -n 1 hot/SKILL.md
    for it in new notes/new other/new; do touch $it 2>/dev/null && echo $it: done; done'
boxlaunch cp --in agent dir:/a3s/skills/. - | tar -t | grep SKILL
boxlaunch skills dir load /tmp/skills/later; boxlaunch skills dir load /tmp/dir/notes; echo $?
boxlaunch exec --in business dir ls /a3s/skills | grep -c .; cp -r /tmp/skills/later /tmp/dir
boxlaunch restart dir >/dev/null; boxlaunch skills dir | grep later; boxlaunch rm -f dir >/dev/null
boxlaunch run -q -d --name dir --skills /tmp/dir /plain >/dev/null; boxlaunch skills dir
for it in agent business; do boxlaunch exec --in $it dir -- sh -c 'ls /a3s/skills; /a3s/skills/notes/tools/run.sh'; done
boxlaunch rm -f dir >/dev/null";

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let hello = hello_checkout(dir.path());
    fs::write(at("Boxfile"), &hello).unwrap();
    fs::write(at("plain.kdl"), PLAIN).unwrap();
    let both = format!("{hello}skill \"hot\" path=\"hot\" mode=\"mount\"\nskills dir=\"more\"\n");
    fs::write(at("both.kdl"), both).unwrap();
    fs::create_dir_all(at("more/extra/prompts")).unwrap();
    fs::write(at("more/extra/SKILL.md"), EXTRA).unwrap();
    fs::write(at("more/extra/prompts/system.md"), "Be brief.\n").unwrap();
    fs::create_dir(at("hot")).unwrap();
    fs::write(at("hot/SKILL.md"), "---\nname: hot\ndescription: Changes.\n---\n").unwrap();
    for (file, bundle) in
        [("Boxfile", "hello.box"), ("both.kdl", "both.box"), ("plain.kdl", "plain.box")]
    {
        bake(&at(file), &tools.programs.box_init, &at(bundle));
    }
    let skill = fs::read_to_string(at("skills/greet/SKILL.md")).unwrap();
    let script = |text: &str| format!("{SEEN}\n{text}");
    Scenario::default()
        .script(20, "make", MAKE)
        .script(40, "life", &script(LIFE))
        .script(40, "baked", &script(BAKED))
        .script(90, "wrong", WRONG)
        .script(60, "hostile", HOSTILE)
        .script(60, "directory", DIRECTORY)
        .script(40, "page", &page(&skill))
        .start(&["hello", "both", "plain"].iter().fold(tools.host.clone(), |host, name| {
            host.file(at(&format!("{name}.box")), format!("/{name}"))
        }))
});

/// Returns the commands of the page as one script, with the skill `notes` that the page describes.
fn page(skill: &str) -> String {
    let notes = skill
        .replace("name: greet", "name: notes")
        .replace("Greets somebody by name.", "Keeps notes.");
    let start = format!(
        "mkdir -p skills/notes/tools; ln -s /hello hello.box; echo run >skills/notes/tools/greet.sh
        chmod +x skills/notes/tools/greet.sh; cat >skills/notes/SKILL.md <<'END'\n{notes}END\n"
    );
    page::script(PAGE, &start)
}

#[track_caller]
fn step(name: &str) -> &'static Step {
    let step = &STEPS[name];
    println!("{}\n{}\n{}", step.status, step.stdout, step.stderr);
    step
}

fn a_skill_is_loaded_changed_and_unloaded_while_the_box_runs() {
    assert_eq!(step("make").stderr, "");
    insta::assert_snapshot!(step("life").stdout);
    insta::assert_snapshot!(step("life").stderr);
    let list = step("life").stdout.lines().find(|it| it.starts_with('{')).unwrap();
    let list = serde_json::from_str(list).unwrap();
    assert_fits("skills", &list);
    assert_eq!(list["skills"][0]["version"], json!("2.0"));
}

fn a_baked_skill_stays_as_it_is() {
    insta::assert_snapshot!(step("baked").stdout);
    insta::assert_snapshot!(step("baked").stderr);
}

fn what_is_no_skill_stays_out() {
    insta::assert_snapshot!(step("wrong").stdout);
    insta::assert_snapshot!(step("wrong").stderr);
}

fn programs_of_the_box_lead_no_skill_elsewhere() {
    insta::assert_snapshot!(step("hostile").stdout);
    insta::assert_snapshot!(step("hostile").stderr);
}

fn all_skills_of_a_directory_are_there_from_the_start() {
    insta::assert_snapshot!(step("directory").stdout, @"
    NAME    SOURCE    VERSION   DESCRIPTION
    extra   baked     -         Has a prompt.
    greet   baked     1.0.0     Greets somebody by name. Use it when a visitor has said who they are.
    hot     mounted   -         -
    notes   mounted   -         -
    other   mounted   -         -
    extra
    greet
    hot
    notes
    other
    run
    first
    ./extra/SKILL.md
    ./greet/SKILL.md
    ./hot/SKILL.md
    ./notes/SKILL.md
    ./other/SKILL.md
    later
    1
    6
    later   mounted   -         -
    NAME    SOURCE    VERSION   DESCRIPTION
    hot     mounted   -         -
    later   mounted   -         -
    notes   mounted   -         -
    other   mounted   -         -
    hot
    later
    notes
    other
    run
    hot
    later
    notes
    other
    run
    ");
    insta::assert_snapshot!(step("directory").stderr, @"
    error: the skill notes is a directory of the host that is mounted in the box
      = help: change the files in its directory, or give the skill another name
    boxlaunch: /tmp/dir/hot is shared at /a3s/skills/hot, read-only
    boxlaunch: /tmp/dir/later is shared at /a3s/skills/later, read-only
    boxlaunch: /tmp/dir/notes is shared at /a3s/skills/notes, read-only
    boxlaunch: /tmp/dir/other is shared at /a3s/skills/other, read-only
    ");
}

fn the_page_shows_what_happens() {
    assert_page(PAGE, step("page"));
}

tests![
    a_skill_is_loaded_changed_and_unloaded_while_the_box_runs,
    a_baked_skill_stays_as_it_is,
    what_is_no_skill_stays_out,
    programs_of_the_box_lead_no_skill_elsewhere,
    all_skills_of_a_directory_are_there_from_the_start,
    the_page_shows_what_happens
];
