//! The box whose document is tested.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use box_contract::{ComponentName, RunPlan};
use box_digest::Digest;
use box_tree::listing::{FileOrigin, ImageOrigin, Origins};
use box_tree::{Content, Inode, Leaf, Meta, Origin, Tree};
use serde_json::Value;

use super::*;

mod compared;
mod databases;
mod document;
mod hostile;
mod links;
mod merged;

fn plan() -> RunPlan {
    let mut plan = testkit::test_box::config().plan;
    plan.name = "test".to_owned();
    let mut business = plan.agent.clone();
    business.root = "/roots/business".to_owned();
    plan.business = Some(business);
    plan
}

/// A tree that is being made, and the bytes of its files.
#[derive(Default)]
struct Fixture {
    tree: Tree,
    data: HashMap<Blake3Digest, Vec<u8>>,
}

struct Data<'d>(&'d HashMap<Blake3Digest, Vec<u8>>);

impl ReadContent for Data<'_> {
    fn copy_head(&mut self, content: Content, limit: u64, out: &mut dyn Write) -> io::Result<()> {
        let data = self.0.get(&content.hash).ok_or_else(|| io::Error::other("no data"))?;
        io::copy(&mut data.take(limit), out).map(drop)
    }
}

impl Fixture {
    /// Adds a file of the agent's image (layer 0 or 1), or of the skill.
    fn file(mut self, origin: Origin, path: &str, data: impl AsRef<[u8]>) -> Self {
        let content = Content::of(data.as_ref());
        self.data.insert(content.hash, data.as_ref().to_vec());
        self.leaf(origin, path, Leaf::File(content))
    }

    fn leaf(mut self, origin: Origin, path: &str, leaf: Leaf) -> Self {
        let (directory, name) = path.rsplit_once('/').unwrap();
        let directory = self.tree.make_directories(directory.as_bytes()).unwrap();
        let inode = Inode::leaf(Meta::root_owned(0o644), leaf);
        let inode = self.tree.add(inode.from(origin));
        self.tree.link(directory, name.as_bytes(), inode);
        self
    }

    fn bytes(&self) -> Vec<u8> {
        self.bytes_of(&plan(), [[0x11, 0x12], [0x21, 0x22]])
    }

    /// Writes the document of a box whose images have layers of these digests.
    fn bytes_of(&self, plan: &RunPlan, layers: [[u8; 2]; 2]) -> Vec<u8> {
        self.bytes_with(plan, layers, Vec::new())
    }

    fn bytes_with(&self, plan: &RunPlan, layers: [[u8; 2]; 2], files: Vec<FileOrigin>) -> Vec<u8> {
        let digest = |byte| Digest::from_bytes([byte; 32]);
        let image = |(component, layers): (_, [u8; 2])| ImageOrigin {
            component,
            layers: layers.map(digest).to_vec(),
        };
        let origins = Origins {
            images: ComponentName::ALL.into_iter().zip(layers).map(image).collect(),
            program: None,
            skills: vec!["greet".to_owned()],
            files,
        };
        let listing = Listing { tree: self.tree.clone(), origins };
        let subject = Subject {
            digest: Digest::from_bytes([5; 32]),
            plan,
            listing: &listing,
            tree: Blake3Digest::from_bytes([0; 32]),
            kernel: (Digest::from_bytes([3; 32]), "Linux version 6.12.34 (me@here) #1\n"),
            init: Digest::from_bytes([4; 32]),
        };
        let mut bytes = Vec::new();
        super::document(&subject, &mut Data(&self.data)).unwrap().write(&mut bytes).unwrap();
        bytes
    }

    fn document(&self) -> Value {
        serde_json::from_slice(&self.bytes()).unwrap()
    }

    fn packages(&self) -> Vec<String> {
        packages(&self.document())
    }

    fn comment(&self) -> String {
        self.document()["comment"].as_str().unwrap().to_owned()
    }
}

/// Lists the packages of databases: purl, license and origin.
fn packages(document: &Value) -> Vec<String> {
    let packages = document["packages"].as_array().unwrap().iter();
    let text = |it: &Value| it.as_str().unwrap().to_owned();
    let mut packages: Vec<String> = packages
        .filter_map(|package| {
            let purl = text(&package["externalRefs"].get(0)?["referenceLocator"]);
            let from = text(&package["sourceInfo"]);
            let from: Vec<_> = from.split("; ").map(|it| it.split(" sha256:").next()).collect();
            let from = from.into_iter().flatten().collect::<Vec<_>>().join("; ");
            Some(format!("{purl} {} {from}", text(&package["licenseDeclared"])))
        })
        .collect();
    packages.sort();
    packages
}

const AGENT: [Origin; 2] =
    [Origin::Layer(ComponentName::Agent, 0), Origin::Layer(ComponentName::Agent, 1)];

fn link(fixture: Fixture, path: &str, target: &str) -> Fixture {
    fixture.leaf(AGENT[0], path, Leaf::Symlink(target.into()))
}
