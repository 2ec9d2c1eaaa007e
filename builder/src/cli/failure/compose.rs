//! The rows of the table of errors for images and declarations that do not make a box.

use box_contract::ErrorCode::*;
use box_contract::Platform;
use boxbuild::compose::{ComposeError, Obstacle, Unrunnable};
use cli_common::Explanation;

use super::Explain;
use super::explain::{FETCH_LFS, help};

impl Explain for ComposeError {
    fn explain(&self) -> Explanation {
        let text = match self {
            Self::NoProgram { component } => {
                let text = format!("write `entrypoint \"/path/to/program\"` in `{component}`");
                return help(ImageUnusable, text);
            }
            Self::NoSuchProgram { reason: Unrunnable::OtherMachine, .. } => {
                let text = format!(
                    "take an image for {0}, or build it for that: docker buildx build --platform {0}",
                    Platform::BUILT
                );
                return help(ProgramInvalid, text);
            }
            Self::NoSuchProgram { reason: Unrunnable::NotAProgram, .. } => {
                return help(ProgramInvalid, "correct it in the image, or name another program");
            }
            Self::NoSuchProgram { reason: Unrunnable::LfsPointer, .. } => {
                return help(ProgramInvalid, format!("{FETCH_LFS}; then build the image again"));
            }
            Self::NoSuchProgram { reason: Unrunnable::NoLoader(library), .. } => {
                let text = format!(
                    "the program is linked with {}, which the image lacks: link it statically, or build \
                     it in the image that it runs in",
                    library.name()
                );
                return help(ProgramInvalid, text);
            }
            Self::NoSuchProgram { words: Some(words), .. } => {
                let text =
                    format!("each word is a string of its own, as no shell splits them: {words}");
                return help(ProgramInvalid, text);
            }
            Self::NoSuchProgram { near: Some(near), .. } => {
                let text = format!("did you mean {near:?}? Or add the program to the image");
                return help(ProgramInvalid, text);
            }
            Self::NoSuchProgram { reason: Unrunnable::NotExecutable, .. } => {
                let text = "give it execute permission in the image, or `mode=\"0755\"` where the Boxfile adds the `file`";
                return help(ProgramInvalid, text);
            }
            Self::NoSuchProgram { .. } => {
                let text = "name a program that the image has, or add it to the image";
                return help(ProgramInvalid, text);
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
            Self::Hidden { baked: false, .. } => {
                "choose another place, or remove it from the image"
            }
            Self::Hidden { .. } => "choose another place, or remove what is there",
            Self::WrongType { component, found, .. } => {
                let other = format!("declare it as {found:?}, or rebuild it with the label");
                return help(ImageUnusable, format!("{other} {component:?}"));
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

impl Explain for Obstacle {
    fn explain(&self) -> Explanation {
        match self {
            Self::Directory => help(
                ImageUnusable,
                "end `to` with a slash to put a file into that directory, or choose another place",
            ),
            Self::Path(_) => help(ImageUnusable, "choose another place, or remove what is there"),
            Self::Reserved { .. } => help(BoxfileInvalid, "choose another place"),
            Self::File { .. } | Self::Program { .. } => {
                help(BoxfileInvalid, "give one of them another place, or remove it")
            }
            Self::System => help(
                BoxfileInvalid,
                "remove it: the names in a box follow from `hostname`, and it has no resolver",
            ),
        }
    }
}
