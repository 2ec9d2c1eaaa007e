//! The parts of a box: images, skills, files of the checkout, a program, kernel and init.

use box_contract::ComponentName;
use box_tree::listing::{FileOrigin, ImageOrigin, NamedOrigin};

use super::Subject;
use super::spdx::{Document, Item, item_id};

/// Adds the box and its parts.
pub(super) fn add(document: &mut Document, subject: &Subject<'_>) {
    let whole = box_id();
    let mut of_box = Item::new("box", "box");
    of_box.name.clone_from(&subject.plan.name);
    of_box.version_info = subject.digest.to_string();
    of_box.source_info = format!("tree {}", subject.tree);
    document.describe(of_box);
    let origins = &subject.listing.origins;
    for image in &origins.images {
        document.contain(&whole, of_image(image));
    }
    for name in &origins.skills {
        document.contain(&whole, Item::new("skill", name));
    }
    for file in &origins.files {
        document.contain(&whole, of_file(file));
    }
    if let Some(digest) = &origins.program {
        document.contain(&whole, Item::new("program", "agent").known_by(digest));
    }
    let (digest, line) = &subject.kernel;
    let mut kernel = Item::new("kernel", "linux").with_sha256(digest);
    kernel.version_info = kernel_version(line);
    kernel.primary_package_purpose = Some("OPERATING-SYSTEM");
    document.contain(&whole, kernel);
    document.contain(&whole, Item::new("init", "box-init").known_by(&subject.init));
}

fn of_image(image: &ImageOrigin) -> Item {
    let mut item = Item::new("image", image.component.name());
    item.primary_package_purpose = Some("CONTAINER");
    let layers: Vec<String> = image.layers.iter().map(ToString::to_string).collect();
    item.source_info = format!("layers, the lowest first: {}", layers.join(", "));
    item
}

fn of_file(FileOrigin { component, path }: &FileOrigin) -> Item {
    let mut item = Item::new("file", &of_component(*component, path));
    item.source_info = format!("a file or directory of the checkout, in {}", component.name());
    item
}

/// Returns the name of a file, which includes the component: both components may have a file at the same path.
fn of_component(component: ComponentName, path: &str) -> String {
    format!("{} {path}", component.name())
}

/// Returns the identifier of the part of the box that contains a package of this origin, or of the box if no part does.
pub(super) fn container(origin: Option<&NamedOrigin<'_>>) -> String {
    match origin {
        Some(NamedOrigin::Image { component: Some(component), .. }) => {
            item_id("image", component.name())
        }
        Some(NamedOrigin::Skill { name }) => item_id("skill", name),
        Some(NamedOrigin::File { component: Some(component), path }) => {
            item_id("file", &of_component(*component, path))
        }
        Some(NamedOrigin::Program { .. }) => item_id("program", "agent"),
        _ => box_id(),
    }
}

fn box_id() -> String {
    item_id("box", "box")
}

/// Formats an origin with its full digest.
pub(super) fn whole(origin: &NamedOrigin<'_>) -> String {
    match origin {
        NamedOrigin::Image { component, layer, diff_id } => {
            let component = component.map_or("an", ComponentName::name);
            format!("{component} image layer {layer} {diff_id}")
        }
        other => other.to_string(),
    }
}

/// Returns the version in the kernel's version line, e.g. `6.12.34` of `Linux version 6.12.34 (…) …`.
fn kernel_version(line: &str) -> String {
    let rest = line.strip_prefix("Linux version ");
    let version = rest.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
    version.chars().filter(char::is_ascii_graphic).collect()
}
