//! Decides the entry of each path of the merged root.

use std::collections::HashMap;

use box_contract::accounts::MAX_ACCOUNTS;
use box_tree::{Content, Field, Inode, InodeId, Name, Origin, ReadContent, Tree};
use boxfile_spec::{Conflict as Declared, ConflictPolicy};

use super::super::ComposeError;
use super::MergeReport;
use super::accounts::{unitable, unite};
use super::below::Below;
use super::conflict::{Conflict, Note, Side};
use super::policies::decide;
use super::shared::Shared;
use super::system_file::{SystemFile, system_file};

/// The attributes, in the order of comparison. Times are not compared.
const ATTRIBUTES: [Field; 4] = [Field::Mode, Field::Uid, Field::Gid, Field::Xattrs];
const PAYLOAD: [Field; 4] = [Field::Size, Field::Content, Field::Target, Field::Device];

/// A change to the agent's tree at a path that both trees have.
#[derive(Debug)]
pub(super) enum Edit {
    /// Gives `directory` the attributes of `like`, the business tree's directory.
    SetMeta { directory: InodeId, like: InodeId },
    /// Replaces the entry `name` with `by`, the business tree's entry.
    Replace { directory: InodeId, name: Name, by: InodeId },
    /// Removes the entry `name`.
    Remove { directory: InodeId, name: Name },
    /// Replaces the entry `name` with a file of `content` that has the attributes of `like`, the agent's file.
    Unite { directory: InodeId, name: Name, like: InodeId, content: Content },
}

