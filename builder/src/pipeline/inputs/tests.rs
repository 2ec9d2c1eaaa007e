//! The lock's entries of inputs, and the key of their box: names change only the entries, contents change both.

use std::collections::BTreeMap;
use std::path::Path;

use crate::project::lock::PinKind;
use box_cache::ActionKey;
use box_contract::Platform;
use box_contract::rules::MAX_SKILLS;
use box_contract::{SkillMode, SkillPlan};
use box_digest::{AnyDigest, Blake3Digest, Digest};
use box_tree::{Content, Inode, Leaf, Meta, Tree};
use boxfile_spec::Boxfile;
use checkout::files::{Files, Source};
use checkout::skill::Skill;
use diagnostics::Span;
use download::fetch::FetchOptions;
use oci_image::Config;
use oci_layer::Compression;

use super::*;
use crate::Meant;
use crate::pipeline::InputFile;
use crate::project::{Pins, Variant};

const BOXFILE: &str = r#"box "x"
agent { image "oci:a"; env-file "a.env"; file "a.conf" to="/etc/"; }
business { image "oci:b"; }
skill "greet" path="greet"
profile "ci" {
    agent { image "oci:ci"; }
}
"#;

fn read(text: &str, profile: Option<&str>) -> Boxfile {
    let none = |_: &str| Err(String::new());
    let document = boxfile_spec::read(diagnostics::Source::new("Boxfile", text), profile, none);
    document.boxfile.unwrap_or_else(|| panic!("{:?}", document.found))
}

fn request(boxfile: &Boxfile) -> Request<'_> {
    Request {
        boxfile,
        base: Path::new(""),
        checkout: Path::new("").into(),
        platform: Platform::LinuxAmd64,
        pins: Pins::default(),
        fetch: FetchOptions::default(),
        remote: None,
        init: InputFile::found("init"),
        kernel: InputFile::found("kernel"),
        builder: Blake3Digest::from_bytes([0; 32]),
    }
}

fn files_of(content: &[u8]) -> Files {
    let mut tree = Tree::default();
    let leaf = Leaf::File(Content::of(content));
    let file = tree.add(Inode::leaf(Meta::root_owned(0o644), leaf));
    tree.link(Tree::ROOT, b"SKILL.md", file);
    Files { tree, data: BTreeMap::from([(Content::of(content), content.to_vec())]) }
}

fn skill(content: &[u8]) -> Skill {
    Skill { files: files_of(content), about: SkillPlan::default() }
}

/// The file that [`BOXFILE`] declares, with `content`.
fn baked(content: &[u8]) -> Baked {
    let declared = read(BOXFILE, None).agent.component.files[0].clone();
    let source = Source { files: files_of(content), named: Tree::ROOT };
    Baked { component: ComponentName::Agent, declared, source }
}

fn digest(byte: u8) -> Digest {
    Digest::from_bytes([byte; 32])
}

fn inputs() -> Inputs<'static> {
    let variables = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
    Inputs {
        images: vec![
            (ComponentName::Agent, Image::sample(digest(1), &[digest(11)])),
            (ComponentName::Business, Image::sample(digest(2), &[digest(11), digest(12)])),
        ],
        binary: None,
        skills: vec![SkillInput {
            name: "greet".to_owned(),
            source: "greet".to_owned(),
            mode: SkillMode::Baked,
            skill: skill(b"greets"),
        }],
        baked: vec![baked(b"conf")],
        agents: Vec::new(),
        env: BTreeMap::from([(ComponentName::Agent, variables)]),
        env_files: vec![files::EnvFile { path: "a.env".to_owned(), digest: digest(3), size: 4 }],
        init: files::Tool::new(b"init".to_vec()),
        kernel: files::Tool::new(b"kernel".to_vec()),
        warnings: Vec::new(),
    }
}

/// The configuration of an image's process.
fn process(program: &str) -> Config {
    let mut process = Config::default();
    process.set_cmd(Some(vec![program.to_owned()]));
    process
}

fn key_of(text: &str, inputs: &Inputs<'_>) -> ActionKey {
    inputs.key(&request(&read(text, None)))
}

