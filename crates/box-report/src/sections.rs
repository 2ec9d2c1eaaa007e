//! The sections about one box.

use std::cmp::Reverse;

use box_contract::plan::Layout;
use box_contract::{Budget, Phase, Phases, RunPlan};
use box_inspect::diff::Sizes;
use box_inspect::largest::Largest;
use box_inspect::sbom::Inventory;
use box_tree::InodeId;

use crate::Report;
use crate::html::Html;
use crate::map::share;
use crate::survey::Survey;

/// The number of rows of a table.
pub(crate) const MAX_ROWS: usize = 200;
const LS: &str = "; <code>boxbuild ls BOX --origin --long</code> lists every file";
/// The sections of a page after the changes.
const SECTIONS: &str = "size origins files packages merge permissions start";

/// Adds the title, the digest and the main figures.
pub(crate) fn head(body: &mut Html, report: &Report<'_>, survey: &Survey<'_>) {
    let (plan, digest) = (report.opened.plan(), report.opened.digest);
    let changes = report.changes.as_ref().map(|_| "changes");
    let links = changes.into_iter().chain(SECTIONS.split(' '));
    let links: String = links.map(|it| format!("<a href=\"#{it}\">{it}</a>\n")).collect();
    let name = Html::text(&plan.name).into_string();
    body.put(&format!(
        "<header><h1>{name}</h1>\n<p class=\"digest\"><code>{digest}</code></p>\n\
         <nav aria-label=\"Sections\">{links}</nav></header>\n<main>\n<dl class=\"figures\">\n"
    ));
    let sizes = Sizes::of(report.opened, report.listing);
    let files: u64 = survey.origins.values().map(|(files, _)| files).sum();
    let total = plan.budget.limit(Phase::Total).map(|ms| format!("{ms} ms"));
    let figures = [
        ("box", Html::size(sizes.whole)),
        ("rootfs", Html::size(sizes.rootfs)),
        ("files", Html::own(files.to_string())),
        ("packages", Html::own(report.inventory.packages.len().to_string())),
        ("start budget", Html::own(total.unwrap_or_else(|| "none".to_owned()))),
    ];
    for (name, value) in figures {
        body.put(&format!("<div><dt>{name}</dt><dd>{}</dd></div>\n", value.as_str()));
    }
    let kernel = Html::code(report.opened.config.kernel_version.trim_end());
    body.put(&format!("</dl>\n<p class=\"kernel\">Kernel: {}</p>\n", kernel.as_str()));
}

/// Adds the table of the layers, skills and other origins.
pub(crate) fn origins(body: &mut Html, survey: &Survey<'_>) {
    let mut html = Html::default();
    html.paragraph(
        "Every file of a box comes from a layer of an image, a skill, a file of the checkout, the agent's program, or the \
         builder: <code>init</code> are files that a box adds, such as its run plan, and <code>generated</code> are missing directories. It \
         combines <code>merged</code> from both images. The sizes are those of the files. Two files with the same content \
         count twice, although the box contains the content once.",
    );
    let whole = survey.origins.values().fold(0u64, |all, (_, bytes)| all.saturating_add(*bytes));
    let mut all: Vec<_> = survey.origins.iter().collect();
    all.sort_by_key(|(origin, (_, bytes))| (Reverse(*bytes), **origin));
    let rows = all.into_iter().map(|(origin, (files, bytes))| {
        let (name, files) = (Html::code(&survey.origin(*origin)), Html::own(files.to_string()));
        let bar = Html::bar(*bytes as f64, None, whole as f64);
        [name, files, Html::size(*bytes), Html::own(share(*bytes, whole)), bar]
    });
    html.table(["origin", "#files", "#size", "#share", ""], rows, (MAX_ROWS, ": the smallest"));
    body.section("origins", "Origins", &html);
}

/// Adds the largest files.
pub(crate) fn files(body: &mut Html, survey: &Survey<'_>) {
    let mut html = Html::default();
    html.paragraph("The largest files. A file with several names is counted at the first.");
    list(&mut html, survey, &survey.largest);
    body.section("files", "Files", &html);
}

/// Adds files with their origins.
fn list(html: &mut Html, survey: &Survey<'_>, files: &Largest<(usize, InodeId)>) {
    let rows = files.sorted().into_iter().map(|(size, (name, id))| {
        let origin = survey.origin(survey.listing.tree.inode(id).origin);
        [Html::code(&survey.names.path(name)), Html::size(size), Html::code(&origin)]
    });
    let all = files.added();
    html.table(["path", "#size", "origin"], rows, (MAX_ROWS, ""));
    if all > MAX_ROWS {
        html.paragraph(&format!("These are {MAX_ROWS} of {all} files{LS}."));
    }
}

