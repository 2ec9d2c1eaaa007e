//! Tests of pulls onto a disk that is too small, or that becomes full.

use std::process::Command;
use std::time::Duration;

use test_server::registry::Rules;

use crate::host::Host;

/// Runs a script in a mount namespace in which the store `small` is a tmpfs of `mebibytes` MiB. In the script, `"$@"` pulls,
/// and `$0` is the store. Returns the script's output.
fn on_a_small_disk(host: &Host, mebibytes: u32, script: &str) -> String {
    let store = host.path("small");
    std::fs::create_dir_all(&store).unwrap();
    let pull = host.pull("small");
    let mount =
        format!("mount -t tmpfs -o size={mebibytes}m,mode=0700 none \"$0\" && {{ {script}; }}");
    let is_root =
        std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0;
    let mut command = Command::new("unshare");
    command.args(if is_root { &["--mount"][..] } else { &["--mount", "--map-root-user"] });
    command.args(["sh", "-c", &mount]).arg(&store).arg(pull.get_program()).args(pull.get_args());
    for (name, value) in pull.get_envs() {
        command.env(name, value.unwrap());
    }
    let output = command.output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    printed
}

/// Returns a segment of `mebibytes` MiB that compresses well.
fn zeros(mebibytes: usize) -> Vec<u8> {
    vec![0; mebibytes << 20]
}

#[test]
fn a_box_that_has_no_room_is_refused_before_a_byte_is_fetched() {
    let host = Host::of(Rules::default(), vec![zeros(24)]);
    host.pushed();
    let printed = on_a_small_disk(&host, 16, "\"$@\"; test $? = 1 && ls \"$0\"/blobs \"$0\"/tmp");
    assert!(printed.contains("disk-full"), "{printed}");
    // A twentieth of the 16 MiB stays free, and the store's own files use some.
    assert!(printed.contains("has room for 15.") && printed.contains("are needed"), "{printed}");
    let layers = host.layers();
    let fetched = host.fetched();
    assert!(layers.iter().all(|it| !fetched.contains(&it.1)), "{fetched:?}");
    assert!(!printed.contains(&layers[0].0.hex()));
    host.pulled("large");
}

#[test]
fn a_disk_that_becomes_full_ends_a_pull_and_the_next_one_goes_on() {
    let noise = (0_u32..1 << 20).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes());
    let host = Host::of(Rules::default(), vec![noise.collect(), zeros(1)]);
    host.pushed();
    // The large blob is still being transferred, and the others are complete.
    host.registry.with(|held| (held.slow, held.slow_from) = (Duration::from_secs(2), 1 << 20));
    let script = "(sleep 1; head -c 12m /dev/zero >\"$0\"/filler) & \"$@\"; echo status $?; wait; \
                  ls \"$0\"/tmp | wc -l; sha256sum \"$0\"/blobs/* | awk '{ n=split($2, it, \"/\"); print it[n] == $1 }'; \
                  echo again; rm \"$0\"/filler; \"$@\" && sha256sum \"$0\"/blobs/*";
    let printed = on_a_small_disk(&host, 12, script);
    let (first, again) = printed.split_once("again\n").expect(&printed);
    assert!(first.contains("status 1\n0\n") && !first.contains("\n0\n0\n"), "{printed}");
    assert!(printed.contains("disk-full"), "{printed}");
    let wrong = again.lines().filter(|it| it.contains("/blobs/")).find(|line| {
        let (digest, path) = line.split_once("  ").unwrap();
        !path.ends_with(digest)
    });
    assert_eq!(wrong, None, "{printed}");
    assert_eq!(again.matches("/blobs/").count(), host.layers().len() + 1, "{printed}");
}