#[test]
fn names_do_not_make_another_box() {
    let key = key_of(BOXFILE, &inputs());
    for (from, to) in [
        ("oci:a", "oci:other:v2"),
        ("path=\"greet\"", "path=\"skills/greet\""),
        ("skill \"greet\" path=\"greet\"", "skills dir=\".\""),
        ("a.env", "env/a.env"),
        ("box \"x\"", "box \"x\"\nplatform \"linux/arm64\" \"linux/amd64\""),
        ("box \"x\"", "// a comment\nbox \"x\"\nkernel \"kernel.so\""),
    ] {
        assert!(BOXFILE.contains(from));
        assert_eq!(key_of(&BOXFILE.replace(from, to), &inputs()), key, "{to}");
    }
    let mut renamed = inputs();
    renamed.skills[0].source = "elsewhere/greet".to_owned();
    renamed.env_files[0] = files::EnvFile { path: "b.env".to_owned(), digest: digest(9), size: 40 };
    assert_eq!(key_of(BOXFILE, &renamed), key, "another comment in a file, another place");
}

#[test]
fn neither_packing_nor_compression_makes_another_box() {
    let key = key_of(BOXFILE, &inputs());
    let mut packed = inputs();
    let image = &mut packed.images[0].1;
    (image.manifest, image.config_digest, image.config_size) = (digest(7), digest(8), 9);
    (image.layers[0].digest, image.layers[0].size) = (digest(9), 1);
    image.layers[0].compression = Compression::Zstd;
    assert_eq!(key_of(BOXFILE, &packed), key);
}