/// Adds the packages, the largest first.
pub(crate) fn packages(body: &mut Html, inventory: &Inventory) {
    let mut html = Html::default();
    let mut all: Vec<_> = inventory.packages.iter().collect();
    let size = |it| inventory.sizes.get(it).copied();
    all.sort_by_key(|(it, _)| (Reverse(size(it)), *it));
    let rows = all.iter().map(|(it, versions)| {
        let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
        let size = size(it).map_or_else(|| Html::own("–"), Html::size);
        let (name, part) = (Html::code(&it.name), Html::text(&it.part));
        [name, Html::code(&versions.join(", ")), Html::own(it.kind), part, size]
    });
    html.paragraph(match all.is_empty() {
        true => "The box has no package database that boxbuild reads.",
        false => {
            "The size of a deb, apk or alpm package is the one that its database declares. The size of an npm package is that \
             of its files. Python's packages have none here."
        }
    });
    if !all.is_empty() {
        let more = "; <code>boxbuild inspect BOX --sbom</code> lists every package";
        html.table(["package", "version", "kind", "part", "#size"], rows, (MAX_ROWS, more));
    }
    if !inventory.left_out.is_empty() {
        let rows = inventory.left_out.iter().map(|it| [Html::text(it)]);
        html.table(["what was not read"], rows, (MAX_ROWS, ""));
    }
    body.section("packages", "Packages", &html);
}

/// Adds what the box records about the merge of two images.
pub(crate) fn merge(body: &mut Html, plan: &RunPlan, survey: &Survey<'_>) {
    let mut html = Html::default();
    html.paragraph(match (plan.layout, &plan.business) {
        (Layout::Merged, _) => {
            "The files of both images are in one root. If both images have a path, with different content or attributes, a \
             <code>conflict</code> line of the Boxfile has settled which of them is kept: no box is built with an open \
             conflict. The box records the origin of each file, and so which image's file was kept. It records neither the \
             paths that were in conflict nor the lines that settled them. In the checkout, <code>boxbuild plan</code> shows \
             them."
        }
        (Layout::Split, Some(_)) => {
            "Each of the two images has a root of its own, so they have no conflict."
        }
        (Layout::Split, None) => "The box has at most one image, so there is nothing to merge.",
    });
    if survey.combined.added() > 0 {
        html.paragraph("These files were combined from the files of both images:");
        list(&mut html, survey, &survey.combined);
    }
    body.section("merge", "Merge of the images", &html);
}

/// Adds what the box may do on its host.
pub(crate) fn permissions(body: &mut Html, plan: &RunPlan) {
    let mut html = Html::default();
    let all = plan.permissions().into_iter();
    let rows = all.map(|it| [Html::text(&it.field), Html::code(&it.value)]);
    let more = "; <code>boxbuild inspect BOX</code> lists all of them";
    html.table(["permission", "value"], rows, (MAX_ROWS, more));
    body.section("permissions", "What the box may do", &html);
}

/// Adds the phases of the start: the limits, and the times if a start was measured.
pub(crate) fn start(body: &mut Html, budget: Budget, measured: Option<Phases>) {
    let limit = |phase| budget.limit(phase).map(|ms| ms as f64);
    let taken = |phase| measured.map(|it| it.of(phase));
    let longest = |phase| limit(phase).unwrap_or_default().max(taken(phase).unwrap_or_default());
    let whole = Phase::ALL.into_iter().map(longest).fold(0.0, f64::max);
    let ms = |it: Option<f64>, digits| match it {
        Some(ms) => Html::own(format!("{ms:.digits$} ms")),
        None => Html::own("–"),
    };
    let rows = Phase::ALL.into_iter().map(|phase| {
        let bar = Html::bar(taken(phase).unwrap_or_default(), limit(phase), whole);
        [Html::own(phase.name()), ms(limit(phase), 0), ms(taken(phase), 1), bar]
    });
    let mut html = Html::default();
    html.table(["phase", "#allowed", "#taken", ""], rows, (MAX_ROWS, ""));
    html.paragraph(match measured.map(|it| budget.overruns(&it).is_empty()) {
        None => {
            "No start was measured for this page. <code>boxbuild budget BOX --json &gt; start.json</code> measures it, and \
             <code>boxbuild report BOX --measured start.json</code> shows it. A thin mark is a limit."
        }
        Some(true) if budget == Budget::default() => "The box has no budget.",
        Some(true) => "The start is within its budget. A thin mark is a limit.",
        Some(false) => "The start is over its budget. A thin mark is a limit.",
    });
    body.section("start", "Start", &html);
    body.put("</main>\n");
}
