//! `boxlaunch images`: the boxes of the store.

use std::time::UNIX_EPOCH;

use box_cache::{StoredBox, StoredBoxes};
use box_digest::Digest;
use box_find::FindError;
use box_image::ErrorCode;
use box_image::text::{readable, shown};
use box_layout::{Documents, Places};
use boxlaunch::boxes::since_epoch;
use serde::Serialize;

use super::error::CommandError;
use super::found::StoreOption;
use super::list::ago;
use super::paths;
use super::terminal::{aligned, is_quiet, json_line, print};

/// Lists the boxes of the store that have names: what `run` starts by name.
///
/// `boxbuild build` puts a box there and gives it the name of its Boxfile. SIZE is the size of all its files; boxes with the same
/// layers share those, so that together they take less.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch images
  boxlaunch images --json | jq '.images[] | {name, box}'")]
pub(crate) struct ImagesArgs {
    /// List the boxes that have no name any more, too: `run sha256:...` starts them.
    #[arg(short, long)]
    all: bool,
    #[command(flatten)]
    store: StoreOption,
    /// Print one JSON object: images, each with name, box, boxfile, since_ms and bytes.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is listed of a box.
#[derive(Debug, Serialize)]
struct Image {
    name: Option<String>,
    #[serde(rename = "box")]
    digest: Digest,
    /// The Boxfile that the name belongs to.
    boxfile: Option<String>,
    /// When it got its name, or was put into the store: milliseconds since 1970.
    since_ms: u64,
    /// The size of all its files; `None` if its documents cannot be read.
    bytes: Option<u64>,
}

pub(crate) fn images(args: &ImagesArgs) -> Result<u8, CommandError> {
    let root = paths::store(args.store.store.as_deref()).ok_or_else(|| {
        let help = "name one with --store, or set HOME";
        CommandError::new((ErrorCode::StoreInvalid, help), "no directory for the store")
    })?;
    let boxes = StoredBoxes::open(&root).map_err(FindError::from)?;
    let mut all = boxes.all().map_err(FindError::from)?;
    all.retain(|it| args.all || it.name.is_some());
    let images: Vec<_> = all.into_iter().map(|it| image(&boxes, it)).collect();
    print(&if args.json {
        json_line(&serde_json::json!({ "images": images }))?
    } else if is_quiet() {
        images.iter().map(|it| called(it) + "\n").collect()
    } else {
        table(&images, since_epoch())
    })?;
    Ok(0)
}

fn image(boxes: &StoredBoxes, StoredBox { digest, since, name }: StoredBox) -> Image {
    let places = Places::new(boxes.directory(&digest), Some(&boxes.blobs()));
    let bytes = Documents::read(places).ok().and_then(|it| {
        let mut sizes = it.manifest.blobs().into_iter().map(|it| it.size);
        sizes.try_fold(0, u64::checked_add)
    });
    let since = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let since_ms = u64::try_from(since).unwrap_or(u64::MAX);
    let (name, boxfile) = name.map(|(name, file)| (name, file.display().to_string())).unzip();
    Image { name, digest, boxfile, since_ms, bytes }
}

/// Returns what `run` takes for a box.
fn called(image: &Image) -> String {
    image.name.clone().unwrap_or_else(|| image.digest.to_string())
}

/// Returns what a person reads of boxes.
fn table(images: &[Image], now: u64) -> String {
    let head = ["NAME", "BOX", "BUILT", "SIZE", "BOXFILE"].map(str::to_owned);
    let row = |image: &Image| {
        let boxfile = image.boxfile.as_deref().map(shown);
        [
            image.name.clone().unwrap_or_else(|| "-".to_owned()),
            // The name is enough to start it; without one, the whole digest is needed.
            image
                .name
                .as_ref()
                .map_or(image.digest.to_string(), |_| image.digest.hex()[..12].to_owned()),
            format!("{} ago", ago(now.saturating_sub(image.since_ms))),
            image.bytes.map_or_else(|| "damaged".to_owned(), readable),
            boxfile.unwrap_or_else(|| "-".to_owned()),
        ]
    };
    aligned(&std::iter::once(head).chain(images.iter().map(row)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_what_starts_a_box_and_where_it_is_from() {
        let image = |name: Option<&str>, bytes| Image {
            name: name.map(str::to_owned),
            digest: Digest::from_bytes([7; 32]),
            boxfile: name.map(|_| "/work/hello/Boxfile".to_owned()),
            since_ms: 1000,
            bytes,
        };
        let images = [image(Some("hello"), Some(5 << 20)), image(None, None)];
        insta::assert_snapshot!(table(&images, 121_000), @"
        NAME    BOX                                                                       BUILT           SIZE      BOXFILE
        hello   070707070707                                                              2 minutes ago   5.0 MiB   /work/hello/Boxfile
        -       sha256:0707070707070707070707070707070707070707070707070707070707070707   2 minutes ago   damaged   -
        ");
        assert_eq!(called(&images[1]), images[1].digest.to_string());
    }
}