#[test]
fn contents_and_declarations_make_another_box() {
    let key = key_of(BOXFILE, &inputs());
    let changes: [fn(&mut Inputs<'_>); 13] = [
        |it| it.images[0].1.layers[0].diff_id = digest(7),
        |it| it.images[0].1.process = process("other"),
        |it| {
            it.images[0].1.process.set_stop_signal(Some("SIGQUIT".to_owned()));
        },
        |it| it.images.truncate(1),
        |it| it.images.swap(0, 1),
        |it| it.skills[0].skill = skill(b"greets more"),
        |it| it.baked[0] = baked(b"other conf"),
        |it| it.skills[0].mode = SkillMode::Mounted,
        |it| it.skills[0].name = "other".to_owned(),
        |it| it.init = files::Tool::new(b"other".to_vec()),
        |it| it.kernel = files::Tool::new(b"other".to_vec()),
        |it| drop(it.env.get_mut(&ComponentName::Agent).unwrap().insert("A".into(), "2".into())),
        // The same environment file, but for the other component.
        |it| {
            let variables = it.env.remove(&ComponentName::Agent).unwrap();
            it.env.insert(ComponentName::Business, variables);
        },
    ];
    let mut keys = vec![key];
    for change in changes {
        let mut changed = inputs();
        change(&mut changed);
        keys.push(key_of(BOXFILE, &changed));
    }
    for (from, to) in [
        ("box \"x\"", "box \"y\""),
        ("a.env\";", "a.env\"; port 4090;"),
        ("to=\"/etc/\"", "to=\"/srv/\""),
        ("to=\"/etc/\"", "to=\"/etc/\" mode=\"600\""),
        ("to=\"/etc/\"", "to=\"/etc/\" owner=\"1:1\""),
        // The path changes the key, because the box's listing has it.
        ("a.conf", "conf/a.conf"),
        ("box \"x\"", "box \"x\"\nvm cpus=3"),
    ] {
        keys.push(key_of(&BOXFILE.replace(from, to), &inputs()));
    }
    let boxfile = read(BOXFILE, None);
    keys.push(
        inputs().key(&Request { builder: Blake3Digest::from_bytes([1; 32]), ..request(&boxfile) }),
    );
    let all = keys.len();
    keys.sort_by_key(|key| format!("{key:?}"));
    keys.dedup();
    assert_eq!(keys.len(), all, "two different boxes have one key");
}

/// The entries of the lock: name, kind, source, platform and size of each entry.
fn listed(inputs: &Inputs<'_>, request: &Request<'_>) -> Vec<String> {
    let entry = |it: &crate::project::lock::LockEntry| {
        let platform = it.platform.map_or("all", Platform::name);
        format!("{} {} {:?} {platform} {}", it.name, it.kind, it.source, it.size)
    };
    super::lock(inputs, request).entries().map(entry).collect()
}

#[test]
fn the_lock_has_an_entry_for_each_input() {
    let boxfile = read(BOXFILE, None);
    assert_eq!(
        listed(&inputs(), &request(&boxfile)),
        [
            "agent image \"oci:a\" linux/amd64 111",
            "business image \"oci:b\" linux/amd64 211",
            "env:a.env env-file \"a.env\" all 4",
            "file:a.conf file \"a.conf\" all 4",
            "init init \"\" linux/amd64 4",
            "kernel kernel \"\" linux/amd64 6",
            "skill:greet skill \"greet\" all 6",
        ]
    );
    let lock = super::lock(&inputs(), &request(&boxfile));
    let business = lock.get("business", Some(Platform::LinuxAmd64)).unwrap();
    assert_eq!(business.digest, digest(2).into());
    assert_eq!(business.layers, [digest(11), digest(12)]);
    assert!(matches!(lock.get("skill:greet", None).unwrap().digest, AnyDigest::Blake3(_)));
}

#[test]
fn a_profile_names_what_it_declares_otherwise() {
    let (without, with) = (read(BOXFILE, None), read(BOXFILE, Some("ci")));
    let profile = Some(Variant { name: "ci", without: &without });
    let request = Request { pins: Pins { profile, ..Pins::default() }, ..request(&with) };
    let listed = listed(&inputs(), &request);
    let own: Vec<_> = listed.iter().filter(|it| it.contains('@')).collect();
    assert_eq!(own, ["ci@agent image \"oci:ci\" linux/amd64 111"]);
}

#[test]
fn for_a_platform_that_cannot_be_built_there_is_neither_init_nor_kernel() {
    let boxfile = read(BOXFILE, None);
    let request = Request { platform: Platform::LinuxArm64, ..request(&boxfile) };
    let other = Inputs {
        init: files::Tool::new(Vec::new()),
        kernel: files::Tool::new(Vec::new()),
        ..inputs()
    };
    let lock = super::lock(&other, &request);
    assert!(lock.entries().all(|it| !matches!(it.kind, PinKind::Init | PinKind::Kernel)));
    assert!(lock.get("agent", Some(Platform::LinuxArm64)).is_some());
}

#[test]
fn an_entry_must_fit_its_image() {
    let boxfile = read(BOXFILE, None);
    let lock = super::lock(&inputs(), &request(&boxfile));
    let entry = lock.get("agent", Some(Platform::LinuxAmd64)).unwrap();
    let image = &inputs().images[0].1;
    let check = |entry: &_| entries::check_image(entry, image, Span::default());
    check(entry).unwrap();
    assert_eq!(entries::image_digest(entry, Span::default()).unwrap(), digest(1));
    let mut wrong = entry.clone();
    wrong.size += 1;
    assert!(check(&wrong).unwrap_err().to_string().contains("the image has another size"));
    let mut wrong = entry.clone();
    wrong.layers.clear();
    assert!(check(&wrong).unwrap_err().to_string().contains("the image has other layers"));
    let mut wrong = entry.clone();
    wrong.digest = Blake3Digest::from_bytes([1; 32]).into();
    let error = entries::image_digest(&wrong, Span::default()).unwrap_err();
    assert!(matches!(error, BuildError::PinMismatch { .. }), "{error}");
}

#[test]
fn secrets_of_an_image_are_warnings_unless_they_are_replaced() {
    let mut inputs = inputs();
    let set = |process: &mut Config, env: &[&str]| {
        process.set_env(Some(env.iter().map(|&it| it.to_owned()).collect()));
    };
    set(
        &mut inputs.images[0].1.process,
        &["API_KEY=abc123", "LOG=info", "TOKEN=x", "A=ghp_0123456789abc"],
    );
    let words = |text: &str| Some(text.split(' ').map(str::to_owned).collect());
    inputs.images[0].1.process.set_entrypoint(words("/agent --password hunter2"));
    inputs.images[1].1.process.set_cmd(words("/app --token=hunter2"));
    let label = ("a3s.box.env.API_TOKEN".to_owned(), "hunter2".to_owned());
    inputs.images[1].1.process.set_labels(Some([label].into()));
    set(&mut inputs.images[1].1.process, &["DB=postgres://u:hunter2@db/x", "A_PASSWORD="]);
    let text = BOXFILE.replacen("agent {", "agent { plain-env TOKEN=\"mine\"; ", 1);
    let warnings = inputs.image_secrets(&read(&text, None));
    let messages: Vec<_> = warnings.iter().map(|it| it.message()).collect();
    // The agent's file sets `A`, and the Boxfile sets `TOKEN`.
    let expected = [
        "the image of `agent` sets `API_KEY`, which looks like a secret",
        "the command line of the image of `agent` has what looks like a secret in it",
        "the image of `business` sets `API_TOKEN`, which looks like a secret",
        "the image of `business` sets `DB`, which looks like a secret",
        "the command line of the image of `business` has what looks like a secret in it",
    ];
    assert_eq!(messages, expected);
    assert!(
        !format!("{warnings:?}").contains("abc123") && !format!("{warnings:?}").contains("hunter2")
    );
}

#[test]
fn a_reference_that_leads_to_no_image_says_which_was_meant() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("images/web")).unwrap();
    std::fs::create_dir(dir.path().join("web")).unwrap();
    std::fs::write(dir.path().join("images/web/oci-layout"), "{}").unwrap();
    std::fs::write(dir.path().join("images/web.tar"), "not one").unwrap();
    let store = Store::open(&dir.path().join("store")).unwrap();
    for (image, expected) in [
        ("images/web", Some("oci:images/web")),
        ("web:v1", Some("oci:web")),
        ("images/agent", None),
        ("images/web.tar", None),
        ("docker://example.com/images/web", None),
        ("oci:images/agent", None),
        ("oci:images/wbe:v1", Some("oci:images/web:v1")),
        ("oci:wbe", None),
        ("oci:/images/web", Some("oci:images/web")),
        ("oci://images/web", Some("oci:images/web")),
        ("docker-archive:images/wev.tar", None),
    ] {
        let boxfile = read(&format!("box b\nagent {{ image \"{image}\"; }}"), None);
        let request = Request { base: dir.path(), ..request(&boxfile) };
        let Err(BuildError::Unusable { source, .. }) = image::read(&request, &store) else {
            panic!("{image} is no image")
        };
        let found = match *source {
            crate::Cause::Misnamed { meant: Meant::Unprefixed { path, form }, .. } => {
                Some(format!("{}{path}", form.prefix()))
            }
            crate::Cause::Misnamed { meant: Meant::Other(meant), .. } => Some(meant.to_string()),
            _ => None,
        };
        assert_eq!(found.as_deref(), expected, "{image}");
    }
}

