"""Chromium without a screen, driven through a pipe by its DevTools protocol: JSON objects with a zero byte after each."""

import base64
import itertools
import json
import os
import re
import select
import subprocess
import tempfile

# Longest time without any word from Chromium, in seconds.
LONGEST_S = 180


class Browser:
    """One page of one Chromium. What the page writes on its console, and its errors, are gathered in `said`."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        (inner_read, self.to), (self.back, inner_write) = os.pipe(), os.pipe()
        command = [program, "--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--remote-debugging-pipe",
                   f"--user-data-dir={self.profile.name}"]
        if os.geteuid() == 0:
            command.append("--no-sandbox")
        # Chromium reads commands from descriptor 3 and answers on descriptor 4.
        shell = ["sh", "-c", f'exec "$@" 3<&{inner_read} 4>&{inner_write}', "sh", *command]
        self.process = subprocess.Popen(shell, pass_fds=[inner_read, inner_write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(inner_read)
        os.close(inner_write)
        self.numbers, self.unread, self.session, self.said, self.events = itertools.count(1), b"", None, [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log"]:
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.profile.cleanup()

    def message(self):
        while b"\0" not in self.unread:
            if not select.select([self.back], [], [], LONGEST_S)[0]:
                raise RuntimeError(f"Chromium has not answered for {LONGEST_S} s")
            more = os.read(self.back, 1 << 20)
            if not more:
                raise RuntimeError("Chromium has ended")
            self.unread += more
        one, self.unread = self.unread.split(b"\0", 1)
        message = json.loads(one)
        method, details = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.said.append(details["exceptionDetails"].get("exception", {}).get("description", str(details)))
        elif method == "Runtime.consoleAPICalled" and details["type"] in ["error", "warning", "assert"]:
            self.said.append(" ".join(str(word.get("value", word.get("description"))) for word in details["args"]))
        elif method == "Log.entryAdded":
            self.said.append(details["entry"]["text"])
        return message

    def call(self, method, **parameters):
        number = next(self.numbers)
        command = {"id": number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.to, json.dumps(command).encode() + b"\0")
        while (message := self.message()).get("id") != number:
            self.events.append(message.get("method"))
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']['message']}")
        return message["result"]

    def open(self, page, width, height=900, dark=False):
        """Opens a file in a window of this size and waits until it is loaded."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.said, self.events = [], []
        self.call("Page.navigate", url=page.as_uri())
        while "Page.loadEventFired" not in self.events:
            self.events.append(self.message().get("method"))

    def evaluate(self, script):
        """The value of a script, or that of the promise that it makes."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"].get("exception", result)))
        return result["result"].get("value")

    def screenshot(self, path):
        """A picture of the whole page, however long it is."""
        image = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(image["data"]))

    def print(self, path):
        """Prints the page on A4. Returns the number of pages."""
        printed = base64.b64decode(self.call("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)["data"])
        path.write_bytes(printed)
        return len(re.findall(rb"/Type\s*/Page\b", printed))
