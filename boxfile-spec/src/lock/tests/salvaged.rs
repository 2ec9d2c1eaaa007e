//! What is kept of a lock that does not parse.

use super::*;
use crate::lock::Salvaged;

/// Salvages the example's text after a change that makes it unreadable.
fn after(change: impl Fn(&str) -> String) -> Salvaged {
    let changed = change(&example().write());
    assert!(Lock::parse(&changed).is_err(), "{changed}");
    Lock::salvage(&changed)
}

/// Returns the example without some entries, and says that they were dropped.
fn without(names: &[&str], dropped: &[&str]) -> Salvaged {
    let mut lock = example();
    lock.retain(|entry| !names.contains(&&*entry.name));
    Salvaged { lock: Some(lock), dropped: dropped.iter().map(|it| (*it).to_owned()).collect() }
}

#[test]
fn a_lock_that_parses_is_kept_whole() {
    for lock in [example(), Lock::new(7)] {
        let salvaged = Lock::salvage(&lock.write());
        assert_eq!(salvaged, Salvaged { lock: Some(lock), dropped: Vec::new() });
    }
}

#[test]
fn one_broken_entry_costs_no_other_its_pin() {
    let greet = "the entry `skill:greet`";
    let kernel = "the entry `kernel` for linux/amd64";
    for (from, to, name, title) in [
        ("skills/greet", "skills/other", "skill:greet", greet),
        ("skills/greet\"", "skills/greet", "skill:greet", greet),
        ("boot/vmlinux", "boot/vm\u{202e}linux", "kernel", kernel),
        ("boot/vmlinux\"", "boot/vmlinux\"\nboot = 1", "kernel", kernel),
        ("kind = \"kernel\"\n", "", "kernel", kernel),
        ("kind = \"kernel\"", "kind = [[[", "kernel", kernel),
        ("name = \"kernel\"\n", "", "kernel", "an entry without a name"),
    ] {
        let salvaged = after(|text| text.replacen(from, to, 1));
        assert_eq!(salvaged, without(&[name], &[title]), "{to}");
    }
}

#[test]
fn an_entry_of_another_platform_is_dropped() {
    let salvaged = after(|text| text.replacen("\"linux/amd64\"", "\"linux/arm64\"", 1));
    let lock = salvaged.lock.unwrap();
    assert_eq!(lock.entries().count(), 7);
    assert!(lock.get("agent", Some(Platform::LinuxArm64)).is_some());
    // What is broken has the name of one that is kept, and nothing of that name is lost.
    assert_eq!(salvaged.dropped, Vec::<String>::new());
}

#[test]
fn the_head_may_be_damaged() {
    for (from, to) in [
        ("version = 1\n", ""),
        ("epoch = 1\n", ""),
        ("version = 1\nepoch = 1\n", "rubbish [\n"),
        ("epoch = 1", "epoch = 1 # why\nmore = {"),
    ] {
        assert_eq!(after(|text| text.replacen(from, to, 1)), without(&[], &[]), "{to}");
    }
}

#[test]
fn of_another_epoch_or_version_nothing_is_kept() {
    let other = |from, to| {
        let salvaged = after(|text| text.replacen(from, to, 1));
        assert_eq!(salvaged.dropped.len(), 8);
        salvaged.lock.unwrap()
    };
    assert_eq!(other("epoch = 1", "epoch = 2"), Lock::new(2));
    assert_eq!(other("version = 1", "version = 2"), Lock::new(1));
}

#[test]
fn what_is_no_lock_is_left_to_whoever_owns_it() {
    for text in [
        "",
        "box \"hello\"\nagent {\n}\n",
        "version = 4\n\n[[package]]\nname = \"a\"\n",
        "epoch = 1\n",
        "[[entry]]\nname = \"a\"\ncheck = \"b\"\n",
        &" ".repeat(crate::lock::MAX_TEXT + 1),
    ] {
        assert_eq!(Lock::salvage(text), Salvaged::default(), "{text:.60}");
    }
}

/// Returns the texts of two branches and what `git merge` makes of their different ends.
fn merged(ours: &Lock, theirs: &Lock, base: Option<&str>) -> String {
    let [ours, theirs] = [ours, theirs].map(Lock::write);
    let same = ours.lines().zip(theirs.lines()).take_while(|(one, other)| one == other).count();
    let tail = |text: &str| text.split_inclusive('\n').skip(same).collect::<String>();
    let head: String = ours.split_inclusive('\n').take(same).collect();
    let base = base.map(|base| format!("||||||| 5a4e70c\n{base}")).unwrap_or_default();
    let (ours, theirs) = (tail(&ours), tail(&theirs));
    format!("{head}<<<<<<< HEAD\n{ours}{base}=======\n{theirs}>>>>>>> branch\n")
}

fn with(lock: &Lock, entry: Entry) -> Lock {
    let mut lock = lock.clone();
    lock.set(entry);
    lock
}

#[test]
fn both_sides_of_a_merge_conflict_count() {
    let skill = |name| entry(name, Kind::Skill, "skills/new", None);
    let (ours, theirs) = (with(&example(), skill("skill:x")), with(&example(), skill("skill:y")));
    let both = with(&ours, skill("skill:y"));
    for base in [None, Some("size = 1\n[[entry]]\n")] {
        for line_end in ["\n", "\r\n"] {
            let text = merged(&ours, &theirs, base).replace('\n', line_end);
            assert!(Lock::parse(&text).is_err());
            let expected = Salvaged { lock: Some(both.clone()), dropped: Vec::new() };
            assert_eq!(Lock::salvage(&text), expected, "{text}");
        }
    }
}

#[test]
fn an_entry_that_differs_between_the_sides_is_dropped() {
    let agent = |size| Entry { size, ..example().entries().next().unwrap().clone() };
    let text = merged(&with(&example(), agent(1)), &with(&example(), agent(2)), None);
    let salvaged = Lock::salvage(&text);
    assert_eq!(salvaged.dropped, ["the entry `agent` for linux/amd64"]);
    let mut expected = example();
    expected.remove("agent", Some(Platform::LinuxAmd64));
    assert_eq!(salvaged.lock, Some(expected));
}

#[test]
fn two_new_files_in_conflict_are_one_lock() {
    let of = |name| with(&Lock::new(1), entry(name, Kind::Skill, "skills/new", None));
    let (ours, theirs) = (of("skill:x").write(), of("skill:y").write());
    let text = format!("<<<<<<< HEAD\n{ours}=======\n{theirs}>>>>>>> branch\n");
    let both = with(&of("skill:x"), of("skill:y").entries().next().unwrap().clone());
    assert_eq!(Lock::salvage(&text), Salvaged { lock: Some(both), dropped: Vec::new() });
    // Of two epochs, the later counts.
    let text = text.replacen("epoch = 1", "epoch = 0", 1);
    assert_eq!(Lock::salvage(&text).lock.unwrap().epoch(), 1);
}

#[test]
fn the_same_entry_twice_counts_once_and_two_of_a_name_do_not() {
    let twice = |text: &str, change: &str| {
        let start = text.rfind("\n[[entry]]").unwrap();
        let mut lock = Lock::new(1);
        lock.set(entry("skill:greet", Kind::Skill, change, None));
        let again = lock.write()[Lock::new(1).write().len()..].to_owned();
        format!("{}{again}{}", &text[..start], &text[start..])
    };
    assert_eq!(after(|text| twice(text, "skills/greet")), without(&[], &[]));
    let dropped = without(&["skill:greet"], &["the entry `skill:greet`"]);
    assert_eq!(after(|text| twice(text, "skills/other")), dropped);
}