#[test]
fn everything_wrong_with_the_images_is_found_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("store")).unwrap();
    let boxfile =
        read("box b\nagent { image \"oci:none\"; }\nbusiness { image \"oci:no\"; }", None);
    let request = Request { base: directory.path(), ..request(&boxfile) };
    let Err(BuildError::Several(errors)) = image::read(&request, &store) else {
        panic!("both images are missing")
    };
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let expected = ["agent", "business"].map(|it| format!("the image of `{it}` cannot be read"));
    assert_eq!(errors, expected);
}

#[test]
fn of_very_many_errors_the_first_are_kept() {
    let lines = |count, text: fn(usize) -> String| (0..count).map(text).collect::<String>();
    let file = |number| format!("file \"none/{number}\" to=\"/f/{number}\"\n");
    let files = lines(MAX_KEPT + 100, file);
    let skill = |number| format!("skill \"s{number}\" path=\"none/{number}\"\n");
    let skills = lines(MAX_SKILLS, skill);
    let agent = |files: &str| format!("box \"x\"\nagent {{\nimage \"oci:a\"\n{files}}}\n");
    let directory = tempfile::tempdir().unwrap();
    for text in [agent(&files), agent("") + &skills, agent(&files) + &skills] {
        let boxfile = read(&text, None);
        let checkout = directory.path().into();
        let request = Request { base: directory.path(), checkout, ..request(&boxfile) };
        let mut together = MemoryBudget::default();
        let found = [
            check(&request, &mut Checked::default()).0.len(),
            skills_check(&request, &mut together).len(),
            baked::check(&request, &mut together).len(),
        ];
        assert!(found.iter().all(|it| [0, MAX_KEPT].contains(it)), "{found:?}");
        assert_eq!(found[0], MAX_KEPT);
    }
}

