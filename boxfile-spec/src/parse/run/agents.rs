//! `agents dir="…"`: a directory of agent definitions.

use box_contract::plan::AGENTS_PATH;

use crate::parse::{Children, Reader};
use crate::{Agent, BakedFile, rules, schema};
use diagnostics::Spanned;

/// The permissions of the definitions: every user of the agent's component can read them.
const MODE: u16 = 0o644;

/// Reads the declaration, and adds the directory to the agent's files.
pub(in crate::parse) fn read(
    top: &Children<'_>,
    agent: Option<&mut Agent>,
) -> Option<Spanned<String>> {
    let dir: Spanned<String> = Reader::sole(top, &schema::AGENTS, |it| it.value("dir"))?;
    if let Some(agent) = agent {
        let at = |value: &str| Spanned { value: value.to_owned(), span: dir.span };
        let (to, owner) = (at(AGENTS_PATH), at("0:0"));
        let files = &mut agent.component.files;
        files.push(BakedFile { path: dir.clone(), to, mode: Some(MODE), owner });
        files.sort_by(|one, other| rules::path_order(&one.to.value, &other.to.value));
    }
    Some(dir)
}
