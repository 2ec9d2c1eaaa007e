//! Whether the user has permitted what the new box asks for, and the reference of the store that leads to it.

use std::str::FromStr;

use box_cache::Pulled;
use box_contract::{ErrorCode, RemoteName, RunPlan};
use box_digest::Digest;
use box_find::BoxReference;
use box_layout::OpenBox;
use boxlaunch::boxes::Record;
use cli_common::store::{CommandFault, stored_boxes};
use safe_text::{shell_word, shown};

use super::super::consent::Differences;
use super::super::credentials;
use super::super::error::Failure;
use super::super::pull::{self, PullPolicy};
use super::super::repeat::{box_of, exactly};
use super::super::run::RunArgs;
use super::super::stored::PROGRAM;
use super::super::terminal::{is_quiet, notice, print};
use super::UpdateArgs;

/// The box that `--accept` permits, whatever it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accepted {
    /// Every box.
    Any,
    /// The box with this digest. Every other one is compared.
    Box(Digest),
}

/// The value of `--accept` without a digest.
pub(super) const ANY: &str = "any";

impl FromStr for Accepted {
    type Err = <Digest as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == ANY { Ok(Self::Any) } else { text.parse().map(Self::Box) }
    }
}

/// A box that is to run from now on.
pub(super) struct Candidate<'a> {
    pub(super) args: &'a UpdateArgs,
    pub(super) opened: &'a OpenBox,
    /// The name of a registry's box that was pulled, and whose reference in the store still leads to the box before.
    pub(super) aside: Option<RemoteName>,
    /// Whether a service runs the box, or is to start it.
    pub(super) is_service: bool,
}

impl Candidate<'_> {
    /// Refuses the new box if it asks for more than the one before, unless `--accept` permits that. Prints the differences.
    pub(super) fn check(&self, before: Option<&RunPlan>) -> Result<(), Failure> {
        let (name, to) = (&self.args.name, self.opened.digest);
        let is_accepted = match self.args.accept {
            None => false,
            Some(Accepted::Any) => true,
            Some(Accepted::Box(digest)) => digest == to,
        };
        let Some(before) = before else {
            let reason = "cannot be compared with the box before, which is not there any more";
            return if is_accepted { Ok(()) } else { Err(self.refused(reason)) };
        };
        let differences = Differences::between(before, self.opened.plan());
        match differences.more().filter(|_| !is_accepted) {
            Some(more) => Err(self.refused(&format!("asks for more than before:{more}"))),
            None => {
                let all = differences.all().filter(|_| !self.args.json && !is_quiet());
                let line =
                    |it| format!("boxlaunch: the new box of {name} may do other things:{it}\n");
                all.map(line).iter().for_each(|it| notice(it));
                Ok(())
            }
        }
    }

    fn refused(&self, reason: &str) -> Failure {
        let (name, to) = (&self.args.name, self.opened.digest);
        let message = format!("{name} was not updated: {to} {reason}");
        let help = if self.is_service {
            format!(
                "write `UPDATE=--accept={to}` to the file of the service to permit that, and start its update again"
            )
        } else {
            format!("`{}` permits that", shown(&self.args.accepting(to)))
        };
        Failure::new((ErrorCode::Usage, help), message)
    }

    /// Gives the reference of the store to the new box.
    pub(super) fn move_reference(&self) -> Result<(), Failure> {
        let Some(remote) = &self.aside else { return Ok(()) };
        let store = &self.args.subject.store;
        let Some(stored) = stored_boxes(&store.stores(&PROGRAM))? else { return Ok(()) };
        let all = stored.references(&self.opened.digest).map_err(CommandFault::from)?;
        let is_aside =
            |it: &Pulled| it.reference == remote.of_manifest(it.registry_digest).to_string();
        let Some(aside) = all.into_iter().find(is_aside) else { return Ok(()) };
        let moved = Pulled { reference: remote.unpinned().to_string(), ..aside };
        let store = store.open(&PROGRAM)?;
        Ok(store.note_pulled(&moved).map_err(CommandFault::from)?)
    }
}

