"""What the programs print, recorded. A test compares these objects with docs/json.schema.json."""

from typing import Any, Dict, List

EXEC: Dict[str, Any] = {
    "component": "business",
    "argv": ["sh", "-c", "cat; exit 3"],
    "status": 3,
    "oom_killed": False,
    "disk_full": False,
    "timed_out": False,
    "duration_ms": 12.5,
    "stdout": "caf\ufffd",
    "stdout_base64": "Y2Fm6Q==",
    "stderr": "no\nluck\n",
    "truncated": False,
}
SANDBOX: Dict[str, Any] = {
    "state": "not-started",
    "preset": "default",
    "writable": ["/tmp", "/work"],
    "deny_read": [],
    "deny_write": ["/work/deploy"],
    "network": True,
    "max_output_bytes": 10000000,
    "denied": [{"kind": "process", "subject": "git push", "rule": "git-write", "reason": "person: it transfers commits"}],
}
FAILURE: Dict[str, Any] = {
    "errors": [
        {"severity": "warning", "message": "an old kernel", "help": None, "labels": []},
        {
            "severity": "error",
            "code": "name-not-found",
            "help": "`boxlaunch ps -a` lists the started boxes",
            "labels": [],
            "message": "no started box has the name x",
        },
    ]
}
NAMED: Dict[str, Any] = {"names": ["a"], "errors": FAILURE["errors"][1:]}
HEALTH: Dict[str, Any] = {"component": "agent", "healthy": False, "reason": "port 80: no answer", "duration_ms": 1000.2}
PORT: Dict[str, Any] = {
    "agent_port": None,
    "agent_socket": None,
    "published": [{"component": "agent", "guest": 8000, "host": "127.0.0.1:40123"}],
}
UP: Dict[str, Any] = {"name": "page-4a05", "project": "/src/page", "box": "sha256:" + 64 * "0", "result": "started", "published": []}
LOGS: Dict[str, Any] = {"time_ms": 1, "component": "agent", "stream": "stdout", "text": "hello\n"}
CP: Dict[str, Any] = {"from": "/a", "to": "x:/b", "note": None}
IMAGES: Dict[str, Any] = {
    "images": [{"name": "hello", "reference": None, "box": "sha256:" + 64 * "0", "boxfile": None, "since_ms": 1, "bytes": None}]
}
LISTING: Dict[str, Any] = {
    "path": "/",
    "entries": [
        {"name": "caf\ufffd", "name_base64": "Y2Fm6Q==", "type": "file", "size": 5, "mode": "0644", "mtime": 7},
        {"name": "d", "type": "directory", "size": 4096, "mode": "0755", "mtime": 7},
    ],
    "truncated": False,
}


def listing(names: List[str]) -> Dict[str, Any]:
    """Returns the listing of a directory with these files."""
    entries = [{"name": name, "type": "file", "size": 1, "mode": "0644", "mtime": 5} for name in names]
    return {"path": "/work", "entries": entries, "truncated": False}


#: The definition of each object.
DEFINITIONS = {
    "exec": EXEC,
    "command-sandbox": SANDBOX,
    "failure": FAILURE,
    "named": NAMED,
    "health": HEALTH,
    "port": PORT,
    "up": UP,
    "logs": LOGS,
    "cp": CP,
    "listing": LISTING,
    "images": IMAGES,
}
