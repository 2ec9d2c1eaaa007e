//! `boxlaunch images`: lists the boxes of the store.

use std::time::UNIX_EPOCH;

use box_cache::{Base, Label, Owner, StoredBox, StoredBoxes};
use box_digest::Digest;
use box_find::FindError;
use box_layout::{Documents, Places};
use boxlaunch::boxes::since_epoch;
use safe_text::{readable, shown};
use serde::Serialize;

use super::error::Failure;
use super::list::ago;
use super::prune;
use super::stored::PROGRAM;
use super::terminal::{aligned, is_quiet, json_line, print};
use cli_common::store::StoreOption;

/// Lists the boxes of the store that have names, which `run` starts by name.
///
/// `boxbuild build` stores a box under the name of its Boxfile; `pull` and `run` fetch one from a registry. SIZE is the size
/// of all files of the box. Boxes share equal layers, so together they take less than the sum.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch images
  boxlaunch images --all --sizes      with the space that removing each box would free
  boxlaunch images --json | jq -r '.images[] | .name // .reference'")]
pub(crate) struct ImagesArgs {
    /// Also list boxes that have no name any more: `run sha256:...` starts them.
    #[arg(short, long)]
    all: bool,
    /// Show how much of each box no other box shares (OWN), which removing it would free, and how much is shared.
    #[arg(long)]
    sizes: bool,
    #[command(flatten)]
    store: StoreOption,
    /// Print one JSON object: images, each with name, reference, box, boxfile, since_ms and bytes; with --sizes also
    /// own_bytes and shared_bytes, unless the box is in the store of $BOXBUILD_STORE_RO.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A box in the list.
#[derive(Debug, Serialize)]
struct Image {
    name: Option<String>,
    /// The reference by which the box was pulled, such as `ghcr.io/acme/hello:v1`. `None` for a box with a name.
    reference: Option<String>,
    #[serde(rename = "box")]
    digest: Digest,
    /// The path of the Boxfile whose build gave the box its name.
    boxfile: Option<String>,
    /// When the box got its name or was put into the store, in milliseconds since 1970.
    since_ms: u64,
    /// The size of all files of the box, in bytes. `None` if the documents of the box cannot be read.
    bytes: Option<u64>,
    #[serde(flatten)]
    sizes: Option<Sizes>,
}

/// The bytes that only this box uses, and the bytes that it shares with others.
#[derive(Debug, Clone, Copy, Serialize)]
struct Sizes {
    own_bytes: u64,
    shared_bytes: u64,
}

pub(crate) fn images(args: &ImagesArgs) -> Result<u8, Failure> {
    let root = args.store.root(&PROGRAM)?;
    let stores = args.store.stores(&PROGRAM);
    let base = stores.base()?;
    let boxes = stores.boxes(&root).map_err(FindError::from)?;
    let boxes = boxes.with_base(base);
    let mut all = boxes.all().map_err(FindError::from)?;
    all.retain(|it| args.all || it.label.is_some());
    let mut images: Vec<_> = all.into_iter().map(|it| image(&boxes, it)).collect();
    drop(boxes);
    if args.sizes {
        let sizes = prune::sizes(&root)?;
        for image in &mut images {
            let size = sizes.get(&image.digest);
            image.sizes = size.map(|it| Sizes { own_bytes: it.own, shared_bytes: it.shared });
        }
    }
    print(&if args.json {
        json_line(&serde_json::json!({ "images": images }))?
    } else if is_quiet() {
        images.iter().map(|it| called(it) + "\n").collect()
    } else {
        table(&images, args.sizes, since_epoch())
    })?;
    Ok(0)
}

fn image(boxes: &StoredBoxes, StoredBox { digest, since, label, owner }: StoredBox) -> Image {
    let places = Places::new(boxes.directory(&digest), Some(&boxes.blobs()));
    let places = places.with_base(boxes.base().map(Base::blobs));
    let bytes = Documents::read(places).ok().and_then(|it| {
        let mut sizes = it.manifest.blobs().into_iter().map(|it| it.size);
        sizes.try_fold(0, u64::checked_add)
    });
    let since = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let since_ms = u64::try_from(since).unwrap_or(u64::MAX);
    let (name, reference) = match label {
        Some(Label::Name(name)) => (Some(name), None),
        Some(Label::Pulled(reference)) => (None, Some(reference)),
        None => (None, None),
    };
    let boxfile = owner.as_ref().and_then(Owner::boxfile).map(|it| it.display().to_string());
    Image { name, reference, digest, boxfile, since_ms, bytes, sizes: None }
}

/// Returns the name of a box, or the reference by which it was pulled.
fn label(image: &Image) -> Option<&str> {
    image.name.as_deref().or(image.reference.as_deref())
}

/// Returns the argument of `run` that starts this box.
fn called(image: &Image) -> String {
    label(image).map_or_else(|| image.digest.to_string(), str::to_owned)
}

/// Returns the table of boxes.
fn table(images: &[Image], has_sizes: bool, now: u64) -> String {
    if has_sizes {
        return table_of_sizes(images, now);
    }
    let head = ["NAME", "BOX", "ADDED", "SIZE", "BOXFILE"].map(str::to_owned);
    let row = |image: &Image| {
        let boxfile = image.boxfile.as_deref().map(shown);
        [
            label(image).unwrap_or("-").to_owned(),
            shortened(image),
            format!("{} ago", ago(now.saturating_sub(image.since_ms))),
            size(image),
            boxfile.unwrap_or_else(|| "-".to_owned()),
        ]
    };
    aligned(&std::iter::once(head).chain(images.iter().map(row)).collect::<Vec<_>>())
}

/// Returns the table of boxes with their unshared and shared sizes.
fn table_of_sizes(images: &[Image], now: u64) -> String {
    let head = ["NAME", "BOX", "ADDED", "SIZE", "OWN", "SHARED"].map(str::to_owned);
    let row = |image: &Image| {
        let [own, shared] = sizes(image, images);
        let since = format!("{} ago", ago(now.saturating_sub(image.since_ms)));
        [label(image).unwrap_or("-").to_owned(), shortened(image), since, size(image), own, shared]
    };
    aligned(&std::iter::once(head).chain(images.iter().map(row)).collect::<Vec<_>>())
}

/// Returns the size of all files of a box.
fn size(image: &Image) -> String {
    image.bytes.map_or_else(|| "incomplete".to_owned(), readable)
}

/// Returns the columns OWN and SHARED. If a box has several names, only its first row shows the sizes, because a reader may add
/// up the rows. A box of the read-only store for all users has no sizes, because this user cannot free its bytes.
fn sizes(image: &Image, all: &[Image]) -> [String; 2] {
    let first = all.iter().find(|it| it.digest == image.digest).unwrap_or(image);
    match image.sizes {
        _ if !std::ptr::eq(first, image) => [format!("as {}", called(first)), String::new()],
        Some(sizes) => [sizes.own_bytes, sizes.shared_bytes].map(readable),
        None => ["of the host".to_owned(), "-".to_owned()],
    }
}

/// Returns the digest of the box, shortened if the box has a name. Without a name, `run` needs the whole digest.
fn shortened(image: &Image) -> String {
    label(image).map_or(image.digest.to_string(), |_| format!("{}…", &image.digest.hex()[..12]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_what_starts_a_box_and_where_it_is_from() {
        let image = |name: Option<&str>, bytes| Image {
            name: name.map(str::to_owned),
            reference: None,
            digest: Digest::from_bytes([7; 32]),
            boxfile: name.map(|_| "/work/hello/Boxfile".to_owned()),
            since_ms: 1000,
            bytes,
            sizes: None,
        };
        let reference = Some("ghcr.io/acme/hello:v1".to_owned());
        let pulled = Image { reference, ..image(None, Some(1 << 20)) };
        let images = [image(Some("hello"), Some(5 << 20)), image(None, None), pulled];
        insta::assert_snapshot!(table(&images, false, 121_000), @"
        NAME                    BOX                                                                       ADDED           SIZE         BOXFILE
        hello                   070707070707…                                                             2 minutes ago   5.0 MiB      /work/hello/Boxfile
        -                       sha256:0707070707070707070707070707070707070707070707070707070707070707   2 minutes ago   incomplete   -
        ghcr.io/acme/hello:v1   070707070707…                                                             2 minutes ago   1.0 MiB      -
        ");
        assert_eq!(called(&images[1]), images[1].digest.to_string());
        let sizes = Some(Sizes { own_bytes: 4096, shared_bytes: 5 << 20 });
        let sized = |name| Image { sizes, ..image(Some(name), Some(5 << 20)) };
        let machine = Image { digest: Digest::from_bytes([8; 32]), ..image(Some("other"), None) };
        let images = [sized("hello"), sized("hello2"), machine];
        insta::assert_snapshot!(table(&images, true, 121_000), @"
        NAME     BOX             ADDED           SIZE         OWN           SHARED
        hello    070707070707…   2 minutes ago   5.0 MiB      4.0 KiB       5.0 MiB
        hello2   070707070707…   2 minutes ago   5.0 MiB      as hello
        other    080808080808…   2 minutes ago   incomplete   of the host   -
        ");
    }
}
