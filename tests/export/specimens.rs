//! Two boxes whose images have only generated data and no compiled program.

use testkit::images::{Config, Image, Layer, LayerTar};

/// The input of a box: the Boxfile, and the images that it declares.
pub(crate) struct Specimen {
    pub(crate) boxfile: &'static str,
    pub(crate) images: Vec<(&'static str, Image)>,
}

/// Returns a small box of two components with every type of entry.
pub(crate) fn small() -> Specimen {
    Specimen {
        boxfile: "box \"small\"\nagent { image \"oci:agent\"; }\n\
                  business { image \"oci:business\"; }\nskill \"greet\" path=\"greet\"\n",
        images: vec![("agent", every_kind()), ("business", business())],
    }
}

/// Returns a box of one component with hundreds of entries, with names and files of many lengths.
pub(crate) fn large() -> Specimen {
    Specimen {
        boxfile: "box \"large\"\nagent { image \"oci:agent\"; }\n",
        images: vec![("agent", many())],
    }
}

fn config(program: &str) -> Config {
    Config {
        entrypoint: vec![program.to_owned(), "--serve".to_owned()],
        env: vec!["PATH=/bin".to_owned(), "GREETING=hello world".to_owned()],
        working_dir: "/srv".to_owned(),
        user: "1000:2000".to_owned(),
        ..Config::default()
    }
}

fn every_kind() -> Image {
    let capability = b"\x01\0\0\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    let layer = Layer::new()
        .mtime(1_600_000_000)
        .dir("/", 0o755)
        .dir("/bin", 0o755)
        .file("/bin/agent", 0o4755, "not a program")
        .file("/bin/ping", 0o755, "not a program either")
        .xattr("security.capability", capability)
        .xattr("user.note", b"bytes \xff\n=\n".to_vec())
        .hardlink("/bin/alias", "/bin/agent")
        .dir("/srv", 0o2775)
        .xattr("user.directory", "yes")
        .dir("/tmp", 0o1777)
        .dir("/closed", 0o000)
        .file("/closed/empty", 0o000, "")
        .owner(3_000_000, 4_000_000)
        .mtime(1_700_000_001)
        .file("/srv/block", 0o640, vec![1; 4096])
        .file("/srv/block-and-one", 0o640, vec![2; 4097])
        .file("/srv/again", 0o600, vec![1; 4096])
        .symlink("/srv/absolute", "/etc/passwd")
        .hardlink("/srv/the-same-link", "/srv/absolute")
        .symlink("/srv/up", "../../../../../../etc")
        .symlink("/srv/nowhere", &"t/".repeat(500))
        .device("/srv/null", 0o666, 1, 3)
        .hardlink("/srv/zero", "/srv/null")
        .fifo("/srv/pipe", 0o622)
        .file("/srv/caf\u{e9} \\ \t tab", 0o644, "odd");
    Image::new(config("/bin/agent"))
        .with(layer.to_tar())
        .with(timed("/srv/fraction", "1700000000.123456789"))
        .with(timed("/srv/before-1970", "-1.25"))
        .with(raw(b"srv/raw \xff\xfe name", b"raw"))
}

fn business() -> Image {
    let layer = Layer::new().dir("/etc", 0o755).file("/etc/motd", 0o644, "welcome\n");
    Image::new(Config::default()).with(layer.to_tar())
}

fn many() -> Image {
    let mut layer = Layer::new().mtime(1_650_000_000).dir("/sizes", 0o755);
    layer = layer.file("/bin/agent", 0o755, "not a program");
    for power in 0..16u32 {
        for size in [(1usize << power) - 1, 1 << power, (1 << power) + 1] {
            let byte = u8::try_from(power).unwrap();
            layer = layer.file(&format!("/sizes/{power}-{size}"), 0o644, vec![byte; size]);
        }
    }
    for length in (50..=255).step_by(5) {
        layer = layer.owner(length, length * 20_000);
        let name = "n".repeat(usize::try_from(length).unwrap());
        layer = layer.file(&format!("/names/{name}"), 0o600, format!("{length}"));
        layer = layer.symlink(&format!("/links/{length}"), &name);
        layer = layer.hardlink(&format!("/hard/{length}"), &format!("/names/{name}"));
    }
    let mut path = String::new();
    for depth in 0..60 {
        path.push_str("/deeper");
        layer = layer.mtime(depth).dir(&path, 0o700).xattr("user.depth", depth.to_string());
        layer = layer.file(&format!("{path}/at"), 0o400, vec![7; 3000]).xattr("user.at", "x");
    }
    let long = [b"names/".as_slice(), &[b'\xe9'; 150]].concat();
    let image = Image::new(config("/bin/agent")).with(layer.to_tar());
    image.with(raw(&long, b"a long raw name")).with(with_segment())
}

/// Returns a layer that is large enough for a segment. It has a file that is too small for the segment, a content twice, and a
/// large content before a larger one.
fn with_segment() -> LayerTar {
    let of = |byte: u8, size: usize| vec![byte; size];
    let layer = Layer::new().mtime(1_660_000_000).file("/data/small", 0o644, of(1, 2048));
    let layer =
        layer.file("/data/one", 0o644, of(2, 2049)).file("/data/two", 0o600, of(3, 700_000));
    let layer =
        layer.file("/data/again", 0o644, of(3, 700_000)).file("/data/block", 0o644, of(4, 4096));
    layer.file("/data/large", 0o644, of(5, (1 << 20) + 1)).to_tar()
}

/// Returns a layer with one file whose modification time is in a pax extended header.
fn timed(path: &str, mtime: &str) -> LayerTar {
    let record = format!("mtime={mtime}\n");
    // The length includes its own two digits and the space.
    let record = format!("{} {record}", record.len() + 3);
    let extended = Layer::new().file("/PaxHeader", 0o644, record).to_tar();
    let mut tar = extended.bytes()[..1024].to_vec();
    tar[156] = b'x';
    tar[148..156].fill(b' ');
    let sum: u32 = tar[..512].iter().map(|byte| u32::from(*byte)).sum();
    tar[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    tar.extend_from_slice(Layer::new().file(path, 0o644, "timed").to_tar().bytes());
    LayerTar::from(tar)
}

/// Returns a layer with one file whose name is `name`, which need not be UTF-8.
fn raw(name: &[u8], content: &[u8]) -> LayerTar {
    let kind = testkit::images::Kind::File(content.to_vec());
    let (uid, gid, mtime) = (0, 0, 1_650_000_000);
    let (name, xattrs) = (name.to_vec(), Vec::new());
    let entry = testkit::images::Entry { name, kind, mode: 0o644, uid, gid, mtime, xattrs };
    Layer::new().entry(entry).to_tar()
}