/// Returns the permissions of the box that runs. `None` if neither the store nor its directory has it any more.
pub(super) fn plan_before(args: &UpdateArgs, old: &Record) -> Option<RunPlan> {
    box_of(old, &args.subject.store).ok().map(|it| it.opened.plan().clone())
}

impl UpdateArgs {
    /// Brings the new box to this host. The reference of the store keeps the box that it has. Returns the name in the registry whose
    /// reference is to move, or the exit code of a failed pull.
    pub(super) fn bring(
        &self,
        run: &mut RunArgs,
    ) -> Result<Result<Option<RemoteName>, u8>, Failure> {
        let Some(remote) = self.tag()? else {
            return Ok(pull::before(run)?.map_or(Ok(None), Err));
        };
        Ok(pull::aside(run)?.map(|pulled| {
            run.subject.reference = pulled?.to_string().into();
            Some(remote)
        }))
    }

    /// Returns the name of the command line if it is a registry's without a digest, so that it can mean another box later.
    pub(super) fn tag(&self) -> Result<Option<RemoteName>, Failure> {
        let reference = BoxReference::parse(self.subject.word())?;
        Ok(reference.remote().filter(|it| it.digest.is_none()).cloned())
    }

    /// Returns the box that the store has under the reference of the command line, before a pull.
    pub(super) fn reference_before(&self) -> Result<Option<Pulled>, Failure> {
        let Some(remote) = self.tag()? else { return Ok(None) };
        let stored = stored_boxes(&self.subject.store.stores(&PROGRAM))?;
        let pulled = stored.map(|it| it.pulled(&remote.unpinned().to_string()));
        Ok(pulled.transpose().map_err(CommandFault::from)?.flatten())
    }

    /// Returns the command that permits the box `to`.
    fn accepting(&self, to: Digest) -> String {
        let mut words = vec!["boxlaunch update".to_owned()];
        words.extend(self.retry.then(|| "--retry".to_owned()));
        // The reference of the store still leads to the box before.
        let is_tag = self.tag().is_ok_and(|it| it.is_some());
        let is_pulled = is_tag && self.pull != Some(PullPolicy::Never);
        words.extend(is_pulled.then(|| "--pull always".to_owned()));
        let store = self.subject.store.store.as_ref();
        words.extend(store.map(|it| format!("--store {}", shell_word(it))));
        let config = self.registries.registry_config.as_ref();
        words.extend(config.map(|it| format!("--registry-config {}", shell_word(it))));
        words.extend([format!("--accept={to}"), self.name.clone()]);
        words.push(shell_word(self.subject.word()));
        words.join(" ")
    }

    /// Runs `boxlaunch update --next`.
    pub(super) fn next(&self) -> Result<u8, Failure> {
        let mut run = self.run(&[])?;
        let noted = self.reference_before()?;
        let before = noted.as_ref().and_then(|it| exactly(it.digest, "", &self.subject.store));
        let before = before.map(|it| it.opened.plan().clone());
        let aside = match self.bring(&mut run)? {
            Ok(aside) => aside,
            Err(code) => return Ok(code),
        };
        run.load()?;
        let (opened, _held) = run.open()?;
        let new = Candidate { args: self, opened: &opened, aside, is_service: true };
        // The first box under a reference is that of whoever wrote the reference, as for a first start.
        if let Some(before) = before {
            let tag = shell_word(self.subject.word());
            let help = format!(
                "if that is right, `boxlaunch pull {tag}` gives it to the service at its next start"
            );
            credentials::check((&self.name, &before.services), opened.plan(), &help)?;
            new.check(Some(&before))?;
        } else if noted.is_some() {
            new.check(None)?;
        }
        new.move_reference()?;
        print(&format!("{} starts next with {}\n", self.name, opened.digest))?;
        Ok(box_contract::exit::DONE)
    }
}
