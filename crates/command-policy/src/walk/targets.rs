//! The files that commands write.

use crate::call::Call;
use crate::path::Path;
use crate::rules::How;
use crate::shell::Word;

/// Returns the files that a command writes, except by redirections.
pub(super) fn targets(call: Call<'_>) -> Vec<(Path, How)> {
    let operands = || call.operands().map(|it| it.text.as_str());
    match call.name {
        "tee" | "truncate" | "sponge" => direct(call, operands()),
        "dd" => direct(call, call.args.iter().filter_map(|it| it.text.strip_prefix("of="))),
        "sed" | "gsed" if call.has("i", &["in-place"]) => {
            let has_script = call.has("ef", &["expression", "file"]);
            direct(call, operands().skip(usize::from(!has_script)))
        }
        "perl" if crate::rules::edits_in_place(call) => direct(call, operands()),
        "curl" => direct(call, values(call.args, &["-o", "--output"])),
        "wget" => direct(call, values(call.args, &["-O", "--output-document"])),
        "find" | "gfind" | "bfs" => {
            direct(call, values(call.args, &["-fprint", "-fprint0", "-fprintf", "-fls"]))
        }
        "cp" | "mv" | "install" | "ln" | "rsync" => copies(call),
        "rm" | "unlink" | "rmdir" | "shred" | "touch" | "mkdir" | "chmod" | "chown" => {
            operands().map(|it| (call.path(it), How::Indirect)).collect()
        }
        _ => Vec::new(),
    }
}

fn direct<'a>(call: Call<'_>, words: impl Iterator<Item = &'a str>) -> Vec<(Path, How)> {
    words.map(|it| (call.path(it), How::Direct)).collect()
}

/// Returns the values of options in the words after them.
fn values<'a>(args: &'a [Word], options: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let pairs = args.windows(2).filter(move |it| options.contains(&it[0].known.as_str()));
    pairs.map(|it| it[1].text.as_str())
}

/// Returns the destination of a copy, and the files that it makes if it is a directory. A file that is moved is written, too.
fn copies(call: Call<'_>) -> Vec<(Path, How)> {
    let operands: Vec<Path> = call.operands().map(|it| call.path(&it.text)).collect();
    let same = call.args.iter().find_map(|it| it.text.strip_prefix("--target-directory="));
    let next = values(call.args, &["-t", "--target-directory"]).next();
    let into = same.or(next).map(|it| call.path(it));
    let (sources, destination) = match (into, operands.split_last()) {
        (Some(into), _) => (operands.as_slice(), into),
        (None, Some((last, sources))) => (sources, last.clone()),
        (None, None) => return Vec::new(),
    };
    let made = sources.iter().filter_map(|it| it.last()).map(|it| destination.join(it));
    let mut all: Vec<Path> = made.collect();
    if call.name == "mv" {
        all.extend_from_slice(sources);
    }
    all.push(destination);
    all.into_iter().map(|it| (it, How::Indirect)).collect()
}
