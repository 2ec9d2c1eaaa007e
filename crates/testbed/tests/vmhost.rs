//! Boots the virtual host, and checks its input, its output and its clock.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::time::Duration;

    use testbed::prerequisites::{Package, host_kernel, packages, with_busybox, with_program};
    use testbed::{Artefacts, VirtualHost, Workspace};
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
        assert!(stdout.ends_with("\n2\npivoted\n"), "{stdout}");
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
}
