//! The package databases of two images that are merged into one root.
//!
//! A path of a merged root has the file of one image. If both images have a database at the same path,
//! one is lost, although the files of both images' packages are present. The box therefore contains copies
//! of both databases. No component sees the copies; only the SBOM is made from them.

use std::collections::{HashMap, HashSet};

use box_contract::ComponentName;
use box_contract::plan::PACKAGES_PATH;
use box_digest::Digest;
use box_tree::listing::{NamedOrigin, Origins};
use box_tree::{Inode, InodeId, Leaf, Meta, Tree, path};

use super::apk::APK_DATABASES;
use super::dpkg::DPKG_DATABASE;
use super::package::Package;
use super::scan::{MAX_LINKS, MAX_PACKAGES};
use super::{dpkg, release};

/// Copies the package databases of merged images into `root`, the tree of a box, below
/// [`PACKAGES_PATH`]. The copies have the content of the files in the images.
///
/// Each copy has the origin of its file in the image, and the path by which a package manager reads
/// the file, even if the path has symbolic links. Adds no copies for an image without a database.
pub fn keep_databases<'t>(
    root: &mut Tree,
    images: impl IntoIterator<Item = (ComponentName, &'t Tree)>,
) {
    for (component, image) in images {
        for (file, id) in databases(image) {
            let inode = image.inode(id);
            let Some(content) = inode.content() else { continue };
            let whole = format!("{PACKAGES_PATH}/{}{file}", component.name());
            let (folder, name) = path::split(whole.as_bytes());
            let ensure = |folder, name| root.ensure_directory(folder, name);
            let folder = path::names(folder).fold(Tree::ROOT, ensure);
            let copy = Inode::leaf(Meta::root_owned(0o644), Leaf::File(*content));
            let copy = root.add(copy.from(inode.origin));
            root.link(folder, name, copy);
        }
    }
}

/// Lists the files of an image's package databases, each with one of its paths, and the image's os-release file. Empty
/// if the image has no database.
fn databases(image: &Tree) -> Vec<(String, InodeId)> {
    let mut links_left = MAX_LINKS;
    let mut seen = HashSet::new();
    let mut find = |path: &str| {
        let id = image.lookup_in(Tree::ROOT, path.as_bytes(), &mut links_left)?;
        (image.inode(id).content().is_some() && seen.insert(id)).then(|| (path.to_owned(), id))
    };
    let names = image.lookup(dpkg::FILES.as_bytes()).and_then(|id| image.inode(id).names());
    let names = names.into_iter().flatten().filter_map(|(name, _)| str::from_utf8(name).ok());
    let names = names.filter(|it| dpkg::is_file(it)).map(|it| format!("{}/{it}", dpkg::FILES));
    // Keep one more than the SBOM reads, so that the SBOM has a note about the others.
    let names = names.take(MAX_PACKAGES + 1);
    let fixed = [DPKG_DATABASE].into_iter().chain(APK_DATABASES).map(str::to_owned);
    let mut found: Vec<_> = fixed.chain(names).filter_map(|path| find(&path)).collect();
    if !found.is_empty() {
        found.extend(release::FILES.into_iter().find_map(find));
    }
    found
}

/// Gives a package that both images have the same layer in both, if the images share that layer. A file that is the same
/// in both images has only the layer of the agent's image in the merged root.
pub(super) fn find_common_layers(packages: &mut [Package<'_>], origins: &Origins) {
    let mut layers: HashMap<String, Digest> = HashMap::new();
    for package in packages.iter_mut().filter(|it| it.is_kept()) {
        let Some(NamedOrigin::Image { component, layer, diff_id }) = &mut package.origin else {
            continue;
        };
        let first = *layers.entry(package.purl.clone()).or_insert(*diff_id);
        let image = origins.images.iter().find(|it| Some(it.component) == *component);
        let common = image.and_then(|it| it.layers.iter().position(|layer| *layer == first));
        if let Some(number) = common.filter(|_| *diff_id != first) {
            (*layer, *diff_id) = (number + 1, first);
        }
    }
}
