//! The typed result: what a valid `SKILL.md` declares, with every default filled in.

use std::collections::BTreeMap;

use crate::{Sha256, Span, Spanned};

/// A skill's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillManifest {
    /// The skill's name, by the same rule as a box's. Where the file gives none, the directory's
    /// name, with the file's first line as its place.
    pub name: Spanned<String>,
    /// What the skill does and when to use it.
    pub description: Option<String>,
    /// Its version, as written.
    pub version: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// How an agent is to use it.
    pub kind: SkillKind,
    /// In which of the agent's queues its work runs.
    pub lane: Option<String>,
    /// The prompt file: a path within the skill, without `.` and `..`.
    pub system_prompt: Option<Spanned<String>>,
    /// The built-in tools that it needs, by their canonical names.
    pub requires: Vec<Spanned<&'static str>>,
    /// The tools that it brings; no two have one name.
    pub tools: Vec<Tool>,
    /// The tools that it may use; nothing where it says nothing about them.
    pub allowed_tools: Option<Vec<AllowedTool>>,
    /// Whether only a person may start it.
    pub disable_model_invocation: bool,
    /// Where the Markdown begins: bytes in front of it.
    pub body_offset: usize,
}

impl SkillManifest {
    /// Returns every file that the definition says the skill has, in the order of the keys
    /// `system_prompt` and `tools`. A file that is named twice is there twice.
    pub fn files(&self) -> Vec<SkillFile<'_>> {
        let prompt = self.system_prompt.iter().map(|path| (path, false));
        let tools = self.tools.iter().filter_map(|tool| Some((tool.backend.file()?, true)));
        prompt
            .chain(tools)
            .map(|(path, executable)| SkillFile { path: &path.value, span: path.span, executable })
            .collect()
    }
}

/// A file that a definition says the skill has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillFile<'m> {
    /// Its path within the skill, without `.`, `..` and doubled slashes.
    pub path: &'m str,
    /// Where it is named.
    pub span: Span,
    /// Whether it is run: a tool's script or program.
    pub executable: bool,
}

/// How an agent uses a skill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SkillKind {
    /// Its text joins the prompt when it fits.
    #[default]
    Instruction,
    /// Its text is the prompt of a whole session.
    Persona,
    /// It is used as a tool is.
    Tool,
}

/// A tool that a skill brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// 1 to 64 letters, digits, `_` and `-`.
    pub name: Spanned<String>,
    /// What it does.
    pub description: Option<String>,
    /// What a call of it runs.
    pub backend: Backend,
    /// What it takes. Of a JSON Schema these are the properties; the rest of a schema stays in
    /// the file, for the agent.
    pub parameters: Vec<Parameter>,
}

/// What a call of a tool runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// A file of the skill that is run as a program.
    Script {
        /// Its path within the skill, without `.` and `..`.
        path: Spanned<String>,
    },
    /// A script that stands in the definition.
    Inline {
        /// The program that runs it.
        interpreter: String,
        /// Its arguments in front of the script.
        interpreter_args: Vec<String>,
        /// The script.
        script: String,
    },
    /// A program.
    Binary {
        /// Where it is.
        program: Program,
        /// Its arguments, with `${NAME}` for the tool's.
        args_template: Option<String>,
    },
    /// A request.
    Http {
        /// Begins with `http://` or `https://`.
        url: String,
        /// The method; POST by default.
        method: String,
        /// The headers; values may contain `${env:NAME}`.
        headers: BTreeMap<String, String>,
        /// The body, with `${NAME}` for the tool's arguments.
        body_template: Option<String>,
        /// How long it may take in milliseconds, 1 to 3600000; 30000 by default.
        timeout_ms: u64,
    },
}

impl Backend {
    const fn file(&self) -> Option<&Spanned<String>> {
        match self {
            Self::Script { path } | Self::Binary { program: Program::File(path), .. } => Some(path),
            _ => None,
        }
    }
}

/// Where a tool's program is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A file of the skill: its path within it, without `.` and `..`.
    File(Spanned<String>),
    /// A program of the agent's image: an absolute path.
    Image(Spanned<String>),
    /// A download.
    Download {
        /// Begins with `http://` or `https://`.
        url: Spanned<String>,
        /// The sha256 that the file must have.
        sha256: Sha256,
    },
}

/// What a tool takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// 1 to 64 letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// Its type; nothing where a schema gives several or none.
    pub kind: Option<ParameterType>,
    /// Whether a call must have it.
    pub required: bool,
    /// What it is for.
    pub description: Option<String>,
}

/// The types of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterType {
    /// A text.
    String,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A mapping.
    Object,
    /// A list.
    Array,
    /// Nothing but `null`.
    Null,
}

/// A tool that a skill may use, such as `Bash(gh:*)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedTool {
    /// The canonical name of a built-in tool, or any other as it is written: agents have tools of
    /// their own.
    pub tool: String,
    /// For which calls, as it stands in the parentheses; nothing for all.
    pub pattern: Option<String>,
    /// Where the permission is written, or the text that holds several.
    pub span: Span,
}
