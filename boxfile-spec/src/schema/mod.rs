//! Defines every declaration of the language as data. The other modules of this crate derive from it:
//!
//! - the names, ranges and choices that the parser accepts, and the examples in its messages;
//! - the mapping of TOML keys to arguments, properties and declarations;
//! - the merging of files;
//! - the reference (`docs/boxfile.md`) and the JSON Schema.
//!
//! Rules beyond the type of a single value are in [`mod@crate::parse`].

mod component;
#[cfg(test)]
mod documented;
mod json;
mod place;
mod reference;
mod run;
mod top;
mod wording;

use crate::syntax::tree::Data;
use crate::units::{show_duration, show_size};

pub(crate) use component::*;
pub use json::json_schema;
pub use reference::reference;
pub(crate) use run::*;
pub(crate) use top::*;

const MB: u64 = 1_000_000;

/// A declaration of the language, such as `box` or `agent`.
#[derive(Debug)]
pub(crate) struct Declaration {
    /// The name, which is also the key in TOML.
    pub(crate) name: &'static str,
    /// How often a block may have the declaration.
    pub(crate) count: Count,
    /// The first argument.
    pub(crate) first: Option<Argument>,
    /// The arguments after the first one, of any number. `None` if there can be none.
    pub(crate) rest: Option<Argument>,
    /// The properties.
    pub(crate) props: &'static [Property],
    /// The description of the variables, if the declaration's properties are variables with any name, as in `env`.
    pub(crate) variables: Option<&'static str>,
    /// The declarations that the block of this declaration may have.
    pub(crate) children: &'static [&'static Self],
    /// How the declaration is merged with the same declaration of a base file.
    pub(crate) merge: Merge,
    /// Whether today's programs implement the declaration.
    pub(crate) enforced: Enforced,
}

impl Declaration {
    /// Makes an optional declaration without arguments, properties and block. It is combined with the base's
    /// declaration.
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            count: Count::Optional,
            first: None,
            rest: None,
            props: &[],
            variables: None,
            children: &[],
            merge: Merge::Combine,
            enforced: Enforced::Now,
        }
    }

    /// Makes a declaration that may be repeated, each time with a different first argument.
    const fn keyed(name: &'static str, argument: &'static str, kind: Kind) -> Self {
        Self { count: Count::Keyed, ..Self::new(name).with_first(required(argument, kind)) }
    }

    /// Makes a declaration of one argument, which replaces the base's declaration.
    const fn one(name: &'static str, argument: &'static str, kind: Kind) -> Self {
        Self::new(name).with_first(required(argument, kind)).replacing()
    }

    /// Makes a declaration of any number of arguments, with one name for all of them.
    const fn list(name: &'static str, arguments: &'static str, kind: Kind) -> Self {
        Self::new(name).with_rest(arguments, kind).replacing()
    }

    /// Makes a declaration of at least one argument, with a name for the first one and a name for all others.
    const fn some(name: &'static str, arguments: [&'static str; 2], kind: Kind) -> Self {
        let [first, rest] = arguments;
        Self::one(name, first, kind).with_rest(rest, kind)
    }

    const fn with_count(self, count: Count) -> Self {
        Self { count, ..self }
    }

    const fn with_first(self, first: Argument) -> Self {
        Self { first: Some(first), ..self }
    }

    const fn with_rest(self, arguments: &'static str, kind: Kind) -> Self {
        Self { rest: Some(optional(arguments, kind)), ..self }
    }

    const fn with_props(self, props: &'static [Property]) -> Self {
        Self { props, ..self }
    }

    const fn with_children(self, children: &'static [&'static Self]) -> Self {
        Self { children, ..self }
    }

    /// Makes the declaration replace the base's declaration.
    const fn replacing(self) -> Self {
        Self { merge: Merge::Replace, ..self }
    }

    /// Marks the declaration as refused by today's launcher, except for its part `now`.
    const fn enforced_partly(self, now: &'static str) -> Self {
        Self { enforced: Enforced::Partly(now), ..self }
    }

    /// Returns whether repeated declarations are a list in TOML. An item is an argument, or a table if the declaration
    /// has properties, too: `allow = ["a.example", { peer = "b.example", port = 22 }]`.
    pub(crate) fn is_listed(&self) -> bool {
        self.count == Count::Repeatable && self.rest.is_some()
    }

    /// Returns the property `name`.
    pub(crate) fn prop(&self, name: &str) -> Option<&'static Property> {
        self.props.iter().find(|prop| prop.name == name)
    }

    /// Returns the declaration `name` of the block.
    pub(crate) fn child(&self, name: &str) -> Option<&'static Self> {
        find(self.children, name)
    }
}

