"""What the how-to page tells administrators to write, as real programs read it: systemd's and nginx's."""

from __future__ import annotations

import re
import shlex
import shutil
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from support.certificates import certified
from support.patience import PATIENCE, free_port, until
from support.served import SBIN, Served, listens, process

PAGE = (Path(__file__).parents[2] / "docs/howto/run-as-a-service.md").read_text()
APP = """\
topic Climate (temperature float)
state Warm on Climate [temperature > 25; temperature < 22] per source
"""


def shown(title):
    """The first block of a section of the page."""
    section = PAGE.partition(f"\n## {title}\n")[2]
    return re.search(r"^```text\n(.*?)^```", section, re.DOTALL | re.MULTILINE)[1]


def program(name):
    return shutil.which(name, path=SBIN) or pytest.skip(f"{name} is not installed")


@pytest.fixture
def definition(tmp_path):
    path = tmp_path / "app.hf"
    path.write_text(APP)
    return path


def test_the_unit_is_one_that_systemd_takes(tmp_path):
    analyze = program("systemd-analyze")
    unit = tmp_path / "holdfast.service"
    unit.write_text(shown("systemd").replace("/opt/holdfast/bin/holdfast", sys.executable))
    ran = subprocess.run([analyze, "verify", "--man=no", unit], capture_output=True, text=True)
    assert (ran.returncode, "holdfast.service" in ran.stderr) == (0, False), ran.stderr


def test_the_health_check_of_the_container(tmp_path, definition):
    """It succeeds while the service is there, and fails when it is not."""
    (line,) = re.findall(r"^HEALTHCHECK CMD (.*)$", shown("Container"), re.MULTILINE)
    with Served(tmp_path, definition) as service:
        _, *arguments = shlex.split(line.replace("8080", str(service.port)))
        command = [sys.executable, *arguments]
        assert subprocess.run(command, capture_output=True).returncode == 0
    assert subprocess.run(command, capture_output=True).returncode != 0


def test_behind_a_proxy_that_speaks_tls(tmp_path, definition):
    """The page, a posted reading and the events that it causes, through nginx as shown."""
    nginx, folder, port = program("nginx"), certified(tmp_path), free_port()
    with Served(tmp_path, definition) as service:
        lines = shown("Behind a proxy").replace("127.0.0.1:8080", f"127.0.0.1:{service.port}")
        settings = tmp_path / "nginx.conf"
        settings.write_text(
            f"daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;\n"
            f"events {{}}\nhttp {{ access_log off; client_body_temp_path {folder}/body;\n"
            f"proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u;\n"
            f"scgi_temp_path {folder}/s; server {{ listen 127.0.0.1:{port} ssl;\n"
            f"ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;\n{lines}\n}} }}\n"
        )
        with process(nginx, "-c", settings, "-p", folder, log=tmp_path / "nginx.out"):
            until(lambda: listens(port), "nginx")
            trust = ssl.create_default_context(cafile=str(folder / "ca.pem"))
            at = f"https://127.0.0.1:{port}"
            with httpx.Client(base_url=at, verify=trust, timeout=PATIENCE, trust_env=False) as client:
                assert "Holdfast" in client.get("/").text
                heard = []

                def listen():
                    with client.stream("GET", "/api/events") as events:
                        for line in events.iter_lines():
                            heard.append(line)
                            if line.startswith("data:"):
                                return

                listener = threading.Thread(target=listen)
                listener.start()
                until(lambda: heard, "the beginning of the stream, which is not held back")
                mine = {"origin": f"https://127.0.0.1:{port}"}
                body = '{"topic": "Climate", "source": "s1", "temperature": 26}'
                assert client.post("/api/readings", content=body, headers=mine).json()["taken"] == 1
                listener.join()
                assert heard[-1].startswith('data: {"id"')
                other = client.get("/api/conditions", headers={"host": "evil.example.org"})
                assert other.status_code == 421
