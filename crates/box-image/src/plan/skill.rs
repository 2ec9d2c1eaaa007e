//! Skills: directories with a `SKILL.md` that teach the agent something.

use serde::{Deserialize, Serialize};

use super::is_default;

/// A skill of the box: a directory under [`super::SKILLS_PATH`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillPlan {
    /// The directory's name.
    pub name: String,
    /// How it comes there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: SkillMode,
}

/// How a skill comes into the box.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SkillMode {
    /// It lies in the rootfs, and so is part of the box's digest.
    #[default]
    Baked,
    /// It is a directory of the host, shown read-only while the box runs; it can change, and is
    /// not part of the digest.
    Mounted,
}
