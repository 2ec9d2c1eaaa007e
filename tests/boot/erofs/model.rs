//! A tree that is given to erofs-writer, and the lines that list-init should send of it.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use box_digest::{Blake3Digest, hex};
use erofs_writer::{Contents, ImageBuilder, Meta, Node, NodeId};
use serde_json::{Value, json};

use crate::listing::escaped;

/// The tree, told to the writer name by name.
pub(crate) struct Model {
    builder: ImageBuilder,
    store: Store,
    inodes: HashMap<NodeId, (Meta, Node)>,
    /// The inode of each path; the root's is `/`.
    paths: BTreeMap<Vec<u8>, NodeId>,
}

/// The bytes of files.
#[derive(Default)]
struct Store(HashMap<Blake3Digest, Vec<u8>>);

impl Contents for Store {
    fn copy(&mut self, content: &Blake3Digest, _: u64, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.0[content])
    }
}

impl Model {
    pub(crate) fn new(root: Meta) -> Self {
        let builder = ImageBuilder::new(root.clone()).unwrap();
        let inodes = HashMap::from([(builder.root(), (root, Node::Directory))]);
        let paths = BTreeMap::from([(b"/".to_vec(), builder.root())]);
        Self { builder, store: Store::default(), inodes, paths }
    }

    /// Adds an inode under its first name and returns it.
    pub(crate) fn add(&mut self, path: &[u8], meta: Meta, node: Node) -> NodeId {
        let id = self.builder.add(meta.clone(), node.clone()).unwrap();
        self.inodes.insert(id, (meta, node));
        self.link(path, id);
        id
    }

    /// Adds a file under its first name and returns it.
    pub(crate) fn add_file(&mut self, path: &[u8], meta: Meta, bytes: Vec<u8>) -> NodeId {
        let content = Blake3Digest::of(&bytes);
        let node = Node::File { size: bytes.len() as u64, content };
        self.store.0.insert(content, bytes);
        self.add(path, meta, node)
    }

    /// Gives an inode a name in a directory that is there already.
    pub(crate) fn link(&mut self, path: &[u8], id: NodeId) {
        let slash = path.iter().rposition(|byte| *byte == b'/').unwrap();
        let parent = if slash == 0 { b"/" } else { &path[..slash] };
        self.builder.link(self.paths[parent], &path[slash + 1..], id).unwrap();
        self.paths.insert(path.to_vec(), id);
    }

    /// Returns the lines of list-init, in the order of the paths.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let mut names: HashMap<NodeId, Vec<&[u8]>> = HashMap::new();
        let mut subdirectories: HashMap<&[u8], u64> = HashMap::new();
        for (path, id) in &self.paths {
            names.entry(*id).or_default().push(path);
            let slash = path.iter().rposition(|byte| *byte == b'/').unwrap_or_default();
            if path != b"/" && self.inodes[id].1 == Node::Directory {
                *subdirectories.entry(&path[..slash.max(1)]).or_default() += 1;
            }
        }
        let line = |(path, id): (&Vec<u8>, &NodeId)| {
            let (meta, node) = &self.inodes[id];
            let mut line = describe(path, meta, node);
            let names = &names[id];
            line["nlink"] = match node {
                Node::Directory => json!(2 + subdirectories.get(&**path).unwrap_or(&0)),
                _ => json!(names.len()),
            };
            if names.len() > 1 {
                line["first_name"] = json!(escaped(names[0]));
            }
            line
        };
        self.paths.iter().map(line).collect()
    }

    /// Writes the image.
    pub(crate) fn image(mut self) -> Vec<u8> {
        let mut image = Vec::new();
        self.builder.write(&mut image, &mut self.store).unwrap();
        image
    }
}

fn describe(path: &[u8], meta: &Meta, node: &Node) -> Value {
    let mut line = json!({
        "path": escaped(path), "mode": meta.mode, "uid": meta.uid, "gid": meta.gid,
        "mtime": meta.mtime, "mtime_nsec": meta.mtime_nsec,
    });
    let xattrs = meta.xattrs.iter().map(|(name, value)| (escaped(name), json!(hex(value))));
    line["xattrs"] = Value::Object(xattrs.collect());
    let (kind, details) = match node {
        Node::Directory => ("dir", json!({})),
        Node::File { size, content } => ("file", json!({"size": size, "blake3": content.hex()})),
        Node::Symlink { target } => ("symlink", json!({"target": escaped(target)})),
        Node::CharDevice { major, minor } => ("char", json!({"rdev": [major, minor]})),
        Node::BlockDevice { major, minor } => ("block", json!({"rdev": [major, minor]})),
        Node::Fifo => ("fifo", json!({})),
        Node::Socket => ("socket", json!({})),
    };
    line["type"] = json!(kind);
    details.as_object().unwrap().iter().for_each(|(key, value)| line[key] = value.clone());
    line
}
