from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.errors import DefinitionError, UsageError
from holdfast.service.api.access import digest
from holdfast.service.config import load, parse, settings_of, users_of

GOOD = f"""
listen = "127.0.0.1:8080"
hosts = ["sensors.example.org"]
allowed_hosts = ["hooks.example.org", "localhost"]

[keep]
age = "90 d"
size = "20 GB"
seal = "1 min"

[limits]
body = "1 MB"

[[user]]
name = "ann"
role = "edit"
token = "{digest("secret")}"

[[mqtt]]
url = "mqtt://localhost:1883"
client = "hall"

[[mqtt.map]]
from = "building/{{place}}/{{source}}/climate"
topic = "Climate"
fields = {{ temperature = "t" }}

[[mqtt.map]]
from = "doors/{{source}}"
topic = "Door"
payload = "number"

[[mqtt]]
url = "mqtts://broker.example.org"

[[webhook]]
name = "hook"
url = "https://hooks.example.org/x"
headers = {{ Authorization = "Bearer x" }}

[[alertmanager]]
name = "am"
url = "http://localhost:9093"
"""


def test_a_complete_configuration_file_is_read():
    config = parse(GOOD)
    assert [len(part.map) for part in config.mqtt] == [2, 0]
    assert config.mqtt[0].map[0].route().pattern.filter == "building/+/+/climate"
    settings = settings_of(config)
    assert (settings.keep_seconds, settings.keep_bytes, settings.seal_every) == (90 * 86400, 20 * 10**9, 60)
    assert [(user.name, user.role) for user in users_of(config)] == [("ann", "edit")]


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("listen =", "listn =", 2, "there is no setting 'listn' here"),
        ('hosts = ["sensors', 'hosts = "x" #["sensors', 3, "expected `array`, got `str`"),
        ("[keep]", "[keep", 6, "Expected ']'"),
        ('age = "90 d"', 'age = "90 moons"', 7, "unknown unit 'moons'"),
        ('size = "20 GB"', 'size = "20 G"', 8, "'20 G' is no size"),
        ('role = "edit"', 'role = "boss"', 16, "there is no role 'boss'; there is send, see"),
        ('token = "sha256:', 'token = "', 17, "stands here as its digest"),
        ('url = "mqtt://localhost', 'url = "http://localhost', 20, "is no address of a broker"),
        ('url = "mqtts://broker.example.org"', 'url = "mqtts://broker:x"', 34, "the port is no number"),
        ("building/{place}/{source}/climate", "building/#/x", 24, "# stands alone, and last"),
        ('payload = "number"', 'payload = "xml"', 31, "invalid enum value 'xml'"),
        ('topic = "Door"', "topic = 7", 30, "expected `str | null`, got `int`"),
        ('from = "doors/{source}"\n', "", 28, "'from' is missing"),
        (
            "https://hooks.example.org/x",
            "https://evil.example.org/x",
            38,
            "add 'evil.example.org' to allowed",
        ),
        ("https://hooks.example.org/x", "file:///etc/passwd", 38, "is no address"),
        ('Authorization = "Bearer x"', 'Authorization = "a\\r\\nHost: b"', 39, "printable ASCII in one line"),
        ('Authorization = "Bearer x"', '"A b" = "x"', 39, "'A b' cannot be a header"),
        ('Authorization = "Bearer x"', 'Host = "x"', 39, "'Host' cannot be a header"),
        ("[[alertmanager]]", "[[dds]]\ndomain = 400\n[[alertmanager]]", 42, "numbers from 0 to 232"),
        ("[[alertmanager]]", '[[dds]]\ninterface = "<x>"\n[[alertmanager]]', 42, "is no name of a network"),
        ('name = "am"', 'name = "hook"', 42, "two sinks are named 'hook'"),
        ("http://localhost:9093", "http://10.0.0.1:9093", 43, "add '10.0.0.1' to allowed_hosts"),
    ],
)
def test_configuration_errors_name_their_line(old, new, line, reason):
    assert old in GOOD
    with pytest.raises(DefinitionError) as error:
        parse(GOOD.replace(old, new), "serve.toml")
    assert reason in str(error.value)
    assert f"serve.toml:{line}:" in str(error.value)


def test_a_missing_configuration_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot read"):
        load(tmp_path / "serve.toml")


def test_the_documented_configuration_is_valid():
    pages = sorted((Path(__file__).parents[3] / "docs/howto").glob("*.md"))
    shown = [
        (page.name, text)
        for page in pages
        for text in re.findall(r"^```toml.*?\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        if page.name in ("connect-devices.md", "run-as-a-service.md")
    ]
    assert len(shown) == 6
    for name, text in shown:
        parse(text, name)
