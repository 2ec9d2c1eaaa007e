//! Puts files of the checkout into the roots of components.
//!
//! The path of a file is resolved like the path of a layer's entry: links of the image are followed within its root,
//! and missing parents are created. Unlike a layer's entry, a file never replaces a directory, and a directory never
//! replaces a file, because such a mistake would remove whole directories.

use box_contract::plan::reserved_place;
use box_contract::{ComponentName, User};
use box_tree::{
    Follow, Inode, InodeId, Kind, Leaf, LookupError, Meta, Origin, Step, Tree, Walk, entries, path,
};
use boxfile_spec::{BakedFile, Boxfile};
use checkout::files::Source;

use super::error::Obstacle;
use super::user::{Named, resolve};
use super::{ComponentRoot, ComposeError, FlatImage, System};
use crate::pack::PackReader;

/// A file or directory of the checkout that the box puts into a component's root.
#[derive(Debug)]
pub struct Baked {
    /// The component whose root gets the file.
    pub component: ComponentName,
    /// The declaration in the Boxfile.
    pub declared: BakedFile,
    /// The entries and contents that were read from the checkout.
    pub source: Source,
}

/// Puts the files of a component into its root. `files` are the files of all components: an [`Origin::File`] is an
/// index into `files`.
///
/// # Errors
/// [`ComposeError::Unplaceable`], and [`ComposeError::UnknownUser`] if a file's owner is not in the image's accounts.
pub fn bake(
    flat: &mut FlatImage,
    files: &[Baked],
    boxfile: &Boxfile,
    packs: &mut PackReader<'_>,
) -> Result<(), ComposeError> {
    let own = (0u32..).zip(files).filter(|(_, file)| file.component == flat.component);
    // All owners are looked up before a file may replace the image's /etc/passwd.
    let owned = own.map(|(number, file)| Ok((number, file, owner(file, &flat.tree, packs)?)));
    for (number, file, owner) in owned.collect::<Result<Vec<_>, ComposeError>>()? {
        let mut placer = Placer { root: &mut flat.tree, file, number, owner };
        let placed = placer.put(file.declared.to.value.as_bytes(), file.source.named);
        placed.map_err(|it| it.explain(file, files, boxfile))?;
    }
    Ok(())
}

/// Checks that no file that the box adds hides a file of the checkout.
///
/// # Errors
/// [`ComposeError::Unplaceable`].
pub(super) fn check_visible(
    root: &ComponentRoot<'_>,
    systems: &[System],
    files: &[Baked],
) -> Result<(), ComposeError> {
    for System { tree, .. } in systems.iter().filter(|it| root.components.contains(&it.component)) {
        for (path, _) in entries(tree).filter(|(_, id)| tree.inode(*id).names().is_none()) {
            let hidden = root.tree.reach(&path).map(|id| root.tree.inode(id).origin);
            if let Ok(Origin::File(number)) = hidden
                && let Some(file) = get(files, number)
            {
                return Err(unplaceable(file, &path, Obstacle::System));
            }
        }
    }
    Ok(())
}

fn get(files: &[Baked], number: u32) -> Option<&Baked> {
    files.get(usize::try_from(number).ok()?)
}

/// Resolves the owner of a file by the image's accounts.
fn owner(file: &Baked, image: &Tree, packs: &mut PackReader<'_>) -> Result<User, ComposeError> {
    let BakedFile { path, owner, .. } = &file.declared;
    let whose = format!("the {} component's {} belongs to", file.component.name(), path.value);
    let named = Named { user: &owner.value, whose: &whose, span: Some(owner.span) };
    Ok(resolve(file.component.name(), named, image, packs)?.user)
}

fn unplaceable(file: &Baked, place: &[u8], obstacle: Obstacle) -> ComposeError {
    ComposeError::Unplaceable {
        component: file.component.name(),
        file: file.declared.path.value.clone(),
        place: path::lossy(place),
        obstacle: Box::new(obstacle),
        span: file.declared.to.span,
    }
}

/// Puts one declared file or directory into a root.
struct Placer<'a> {
    root: &'a mut Tree,
    file: &'a Baked,
    /// The index among the files of all components.
    number: u32,
    owner: User,
}

/// A path that cannot be used, and the cause.
struct Refused {
    place: Vec<u8>,
    cause: Cause,
}

enum Cause {
    Known(Obstacle),
    /// The path has an entry that the Boxfile declares, too: of another `file`, or the agent's program.
    Taken(Origin),
}

