use std::collections::{BTreeMap, BTreeSet};

use box_contract::permissions::{Effect, PermissionChange};
use box_contract::plan::FieldDifference;
use box_contract::{BoxConfig, Budget, ComponentName, Layout};
use box_inspect::diff::summary::{FileChange, Files};
use box_inspect::diff::{PackageChange, PartDifference, Sizes};
use box_inspect::sbom::PackageName;
use box_tree::listing::{ImageOrigin, Origin, Origins};
use box_tree::{Content, Inode, Leaf, Meta, Tree};
use proptest::prelude::*;
use testkit::TestBox;

use super::*;

/// Texts that end an element, an attribute, a comment or a script, or that a reader obeys.
const HOSTILE: &str = "</title><script>alert(1)</script>\"' onload=x '><img src=//e.example>&lt;\
                       <!-- ]]> </svg></style>\u{1b}[2J\u{202e}\u{0}\n";
/// The elements of a page. The test fails if a foreign text has made another one.
const ELEMENTS: [&str; 34] = [
    "a", "b", "body", "code", "dd", "details", "div", "dl", "dt", "h1", "h2", "h3", "head",
    "header", "html", "main", "meta", "nav", "p", "path", "rect", "section", "span", "style",
    "summary", "svg", "table", "tbody", "td", "text", "th", "thead", "title", "tr",
];
/// The attributes of a page. None of them runs a script or loads anything; `href` leads to the page itself.
const ATTRIBUTES: [&str; 22] = [
    "aria-current",
    "aria-hidden",
    "aria-label",
    "charset",
    "class",
    "content",
    "d",
    "height",
    "href",
    "http-equiv",
    "id",
    "lang",
    "name",
    "preserveAspectRatio",
    "role",
    "scope",
    "tabindex",
    "title",
    "viewBox",
    "width",
    "x",
    "y",
];

/// A box with files, and everything else that a page is made of.
struct Case {
    config: BoxConfig,
    listing: Listing,
    inventory: Inventory,
    permissions: Vec<PermissionChange>,
    fields: Vec<FieldDifference>,
    packages: Vec<PackageChange>,
    parts: Vec<PartDifference>,
    text: String,
}

impl Case {
    /// Makes a box in which everything that may be a foreign text is `text`, with `count` of each thing.
    fn of(text: &str, count: usize) -> Self {
        let mut config = testkit::test_box::config();
        config.plan.layout = Layout::Merged;
        config.kernel_version = text.to_owned();
        let name =
            |it| PackageName { part: text.to_owned(), kind: "deb", name: format!("{text}{it}") };
        let versions = BTreeSet::from([text.to_owned()]);
        let packages: BTreeMap<_, _> = (0..count).map(|it| (name(it), versions.clone())).collect();
        let sizes = (0..count).map(|it| (name(it), it as u64)).collect();
        let all = || 0..count;
        let field = |_| FieldDifference { field: text.into(), a: text.into(), b: text.into() };
        let permission = |_| PermissionChange {
            field: text.into(),
            effect: Effect::More,
            a: None,
            b: Some(text.into()),
        };
        let package = |it| PackageChange { package: name(it), a: vec![text.into()], b: Vec::new() };
        let part = PartDifference { name: "kernel", a: None, b: None };
        Self {
            config,
            listing: listing(text, count),
            inventory: Inventory { packages, sizes, left_out: vec![text.to_owned(); count] },
            permissions: all().map(permission).collect(),
            fields: all().map(field).collect(),
            packages: all().map(package).collect(),
            parts: vec![part],
            text: text.to_owned(),
        }
    }

    fn page(&self) -> String {
        let directory = TestBox::new(&self.config);
        let opened = box_inspect::opened::open(directory.path()).unwrap();
        let parts = (0..self.fields.len()).map(|it| (format!("{it}{}", self.text), 9)).collect();
        let sizes = Sizes { whole: 3 << 20, rootfs: 2 << 20, parts };
        let change = FileChange {
            change: "added".to_owned(),
            path: self.text.clone(),
            a: None,
            b: Some("1 byte".to_owned()),
        };
        let summary = Summary {
            names: [self.text.clone(), self.text.clone()],
            title: &self.text,
            permissions: &self.permissions,
            fields: &self.fields,
            packages: &self.packages,
            is_incomplete: true,
            sizes: [Sizes::default(), sizes],
            budgets: [Budget::default(), Budget { total: Some(900), ..Budget::default() }],
            kernels: [&self.text, "Linux version 6.12.34"],
            parts: &self.parts,
            files: Files {
                counts: [9, 0, 0],
                largest: vec![change; MAX_CHANGED_FILES.min(self.fields.len())],
            },
        };
        let measured = Some(Phases { total: 901.5, ..Phases::default() });
        let (listing, inventory) = (&self.listing, &self.inventory);
        Report { opened: &opened, listing, inventory, measured, changes: Some(summary) }.html()
    }
}

