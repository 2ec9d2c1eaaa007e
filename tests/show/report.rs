//! Tests of `boxbuild report`.

use std::fs;

use box_digest::Digest;
use testbed::prerequisites::browser;
use testkit::images::{Config, Image, Layer};

use crate::checkout::{Checkout, WHOLE};
use crate::fixture::built;
use crate::schema::assert_fits;

#[test]
fn a_page_has_the_files_the_origins_and_the_permissions() {
    let checkout = built();
    let ran = checkout.run(&["report", "test.box"]);
    assert_eq!((ran.code, ran.notes.as_str()), (0, "written: test.html\n"));
    let page = checkout.read("test.html");
    assert_eq!(ran.result, format!("{}\n", Digest::of(page.as_bytes())));
    for expected in [
        "<code>/roots/agent/usr/base</code>",
        "<code>agent layer 1 ",
        "<code>skill greet</code>",
        "agent/wild\u{fffd}\u{fffd}[2J",
        "Each of the two images has a root of its own",
        "<td>agent user</td>",
        "No start was measured for this page.",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let root = checkout.root().to_str().unwrap();
    assert!(!page.contains(root) && !page.contains("id=\"changes\""));
    let stream = checkout.run(&["report", "test.box", "-o", "-"]);
    assert!(stream.code == 0 && stream.result == page && stream.notes.is_empty());
    let again = checkout.fails(&["report", "test.box"]);
    assert!(again.contains("error: test.html exists"), "{again}");
    assert_eq!(checkout.read("test.html"), page);
}

#[test]
fn an_older_box_gives_the_changes() {
    let checkout = Checkout::new();
    checkout.built(&["--output", "old.box"]);
    checkout.edit(
        "Boxfile",
        "    health \"tcp\"\n",
        "    health \"tcp\"\n    capabilities add=\"NET_RAW\"\n",
    );
    checkout.built(&["--output", "new.box"]);
    let ran = checkout.run(&["report", "new.box", "old.box", "-o", "page.html", "--json"]);
    let report = ran.json();
    assert_fits("report", &report);
    let page = checkout.read("page.html");
    assert_eq!(report["bytes"], page.len());
    for expected in ["<h2>Changes</h2>", "<span class=\"more\">allows more</span>", "+NET_RAW"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let old = page.find(report["compared"].as_str().unwrap()).unwrap();
    assert!(old > page.find("<h2>Changes</h2>").unwrap());
    // Neither the names on the command line nor the place of a box are in the page.
    fs::rename(checkout.path("old.box"), checkout.path("older.box")).unwrap();
    assert_eq!(checkout.result(&["report", "./new.box", "older.box", "-o", "-"]), page);
}

#[test]
fn a_measured_start_is_shown_beside_the_budget() {
    let checkout = Checkout::new();
    let boxfile = checkout.read("Boxfile") + "budget kernel=\"150ms\" total=\"400ms\"\n";
    checkout.write("Boxfile", boxfile);
    checkout.built(WHOLE);
    let inspected = checkout.run(&["inspect", "test.box", "--json"]).json();
    let of = |digest: &str| {
        format!(
            r#"{{"box":"{digest}","phases_ms":{{"vmm":40.0,"kernel":{{"median":151.25}},"init":30,"ready":9,"total":230.25}}}}"#
        )
    };
    checkout.write("start.json", of(inspected["box"].as_str().unwrap()));
    let measured = &["report", "test.box", "--measured", "start.json", "-o", "-"];
    let page = checkout.result(measured);
    for expected in ["<td class=\"n\">150 ms</td><td class=\"n\">151.2 ms</td>", "over its budget"]
    {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    checkout.write("start.json", of(&Digest::of(b"other").to_string()));
    let error = checkout.run(measured);
    assert!(
        error.code == 2 && error.notes.contains("start.json is about another box"),
        "{}",
        error.notes
    );
    checkout.write("start.json", "{}");
    let error = checkout.run(measured);
    assert!(error.notes.contains("start.json has no measured start"), "{}", error.notes);
}

#[test]
fn a_merged_box_tells_what_it_records_of_the_conflicts() {
    let checkout = Checkout::new();
    let accounts = |name: &str| {
        let passwd = format!("root:x:0:0::/:/bin/sh\n{name}:x:7:7::/:/bin/sh\n");
        Layer::new().file("/etc/passwd", 0o644, passwd).file("/program", 0o755, name).to_tar()
    };
    for name in ["agent", "business"] {
        let entrypoint = vec!["/program".to_owned()];
        let image = Image::new(Config { entrypoint, ..Config::default() });
        fs::remove_dir_all(checkout.path(&format!("images/{name}"))).unwrap();
        checkout.image(name, &image.with(accounts("one")));
    }
    checkout.edit("Boxfile", "box \"test\"\n", "box \"test\"\nlayout \"merged\"\n");
    checkout.built(WHOLE);
    let page = checkout.result(&["report", "test.box", "-o", "-"]);
    assert!(page.contains("It records neither the paths that were in conflict"), "{page}");
}

/// Loads pages in a browser, as a person does.
#[test]
#[ignore = "needs a browser: cargo xtask test --landing"]
fn a_browser_shows_a_page_and_opens_its_map() {
    let checkout = built();
    checkout.result(&["report", "test.box", "test.box"]);
    for scripts in [true, false] {
        let page = checkout.path("test.html");
        let shown = browser(&page, scripts, &mut |line| println!("{line}")).unwrap();
        assert_eq!(shown.messages, [""; 0]);
        assert_eq!(shown.requests, [format!("file://{}", page.display())]);
        assert_eq!(shown.before, ["o0"]);
        assert!(shown.after.len() == 1 && shown.after != shown.before, "{:?}", shown.after);
        for cell in ["/roots/agent/usr/base</code></td>", "<td>vmm</td>", "skill greet"] {
            assert!(shown.html.contains(cell), "{cell}");
        }
    }
}
