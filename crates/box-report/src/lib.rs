#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod changes;
mod html;
mod map;
mod names;
mod sections;
mod squares;
mod survey;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use box_contract::Phases;
use box_digest::Digest;
use box_inspect::diff::summary::Summary;
use box_inspect::opened::Documents;
use box_inspect::sbom::Inventory;
use box_tree::listing::Listing;

pub use changes::MAX_CHANGED_FILES;
use html::Html;
use map::Map;
use survey::Survey;

const STYLE: &str = include_str!("style.css");

/// The content of a page.
#[derive(Debug)]
pub struct Report<'a> {
    /// The box.
    pub opened: &'a Documents,
    /// The box's listing.
    pub listing: &'a Listing,
    /// The box's packages.
    pub inventory: &'a Inventory,
    /// How long a start of the box took.
    pub measured: Option<Phases>,
    /// How the box differs from an older one.
    pub changes: Option<Summary<'a>>,
}

impl Report<'_> {
    /// Formats the page. The same content gives the same bytes.
    pub fn html(&self) -> String {
        let survey = Survey::of(self.listing);
        let mut body = Html::default();
        sections::head(&mut body, self, &survey);
        if let Some(summary) = &self.changes {
            changes::section(&mut body, summary);
        }
        let maps = [
            Map::of(&survey.by_origin(), 'o', "Components and layers"),
            Map::of(&survey.names, 'd', "Directories"),
            Map::of(&survey::by_package(self.inventory), 'p', "Packages"),
        ];
        body.section("size", "Size", &Map::html(&maps));
        sections::origins(&mut body, &survey);
        sections::files(&mut body, &survey);
        sections::packages(&mut body, self.inventory);
        sections::merge(&mut body, self.opened.plan(), &survey);
        sections::permissions(&mut body, self.opened.plan());
        sections::start(&mut body, self.opened.plan().budget, self.measured);
        page(&self.opened.plan().name, &body)
    }
}

/// Puts the content into a document that loads and runs nothing: the policy permits only the style with this digest.
fn page(name: &str, body: &Html) -> String {
    let digest = BASE64_STANDARD.encode(Digest::of(STYLE.as_bytes()).as_bytes());
    let title = Html::text(name).into_string();
    let body = body.as_str();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{digest}'; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title} – box</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests;
