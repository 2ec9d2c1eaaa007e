//! Tests that build small images that would need much memory and disk, with `boxbuild` and sixteen threads. Each checks
//! the memory of the build and what it leaves on the disk.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use box_digest::{Digest, Hasher, Sha256};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use testbed::promises::{HOSTILE_BUILD_DISK, HOSTILE_BUILD_MEMORY};
use testbed::{Artefacts, Workspace};
use testkit::small_kernel;

use crate::bombs::header;
use crate::layout::{GZIP, Layout, ZSTD};

/// A layer and its diff_id.
pub(crate) type Layer = (Value, Digest);

/// The outcome of a command of boxbuild.
pub(crate) struct Built {
    /// The exit code.
    pub(crate) code: i32,
    /// The messages on stderr.
    pub(crate) output: String,
    /// The size of the store after the command, in bytes.
    stored: u64,
}

/// Builds a box of an image with these layers. Checks the limits of memory and disk, whether or not the build succeeds.
fn build(name: &str, layers: impl FnOnce(&Layout) -> Vec<Layer>) -> Built {
    let work = tempfile::Builder::new().prefix("hostile-").tempdir().unwrap();
    let layout = Layout::new(&work.path().join("image"));
    let first = program(&layout);
    let layers: Vec<_> = [first].into_iter().chain(layers(&layout)).collect();
    layout.index(&[layout.image(&layers)]);
    let boxfile = "box \"bomb\"\nagent {\n    image \"oci:image\"\n    entrypoint \"/bin/sh\"\n}\n";
    fs::write(work.path().join("Boxfile"), boxfile).unwrap();
    build_in(name, work.path()).1
}

/// Builds the box of the checkout `work`, and returns the peak memory in KiB. Checks the limits of memory and disk, whether
/// or not the build succeeds.
pub(crate) fn build_in(name: &str, work: &Path) -> (u64, Built) {
    let tools = Artefacts::build(&Workspace::find()).unwrap();
    let mut command = Command::new(&tools.boxbuild);
    command.args(["build", "--jobs", "16", "--store", "store", "--init"]).arg(&tools.box_init);
    command.arg("--kernel").arg(small_kernel::file(&Workspace::find().target("")).unwrap());
    let (peak, built) = run(&mut command, work);
    println!("{name}: {peak} KiB, {} bytes in the store: {:.1000}", built.stored, built.output);
    HOSTILE_BUILD_MEMORY.check(peak as f64 / 1024.0);
    HOSTILE_BUILD_DISK.check(built.stored as f64 / f64::from(1 << 30));
    (peak, built)
}

/// Makes a layer with the box's only program, `/bin/sh`.
pub(crate) fn program(layout: &Layout) -> Layer {
    let init = fs::read(&Artefacts::build(&Workspace::find()).unwrap().box_init).unwrap();
    let mut head = header(b'0', "bin/sh", "", format!("{:011o}", init.len()));
    // Mode 0755 instead of 0644. The checksum is computed again.
    head[100..107].copy_from_slice(b"0000755");
    head[148..156].fill(b' ');
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let padding = init.len().next_multiple_of(512) - init.len();
    stream(layout, |out| {
        out.write_all(&head)?;
        out.write_all(&init)?;
        out.write_all(&vec![0; padding])?;
        out.write_all(&END)
    })
}

/// Runs a command of boxbuild in the directory `work`, and returns its peak memory in KiB.
pub(crate) fn run(command: &mut Command, work: &Path) -> (u64, Built) {
    command.current_dir(work).env_clear();
    let log = work.join("log");
    command.stdout(Stdio::null()).stderr(fs::File::create(&log).unwrap());
    let mut child = command.spawn().unwrap();
    let mut peak = 0;
    let status = loop {
        peak = peak.max(testbed::program::peak_of(child.id()));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        sleep(Duration::from_millis(2));
    };
    assert!(peak > 0, "the memory of the command was not seen");
    let store = work.join("store");
    let stored = if store.exists() { size(&store) } else { 0 };
    let output = fs::read_to_string(log).unwrap();
    (peak, Built { code: status.code().unwrap(), output, stored })
}

/// Returns the size of all files below a directory, in bytes.
fn size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let sizes = entries.map(|entry| match entry.file_type().unwrap().is_dir() {
        true => size(&entry.path()),
        false => entry.metadata().unwrap().len(),
    });
    sizes.sum()
}

