//! Tests that the target of every link of a page exists, and that every page that the code names exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use testbed::Workspace;

/// Returns the files below a directory with a suffix: `md` for pages, `rs` for code.
///
/// Skips hidden directories, build output and the fuzzer's inputs. Also skips pages in `src`, because other pages include them,
/// and their links are relative to those pages.
fn files(directory: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        let is_skipped = name.starts_with('.') || ["target", "corpus"].contains(&&*name);
        if path.is_dir() && !is_skipped && !(name == "src" && suffix == "md") {
            found.extend(files(&path, suffix));
        } else if path.extension().is_some_and(|extension| extension == suffix) {
            found.push(path);
        }
    }
    found
}

/// Returns the lines of a page that are not in code blocks, without their inline code.
fn prose(page: &str) -> impl Iterator<Item = String> {
    let mut is_code = false;
    page.lines().filter_map(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        let without_code = || line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        (!is_code && !is_fence).then(without_code)
    })
}

/// Returns the targets of a page's links, such as `boxfile.md#values`, without links to other sites.
fn targets(page: &str) -> Vec<String> {
    let of_line = |line: String| {
        let ends = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        ends.map(|(target, _)| target.to_owned()).collect::<Vec<_>>()
    };
    prose(page).flat_map(of_line).filter(|target| !target.contains("://")).collect()
}

/// Returns the anchor that GitHub gives a heading. For example, for "`-C DIR`, as in make", it is `-c-dir-as-in-make`.
fn anchor(heading: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then_some(c),
    };
    heading.trim_start_matches('#').trim().to_lowercase().chars().filter_map(kept).collect()
}

/// Returns the anchors of a page. The second of two equal headings gets the suffix `-1`.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut seen = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in page.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code || !line.starts_with('#') {
            continue;
        }
        let anchor = anchor(line);
        let count = seen.entry(anchor.clone()).and_modify(|count| *count += 1).or_insert(0);
        anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
    }
    anchors
}

/// Returns the reason why the link `target` in `file` is broken. `None` if the link is valid.
fn fault(file: &Path, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').map_or((target, None), |(p, a)| (p, Some(a)));
    let path = if path.is_empty() { file.to_owned() } else { file.parent()?.join(path) };
    let fault = |what| Some(format!("{}: {target} {what}", file.display()));
    if !path.exists() {
        return fault("does not exist");
    }
    let anchor = anchor?;
    let page = fs::read_to_string(&path).unwrap_or_default();
    if anchors(&page).contains(anchor) { None } else { fault("is no heading of the page") }
}

/// Returns the pages of `docs` that a source file names, such as `docs/errors.md`.
fn named(source: &str) -> impl Iterator<Item = &str> {
    let is_end = |c: char| !c.is_alphanumeric() && !"-_./#:".contains(c);
    let words = source.split(is_end).filter(|word| !word.contains("://"));
    words.filter_map(|word| {
        let start = word.starts_with("docs/").then_some(0).or_else(|| {
            word.starts_with("../").then(|| word.find("/docs/").map(|at| at + 1)).flatten()
        })?;
        word[start..].contains(".md").then(|| word[start..].trim_end_matches(['.', ':']))
    })
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let pages = files(&Workspace::find().path(""), "md");
    assert!(pages.len() > 40, "{pages:?}");
    let faults_of = |page: &PathBuf| {
        let text = fs::read_to_string(page).unwrap();
        targets(&text).iter().filter_map(|target| fault(page, target)).collect::<Vec<_>>()
    };
    let faults: Vec<_> = pages.iter().flat_map(faults_of).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_page_that_the_code_names_exists() {
    let workspace = Workspace::find();
    let mut sources = files(&workspace.path(""), "rs");
    sources.push(workspace.path("Boxfile.example"));
    let (mut faults, mut count) = (Vec::new(), 0);
    for source in sources {
        let text = fs::read_to_string(&source).unwrap();
        for page in named(&text) {
            let fault = fault(&workspace.path("Cargo.toml"), page);
            faults.extend(fault.map(|fault| format!("{}, {fault}", source.display())));
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_first_page_shows_the_example_as_it_is() {
    let workspace = Workspace::find();
    let read = |name| fs::read_to_string(workspace.path(name)).unwrap();
    let boxfile = read("examples/hello/Boxfile");
    let declarations = boxfile.find("box \"hello\"").unwrap();
    assert!(read("README.md").contains(&boxfile[declarations..]));
}

#[test]
fn links_and_anchors_are_found_as_github_finds_them() {
    let page =
        "# A\n[a](x.md#b) `[c](d)` ![e](f.svg)\n```\n# no\n[g](h)\n```\n## It's: `B c`, d-e\n# A\n";
    assert_eq!(targets(page), ["x.md#b", "f.svg"]);
    assert_eq!(anchors(page), BTreeSet::from(["a", "a-1", "its-b-c-d-e"].map(str::to_owned)));
    // `@` stands for `docs/`, so that `every_page_that_the_code_names_exists` does not search for these pages.
    let source = "// See @a.md#b. \"@c.md\", ../../@d.md; https://x.org/@e.md, a/@f.md"
        .replace('@', "docs/");
    let names: Vec<_> = named(&source).map(|name| name.replace("docs/", "@")).collect();
    assert_eq!(names, ["@a.md#b", "@c.md", "@d.md"]);
}