/// Makes a listing with `count` directories, each with a file of each origin.
fn listing(text: &str, count: usize) -> Listing {
    let mut tree = Tree::default();
    let name = |it: usize| {
        let text: String = text.chars().filter(|it| !matches!(it, '/' | '\0')).take(60).collect();
        format!("{it}{text}").into_bytes()
    };
    let layers = vec![Digest::of(b"layer"); 3];
    let origins =
        [Origin::Layer(ComponentName::Agent, 2), Origin::Skill(0), Origin::Merged, Origin::Init];
    for at in 0..count {
        let directory = tree.add(Inode::directory(Meta::root_owned(0o755)));
        tree.link(Tree::ROOT, &name(at), directory);
        let inner = tree.add(Inode::directory(Meta::root_owned(0o755)));
        tree.link(directory, b"inner", inner);
        for (number, origin) in origins.into_iter().enumerate() {
            let content = Content { size: (at * 1000 + number) as u64, ..Content::of(b"") };
            let leaf = Inode::leaf(Meta::root_owned(0o644), Leaf::File(content)).from(origin);
            let file = tree.add(leaf);
            tree.link(inner, &name(number), file);
            tree.link(inner, &name(number + 10), file);
        }
    }
    let image = ImageOrigin { component: ComponentName::Agent, layers };
    let origins =
        Origins { images: vec![image], skills: vec![text.to_owned()], ..Origins::default() };
    Listing { tree, origins }
}

/// Checks that a page has only known elements and attributes, each closed, and returns its text.
fn read(page: &str) -> String {
    let (mut open, mut text, mut rest) = (Vec::new(), String::new(), page);
    rest = rest.strip_prefix("<!DOCTYPE html>\n").unwrap();
    while let Some((before, behind)) = rest.split_once('<') {
        if open.last() != Some(&"style") {
            text += before;
        }
        let (tag, behind) = behind.split_once('>').unwrap();
        rest = behind;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{before}");
            continue;
        }
        let is_closed = tag.ends_with('/');
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let name = name.trim_end_matches('/');
        assert!(ELEMENTS.contains(&name) && !name.is_empty(), "<{tag}>");
        while let Some((attribute, behind)) = attributes.split_once("=\"") {
            let (value, behind) = behind.split_once('"').unwrap();
            assert!(ATTRIBUTES.contains(&attribute.trim()), "{attribute} in <{tag}>");
            assert!(attribute.trim() != "href" || value.starts_with('#'), "<{tag}>");
            attributes = behind;
        }
        assert!(matches!(attributes, "" | "/"), "<{tag}>");
        if !is_closed && name != "meta" {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0]);
    text
}

#[test]
fn no_text_of_a_box_is_markup() {
    let page = Case::of(HOSTILE, 3).page();
    let text = read(&page);
    assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.chars().all(|c| c == '\n' || safe_text::visible(c) == c));
    // A control: the reader finds what a foreign text could do.
    for wrong in ["<script>", "<p onload=\"x\">", "<a href=\"//e\">", "</p>"] {
        let page = page.replacen("<main>", &format!("<main>{wrong}"), 1);
        assert!(std::panic::catch_unwind(|| read(&page)).is_err(), "{wrong}");
    }
}

#[test]
fn the_policy_permits_only_the_style_of_the_page() {
    let page = Case::of("plain", 2).page();
    let style = page.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
    let digest = BASE64_STANDARD.encode(Digest::of(style.as_bytes()).as_bytes());
    let policy = format!("default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'");
    assert!(page.find(&policy).unwrap() < page.find("<style>").unwrap());
    for loaded in ["url(", "@import", "http://", "https://", "<script", "style=\""] {
        assert!(!page.contains(loaded), "{loaded}");
    }
}

#[test]
fn every_link_leads_to_a_part_of_the_page() {
    let page = Case::of("plain", 30).page();
    let all = |before: &str| -> BTreeSet<String> {
        page.split(before).skip(1).map(|it| it.split('"').next().unwrap().to_owned()).collect()
    };
    let (links, parts) = (all(" href=\"#"), all(" id=\""));
    assert_eq!(links.difference(&parts).count(), 0, "{links:?} {parts:?}");
    assert!(links.len() > 40, "directories can be opened");
    assert_eq!(page.matches("class=\"level first\"").count(), 1);
}

#[test]
fn a_page_is_bounded_and_tells_what_it_lacks() {
    let text = "&".repeat(300) + HOSTILE;
    let page = Case::of(&text, 3000).page();
    assert!(page.len() < 16 << 20, "{}", page.len());
    read(&page);
    assert!(page.contains("rows are left out") && page.contains(" more entries"));
    let small = Case::of("plain", 1).page();
    assert!(!small.contains("left out") && !small.contains(" more entries"));
}

#[test]
fn the_same_box_gives_the_same_bytes() {
    assert_eq!(Case::of("plain", 40).page(), Case::of("plain", 40).page());
}

#[test]
fn a_box_without_files_has_a_page() {
    let page = Case::of("plain", 0).page();
    assert!(page.contains("There is nothing with a size."));
    read(&page);
}

#[test]
fn a_file_with_two_names_counts_once() {
    let listing = listing("", 2);
    let survey = Survey::of(&listing);
    let of = |origin| survey.origins.get(&origin).copied();
    assert_eq!(of(Origin::Skill(0)), Some((2, 1002)));
    assert_eq!(survey.names.size(0), 1000 * 4 + 2 * (1 + 2 + 3));
    assert_eq!(survey.by_origin().size(0), survey.names.size(0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn whatever_the_texts_are_a_page_is_well_formed(text in "(\\PC|[<>&\"'/\u{1}-\u{20}\u{202e}]){1,80}") {
        read(&Case::of(&text, 2).page());
    }
}