#[test]
fn there_are_so_many_skills_and_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let single = skill_line(directory.path(), "a", "---\nname: a\ndescription: A.\n---\n");
    for number in 1..MAX_SKILLS {
        let (name, definition) = (format!("skills/s{number}"), "---\ndescription: A.\n---\n");
        std::fs::create_dir_all(directory.path().join(&name)).unwrap();
        std::fs::write(directory.path().join(&name).join("SKILL.md"), definition).unwrap();
    }
    let boxfile = format!("box b\nagent {{ image \"oci:i\"; }}\nskills dir=\"skills\"\n{single}");
    let boxfile = read(&boxfile, None);
    let request =
        Request { base: directory.path(), checkout: directory.path().into(), ..request(&boxfile) };
    let errors = || skills_check(&request, &mut MemoryBudget::default());
    assert_eq!(errors().len(), MAX_SKILLS - 1, "each lacks its name");
    std::fs::create_dir(directory.path().join("skills/more")).unwrap();
    std::fs::write(directory.path().join("skills/more/SKILL.md"), "").unwrap();
    let errors = errors();
    let [BuildError::Unusable { source, .. }] = errors.as_slice() else { panic!("{errors:?}") };
    let expected = "the box has more than 1000 skills";
    assert!(source.to_string().ends_with(expected), "{source}");
}

fn skills_check(request: &Request<'_>, together: &mut MemoryBudget) -> Vec<BuildError> {
    skills::check(request, &mut skills::Checked::new(), &mut Reports::default(), together)
}

/// Writes a skill with a definition, and returns the line of a Boxfile that declares it.
fn skill_line(checkout: &Path, name: &str, definition: &str) -> String {
    std::fs::create_dir(checkout.join(name)).unwrap();
    std::fs::write(checkout.join(name).join("SKILL.md"), definition).unwrap();
    format!("skill \"{name}\" path=\"{name}\"\n")
}

#[test]
fn of_skills_with_very_many_errors_no_more_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let tools = "  - script: none\n".repeat(300);
    let lines: String = (0..6)
        .map(|number| {
            let name = format!("s{number}");
            let definition = format!("---\nname: {name}\ndescription: A.\ntools:\n{tools}---\n");
            skill_line(directory.path(), &name, &definition)
        })
        .collect();
    let boxfile = read(&format!("box b\nagent {{ image \"oci:i\"; }}\n{lines}"), None);
    let request =
        Request { base: directory.path(), checkout: directory.path().into(), ..request(&boxfile) };
    let mut together = MemoryBudget::default();
    let errors = skills_check(&request, &mut together);
    assert_eq!(errors.iter().map(BuildError::count).collect::<Vec<_>>(), [300; 4]);
}

#[test]
fn a_skill_is_checked_once_for_all_profiles_and_counts_for_each() {
    let directory = tempfile::tempdir().unwrap();
    let line = skill_line(directory.path(), "a", "---\nname: b\ndescription: A.\nodd: 1\n---\n");
    let [plain, tools] = ["", "tools bash; "]
        .map(|tools| read(&format!("box b\nagent {{ image \"oci:i\"; {tools}}}\n{line}"), None));
    let mut checked = skills::Checked::new();
    let mut left = Vec::new();
    let mut counts = Vec::new();
    for boxfile in [&plain, &plain, &tools] {
        let request = Request {
            base: directory.path(),
            checkout: directory.path().into(),
            ..request(boxfile)
        };
        let mut together = MemoryBudget::default();
        let errors = skills::check(&request, &mut checked, &mut Reports::default(), &mut together);
        counts.push(errors.len());
        left.push(together.left());
    }
    assert_eq!(counts, [1, 0, 1]);
    assert_eq!(left, [left[0]; 3]);
    assert!(left[0] < MemoryBudget::default().left());
}