/// Decides the entry of the merged root for each path that both trees have.
pub(super) struct Resolver<'a> {
    trees: [&'a Tree; 2],
    below: [Below; 2],
    read: &'a mut dyn ReadContent,
    pub(super) report: MergeReport,
    pub(super) edits: Vec<Edit>,
    /// The inodes of the business tree that become an inode of the agent's tree.
    pub(super) same: HashMap<InodeId, InodeId>,
    pub(super) united: Vec<Vec<u8>>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(
        trees: [&'a Tree; 2],
        declared: &[Declared],
        read: &'a mut dyn ReadContent,
    ) -> Self {
        let below = trees.map(Below::of);
        let report = MergeReport::of(below.each_ref().map(Below::entries), declared);
        let (edits, same, united) = (Vec::new(), HashMap::new(), Vec::new());
        Self { trees, below, read, report, edits, same, united }
    }

    /// Decides a path that both trees have.
    pub(super) fn resolve(&mut self, shared: &Shared<'_>) -> Result<(), ComposeError> {
        self.report.agent -= 1;
        self.report.business -= 1;
        let [agent, business] = self.found(shared);
        let difference = difference(agent, business);
        if difference.is_none() || self.are_directories(shared) {
            // If an inode of the business tree has several paths, it becomes the agent's entry at the first of them.
            let [agent, business] = shared.found;
            self.same.entry(business).or_insert(agent);
        }
        match difference {
            None => self.keep_one(shared),
            Some(difference) => self.decide(shared, difference)?,
        }
        Ok(())
    }

    fn are_directories(&self, shared: &Shared<'_>) -> bool {
        self.found(shared).iter().all(|inode| inode.names().is_some())
    }

    fn found(&self, shared: &Shared<'_>) -> [&'a Inode; 2] {
        let ([agent, business], [one, other]) = (self.trees, shared.found);
        [agent.inode(one), business.inode(other)]
    }

    /// Keeps the agent's entry, with the business tree's attributes if no layer of the agent's image lists the entry.
    fn keep_one(&mut self, shared: &Shared<'_>) {
        self.report.equal += 1;
        let [agent, business] = self.found(shared).map(|inode| inode.origin);
        if agent == Origin::Generated && business != Origin::Generated {
            self.take_meta(shared);
        }
    }

    fn take_meta(&mut self, shared: &Shared<'_>) {
        let [directory, like] = shared.found;
        self.edits.push(Edit::SetMeta { directory, like });
    }

    fn decide(&mut self, shared: &Shared<'_>, field: Field) -> Result<(), ComposeError> {
        let [agent, business] = self.found(shared);
        let [agent_id, business_id] = shared.found;
        let below = [self.below[0].count(agent_id), self.below[1].count(business_id)];
        if !self.are_directories(shared) {
            self.report.agent -= below[0];
            self.report.business -= below[1];
        }
        let (named, note) = match decide(&mut self.report.policies, shared.path) {
            None => self.proposed(shared)?,
            Some(policy) => match self.apply(shared, policy)? {
                None => return Ok(()),
                note => (None, note),
            },
        };
        let whole = || {
            let sides = [Side::of(agent, below[0]), Side::of(business, below[1])];
            let (path, difference) = (shared.path.to_vec(), field.difference(agent, business));
            Conflict { path, difference, sides, note }
        };
        let is_declared = self.report.policies.iter().any(|it| it.names(shared.path));
        self.report.conflicts.add(shared.path, is_declared, named, whole);
        Ok(())
    }

    /// Returns the policy to suggest for a file that needs a declaration with its exact path, and a note on it. `merge`
    /// is suggested only if it can be applied.
    fn proposed(
        &mut self,
        shared: &Shared<'_>,
    ) -> Result<(Option<ConflictPolicy>, Option<Note>), ComposeError> {
        Ok(match system_file(shared.path) {
            Some(it @ SystemFile::LoaderCache) => {
                (Some(ConflictPolicy::Drop), Some(Note::SystemFile(it)))
            }
            Some(it @ SystemFile::Packages(_)) => {
                (Some(ConflictPolicy::PreferAgent), Some(Note::SystemFile(it)))
            }
            None => match self.united(shared)? {
                Ok(_) => (Some(ConflictPolicy::Merge), None),
                Err(Note::NotUnitable) => (None, None),
                Err(note) => (None, Some(note)),
            },
        })
    }

    /// Applies a policy. Returns a note if the policy cannot be applied.
    fn apply(
        &mut self,
        shared: &Shared<'_>,
        policy: ConflictPolicy,
    ) -> Result<Option<Note>, ComposeError> {
        let place = shared.place.filter(|_| !self.are_directories(shared));
        let place = place.map(|(directory, name)| (directory, name.clone()));
        let edit = match (policy, place) {
            (ConflictPolicy::PreferAgent, _) => return Ok(None),
            (ConflictPolicy::PreferBusiness, None) => {
                self.take_meta(shared);
                return Ok(None);
            }
            (ConflictPolicy::Drop, None) => return Ok(Some(Note::DroppedAttributes)),
            (ConflictPolicy::Merge, None) => return Ok(Some(Note::NotUnitable)),
            (ConflictPolicy::PreferBusiness, Some((directory, name))) => {
                Edit::Replace { directory, name, by: shared.found[1] }
            }
            (ConflictPolicy::Drop, Some((directory, name))) => Edit::Remove { directory, name },
            (ConflictPolicy::Merge, Some((directory, name))) => {
                return self.unite(shared, directory, name);
            }
        };
        self.edits.push(edit);
        Ok(None)
    }

    /// Applies the policy `merge`. Returns a note if the files cannot be united.
    fn unite(
        &mut self,
        shared: &Shared<'_>,
        directory: InodeId,
        name: Name,
    ) -> Result<Option<Note>, ComposeError> {
        let united = match self.united(shared)? {
            Ok(united) => united,
            Err(note) => return Ok(Some(note)),
        };
        let (like, content) = (shared.found[0], Content::of(&united));
        self.edits.push(Edit::Unite { directory, name, like, content });
        self.united.push(united);
        Ok(None)
    }

    /// Returns the union of two files, or the reason why they cannot be united.
    fn united(&mut self, shared: &Shared<'_>) -> Result<Result<Vec<u8>, Note>, ComposeError> {
        let [agent, business] = self.found(shared);
        let small = |inode: &Inode| inode.content().copied().filter(|it| it.size <= MAX_ACCOUNTS);
        let (Some(database), Some(one), Some(other), true) = (
            unitable(shared.path),
            small(agent),
            small(business),
            same_attributes(agent, business),
        ) else {
            return Ok(Err(Note::NotUnitable));
        };
        let mut read = |component: &'static str, content| {
            let file = database.path;
            let unreadable = |source| ComposeError::Unreadable { component, file, source };
            self.read.read(content, MAX_ACCOUNTS).map_err(unreadable)
        };
        let (one, other) = (read("agent", one)?, read("business", other)?);
        Ok(unite(database, &one, &other).map_err(Note::Accounts))
    }
}

/// Returns the first field in which two entries differ, or `None` if they are the same.
fn difference(agent: &Inode, business: &Inode) -> Option<Field> {
    let are = |test: fn(&Inode) -> bool| test(agent) && test(business);
    let is_generated = |it: &Inode| it.origin == Origin::Generated;
    let has_attributes =
        !are(|it| it.names().is_some()) || !(is_generated(agent) || is_generated(business));
    let attributes = ATTRIBUTES.into_iter().filter(|_| has_attributes);
    // The permissions of a symbolic link have no meaning, and archivers write different values.
    let attributes =
        attributes.filter(|field| *field != Field::Mode || !are(|it| it.target().is_some()));
    let mut fields = [Field::Type].into_iter().chain(attributes).chain(PAYLOAD);
    fields.find(|field| field.differs(agent, business))
}

/// Returns whether two entries have the same attributes, except for the time.
fn same_attributes(agent: &Inode, business: &Inode) -> bool {
    !ATTRIBUTES.into_iter().any(|field| field.differs(agent, business))
}