/// Makes a gzip layer whose content `fill` streams.
pub(crate) fn stream(
    layout: &Layout,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Layer {
    let mut diff_id = None;
    let blob = layout.stream(GZIP, |out| {
        let encoder = GzEncoder::new(out, Compression::fast());
        let mut plain = Plain { out: encoder, hasher: Hasher::default() };
        fill(&mut plain)?;
        diff_id = Some(plain.hasher.digest());
        plain.out.finish().map(drop)
    });
    (blob, diff_id.unwrap())
}

/// Hashes the plain bytes on their way to a compressor.
struct Plain<W> {
    out: W,
    hasher: Hasher<Sha256>,
}

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns the header of an entry without content.
pub(crate) fn empty(kind: u8, name: &str, link: &str) -> [u8; 512] {
    header(kind, name, link, "00000000000")
}

/// Writes a tar member of `mebibytes` MiB of zeros.
fn zeros(out: &mut dyn Write, name: &str, mebibytes: usize) -> io::Result<()> {
    out.write_all(&header(b'0', name, "", format!("{:011o}", mebibytes << 20)))?;
    let one = vec![0; 1 << 20];
    (0..mebibytes).try_for_each(|_| out.write_all(&one))
}

/// Returns a pax extended header with one record.
pub(crate) fn extended(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    let length = (1..6).map(|digits| rest.len() + digits);
    let length = length.into_iter().find(|all| all.to_string().len() + rest.len() == *all);
    let body = format!("{}{rest}", length.unwrap()).into_bytes();
    let mut member = header(b'x', "x", "", format!("{:011o}", body.len())).to_vec();
    member.extend(body);
    member.resize(member.len().next_multiple_of(512), 0);
    member
}

/// The end of an archive.
pub(crate) const END: [u8; 1024] = [0; 1024];

/// Makes a zstd layer of one frame with a window of 128 MiB. It decompresses to one file of `mebibytes` MiB of `byte`, in
/// blocks that repeat one byte for 128 KiB (RFC 8878, 3.1.1.2).
fn wide(layout: &Layout, byte: u8, mebibytes: usize) -> Layer {
    let head = header(b'0', &format!("f{byte}"), "", format!("{:011o}", mebibytes << 20));
    let piece = vec![byte; 128 << 10];
    let mut frame = b"\x28\xb5\x2f\xfd\x00\x88".to_vec();
    let mut hasher = Hasher::<Sha256>::default();
    let mut block = |kind: u32, unpacked: &[u8], bytes: &[u8]| {
        let size = u32::try_from(unpacked.len()).unwrap();
        frame.extend(&((size << 3) | kind).to_le_bytes()[..3]);
        frame.extend(bytes);
        hasher.update(unpacked);
    };
    let (raw, repeated, last) = (0, 2, 1);
    block(raw, &head, &head);
    (0..mebibytes * 8).for_each(|_| block(repeated, &piece, &[byte]));
    block(raw | last, &END, &END);
    (layout.blob(ZSTD, &frame), hasher.digest())
}

#[test]
fn sixteen_windows_of_zstd() {
    let built = build("windows", |layout| (0..16).map(|byte| wide(layout, byte, 40)).collect());
    assert_eq!(built.code, 0, "{}", built.output);
}

#[test]
fn a_million_directories_that_no_entry_names() {
    let built = build("implied", |layout| {
        let deep = "a/".repeat(249);
        vec![stream(layout, |out| {
            for number in 0..4000 {
                out.write_all(&extended("path", &format!("{number}/{deep}f")))?;
                out.write_all(&empty(b'0', "f", ""))?;
            }
            out.write_all(&END)
        })]
    });
    assert_refused(&built, "bytes of memory for their entries and directories");
}

#[test]
fn directories_at_the_ends_of_links() {
    let built = build("links", |layout| {
        // A file below each link creates the 240 directories of the link's target.
        let deep = "d/".repeat(240);
        vec![stream(layout, |out| {
            for number in 0..4000 {
                out.write_all(&extended("linkpath", &format!("{number}/{deep}")))?;
                out.write_all(&empty(b'2', &format!("l{number}"), "x"))?;
                out.write_all(&empty(b'0', &format!("l{number}/f"), ""))?;
            }
            out.write_all(&END)
        })]
    });
    assert_refused(&built, "bytes of memory for their entries and directories");
}

#[test]
fn attributes_on_every_file() {
    let built = build("attributes", |layout| {
        vec![stream(layout, |out| {
            for number in 0..380_000 {
                out.write_all(&extended("SCHILY.xattr.user.a", &number.to_string()))?;
                out.write_all(&empty(b'0', "f", ""))?;
            }
            out.write_all(&END)
        })]
    });
    assert_refused(&built, "bytes of memory for their entries and directories");
}

#[test]
fn nearly_as_many_files_as_a_build_may_have() {
    let built = build("files", |layout| {
        let one = |number: usize| {
            stream(layout, |out| {
                for file in 0..300_000 {
                    out.write_all(&empty(b'0', &format!("{number}{file}"), ""))?;
                }
                out.write_all(&END)
            })
        };
        (1..=3).map(one).collect()
    });
    assert_eq!(built.code, 0, "{}", built.output);
}

#[test]
fn layers_of_zeros_that_are_too_much_together() {
    let built = build("zeros", |layout| {
        let one = |number: usize| {
            stream(layout, |out| {
                zeros(out, &format!("z{number}"), 120)?;
                out.write_all(&END)
            })
        };
        (0..8).map(one).collect()
    });
    assert_refused(&built, "bytes when they are uncompressed");
}

#[test]
fn a_file_that_the_builder_reads_is_too_large() {
    let built = build("passwd", |layout| {
        vec![stream(layout, |out| {
            zeros(out, "etc/passwd", 100)?;
            out.write_all(&END)
        })]
    });
    assert_refused(&built, "cannot read /etc/passwd");
}

#[test]
fn layers_of_opaque_directories() {
    let built = build("opaque", |layout| {
        let one = |number: usize| {
            stream(layout, |out| {
                for directory in 0..1000 {
                    out.write_all(&empty(b'5', &format!("d{directory}/"), ""))?;
                    out.write_all(&empty(b'0', &format!("d{directory}/.wh..wh..opq"), ""))?;
                }
                // Padding makes each layer different.
                out.write_all(&vec![0; 1024 + 512 * number])
            })
        };
        (0..100).map(one).collect()
    });
    assert_eq!(built.code, 0, "{}", built.output);
}

/// Checks that the image was refused for this reason, and that the build has removed what it had decoded.
pub(crate) fn assert_refused(built: &Built, reason: &str) {
    assert_eq!(built.code, 1, "{}", built.output);
    assert!(built.output.contains(reason), "{}", built.output);
    assert!(built.stored < 1 << 20, "{} bytes are left", built.stored);
}
