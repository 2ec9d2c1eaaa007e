//! A tree for erofs-writer, and the lines that list-init must send for the written image.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use box_contract::manifest::{METADATA_UNIT, SEGMENT_UNIT};
use box_digest::{Blake3Digest, hex};
use erofs_writer::{Behind, ContentSource, ImageBuilder, MAX_INLINE_FILE, Meta, Node, NodeId};
use serde_json::{Value, json};

use crate::files::listing::escaped;

/// The size of a segment is a multiple of this number of bytes.
const BLOCK: usize = SEGMENT_UNIT as usize;

/// A tree that is given to erofs-writer entry by entry, and is kept for the comparison.
pub(crate) struct Model {
    builder: ImageBuilder,
    store: Store,
    inodes: HashMap<NodeId, (Meta, Node)>,
    /// The inode of each path; the root's is `/`.
    paths: BTreeMap<Vec<u8>, NodeId>,
}

/// The contents of the files, by their digest.
#[derive(Default)]
struct Store(HashMap<Blake3Digest, Vec<u8>>);

impl ContentSource for Store {
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

    /// Adds an inode at `path`, its first name.
    pub(crate) fn add(&mut self, path: &[u8], meta: Meta, node: Node) -> NodeId {
        let id = self.builder.add(meta.clone(), node.clone()).unwrap();
        self.inodes.insert(id, (meta, node));
        self.link(path, id);
        id
    }

    /// Adds a file at `path`, its first name.
    pub(crate) fn add_file(&mut self, path: &[u8], meta: Meta, bytes: Vec<u8>) -> NodeId {
        let content = Blake3Digest::of(&bytes);
        let node = Node::File { size: bytes.len() as u64, content };
        self.store.0.insert(content, bytes);
        self.add(path, meta, node)
    }

    /// Adds `path` as a name of an inode. The parent directory must exist.
    pub(crate) fn link(&mut self, path: &[u8], id: NodeId) {
        let slash = path.iter().rposition(|byte| *byte == b'/').unwrap();
        let parent = if slash == 0 { b"/" } else { &path[..slash] };
        self.builder.link(self.paths[parent], &path[slash + 1..], id).unwrap();
        self.paths.insert(path.to_vec(), id);
    }

    /// Returns the lines that list-init must send, in the bytewise order of the paths.
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

    /// Returns the writer's inode of each line of [`Self::lines`].
    pub(crate) fn inodes(&self) -> Vec<NodeId> {
        self.paths.values().copied().collect()
    }

    /// Returns the image as one part, which can be the metadata blob of a box without segments.
    pub(crate) fn image(self) -> Vec<u8> {
        self.write(&Segments::default())
    }

    /// Returns the image in parts: the metadata, then the contents of more than [`MAX_INLINE_FILE`] bytes, cut into segments. The
    /// sizes of the segments are `blocks`, in a cycle: `[1, 2]` makes segments of 1, 2, 1, 2 … blocks. A cut can be in a file.
    pub(crate) fn parts(self, blocks: &[usize]) -> Vec<Vec<u8>> {
        let segments = Segments::of(&self.store);
        let mut parts = vec![self.write(&segments)];
        let mut rest = &*segments.bytes;
        for blocks in blocks.iter().cycle() {
            let (segment, further) = rest.split_at(rest.len().min(blocks * BLOCK));
            if segment.is_empty() {
                break;
            }
            parts.push(segment.to_vec());
            rest = further;
        }
        parts
    }

    fn write(mut self, segments: &Segments) -> Vec<u8> {
        let mut out = Vec::new();
        let place = |content: &Blake3Digest| segments.places.get(content).copied();
        let size = segments.bytes.len() as u64;
        let behind = Behind { alignment: METADATA_UNIT, size, place: &place };
        self.builder.write_before(&mut out, &mut self.store, &behind).unwrap();
        out
    }
}

/// The contents that follow the metadata.
#[derive(Default)]
struct Segments {
    bytes: Vec<u8>,
    /// The offset of each content in `bytes`.
    places: HashMap<Blake3Digest, u64>,
}

impl Segments {
    fn of(store: &Store) -> Self {
        let mut segments = Self::default();
        for (content, bytes) in store.0.iter().collect::<BTreeMap<_, _>>() {
            if bytes.len() as u64 > MAX_INLINE_FILE {
                segments.places.insert(*content, segments.bytes.len() as u64);
                segments.bytes.extend_from_slice(bytes);
                segments.bytes.resize(segments.bytes.len().next_multiple_of(BLOCK), 0);
            }
        }
        segments
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
