//! Everything that a build reads, and the key over all of it.

use std::fs;
use std::path::{Path, PathBuf};

use box_cache::{ActionKey, KeyHasher};
use box_image::manifest::FORMAT_EPOCH;
use box_image::{ComponentName, Digest};
use boxfile_spec::{Boxfile, Component, ImageRef, Span};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, elf};
use sha2::{Digest as _, Sha256};

use super::Request;
use crate::BuildError;
use crate::skill::{self, Skill};
use crate::source::{self, Image};

/// What a build reads. Of images only the documents: their layers are opened when needed.
pub(super) struct Inputs {
    pub(super) images: Vec<(ComponentName, Image)>,
    pub(super) skills: Vec<(String, Skill)>,
    pub(super) init: Vec<u8>,
    pub(super) kernel: Vec<u8>,
}

/// Returns what the Boxfile declares of a component.
fn declared(boxfile: &Boxfile, component: ComponentName) -> Option<&Component> {
    match component {
        ComponentName::Agent => Some(&boxfile.agent),
        ComponentName::Business => boxfile.business.as_ref(),
    }
}

/// Returns where the Boxfile names a component's image.
pub(super) fn image_span(boxfile: &Boxfile, component: ComponentName) -> Span {
    declared(boxfile, component).map_or(boxfile.agent.image.span, |it| it.image.span)
}

impl Inputs {
    /// Reads all inputs.
    pub(super) fn read(request: &Request<'_>) -> Result<Self, BuildError> {
        let mut images = Vec::new();
        for component in ComponentName::ALL {
            if let Some(declared) = declared(request.boxfile, component) {
                images.push((component, open_image(request, component, declared)?));
            }
        }
        let skills = request.boxfile.skills.iter().map(|skill| read_skill(request, skill));
        let inputs = Self {
            images,
            skills: skills.collect::<Result<_, _>>()?,
            init: read_file(request.init)?,
            kernel: read_file(request.kernel)?,
        };
        if !is_static_program(&inputs.init) {
            return Err(BuildError::NotAnInit { path: request.init.to_owned() });
        }
        inputs.check_kernel(request)?;
        Ok(inputs)
    }

    fn check_kernel(&self, request: &Request<'_>) -> Result<(), BuildError> {
        let declared = request.boxfile.kernel.as_ref().and_then(|kernel| kernel.sha256);
        let Some(expected) = declared.map(Digest::from_bytes) else { return Ok(()) };
        let found = Digest::from_bytes(Sha256::digest(&self.kernel).into());
        if found == expected {
            return Ok(());
        }
        Err(BuildError::WrongKernel { path: request.kernel.to_owned(), expected, found })
    }

    /// Returns the key of the box that these inputs make.
    pub(super) fn key(&self, request: &Request<'_>) -> ActionKey {
        let mut key = KeyHasher::new("box", FORMAT_EPOCH).part(&request.builder);
        let boxfile = request.boxfile;
        let general = (&boxfile.name, boxfile.vm, boxfile.layout, boxfile.budget);
        key = key.part(format!("{general:?}").as_bytes());
        for (component, image) in &self.images {
            key = key.part(component.name().as_bytes()).part(image.manifest.as_bytes());
            if let Some(declared) = declared(boxfile, *component) {
                key = key.part(declaration(declared).as_bytes());
            }
        }
        for (name, skill) in &self.skills {
            key = key.part(name.as_bytes()).part(skill.tree.digest().as_bytes());
        }
        key.part(&self.init).part(blake3::hash(&self.kernel).as_bytes()).finish()
    }
}

/// Writes down what is declared of a component but its image, which counts by its digest. The
/// builder's identity is in the same key, so the form need not be the same for two builders.
fn declaration(component: &Component) -> String {
    let Component { image: _, entrypoint, args, env, workdir, port, health, .. } = component;
    let Component { namespaces, hostname, limits, .. } = component;
    format!("{:?}", (entrypoint, args, env, workdir, port, health, namespaces, hostname, limits))
}

fn open_image(
    request: &Request<'_>,
    component: ComponentName,
    declared: &Component,
) -> Result<Image, BuildError> {
    let ImageRef::OciLayout { path, tag } = &declared.image.value;
    source::open(&resolved(request.base, path), tag.as_deref())
        .map_err(|source| BuildError::Image { component, span: declared.image.span, source })
}

fn read_skill(
    request: &Request<'_>,
    skill: &boxfile_spec::Skill,
) -> Result<(String, Skill), BuildError> {
    let read = skill::read(request.base, &resolved(request.base, &skill.path.value));
    let name = skill.name.clone();
    match read {
        Ok(read) => Ok((name, read)),
        Err(source) => Err(BuildError::Skill { name, span: skill.path.span, source }),
    }
}

/// Puts a path of the Boxfile, which its author wrote, behind the Boxfile's directory.
fn resolved(base: &Path, path: &str) -> PathBuf {
    base.join(path)
}

fn read_file(path: &Path) -> Result<Vec<u8>, BuildError> {
    fs::read(path).map_err(|source| BuildError::Read { path: path.to_owned(), source })
}

/// Whether a file is a program for x86-64 that needs no dynamic linker.
fn is_static_program(file: &[u8]) -> bool {
    let Ok(elf_file) = ElfFile64::<Endianness>::parse(file) else { return false };
    let (header, endian) = (elf_file.elf_header(), elf_file.endian());
    let interpreter =
        elf_file.elf_program_headers().iter().any(|it| it.p_type(endian) == elf::PT_INTERP);
    let program = matches!(header.e_type(endian), elf::ET_EXEC | elf::ET_DYN);
    program && header.e_machine(endian) == elf::EM_X86_64 && !interpreter
}
