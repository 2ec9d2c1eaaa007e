//! Boxes of two users, and a user who deceives the administrator: `ps --all-users` and `metrics --all-users`.

use std::path::Path;

use serde_json::Value;
use testbed::prerequisites::{Sample, prometheus_parser, with_program};

use crate::scenario::{Scenario, UNHURRIED, as_user, bake, hello_checkout, sleeping, tools};

/// A network whose only host does not exist.
const RULES: &str = "network \"filtered\" {\n    allow \"allowed.example\"\n}\n";
/// The user `me` starts a box, and root one that is denied a connection.
const BOXES: &str = r#"ifconfig lo 127.0.0.1 up
boxlaunch run -q -d --name roots /filtered
boxlaunch exec roots -- wget -qO- http://denied.example/ 2>/dev/null
boxlaunch run -q --rm /filtered -- true
"#;
/// The user `evil` locks files that look like the locks of boxes. Each record is what boxlaunch must not read.
const EVIL: &str = r#"echo 'evil:x:1001:1001::/tmp/evil:/bin/sh' >>/etc/passwd; echo 'evil:x:1001:' >>/etc/group
mkdir -m 755 /tmp/evil; cp /tmp/home/state/boxes/mine/record.json /tmp/evil/record; chown -R 1001:1001 /tmp/evil
cat >/tmp/evil.sh <<'AS_EVIL'
cd /tmp/evil; mkdir -p s/boxes/.locks
for name in link pipe large other roots; do mkdir s/boxes/$name; done
ln -s /etc/shadow s/boxes/link/record.json
mkfifo s/boxes/pipe/record.json
truncate -s 10G s/boxes/large/record.json
sed 's/"name":"mine"/"name":"canary"/' record >s/boxes/other/record.json
rmdir s/boxes/roots; ln -s $ROOTS s/boxes/roots
ln -s /tmp/home/state/boxes s/boxes/whole
for name in link pipe large other roots whole; do
    flock s/boxes/.locks/$name sleep 1000 &
done
AS_EVIL
chmod 644 /tmp/evil/record; ROOTS=$BOXLAUNCH_STATE/boxes/roots su evil -c 'sh /tmp/evil.sh'; sleep 1
find /tmp/evil /tmp/home/state | sort | xargs ls -ld >/tmp/before
"#;
/// What the administrator sees, and what his look has changed.
const LOOK: &str = r#"
boxlaunch ps --all-users >/out/table.txt 2>/out/notices.txt; boxlaunch ps --all-users --json 2>/dev/null >/out/boxes.json
boxlaunch metrics --all-users 2>/dev/null >/out/all.prom
echo 'export HOME=/tmp/home BOXLAUNCH_STATE=/tmp/home/state XDG_RUNTIME_DIR=/tmp/home; cd; boxlaunch "$@"' >/tmp/as-me.sh
su me -c 'sh /tmp/as-me.sh metrics' >/out/me.prom
find /tmp/evil /tmp/home/state | sort | xargs ls -ld | diff /tmp/before - && echo unchanged
su me -c 'sh /tmp/as-me.sh ps --all-users' 2>/out/told.txt | grep -o -E 'mine|roots'; boxlaunch kill roots >/dev/null
"#;
/// The user's box has a published port.
const MINE: &str = "boxlaunch run -q -d --name mine -p 8080:4088 /hello";

fn the_administrator_sees_the_boxes_of_all_users_and_believes_none() {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let hello = hello_checkout(dir.path());
    let flock = Path::new("/usr/bin/flock");
    let mut host = with_program(tools.host.clone(), flock, "/bin/flock").unwrap();
    for (name, text) in [("hello", hello), ("filtered", sleeping("filtered") + RULES)] {
        std::fs::write(at("Boxfile"), text).unwrap();
        bake(&at("Boxfile"), &tools.programs.box_init, &at(name));
        host = host.file(at(name), format!("/{name}"));
    }
    let script = format!("{BOXES}\n{}\n{EVIL}\n{LOOK}", as_user(MINE));
    let scenario = Scenario::default().script(UNHURRIED, "look", &script);
    let (steps, files) = scenario.start_for_files(&host);
    let file = |name: &str| String::from_utf8_lossy(&files[Path::new(name)]).into_owned();
    assert_eq!(steps["look"].stdout, "roots\nmine\nunchanged\nmine\n", "{:?}", steps["look"]);
    assert!(file("told.txt").contains("only the boxes of this user are shown"));
    assert_table(&file("table.txt"));
    let notices = file("notices.txt");
    insta::assert_snapshot!("notices", notices);
    for canary in ["canary", "root:"] {
        assert!(!files.values().any(|it| String::from_utf8_lossy(it).contains(canary)), "{canary}");
    }
    let boxes: Value = serde_json::from_str(&file("boxes.json")).unwrap();
    let mine = boxes["boxes"].as_array().unwrap().iter().find(|it| it["user"] == "me").unwrap();
    assert_eq!((&mine["uid"], &mine["name"]), (&1000.into(), &"mine".into()));
    assert_eq!(mine["state_directory"], "/tmp/home/state");
    let parser = prometheus_parser(&tools.workspace, &mut |line| println!("{line}")).unwrap();
    let parsed = |name: &str| {
        std::fs::write(at(name), file(name)).unwrap();
        parser.parse(&at(name)).unwrap()
    };
    assert_figures(&parsed("all.prom"));
    let own = parsed("me.prom");
    assert!(own.iter().all(|it| it.labels["user"] == "me"), "{own:?}");
}

/// Checks the table but for the digests and times.
fn assert_table(table: &str) {
    let rows: Vec<Vec<_>> = table.lines().map(|it| it.split_whitespace().collect()).collect();
    let kept: Vec<_> = rows.iter().map(|row| [row[0], row[1], row[3]]).collect();
    let expected =
        [["USER", "NAME", "PORTS"], ["root", "roots", "-"], ["me", "mine", "127.0.0.1:8080->4088"]];
    assert_eq!(kept, expected, "{table}");
}

fn assert_figures(samples: &[Sample]) {
    let value = |name: &str, user: &str, label: (&str, &str)| {
        let is_it = |it: &&Sample| {
            it.name == name
                && it.labels["user"] == user
                && it.labels.get(label.0).is_some_and(|it| it == label.1)
        };
        samples.iter().find(is_it).map(|it| it.value)
    };
    let state = |user, state| value("boxlaunch_boxes", user, ("state", state));
    assert_eq!((state("root", "running"), state("me", "running")), (Some(1.0), Some(1.0)));
    assert_eq!((state("root", "failed"), state("evil", "running")), (Some(0.0), Some(0.0)));
    let starts = |user, of| value("boxlaunch_starts_total", user, ("state_directory", of));
    assert_eq!(starts("me", "/tmp/home/state"), Some(1.0));
    let of_box = |figure: &str, user, name| {
        value(&format!("boxlaunch_box_{figure}"), user, ("name", name)).unwrap_or_default()
    };
    assert!(of_box("denied_connections_total", "root", "roots") >= 1.0, "{samples:?}");
    for (user, name) in [("root", "roots"), ("me", "mine")] {
        assert!(of_box("memory_bytes", user, name) > 1e6, "{user}: {samples:?}");
        assert!(of_box("cpu_seconds_total", user, name) > 0.0, "{user}: {samples:?}");
        assert!(of_box("ready_seconds", user, name) > 0.0, "{user}: {samples:?}");
        let limit = of_box("memory_limit_bytes", user, name);
        assert!((limit - 268_435_456.0).abs() < 1.0, "{limit}");
    }
}

tests![the_administrator_sees_the_boxes_of_all_users_and_believes_none];
