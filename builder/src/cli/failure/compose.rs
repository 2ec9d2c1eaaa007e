//! Explanations for images and declarations from which no box can be composed.

use std::borrow::Cow;

use box_contract::ErrorCode::*;
use box_contract::Platform;
use boxbuild::compose::{ComposeError, Obstacle, OnLoopback, Unrunnable};
use boxbuild::{BuildError, Cause};
use cli_common::Explanation;
use diagnostics::Syntax;

use super::Explain;
use super::explain::{FETCH_LFS, help};

impl Explain for ComposeError {
    fn explain(&self) -> Explanation {
        let text = match self {
            Self::NoProgram { component } => {
                let text = format!("write `entrypoint \"/path/to/program\"` in `{component}`");
                return help(ImageUnusable, text);
            }
            Self::NoSuchProgram { near, words, reason, .. } => {
                return help(
                    ProgramInvalid,
                    no_program(near.as_deref(), words.as_deref(), *reason),
                );
            }
            Self::UnknownUser { near: Some(near), .. } => {
                return help(ImageUnusable, format!("did you mean {near:?}?"));
            }
            Self::UnknownUser { .. } => {
                "name a user that the image has, or one by number, such as \"1000:1000\""
            }
            Self::Libc { .. } => {
                "declare layout \"split\", in which each image keeps its own, or build both images \
                 on the same base"
            }
            Self::Unplaceable { obstacle, .. } => return obstacle.explain(),
            Self::Hidden { span: None, .. } => "remove it from the image",
            Self::Hidden { baked: false, .. } => "choose another path, or remove it from the image",
            Self::Hidden { .. } => "choose another path, or remove what is there",
            Self::WrongType { component, found, .. } => {
                let other = format!("declare it as {found:?}, or rebuild it with the label");
                return help(ImageUnusable, format!("{other} {component:?}"));
            }
            Self::Vsock { component, on_loopback } => {
                return help(ImageUnusable, listen(component, on_loopback, Syntax::Kdl));
            }
            Self::KeyInLabel { variable, .. } => {
                let text = format!(
                    "declare the secret `{variable}` in the Boxfile, which replaces the label; and make a \
                     new key, because everybody with the image has this one"
                );
                return help(ImageUnusable, text);
            }
            Self::Config { component, declaration: Some(name), .. } => {
                let text = format!("declare `{name}` in `{component}`, which takes its place");
                return help(ImageUnusable, text);
            }
            Self::Config { .. } => "correct it, and rebuild the image",
            Self::Unreadable { source, .. } => return source.explain(),
        };
        help(ImageUnusable, text)
    }
}

/// Returns the explanation of an error whose help has a declaration, which it writes in the syntax of the Boxfile. `None` for
/// any other error.
pub(super) fn in_syntax(error: &BuildError, syntax: Syntax) -> Option<Explanation> {
    let BuildError::Unusable { source, .. } = error else { return None };
    let Cause::Compose(ComposeError::Vsock { component, on_loopback }) = &**source else {
        return None;
    };
    Some(help(ImageUnusable, listen(component, on_loopback, syntax)))
}

/// Returns the help for a command line with an address of AF_VSOCK.
fn listen(component: &str, on_loopback: &OnLoopback, syntax: Syntax) -> String {
    let text = on_loopback.shown(syntax).map_or_else(
        || {
            let OnLoopback { address, port, name, .. } = on_loopback;
            format!(
                "declare `{name}` in `{component}` with `127.0.0.1:{port}` in place of `{address}`"
            )
        },
        |declaration| format!("write `{declaration}` in `{component}`"),
    );
    format!("listen on the loopback: {text}")
}

/// Returns the help for a program that is missing or cannot be executed.
fn no_program(near: Option<&str>, words: Option<&str>, reason: Unrunnable) -> Cow<'static, str> {
    match (reason, words, near) {
        (Unrunnable::OtherMachine, ..) => format!(
            "take an image for {0}, or build it for that: docker buildx build --platform {0}",
            Platform::BUILT
        )
        .into(),
        (Unrunnable::NotAProgram, ..) => "correct it in the image, or name another program".into(),
        (Unrunnable::LfsPointer, ..) => format!("{FETCH_LFS}; then build the image again").into(),
        (Unrunnable::NoLoader(library), ..) => format!(
            "the program is linked with {}, which the image lacks: link it statically, or build \
             it in the image that it runs in",
            library.name()
        )
        .into(),
        (_, Some(words), _) => {
            format!("each word is a string of its own, as no shell splits them: {words}").into()
        }
        (_, None, Some(near)) => {
            format!("did you mean {near:?}? Or add the program to the image").into()
        }
        (Unrunnable::NotExecutable, ..) => {
            "give it execute permission in the image, or `mode=\"0755\"` where the Boxfile adds the `file`"
                .into()
        }
        _ => "name a program that the image has, or add it to the image".into(),
    }
}

impl Explain for Obstacle {
    fn explain(&self) -> Explanation {
        match self {
            Self::Directory => help(
                ImageUnusable,
                "end `to` with a slash to put a file into that directory, or choose another path",
            ),
            Self::Path(_) => help(ImageUnusable, "choose another path, or remove what is there"),
            Self::Reserved { .. } => help(BoxfileInvalid, "choose another path"),
            Self::File { .. } | Self::Program { .. } => {
                help(BoxfileInvalid, "give one of them another path, or remove it")
            }
            Self::System => help(
                BoxfileInvalid,
                "remove it: the names in a box follow from `hostname`, and it has no resolver",
            ),
        }
    }
}