impl Placer<'_> {
    /// Puts an entry of the checkout at a path of the root, with all its descendants.
    fn put(&mut self, place: &[u8], source: InodeId) -> Result<(), Refused> {
        let source = self.file.source.files.tree.inode(source);
        match &source.kind {
            Kind::Leaf(leaf) => self.put_leaf(place, source.meta.mode, leaf),
            Kind::Directory(names) => {
                self.make_directory(place).map_err(|error| refused(place, error.into()))?;
                names.iter().try_for_each(|(name, id)| self.put(&path::join(place, name), *id))
            }
        }
    }

    /// Creates the directory at `place`. An existing directory keeps its attributes.
    fn make_directory(&mut self, place: &[u8]) -> Result<(), LookupError> {
        if self.root.find_directory(place)?.is_none() {
            let directory = self.root.make_directories(place)?;
            let made = self.prepared(Inode::directory(Meta::root_owned(0o755)));
            self.root.set_meta(directory, &made.meta, made.origin);
        }
        Ok(())
    }

    fn put_leaf(&mut self, place: &[u8], mode: u16, leaf: &Leaf) -> Result<(), Refused> {
        let (directory, name) = path::split(place);
        let directory =
            self.root.make_directories(directory).map_err(|error| refused(place, error.into()))?;
        self.check_free(place, self.root.child(directory, name), leaf)?;
        let mode = match (leaf, self.file.declared.mode) {
            (Leaf::File(_), Some(mode)) => mode,
            _ => mode,
        };
        let inode = Inode::leaf(Meta::root_owned(mode), leaf.clone());
        let inode = self.root.add(self.prepared(inode));
        self.root.link(directory, name, inode);
        Ok(())
    }

    /// Sets the owner and the origin of an inode.
    fn prepared(&self, mut inode: Inode) -> Inode {
        (inode.meta.uid, inode.meta.gid) = (self.owner.uid, self.owner.gid);
        inode.from(Origin::File(self.number))
    }

    /// Checks that a leaf may replace the entry at a path. A link to a directory is treated as a directory, unless
    /// `leaf` is a link, too.
    fn check_free(&self, place: &[u8], there: Option<InodeId>, leaf: &Leaf) -> Result<(), Refused> {
        let path = path::lossy(&reached(self.root, place));
        if let Some(reserved) = reserved_place(&path) {
            return Err(refused(place, Obstacle::Reserved { path, reserved }));
        }
        let Some(there) = there.map(|id| self.root.inode(id)) else { return Ok(()) };
        let end = self.root.lookup(place).map(|id| self.root.inode(id));
        let is_directory = end.is_some_and(|it| it.names().is_some());
        let is_link = there.target().is_some() && matches!(leaf, Leaf::Symlink(_));
        match there.origin {
            _ if is_directory && !is_link => Err(refused(place, Obstacle::Directory)),
            origin @ (Origin::File(_) | Origin::Program) => {
                Err(Refused { place: place.to_owned(), cause: Cause::Taken(origin) })
            }
            _ => Ok(()),
        }
    }
}

fn refused(place: &[u8], obstacle: Obstacle) -> Refused {
    Refused { place: place.to_owned(), cause: Cause::Known(obstacle) }
}

impl Refused {
    /// Returns the error, with the entry that prevents the file.
    fn explain(self, file: &Baked, files: &[Baked], boxfile: &Boxfile) -> ComposeError {
        let obstacle = match self.cause {
            Cause::Known(obstacle) => obstacle,
            Cause::Taken(Origin::File(number)) => match get(files, number).map(|it| &it.declared) {
                Some(BakedFile { path, to, .. }) => {
                    Obstacle::File { file: path.value.clone(), span: to.span }
                }
                None => Obstacle::Directory,
            },
            Cause::Taken(_) => Obstacle::Program {
                span: boxfile
                    .agent
                    .binary
                    .as_ref()
                    .map(boxfile_spec::Binary::span)
                    .unwrap_or_default(),
            },
        };
        unplaceable(file, &self.place, obstacle)
    }
}

/// Resolves the links in the parents of `place`. All parents must exist. A link at `place` itself is not followed.
fn reached(root: &Tree, place: &[u8]) -> Vec<u8> {
    let mut walk = Walk::new(root, Tree::ROOT, place, Follow::Parents);
    while walk.step() == Ok(Step::Taken) {}
    walk.path_ahead()
}

#[cfg(test)]
mod tests;
