//! The skills of a running box. The record lists the skills that the box has from its start, and init lists the skills
//! that were loaded. A box may be hostile, so the size of its answer is limited, and its content checked.

use std::io::{self, ErrorKind};
use std::thread;

use box_contract::rules::MAX_LOADED_SKILLS;
use box_contract::wire::{Builtin, Exec, SkillTask};
use box_contract::{ComponentName, SkillMode, SkillPlan, named_enum};
use checkout::skill::Skill;
use host_fs::OsError;
use serde::{Serialize, Serializer};

use crate::boxes::Record;
use crate::client::builtin::{self, BoundedOutput};
use crate::client::copy::joined;
use crate::client::{Client, ClientError, PATIENCE};
use crate::streams::StreamError;
use crate::streams::input::Input;
use crate::streams::output::Sink;

/// The greatest size of a box's list of loaded skills, in bytes. A valid list is smaller.
const MAX_LISTED: usize = 1 << 20;

named_enum! {
    /// The origin of a skill in a box.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Source {
        /// The skill was baked into the box.
        Baked "baked",
        /// The skill is a directory of the host.
        Mounted "mounted",
        /// The skill was loaded while the box ran.
        Loaded "loaded",
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A skill of a running box. Its texts have no control characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// The name of the skill's directory.
    pub name: String,
    /// The skill's origin.
    pub source: Source,
    /// The skill's version, if its definition has one.
    pub version: Option<String>,
    /// The skill's purpose, if its definition has one.
    pub description: Option<String>,
    /// The skill's author, if its definition has one.
    pub author: Option<String>,
}

impl Listed {
    /// Returns the skill of a plan or, if `is_loaded`, a skill that was loaded.
    pub fn new(plan: SkillPlan, is_loaded: bool) -> Self {
        let SkillPlan { name, mode, version, description, author } = plan;
        let source = match mode {
            _ if is_loaded => Source::Loaded,
            SkillMode::Baked => Source::Baked,
            SkillMode::Mounted => Source::Mounted,
        };
        Self { name, source, version, description, author }
    }
}

/// Lists the skills of a box, sorted by name. A box whose init cannot load skills has no loaded skills.
///
/// # Errors
/// If the box does not answer, or its answer is invalid.
pub fn list(client: &mut Client<'_>, record: &Record) -> Result<Vec<Listed>, ClientError> {
    let own = record.skills.iter().map(|it| Listed::new(it.clone(), false));
    let loaded = match loaded(client) {
        Err(ClientError::Stream(StreamError::OlderBox(_))) => Vec::new(),
        loaded => loaded?,
    };
    let mut all: Vec<_> = own.chain(loaded.into_iter().map(|it| Listed::new(it, true))).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    match all.array_windows().find(|[one, other]| one.name == other.name) {
        Some([one, _]) => Err(misused(&format!("it lists the skill {:?} twice", one.name))),
        None => Ok(all),
    }
}

/// Returns the skills that were loaded into a box.
fn loaded(client: &mut Client<'_>) -> Result<Vec<SkillPlan>, ClientError> {
    let listed = BoundedOutput::new(MAX_LISTED);
    client.give_up_after(PATIENCE);
    run(client, "list the skills", SkillTask::List, None, None, Box::new(listed.clone()))?;
    read(&listed.text())
}

/// Parses a box's list of skills.
fn read(text: &str) -> Result<Vec<SkillPlan>, ClientError> {
    if text.lines().count() > MAX_LOADED_SKILLS {
        return Err(misused("it lists more skills than it can have"));
    }
    let plan = |line: &str| serde_json::from_str(line).ok().filter(SkillPlan::is_sound);
    let plans = text
        .lines()
        .map(|line| plan(line).ok_or_else(|| misused("it lists something that is not a skill")));
    plans.collect()
}

fn misused(what: &str) -> ClientError {
    StreamError::Protocol(what.to_owned()).into()
}

