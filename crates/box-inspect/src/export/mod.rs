//! Exports a box's files in a form that other programs read.
//!
//! ```text
//! erofs      the file system of the rootfs, unchanged       erofs
//! tar        an archive of the tree                         member, tar
//! dir        the tree in a directory of the host            directory
//! oci        one component's tree as an image of one layer  oci, image
//! container  boxlaunch and the box as an image that boots   container, image
//! ```
//!
//! `container` has the blobs of the box. In the other forms, the tree is the tree of the box's listing, and the data of its
//! files are read from the rootfs. Every content is hashed when it is read, so exporting a damaged box returns an error.
//!
//! Only `dir` writes names from a box to the host's file system; the module `directory` describes how they stay inside
//! their directory. The bytes of all other forms depend on the box alone, and on the program `boxlaunch` in `container`.

pub mod container;
mod directory;
mod erofs;
mod image;
mod member;
mod oci;
mod place;
mod tar;
mod written;

use std::io::Write;
use std::path::Path;

use box_contract::{ComponentName, ComponentPlan};
use box_tree::Tree;

pub use crate::contents::{LateContents, OpenPart, VerifiedContents};
pub use crate::error::ExportError;
use crate::opened::{self, OpenBox};
pub use directory::{LeftOut, Ownership, Privileged};
pub use erofs::copy_rootfs;
pub use image::OciImage;
pub use oci::component_of;
pub use place::file;
pub use written::Written;

/// A tree of a box, with access to its data.
#[derive(Debug)]
pub struct Export {
    tree: Tree,
    contents: VerifiedContents,
    /// The plan of the component whose root the tree is. `None` for a whole box.
    plan: Option<ComponentPlan>,
}

impl Export {
    /// Selects the whole tree of a box.
    ///
    /// # Errors
    /// [`ExportError`] if the box cannot be read.
    pub fn whole(opened: &OpenBox) -> Result<Self, ExportError> {
        let tree = opened::listing(opened)?.tree;
        Ok(Self { contents: VerifiedContents::open(opened, &tree)?, tree, plan: None })
    }

    /// Selects the root of a component.
    ///
    /// # Errors
    /// [`ExportError`] if the box cannot be read or lacks the component.
    pub fn component(opened: &OpenBox, name: ComponentName) -> Result<Self, ExportError> {
        let plan = opened::component(opened, name)?;
        let mut export = Self::whole(opened)?;
        let root = export.tree.reach(plan.root.as_bytes()).ok();
        let root = root.filter(|root| export.tree.inode(*root).names().is_some());
        let root = root.ok_or_else(|| ExportError::damaged(&format!("it has no {}", plan.root)))?;
        *export.tree.inode_mut(Tree::ROOT) = export.tree.inode(root).clone();
        export.plan = Some(plan.clone());
        Ok(export)
    }

    /// Returns the tree that is exported.
    pub const fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Writes the tree as a tar archive.
    ///
    /// # Errors
    /// [`ExportError`]. `out` then has an incomplete archive.
    pub fn tar(&self, out: &mut dyn Write) -> Result<Written, ExportError> {
        Written::count(out, |out| tar::write(&self.tree, &self.contents, out))
    }

    /// Counts the files that [`Self::directory`] makes and that give rights on the host.
    pub fn privileged(&self, ownership: Ownership) -> Privileged {
        Privileged::of(&self.tree, ownership)
    }

    /// Writes the tree into a new directory.
    ///
    /// # Errors
    /// [`ExportError`]. Nothing is left behind.
    pub fn directory(&self, to: &Path, ownership: Ownership) -> Result<LeftOut, ExportError> {
        directory::extract(&self.tree, &self.contents, to, ownership)
    }
}

#[cfg(test)]
mod tests;