/// Returns the declaration `name` of the list `among`.
pub(crate) fn find(among: &[&'static Declaration], name: &str) -> Option<&'static Declaration> {
    among.iter().find(|it| it.name == name).copied()
}

/// How often a block may have a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    /// Exactly once.
    Required,
    /// At most once.
    Optional,
    /// Any number of times, each time with a different first argument. In TOML: a table of tables.
    Keyed,
    /// Any number of times; all of them apply. In TOML: one table, or a list ([`Declaration::is_listed`]).
    Repeatable,
}

/// How a declaration is merged with an earlier one: the file's with its base file's, and a profile's with the file's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merge {
    /// Later arguments replace all earlier arguments. A later property replaces the earlier one of the same name, and
    /// other properties are kept. Inner declarations of the same name are merged by their own [`Merge`].
    Combine,
    /// The later declaration replaces the earlier one as a whole.
    Replace,
}

/// Whether today's programs implement a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enforced {
    /// Today's programs implement the declaration.
    Now,
    /// The launcher refuses to start a box that has the declaration, except for a part of it. The value describes what works.
    Partly(&'static str),
}

/// A value of a declaration without `name=` in front of it.
#[derive(Debug)]
pub(crate) struct Argument {
    /// The name. In TOML, it is the key of the argument, if the declaration is written as a table.
    pub(crate) name: &'static str,
    /// The kind of the argument's value.
    pub(crate) kind: Kind,
    /// Whether the argument may be left out.
    pub(crate) optional: bool,
}

/// A value of a declaration with a name: `name=value`.
#[derive(Debug)]
pub(crate) struct Property {
    /// The name, which is also the key in TOML.
    pub(crate) name: &'static str,
    /// The kind of the property's value.
    pub(crate) kind: Kind,
    /// Whether the property must be written.
    pub(crate) required: bool,
    /// The value that applies if the property is not written.
    pub(crate) default: Default,
}

/// The value of a property that is not written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Default {
    /// No value.
    Nothing,
    /// A fixed value: [`mod@crate::parse`] reads it as if it were written.
    Always(DefaultValue),
    /// One of several values, which the reader of the declaration chooses. The text describes when each value applies,
    /// with `{}` in place of the values.
    Depends(&'static str, &'static [DefaultValue]),
}

/// The value of a default.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DefaultValue {
    Truth(bool),
    Number(u64),
    /// In bytes.
    Size(u64),
    /// In milliseconds.
    Duration(u64),
    Word(&'static str),
}

