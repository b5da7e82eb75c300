"""Real parts around ``holdfast serve``: the service as a process, Mosquitto, Alertmanager, a browser."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.patience import PATIENCE, free_port, until

SBIN = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])


def program(name, package):
    """The path of a program. Without it a test is skipped, but fails where everything must run (CI)."""
    if (found := shutil.which(name, path=SBIN)) is None:
        missing = f"{name} is missing; on Debian or Ubuntu: sudo apt-get install {package}"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return found


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def process(*command, log):
    """A process of our own, killed at the end if it has not ended."""
    with open(log, "ab") as file:
        running = subprocess.Popen(
            list(map(str, command)), stdout=file, stderr=file, stdin=subprocess.DEVNULL
        )
        try:
            yield running
        finally:
            running.kill()
            running.wait()


class Served:
    """``holdfast serve`` on one folder: it may be killed and started again."""

    def __init__(self, folder: Path, definition: Path, *options, port=None):
        self.folder, self.port = folder, port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = folder / "serve.log"
        self._command = [
            sys.executable, "-m", "holdfast", "serve", definition, "--data", folder / "data",
            "--listen", f"127.0.0.1:{self.port}", *options,
        ]  # fmt: skip
        self._running = None

    def start(self):
        with open(self._log, "ab") as file:
            self._running = subprocess.Popen(
                list(map(str, self._command)), stdout=file, stderr=file, stdin=subprocess.DEVNULL
            )
        until(self._is_up, "the service")

    def _is_up(self):
        assert self._running.poll() is None, self._log.read_text()
        return listens(self.port)

    @property
    def pid(self):
        return self._running.pid

    def log_text(self):
        """The terminal output of the program."""
        return self._log.read_text()

    def kill(self):
        self._running.kill()
        self._running.wait()

    def stop(self):
        self._running.terminate()
        assert self._running.wait(PATIENCE) == 0, self._log.read_text()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()


class Mosquitto:
    """Debian's broker on a port of its own, with a session store that outlives it."""

    def __init__(self, folder: Path, *settings: str):
        """``settings`` are further lines of its configuration, in place of those that admit every client."""
        self._program = program("mosquitto", "mosquitto")
        folder.mkdir(parents=True, exist_ok=True)
        self.port, self._log = free_port(), folder / "mosquitto.log"
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self._file = folder / "mosquitto.conf"
        self._file.write_text(
            f"listener {self.port} 127.0.0.1\npersistence true\npersistence_location {folder}/\n"
            "max_queued_messages 0\nmax_inflight_messages 0\nuser root\n"
            + "".join(f"{line}\n" for line in settings or ["allow_anonymous true"])
        )

    def start(self):
        with open(self._log, "ab") as file:
            self._running = subprocess.Popen(
                [self._program, "-c", str(self._file)], stdout=file, stderr=file, stdin=subprocess.DEVNULL
            )
        until(lambda: listens(self.port), "Mosquitto")

    def stop(self):
        """In order, so that it keeps what it has not delivered."""
        self._running.terminate()
        self._running.wait(PATIENCE)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._running.kill()
        self._running.wait()


@contextmanager
def browser(width=1400, height=900, phone=False):
    """Debian's Chromium without a window, through Selenium."""
    binary, driver = program("chromium", "chromium"), program("chromedriver", "chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for one in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
        "--no-proxy-server", f"--window-size={width},{height}",
    ):  # fmt: skip
        options.add_argument(one)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    window = webdriver.Chrome(options=options, service=Service(driver))
    try:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        yield window
    finally:
        window.quit()
