"""The business application, which runs in the other component of the box."""

import os
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

#: Runs a command with the environment, the directory, the user and the limits of the business component.
BOX_EXEC = "/a3s/bin/box-exec"
#: How long the application may take to start, in seconds.
PATIENCE = 30
started = None
lock = threading.Lock()


def answer(prompt):
    """Returns the answer of the application, which is started first if it does not run."""
    url = f"{os.environ['BUSINESS_URL']}/answer?{urllib.parse.urlencode({'prompt': prompt})}"
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as response:
                return response.read().decode()
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError) or time.monotonic() > deadline:
                raise
        start()
        time.sleep(0.1)


def start():
    """Starts the application unless it runs."""
    global started
    with lock:
        if started is None or started.poll() is not None:
            started = subprocess.Popen([BOX_EXEC, "node", "app.js"])
