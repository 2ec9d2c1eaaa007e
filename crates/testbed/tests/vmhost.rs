//! Boots the virtual host, and checks its input, its output and its clock.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::PathBuf;
    use std::time::Duration;

    use testbed::boots::{Origin, Run};
    use testbed::prerequisites::{Package, host_kernel, packages, with_busybox, with_program};
    use testbed::{Artefacts, Cache, KitError, VirtualHost, Workspace};
    use virtual_host::HostError;

    fn host() -> VirtualHost {
        let mut say = |line: &str| println!("{line}");
        packages(&[Package::Qemu, Package::Busybox], &mut say).unwrap();
        let workspace = Workspace::find();
        let boxlaunch = Artefacts::build(&workspace).unwrap().boxlaunch;
        let kernel = host_kernel(&workspace, &mut say).unwrap();
        assert!(kernel.exits_where_needed(), "kvm_amd has unknown code: see kernel/kvm_amd.rs");
        with_busybox(VirtualHost::new(&kernel, boxlaunch), &workspace).unwrap()
    }

    /// Checks the status, the streams, the files and disks of the virtual host, the files that a command leaves, and KVM. A
    /// second run takes exactly the same virtual time.
    #[test]
    fn a_command_runs_as_on_a_host_and_takes_the_same_time_twice() {
        let directory = tempfile::tempdir().unwrap();
        let large = directory.path().join("large");
        fs::write(&large, b"0123456789".repeat(1000)).unwrap();
        let own = std::env::current_exe().unwrap();
        let script = r#"
            echo "words: $1|$2"; echo complaint >&2; printf 'a\0b\r\n'
            test -c /dev/kvm && id -u && pwd && ls -l /data/tree
            wc -c < /data/large; /bin/own --list | grep -c ': test'
            unshare -m sh -c 'mkdir /p; mount -t tmpfs t /p; mkdir /p/o; pivot_root /p /p/o' && echo pivoted
            mkdir /out/deep; cat /proc/uptime > /out/deep/uptime; exit 7"#;
        let host = with_program(host(), &own, "/bin/own")
            .unwrap()
            .memory(512)
            .disk(directory.path(), "/data/tree")
            .disk(&large, "/data/large");
        let command = ["sh", "-c", script, "sh", "it's", "$HOME"];
        let output = host.run(&command).unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status, 7, "{output:?}");
        assert!(stdout.starts_with("words: it's|$HOME\na\0b\r\n0\n/root\n"), "{stdout}");
        assert!(stdout.contains(" 10000 Jan  1  1970 large\n10000\n"), "{stdout}");
        assert!(stdout.ends_with("\n3\npivoted\n"), "{stdout}");
        assert_eq!(output.stderr, b"complaint\n");
        assert!(output.files.contains_key(&PathBuf::from("deep/uptime")));
        assert_eq!(host.run(&command).unwrap(), output, "virtual time is the same");
    }

    #[test]
    fn output_can_be_watched_and_silence_has_an_end() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let script = "printf 'a\\nb\\r\\n'; echo err >&2";
        let output = host().run_live(&["sh", "-c", script], &mut out, &mut err).unwrap();
        assert_eq!((out, err), (output.stdout, output.stderr));
        let late = host().time_limit(Duration::ZERO).run(&["true"]).unwrap_err();
        assert!(matches!(late, HostError::TimeLimit { .. }), "{late}");
        let panicked = host().run(&["sh", "-c", "echo c > /proc/sysrq-trigger"]).unwrap_err();
        assert!(panicked.to_string().contains("Kernel panic"), "{panicked}");
    }
    /// Returns the names of the kept results.
    fn kept(cache: &Cache) -> Vec<PathBuf> {
        let entries = fs::read_dir(cache.folder("boots")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_none()).collect()
    }

    /// A result is found by its inputs alone. One that is chosen is repeated, and a different one empties the cache.
    #[test]
    fn a_start_is_made_once_repeated_and_compared() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path().join("cache"));
        let run = |chooses: &str| {
            Run::begin(&directory.path().join("run"), &cache, Some(chooses)).unwrap()
        };
        let host = host();
        let command = |word: &str| [["sh", "-c", word].map(str::to_owned).to_vec()];
        let key = |host: &VirtualHost, word| host.prepare(&command(word)).unwrap().key().unwrap();
        let date = "date +%s%N; uname -a; cat /proc/sys/kernel/random/uuid; echo 1 >/out/file";
        let first = key(&host, date);
        assert_eq!(first, key(&host, date));
        assert_ne!(first, key(&host, "date"));
        assert_ne!(first, key(&host.clone().memory(900), date));
        assert_ne!(first, key(&host.clone().file(directory.path(), "/more"), date));

        let begun = run("a");
        let (made, origin) = begun.start(&host, &command(date), "module").unwrap();
        assert_eq!((origin, made.ended[0].status), (Origin::Made, 0));
        begun.keep("module").unwrap();
        assert_eq!(begun.end().unwrap(), None);
        drop(begun);

        let mut origins = BTreeSet::new();
        for number in 0.. {
            let begun = run(&number.to_string());
            let (found, origin) = begun.start(&host, &command(date), "module").unwrap();
            assert_eq!((found.ended, found.files), (made.ended.clone(), made.files.clone()));
            origins.insert(origin);
            if origin == Origin::Repeated {
                break;
            }
        }
        assert!(!origins.contains(&Origin::Made), "{origins:?}");

        let other = run("b");
        other.start(&host, &command("echo another"), "module").unwrap();
        other.keep("module").unwrap();
        drop(other);
        let [one, two] = &kept(&cache)[..] else { panic!("two results are kept") };
        let text = fs::read(two).unwrap();
        fs::write(one, &text).unwrap();
        fs::write(two, &text).unwrap();
        for number in 0.. {
            let begun = run(&number.to_string());
            let started = begun.start(&host, &command(date), "module");
            let same = begun.start(&host, &command("echo another"), "module");
            let differs =
                |it: &testbed::Result<_>| matches!(it, Err(KitError::AnotherResult { .. }));
            if differs(&started) || differs(&same) {
                assert!(begun.end().unwrap().is_some());
                break;
            }
        }
        assert!(kept(&cache).is_empty());
    }
}
