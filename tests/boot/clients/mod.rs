//! Real clients, such as curl, pip and git, in a box with `network "filtered"`: the one of docs/working.md, which does the same with
//! apt.

pub(crate) mod working;

use std::path::Path;
use std::sync::LazyLock;

use crate::scenario::{Ran, Step};

/// Makes files that the tests' web servers serve: a Git repository and a Python package index. Runs in the box, because the
/// virtual host has no Git.
const CONTENT: &str = r#"cd /w && echo outside >index.html && mkdir -p simple/answer && git init -q src && cd src && echo 42 >answer && git add . \
&& git -c user.name=a -c user.email=a@b commit -qm one && git clone -q --bare . ../repo.git && cd ../repo.git && git update-server-info && cd .. && python3 -c '
import zipfile, base64, hashlib
name, info = "answer-1.0-py3-none-any.whl", "answer-1.0.dist-info/"
files = {"answer.py": "value = 42\n", info + "METADATA": "Metadata-Version: 2.1\nName: answer\nVersion: 1.0\n",
  info + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
digest = lambda it: base64.urlsafe_b64encode(hashlib.sha256(it.encode()).digest()).rstrip(b"=").decode()
record = "".join(f"{path},sha256={digest(it)},{len(it)}\n" for path, it in files.items()) + info + "RECORD,,\n"
with zipfile.ZipFile("simple/answer/" + name, "w") as wheel:
    for path, it in {**files, info + "RECORD": record}.items(): wheel.writestr(path, it)
open("simple/answer/index.html", "w").write(f"<!DOCTYPE html><html><body><a href=\"{name}\">{name}</a></body></html>")' \
&& echo made"#;

/// Clients: the name, a script, and the end of the script's output. The scripts disable the check of the tests' servers'
/// certificate, which is self-signed.
const CLIENTS: [(&str, &str, &str); 14] = [
    ("curl", "curl -sS http://a.test.example/ && curl -sSk https://a.test.example/", "outside\noutside\n"),
    (
        "curl-direct",
        "curl -sS --noproxy '*' http://b.test.example/ && curl -sSk --noproxy '*' https://b.test.example/",
        "outside\noutside\n",
    ),
    ("curl-socks", "curl -sSk --proxy socks5h://198.18.0.1:1080 https://a.test.example/", "outside\n"),
    (
        "curl-denied",
        "curl -sS http://evil.example/; curl -sSk https://evil.example/ || echo $?",
        "To allow it, add this to `network` in the Boxfile: allow \"evil.example\"\n56\n",
    ),
    (
        "curl-other-name",
        "curl -sSk --connect-to a.test.example:443:b.test.example:443 https://a.test.example/ || echo ended",
        "ended\n",
    ),
    (
        "urllib",
        "python3 -c 'import urllib.request as r, ssl
it = ssl._create_unverified_context()
print([r.urlopen(u, context=it).read().decode().strip() for u in (\"http://a.test.example\", \"https://a.test.example\")])'",
        "['outside', 'outside']\n",
    ),
    (
        "requests",
        "python3 -W ignore -c 'import requests as r
print([r.get(u, verify=False).text.strip() for u in (\"http://a.test.example\", \"https://a.test.example\")])
print(r.post(\"https://a.test.example/echo\", data=\"x\" * 100000, verify=False).text.count(\"x\"))
print(r.get(\"http://evil.example/\").status_code)'",
        "['outside', 'outside']\n100000\n403\n",
    ),
    (
        "httpx",
        "python3 -W ignore -c 'import httpx
with httpx.Client(verify=False) as it: print([it.get(u).text.strip() for u in (\"http://a.test.example\", \"https://a.test.example\")])'",
        "['outside', 'outside']\n",
    ),
    (
        "node-fetch",
        "NODE_TLS_REJECT_UNAUTHORIZED=0 NODE_NO_WARNINGS=1 node -e '(async () => {
for (const it of [\"http\", \"https\"]) console.log((await (await fetch(it + \"://c.test.example/\")).text()).trim());
await fetch(\"https://evil.example/\").catch(it => console.log(it.cause.code)) })()'",
        "outside\noutside\nENOTFOUND\n",
    ),
    (
        "node-http",
        "NODE_TLS_REJECT_UNAUTHORIZED=0 NODE_NO_WARNINGS=1 node -e 'for (const it of [\"http\", \"https\"])
require(it).get(it + \"://d.test.example/\", it => it.on(\"data\", it => console.log(it.toString().trim())))'",
        "outside\noutside\n",
    ),
    (
        "git",
        "GIT_SSL_NO_VERIFY=1 git clone -q https://a.test.example/repo.git /tmp/clone && cat /tmp/clone/answer",
        "42\n",
    ),
    (
        "pip",
        // Not into a venv: making one with pip would take two minutes of CPU time.
        "python3 -m pip install -q --disable-pip-version-check --target /tmp/site \
         --trusted-host a.test.example --index-url https://a.test.example/simple answer \
         && PYTHONPATH=/tmp/site python3 -c 'import answer; print(answer.value)'",
        "42\n",
    ),
    (
        "redirect",
        "curl -sSL http://a.test.example/to/127.0.0.1/; curl -sS --noproxy '*' -L http://a.test.example/to/127.0.0.1/ 2>&1 | cut -c1-34",
        "curl: (7) Failed to connect to 127\n",
    ),
    (
        "many-at-once",
        "for i in $(seq 40); do curl -sSk https://m$i.test.example/bytes/100000 | wc -c & done | sort | uniq -c | tr -s ' '",
        " 40 100000\n",
    ),
];

/// The results of this module and the one below it.
static RAN: LazyLock<Ran> = LazyLock::new(|| {
    let clients = CLIENTS.iter().map(|(name, script, _)| (*name, *script));
    working::start(&[("content", CONTENT)].into_iter().chain(clients).collect::<Vec<_>>())
});

fn clients_reach_what_is_allowed_and_nothing_else() {
    let (steps, files) = &*RAN;
    let all: &Step = &steps["all"];
    assert_eq!(all.status, 0, "{all:?}");
    let parts = all.parts();
    assert_eq!(parts["content"].stdout, "made\n", "{:?}", parts["content"]);
    let wrong: Vec<_> = CLIENTS
        .iter()
        .map(|(name, _, expected)| (name, expected, &parts[*name]))
        .filter(|(_, expected, part)| !part.stdout.ends_with(*expected))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let log = String::from_utf8_lossy(&files[Path::new("peers.log")]).into_owned();
    for own in ["127.0.0.1:80 GET", "127.0.0.1:443 GET", "93.184.216.34:80 GET"] {
        assert!(!log.lines().any(|line| line.starts_with(own)), "{log}");
    }
}

tests![clients_reach_what_is_allowed_and_nothing_else];