/// The kind of a value. [`mod@crate::value`] reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text.
    Text,
    /// A text of at least one character.
    NonEmptyText,
    /// A text that is valid JSON.
    Json,
    /// The path of an HTTP request.
    HttpPath,
    /// The name of a gRPC service.
    GrpcService,
    /// The name of a box, a skill, a share and so on.
    Name,
    /// A path of the checkout, relative to the file that contains it.
    Path,
    /// As [`Self::Path`], with a name as its last part: not `/`, `.` or `..`.
    BakedPath,
    /// A kernel's name, or any path on the host of the build; relative as for [`Self::Path`].
    Kernel,
    /// A path relative to the directory of the launch, and inside it.
    LaunchPath,
    /// The path of a file in a component's root. With a slash at its end, the path of the directory that will contain
    /// the file.
    FilePlace,
    /// An absolute path that can be a working directory.
    WorkDir,
    /// An absolute path below the guest's root, without `.`, `..` and empty parts.
    GuestPath,
    /// As [`Self::GuestPath`], but not a path that the guest reserves.
    MountPoint,
    /// As [`Self::MountPoint`], for the file of a secret.
    SecretPath,
    /// A whole number within bounds, both included.
    Integer { least: u64, most: u64 },
    /// A number of bytes with a unit, within bounds, both included.
    Size { least: u64, most: u64 },
    /// A duration with a unit, in milliseconds.
    Duration,
    /// A duration with a unit, in whole seconds.
    Seconds,
    /// True or false.
    Bool,
    /// One of several words, which the declaration's section explains.
    OneOf(&'static [&'static str]),
    /// 64 lower-case hexadecimal digits.
    Sha256,
    /// A ws or wss URL.
    SocketUrl,
    /// The URL of an HTTP API.
    ServiceUrl,
    /// The URL of an MCP server.
    McpUrl,
    /// The name of a header line with a credential.
    Header,
    /// The text before a credential in a header line.
    HeaderPrefix,
    /// A method and a path with `*`.
    Request,
    /// A reference to an image.
    Image,
    /// A path of the checkout, or an http or https URL.
    PathOrUrl,
    /// `USER` or `USER:GROUP`.
    User,
    /// Permissions in octal digits.
    Mode,
    /// A host name without dots.
    Hostname,
    /// The name of an environment variable.
    Variable,
    /// An absolute path with `*` and `**`.
    Glob,
    /// A domain, `*.` and a domain, an IP address or a network.
    Peer,
    /// The name of a built-in tool.
    Tool,
    /// Names of capabilities, separated by spaces.
    Capabilities,
}

impl Kind {
    /// A TCP port.
    const PORT: Self = Self::count_to(65_535);
    /// A TCP port, or 0 for any free one.
    const ANY_PORT: Self = Self::Integer { least: 0, most: 65_535 };

    /// A whole number from 1 to `most`.
    const fn count_to(most: u64) -> Self {
        Self::Integer { least: 1, most }
    }

    /// A number of bytes.
    const fn size(least: u64, most: u64) -> Self {
        Self::Size { least, most }
    }
}

impl Default {
    /// Describes the default in Markdown; empty if there is none.
    fn description(self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Always(value) => value.description(),
            Self::Depends(sentence, values) => {
                values.iter().fold(sentence.to_owned(), |text, value| {
                    text.replacen("{}", &value.description(), 1)
                })
            }
        }
    }
}

impl DefaultValue {
    /// Returns the value as it is in a Boxfile.
    pub(crate) fn data(self) -> Data {
        match self {
            Self::Truth(truth) => Data::Truth(truth),
            Self::Number(number) => Data::Integer(number.into()),
            Self::Size(bytes) if bytes.is_multiple_of(MB) => {
                Data::Text(format!("{}MB", bytes / MB))
            }
            Self::Size(bytes) => Data::Text(show_size(bytes)),
            Self::Duration(ms) => Data::Text(show_duration(ms)),
            Self::Word(word) => Data::Text(word.to_owned()),
        }
    }

    /// Returns the value as it is in Markdown.
    fn description(self) -> String {
        match (self, self.data()) {
            (Self::Word(word), _) => format!("`{word}`"),
            (_, Data::Text(text)) => text,
            (Self::Number(number), _) => number.to_string(),
            (value, _) => matches!(value, Self::Truth(true)).to_string(),
        }
    }
}

const fn required(name: &'static str, kind: Kind) -> Argument {
    Argument { name, kind, optional: false }
}

const fn optional(name: &'static str, kind: Kind) -> Argument {
    Argument { name, kind, optional: true }
}

const fn prop(name: &'static str, kind: Kind) -> Property {
    Property { name, kind, required: false, default: Default::Nothing }
}

const fn default_prop(name: &'static str, kind: Kind, default: DefaultValue) -> Property {
    Property { default: Default::Always(default), ..prop(name, kind) }
}

/// Makes a property whose default depends on another setting.
const fn dependent_prop(
    name: &'static str,
    kind: Kind,
    sentence: &'static str,
    values: &'static [DefaultValue],
) -> Property {
    Property { default: Default::Depends(sentence, values), ..prop(name, kind) }
}

const fn required_prop(name: &'static str, kind: Kind) -> Property {
    Property { required: true, ..prop(name, kind) }
}
