//! Deciding path by path what the merged root has.

use std::collections::HashMap;
use std::io;

use box_image::ComponentName;
use box_tree::{Content, Inode, InodeId, Kind, Leaf, Name, Origin, Tree};
use boxfile_spec::ConflictPolicy;

use super::super::ComposeError;
use super::accounts::{unitable, unite};
use super::compare::{Difference, difference, same_attributes};
use super::conflict::{Conflict, Note, Side};
use super::policies::{Policies, PolicyUse};
use super::shared::Shared;
use super::special::special;

/// Reads a file of an image by its content.
pub type ReadContent<'r> = dyn FnMut(Content) -> io::Result<Vec<u8>> + 'r;

/// What the merged root has otherwise than the agent's tree, at a path that both have.
#[derive(Debug)]
pub(super) enum Edit {
    /// The attributes of the business tree's directory.
    Dress { directory: InodeId, like: InodeId },
    /// The business tree's entry.
    Replace { directory: InodeId, name: Name, by: InodeId },
    /// Nothing.
    Remove { directory: InodeId, name: Name },
    /// A file of this content, with the attributes of the agent's.
    Unite { directory: InodeId, name: Name, like: InodeId, content: Content },
}

/// What became of the paths that both trees have.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Those whose entries are one.
    pub(super) equal: usize,
    /// The entries below a directory of the agent's tree, and of the business tree, that stands
    /// against something else.
    pub(super) below: [usize; 2],
    /// The declared policies.
    pub(super) policies: Vec<PolicyUse>,
    /// What nobody decided.
    pub(super) conflicts: Vec<Conflict>,
}

/// Whether a conflict is one no longer; if it is, perhaps why.
enum Verdict {
    Settled,
    Left(Option<Note>),
}

/// Everything that was decided.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) tally: Tally,
    pub(super) edits: Vec<Edit>,
    /// The inodes of the business tree that are one with an inode of the agent's.
    pub(super) same: HashMap<InodeId, InodeId>,
    pub(super) united: Vec<Vec<u8>>,
}