/// Checks that no skill that the box has from its start has this name. Such a skill can be neither replaced nor unloaded.
///
/// # Errors
/// [`ClientError::FixedSkill`].
pub fn check_free(record: &Record, name: &str) -> Result<(), ClientError> {
    match record.skills.iter().find(|it| it.name == name) {
        Some(SkillPlan { mode, .. }) => {
            Err(ClientError::FixedSkill { name: name.to_owned(), mode: *mode })
        }
        None => Ok(()),
    }
}

/// Loads a skill into a box, and replaces a loaded skill of the same name. The caller has checked the skill's
/// definition.
///
/// # Errors
/// The error of the box. The box then has no file of the skill.
pub fn load(client: &mut Client<'_>, plan: &SkillPlan, skill: Skill) -> Result<(), ClientError> {
    let argument = serde_json::to_string(plan)
        .map_err(|error| OsError::system("describe a skill")(io::Error::from(error)))?;
    let (reader, writer) = io::pipe().map_err(OsError::system("make a pipe"))?;
    let pack = move || skill.archive(io::BufWriter::with_capacity(1 << 16, writer));
    let packing = thread::Builder::new().spawn(pack);
    let packing = packing.map_err(OsError::system("start a thread that packs"))?;
    let action = format!("load the skill {}", plan.name);
    let input = Some(Input::new(reader));
    let loaded = run(client, &action, SkillTask::Load, Some(argument), input, Box::new(io::sink()));
    why_not_packed(joined(packing), action).map_or(loaded, Err)
}

/// Returns the error of writing a skill's archive; `None` if the box's own error is the reason.
fn why_not_packed(packed: io::Result<()>, action: String) -> Option<ClientError> {
    // If the box stopped reading, it reports the reason itself.
    let error = packed.err().filter(|it| it.kind() != ErrorKind::BrokenPipe)?;
    Some(ClientError::Skills { action, reason: error.to_string() })
}

/// Unloads a skill.
///
/// # Errors
/// The error of the box, for example if no skill of this name was loaded.
pub fn unload(client: &mut Client<'_>, name: &str) -> Result<(), ClientError> {
    let action = format!("unload the skill {name}");
    run(client, &action, SkillTask::Unload, Some(name.to_owned()), None, Box::new(io::sink()))
}

fn run(
    client: &mut Client<'_>,
    action: &str,
    task: SkillTask,
    argument: Option<String>,
    input: Option<Input>,
    stdout: Box<dyn Sink>,
) -> Result<(), ClientError> {
    let argv = ["skills".to_owned()].into_iter().chain(argument);
    let exec = Exec::new(ComponentName::Agent, argv);
    let done =
        builtin::run(client, Exec { builtin: Some(Builtin::Skills(task)), ..exec }, input, stdout)?;
    let failed = |reason| ClientError::Skills { action: action.to_owned(), reason };
    done.map(drop).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_that_cannot_be_packed_is_the_one_that_is_named() {
        let why = |kind: ErrorKind| why_not_packed(Err(kind.into()), "load the skill notes".into());
        let error = why(ErrorKind::StorageFull).unwrap().to_string();
        assert_eq!(error, "cannot load the skill notes: no storage space");
        assert!(why(ErrorKind::BrokenPipe).is_none());
        assert!(why_not_packed(Ok(()), String::new()).is_none());
    }

    #[test]
    fn a_box_lists_skills_and_nothing_else() {
        assert_eq!(read("").unwrap(), []);
        let read_back = read("{\"name\":\"notes\",\"version\":\"1\"}\n").unwrap();
        assert_eq!(read_back[0].version.as_deref(), Some("1"));
        let many = "{\"name\":\"a\"}\n".repeat(MAX_LOADED_SKILLS + 1);
        let long = format!("{{\"name\":\"a\",\"version\":\"{}\"}}", "1".repeat(65));
        for wrong in [
            "{\"name\":\"../a\"}",
            "{\"name\":\"a\",\"description\":\"\\u001b[2J\"}",
            "{\"name\":\"a\",\"other\":1}",
            "{\"name\":\"a\"",
            "a",
            &long,
            &many,
        ] {
            assert!(
                matches!(read(wrong), Err(ClientError::Stream(StreamError::Protocol(_)))),
                "{wrong}"
            );
        }
    }
}
