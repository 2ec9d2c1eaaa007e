"""Opens a page in a browser, with or without scripts, clicks on the first link of its map, and prints what happened.

Arguments: the browser, the page, `on` or `off` for scripts, `light` or `dark`, the width of the window, and optionally the
address of a part of the page and a file for a picture of the window. Speaks the DevTools protocol through pipes:
https://chromedevtools.github.io/devtools-protocol/.
"""

import base64, json, os, subprocess, sys, tempfile

browser, page, scripts, theme, width, part, picture = (sys.argv[1:] + ["", ""])[:7]
here, there = os.pipe(), os.pipe()


def pipes():
    # The descriptors are copied first, because one of them may be 3 or 4.
    given, taken = os.dup(here[0]), os.dup(there[1])
    os.dup2(given, 3), os.dup2(taken, 4)


home = tempfile.TemporaryDirectory()
options = ["--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + home.name]
process = subprocess.Popen([browser, *options, "about:blank"], preexec_fn=pipes, close_fds=False, stderr=subprocess.DEVNULL)
out, answers = os.fdopen(here[1], "wb"), os.fdopen(there[0], "rb")
os.close(here[0]), os.close(there[1])
session, number, pending, events = {}, 0, b"", []


def receive():
    global pending
    while b"\0" not in pending:
        more = answers.read1(1 << 16)
        if not more:
            sys.exit("the browser has ended")
        pending += more
    message, pending = pending.split(b"\0", 1)
    return json.loads(message)


def call(method, **params):
    """Returns the result, or None for an error."""
    global number
    number += 1
    out.write(json.dumps({"id": number, "method": method, "params": params, **session}).encode() + b"\0")
    out.flush()
    while True:
        message = receive()
        if message.get("id") == number:
            return message.get("result")
        events.append(message)


def wait(method):
    while not any(it.get("method") == method for it in events):
        events.append(receive())


def all_of(selector):
    root = call("DOM.getDocument")["root"]["nodeId"]
    return call("DOM.querySelectorAll", nodeId=root, selector=selector)["nodeIds"]


def attribute(node, name):
    names = call("DOM.getAttributes", nodeId=node)["attributes"]
    return dict(zip(names[::2], names[1::2])).get(name, "")


def shown():
    """Returns the levels of the map that have a box, and so are visible."""
    return [attribute(it, "id") for it in all_of(".level") if call("DOM.getBoxModel", nodeId=it)]


target = call("Target.createTarget", url="about:blank")["targetId"]
session = {"sessionId": call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
for domain in ["Page", "DOM", "Log", "Runtime", "Network"]:
    call(domain + ".enable")
call("Emulation.setScriptExecutionDisabled", value=scripts == "off")
call("Emulation.setDeviceMetricsOverride", width=int(width), height=1040, deviceScaleFactor=1, mobile=False)
call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
events.clear()
call("Page.navigate", url="file://" + os.path.abspath(page) + part)
wait("Page.loadEventFired")
if picture:
    with open(picture, "wb") as file:
        file.write(base64.b64decode(call("Page.captureScreenshot", format="png")["data"]))
before = shown()
link = next(it for it in all_of(".map a") if call("DOM.getBoxModel", nodeId=it))
call("DOM.scrollIntoViewIfNeeded", nodeId=link)
corners = call("DOM.getContentQuads", nodeId=link)["quads"][0]
at = {"x": (corners[0] + corners[4]) / 2, "y": (corners[1] + corners[5]) / 2, "button": "left", "clickCount": 1}
call("Input.dispatchMouseEvent", type="mousePressed", **at)
call("Input.dispatchMouseEvent", type="mouseReleased", **at)
wait("Page.navigatedWithinDocument")
after = shown()
root = call("DOM.getDocument")["root"]["nodeId"]
html = call("DOM.getOuterHTML", nodeId=root)["outerHTML"]
requests = [it["params"]["request"]["url"] for it in events if it.get("method") == "Network.requestWillBeSent"]
of_console = ["Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"]
messages = [json.dumps(it["params"]) for it in events if it.get("method") in of_console]
process.kill()
process.wait()
json.dump({"before": before, "after": after, "requests": requests, "messages": messages, "html": html}, sys.stdout)