/// Decides path by path.
pub(super) struct Settler<'a, 'r> {
    trees: [&'a Tree; 2],
    policies: Policies,
    read: &'a mut ReadContent<'r>,
    settled: Settled,
}

impl<'a, 'r> Settler<'a, 'r> {
    pub(super) fn new(
        trees: [&'a Tree; 2],
        policies: Policies,
        read: &'a mut ReadContent<'r>,
    ) -> Self {
        let (tally, same) = (Tally::default(), HashMap::new());
        let settled = Settled { tally, edits: Vec::new(), same, united: Vec::new() };
        Self { trees, policies, read, settled }
    }

    /// Returns all that was decided.
    pub(super) fn finish(self) -> Settled {
        let Self { mut settled, policies, .. } = self;
        settled.tally.policies = policies.finish();
        settled
    }

    /// Decides what is at a path that both trees have.
    pub(super) fn settle(&mut self, shared: &Shared) -> Result<(), ComposeError> {
        let [agent, business] = self.found(shared);
        let difference = difference(agent, business);
        if difference.is_none() || self.are_directories(shared) {
            // Of several entries that it is the same as, the first by its path.
            let [agent, business] = shared.found;
            self.settled.same.entry(business).or_insert(agent);
        }
        match difference {
            None => {
                self.keep_one(shared);
                Ok(())
            }
            Some(difference) => self.decide(shared, difference),
        }
    }

    fn are_directories(&self, shared: &Shared) -> bool {
        self.found(shared).iter().all(|inode| inode.names().is_some())
    }

    fn found(&self, shared: &Shared) -> [&'a Inode; 2] {
        let ([agent, business], [one, other]) = (self.trees, shared.found);
        [agent.inode(one), business.inode(other)]
    }

    /// Keeps the agent's entry, unless nothing in its image says anything of it.
    fn keep_one(&mut self, shared: &Shared) {
        self.settled.tally.equal += 1;
        let [agent, business] = self.found(shared).map(|inode| inode.origin);
        if agent == Origin::Generated && business != Origin::Generated {
            self.dress(shared);
        }
    }

    fn dress(&mut self, shared: &Shared) {
        let [directory, like] = shared.found;
        self.settled.edits.push(Edit::Dress { directory, like });
    }

    fn decide(&mut self, shared: &Shared, difference: Difference) -> Result<(), ComposeError> {
        let below = self.below(shared);
        if !self.are_directories(shared) {
            self.settled.tally.below[0] += below[0];
            self.settled.tally.below[1] += below[1];
        }
        let verdict = match self.policies.decide(&shared.path) {
            None => Verdict::Left(special(&shared.path).map(Note::Special)),
            Some(policy) => self.apply(shared, policy)?,
        };
        if let Verdict::Left(note) = verdict {
            self.report(shared, difference, below, note);
        }
        Ok(())
    }

    /// Carries out a policy; or says why it cannot be.
    fn apply(&mut self, shared: &Shared, policy: ConflictPolicy) -> Result<Verdict, ComposeError> {
        let place = shared.place.clone().filter(|_| !self.are_directories(shared));
        let edit = match (policy, place) {
            (ConflictPolicy::PreferAgent, _) => return Ok(Verdict::Settled),
            (ConflictPolicy::PreferBusiness, None) => {
                self.dress(shared);
                return Ok(Verdict::Settled);
            }
            (ConflictPolicy::Drop, None) => {
                return Ok(Verdict::Left(Some(Note::DroppedAttributes)));
            }
            (ConflictPolicy::Merge, None) => return Ok(Verdict::Left(Some(Note::NotUnitable))),
            (ConflictPolicy::PreferBusiness, Some((directory, name))) => {
                Edit::Replace { directory, name, by: shared.found[1] }
            }
            (ConflictPolicy::Drop, Some((directory, name))) => Edit::Remove { directory, name },
            (ConflictPolicy::Merge, Some(place)) => return self.unite(shared, place),
        };
        self.settled.edits.push(edit);
        Ok(Verdict::Settled)
    }

    /// Unites two files.
    fn unite(
        &mut self,
        shared: &Shared,
        (directory, name): (InodeId, Name),
    ) -> Result<Verdict, ComposeError> {
        let [agent, business] = self.found(shared);
        let (Some(path), Kind::Leaf(Leaf::File(one)), Kind::Leaf(Leaf::File(other)), true) =
            (unitable(&shared.path), &agent.kind, &business.kind, same_attributes(agent, business))
        else {
            return Ok(Verdict::Left(Some(Note::NotUnitable)));
        };
        let one = self.read(ComponentName::Agent, path, *one)?;
        let other = self.read(ComponentName::Business, path, *other)?;
        let united = match unite(path, &one, &other) {
            Ok(united) => united,
            Err(clash) => return Ok(Verdict::Left(Some(Note::Accounts(clash)))),
        };
        let (like, content) = (shared.found[0], Content::of(&united));
        self.settled.edits.push(Edit::Unite { directory, name, like, content });
        self.settled.united.push(united);
        Ok(Verdict::Settled)
    }

    fn read(
        &mut self,
        component: ComponentName,
        file: &'static str,
        content: Content,
    ) -> Result<Vec<u8>, ComposeError> {
        let component = component.name();
        (self.read)(content).map_err(|source| ComposeError::Unreadable { component, file, source })
    }

    fn report(
        &mut self,
        shared: &Shared,
        difference: Difference,
        below: [usize; 2],
        note: Option<Note>,
    ) {
        let [agent, business] = self.found(shared);
        let sides = [Side::of(agent, below[0]), Side::of(business, below[1])];
        let (path, declared) = (shared.path.clone(), self.policies.names(&shared.path));
        self.settled.tally.conflicts.push(Conflict { path, difference, sides, note, declared });
    }

    /// Counts what is below what each tree has at a path.
    fn below(&self, shared: &Shared) -> [usize; 2] {
        let ([agent, business], [one, other]) = (self.trees, shared.found);
        [below(agent, one), below(business, other)]
    }
}

/// Counts the names below a directory.
pub(super) fn below(tree: &Tree, directory: InodeId) -> usize {
    let (mut count, mut pending) = (0, vec![directory]);
    while let Some(id) = pending.pop() {
        let names = tree.inode(id).names();
        count += names.map_or(0, std::collections::BTreeMap::len);
        pending.extend(names.into_iter().flat_map(|names| names.values()));
    }
    count
}
