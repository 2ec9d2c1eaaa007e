//! Tests of pushes and pulls that are killed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use test_server::registry::Rules;

use crate::host::{Host, NAME, TAG, check, compare};
use crate::kinds::leftovers;

/// Returns how many commands must be killed before their end: 24, or `BOXBUILD_KILLS` for a soak.
fn kills() -> u32 {
    std::env::var("BOXBUILD_KILLS").map_or(24, |it| it.parse().unwrap())
}

/// Runs a command and kills it after `percent` of `length`. Returns whether it was killed before its end.
fn kill(mut command: Command, length: Duration, percent: u32) -> bool {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    sleep(length * percent / 100);
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert!(status.signal() == Some(9) || status.success(), "{status:?}");
    status.signal() == Some(9)
}

/// The kills of a test. Their moments are spread over the length of the command, and early and late ones alternate.
struct Kills {
    length: Duration,
    rounds: u32,
    hits: u32,
    /// The number of kills during the transfer.
    partial: u32,
}

impl Kills {
    /// Runs a command to its end, to measure its length.
    fn of(mut command: Command) -> Self {
        let started = Instant::now();
        assert!(command.stdout(Stdio::null()).status().unwrap().success());
        Self { length: started.elapsed(), rounds: 0, hits: 0, partial: 0 }
    }

    /// Returns whether enough commands were killed, more than an eighth of them during the transfer.
    fn are_over(&self) -> bool {
        let Self { rounds, hits, partial, .. } = *self;
        assert!(rounds < 40 * kills(), "{partial} of {hits} kills in the midst of {rounds} runs");
        hits >= kills() && partial > kills() / 8
    }

    fn kill(&mut self, command: Command) -> bool {
        self.rounds += 1;
        let killed = kill(command, self.length, self.rounds * 37 % 100);
        self.hits += u32::from(killed);
        killed
    }

    /// Records whether the kill was during the transfer. Adjusts the length if the kill was too late or too early, because the
    /// host's speed can change.
    fn note(&mut self, killed: bool, has_begun: bool) {
        self.partial += u32::from(killed && has_begun);
        self.length = match (killed, has_begun) {
            (false, _) => self.length * 19 / 20,
            (true, false) => self.length * 21 / 20,
            (true, true) => self.length,
        };
    }
}

#[test]
fn a_killed_pull_loses_nothing_and_the_next_one_goes_on() {
    let host = Host::with_box(Rules::default());
    host.registry.with(|held| held.slow = Duration::from_millis(40));
    let mut kills = Kills::of(host.pull("measured"));
    let (store, layers) = (host.path("store"), host.layers());
    let mut fetched = host.fetched().len();
    while !kills.are_over() {
        let blobs = store.join("blobs");
        let complete: BTreeSet<_> =
            layers.iter().filter(|it| blobs.join(it.0.hex()).exists()).collect();
        let killed = kills.kill(host.pull("store"));
        let now = check(&store);
        let asked = host.fetched().split_off(fetched);
        fetched += asked.len();
        let again = complete.iter().find(|it| asked.contains(&it.1));
        assert_eq!(again, None, "what was complete is not fetched again");
        kills.note(killed, now > 0);
        // A pull creates the box's directory only when all blobs are complete.
        let boxes = fs::read_dir(store.join("boxes")).map_or(0, Iterator::count);
        assert!(boxes == 0 || now == layers.len() + 1, "a box of {now} blobs");
        if !killed || boxes > 0 {
            compare(&host.files, &store);
            fs::remove_dir_all(&store).unwrap();
        }
    }
    host.pulled("store");
    assert!(leftovers(&host, "store").is_empty());
}

#[test]
fn a_killed_push_loses_nothing_and_the_next_one_goes_on() {
    let host = Host::new(Rules::default());
    let mut kills = Kills::of(host.push(&host.files));
    let clear = || host.registry.with(|held| (held.blobs.clear(), held.manifests.clear()));
    clear();
    let mut asked = host.registry.lines().len();
    while !kills.are_over() {
        let complete: Vec<_> = host
            .registry
            .with(|held| held.blobs.keys().map(|it| it.1.replace(':', "%3A")).collect());
        let killed = kills.kill(host.push(&host.files));
        // The registry may complete a request shortly after its client was killed.
        sleep(Duration::from_millis(20));
        let lines = host.registry.lines().split_off(asked);
        asked += lines.len();
        let again = lines
            .iter()
            .find(|it| it.starts_with("PUT") && complete.iter().any(|blob| it.contains(blob)));
        assert_eq!(again, None, "what is there is not sent again");
        let (blobs, tag) = host.registry.with(|held| {
            (held.blobs.len(), held.manifests.contains_key(&(NAME.to_owned(), TAG.to_owned())))
        });
        kills.note(killed && !tag, blobs > 0);
        if tag {
            host.pulled("store");
            fs::remove_dir_all(host.path("store")).unwrap();
            asked = host.registry.lines().len();
            clear();
        }
    }
    host.pushed();
    host.pulled("store");
    // A push compresses into unnamed temporary files, so a kill leaves none.
    let rest = fs::read_dir(host.dir.path()).unwrap().map(|it| it.unwrap().file_name());
    let rest: Vec<_> = rest
        .filter(|it| {
            !["store", "measured", "registries.toml", "none"].contains(&it.to_str().unwrap())
        })
        .collect();
    assert!(rest.is_empty(), "{rest:?}");
}
