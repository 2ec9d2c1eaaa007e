//! Soaks a share with very many files, in a box that lists, reads, changes and watches them.

use std::time::Duration;

use super::{Outcome, run_script};

/// The number of files in one directory.
const EACH: u32 = 1000;
/// The timeout in real time. 100,000 files take an hour.
const MAX_TIME: Duration = Duration::from_secs(3 * 60 * 60);
/// The virtual host's memory, in MiB. The host's files are in it, too.
const MEMORY: u32 = 5000;

/// Creates the files, uses them in the box, and compares their content in the box and on the host. Prints the virtual time at
/// each step, in seconds.
const SCRIPT: &str = r#"
echo 4000000 >/proc/sys/fs/file-max; mkdir -p /tmp/many/new; cd /tmp
each() { i=0; while [ $i -lt $dirs ]; do j=0; while [ $j -lt 1000 ]; do "$@" $i $j; j=$((j+1)); done; i=$((i+1)); done; }
i=0; while [ $i -lt $dirs ]; do mkdir many/$i; i=$((i+1)); done
name() { echo $1.$2; }; make() { echo $1.$2 >many/$1/$2; }
each make; each name | sort | md5sum >expected
boxlaunch run -q --in business -v ./many:/w:rw -v /tools:/t /deaf -- sh -c '
t() { echo "$1 $(cut -d" " -f1 /proc/uptime)" >&2; }
t start; ls -lR /w | grep -c "^-"; t listed; find /w -type f -exec cat {} + | sort | md5sum; t read
i=0; while [ $i -lt $0 ]; do j=0; while [ $j -lt 1000 ]; do echo more >>/w/$i/$j; j=$((j+1)); done; i=$((i+1)); done; t appended
/t/watcher /w/new >/tmp/heard & sleep 1
i=0; while [ $i -lt $1 ]; do : >/w/new/$i; i=$((i+1)); done; : >/w/new/end; wait; cat /tmp/heard; t watched' $dirs $all >said || exit 1
{ echo $all; cat expected; echo watching; echo $all made; echo $all written; } | diff - said || exit 1
more() { echo more; }
{ each name; each more; } | sort | md5sum >expected; cat many/[0-9]*/* | sort | md5sum | diff expected - || exit 1
[ $(find many/new -type f | wc -l) = $((all + 1)) ]"#;

pub(super) fn run(count: u32) -> Outcome {
    let dirs = count.div_ceil(EACH);
    let script = format!("dirs={dirs} all={}\n{SCRIPT}", dirs * EACH);
    run_script(&script, MEMORY, MAX_TIME, |host, programs| {
        host.file(&programs.watcher, "/tools/watcher")
    })
}
