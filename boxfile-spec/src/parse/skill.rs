//! `skill "NAME" path="…"`, any number of times, and `skills dir="…"`.

use box_image::SkillMode;

use crate::parse::children::Children;
use crate::parse::names;
use crate::parse::reader::Reader;
use crate::sink::Sink;
use crate::syntax::tree::Node;
use crate::{Skill, SkillsDir, schema, value};

/// Reads all single skills, and sorts them by name.
pub(super) fn read(top: &Children<'_>, sink: &Sink) -> Vec<Skill> {
    top.keyed(&schema::SKILL).into_iter().filter_map(|node| read_one(node, sink)).collect()
}

fn read_one(node: &Node, sink: &Sink) -> Option<Skill> {
    let mut reader = Reader::new(node, &schema::SKILL, sink);
    let name = names::name(&mut reader);
    let path = reader.read_prop("path", value::path);
    let mode = mode(&mut reader);
    reader.finish();
    Some(Skill { name: name?, path: path?, mode })
}

/// Reads the directory of skills.
pub(super) fn read_dir(node: &Node, sink: &Sink) -> Option<SkillsDir> {
    let mut reader = Reader::new(node, &schema::SKILLS, sink);
    let dir = reader.read_prop("dir", value::path);
    let mode = mode(&mut reader);
    reader.finish();
    Some(SkillsDir { dir: dir?, mode })
}

fn mode(reader: &mut Reader<'_>) -> SkillMode {
    let mode: Option<String> = reader.choice("mode");
    if mode.as_deref() == Some("mount") { SkillMode::Mounted } else { SkillMode::Baked }
}
