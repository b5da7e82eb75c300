"""The configuration of the how-to page is valid for real programs: systemd and nginx."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import ssl
import subprocess
import sys
import threading
import venv
from pathlib import Path

import httpx
import pytest

from holdfast.service.api.access import digest
from support.certificates import make_certificates
from support.patience import PATIENCE, free_port, until
from support.served import SBIN, Served, listens, process

PAGE = (Path(__file__).parents[2] / "docs/howto/run-as-a-service.md").read_text()
APP = """\
topic Climate (temperature float)
state Warm on Climate [temperature > 25; temperature < 22] per source
"""


def block_of(title, number=0):
    """A block of a section of the page, the first if no other is named."""
    section = PAGE.partition(f"\n## {title}\n")[2]
    return re.findall(r"^```text[^\n]*\n(.*?)^```", section, re.DOTALL | re.MULTILINE)[number]


def program(name):
    return shutil.which(name, path=SBIN) or pytest.skip(f"{name} is not installed")


@pytest.fixture
def definition(tmp_path):
    path = tmp_path / "app.hf"
    path.write_text(APP)
    return path


def test_systemd_accepts_the_unit_file(tmp_path):
    analyze = program("systemd-analyze")
    unit = tmp_path / "holdfast.service"
    unit.write_text(block_of("systemd").replace("/opt/holdfast/bin/holdfast", sys.executable))
    ran = subprocess.run([analyze, "verify", "--man=no", unit], capture_output=True, text=True)
    assert (ran.returncode, "holdfast.service" in ran.stderr) == (0, False), ran.stderr


def test_the_health_check_of_the_container_succeeds_and_fails_with_the_service(tmp_path, definition):
    """The check succeeds while the service runs, and fails when it does not."""
    (line,) = re.findall(r"^HEALTHCHECK CMD (.*)$", block_of("Container"), re.MULTILINE)
    with Served(tmp_path, definition) as service:
        _, *arguments = shlex.split(line.replace("8080", str(service.port)))
        command = [sys.executable, *arguments]
        assert subprocess.run(command, capture_output=True).returncode == 0
    assert subprocess.run(command, capture_output=True).returncode != 0


def post_through(client, origin, before=""):
    """The page, a posted reading, and the events that it causes, over a proxy."""
    page = client.get(f"{before}/").text
    assert "Holdfast" in page
    script = re.search(r'type="module" src="(.*?)"', page)[1]
    assert "import" in client.get(f"{before}/{script}").text
    received = []

    def listen():
        with client.stream("GET", f"{before}/api/events") as events:
            for line in events.iter_lines():
                received.append(line)
                if line.startswith("data:"):
                    return

    listener = threading.Thread(target=listen)
    listener.start()
    until(lambda: received, "the beginning of the stream, which is not held back")
    body = json.dumps({"topic": "Climate", "source": f"behind{before}", "temperature": 26})
    answer = client.post(f"{before}/api/readings", content=body, headers={"origin": origin})
    assert answer.json()["taken"] == 1
    listener.join()
    assert received[-1].startswith('data: {"id"')
    other = client.get(
        f"{before}/api/conditions", headers={"host": "127.0.0.1", "origin": "https://evil.org"}
    )
    assert other.status_code == 403


def test_the_service_works_behind_a_proxy_with_tls(tmp_path, definition):
    """Through nginx as shown."""
    nginx, folder, port = program("nginx"), make_certificates(tmp_path), free_port()
    with Served(tmp_path, definition) as service:
        lines = block_of("Behind a proxy").replace("127.0.0.1:8080", f"127.0.0.1:{service.port}")
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
            here = f"https://127.0.0.1:{port}"
            with httpx.Client(base_url=here, verify=trust, timeout=PATIENCE, trust_env=False) as client:
                post_through(client, here)
                other = client.get("/api/conditions", headers={"host": "evil.example.org"})
                assert other.status_code == 421


def test_the_service_works_behind_caddy(tmp_path, definition):
    """Through Caddy as shown, without the TLS for which it would ask the world; and under a path."""
    caddy, plain, under = program("caddy"), free_port(), free_port()
    with Served(tmp_path, definition) as service:
        site = block_of("Behind a proxy", 1).replace("127.0.0.1:8080", f"127.0.0.1:{service.port}")
        path = re.sub(r"(reverse_proxy \S+)", r"handle_path /holdfast/* {\n \1\n}", site)
        settings = tmp_path / "Caddyfile"
        settings.write_text(
            "{\nadmin off\n}\n"
            + site.replace("holdfast.example.org", f"http://127.0.0.1:{plain}")
            + path.replace("holdfast.example.org", f"http://127.0.0.1:{under}")
        )
        stored = (f"XDG_CONFIG_HOME={tmp_path}", f"XDG_DATA_HOME={tmp_path}")
        with process("env", *stored, caddy, "run", "--config", settings, log=tmp_path / "caddy.out"):
            for port, before in ((plain, ""), (under, "/holdfast")):
                until(lambda: listens(port), "Caddy")  # noqa: B023
                here = f"http://127.0.0.1:{port}"
                with httpx.Client(base_url=here, timeout=PATIENCE, trust_env=False) as client:
                    post_through(client, here, before)


@pytest.mark.soak
def test_the_documented_steps_for_the_container_work(tmp_path, definition):
    """The packages are installed from this repository into an environment; the command runs in a folder
    like the volume; then the health check runs."""
    place, steps = tmp_path / "venv", block_of("Container")
    venv.create(place, with_pip=True)
    (wanted,) = re.findall(r"pip install --no-cache-dir '(.*?)'", steps)
    root = Path(__file__).parents[2]
    subprocess.run(
        [place / "bin/pip", "install", "-q", wanted.replace("holdfast", str(root), 1)],
        check=True,
        timeout=1800,
    )
    port = free_port()
    (tmp_path / "serve.toml").write_text(
        f'listen = "0.0.0.0:{port}"\nhosts = ["localhost"]\n\n[[user]]\nname = "Ann"\nrole = "edit"\n'
        f'token = "{digest("secret")}"\n'
    )
    (command,) = re.findall(r"^CMD (\[.*\])$", steps, re.MULTILINE)
    name, *rest = (one.replace("/data", str(tmp_path)) for one in json.loads(command))
    (check,) = re.findall(r"^HEALTHCHECK CMD python (.*)$", steps, re.MULTILINE)
    with process(place / "bin" / name, *rest, log=tmp_path / "out"):
        until(lambda: listens(port), "the service")
        asked = [place / "bin/python", *shlex.split(check.replace("8080", str(port)))]
        assert subprocess.run(asked, capture_output=True).returncode == 0
        assert httpx.get(f"http://127.0.0.1:{port}/api/conditions", trust_env=False).status_code == 401
