"""One journey through the page, in a real browser: from nothing to an edited rule.

With ``HOLDFAST_PICTURES=DIR`` it saves screenshots, which the documentation shows.
"""

from __future__ import annotations

import json
import os
import re
import time
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import httpx
import pyarrow as pa
import pytest
from selenium.webdriver import Keys

from holdfast import demo
from holdfast.model.batch import TIME, times
from holdfast.model.instant import DAY, HOUR, MINUTE, show_instant
from support import stored_log
from support.patience import PATIENCE, until
from support.served import Mosquitto, Served, browser
from support.web import Receiver

APP = """\
topic Climate (temperature float °C, co2 float ppm)
topic Badge (name text, room text)

region house     = rectangle (0, 0) (16, 10)
region kitchen   = rectangle (0, 0) (7, 5) in house
region lab       = rectangle (0, 5) (7, 10) in house
region office    = rectangle (9, 0) (16, 5) in house
region attic     = rectangle (9, 5) (16, 10) in house

state Warm   on Climate [temperature > 25 °C; temperature < 24 °C] per place
state Stuffy on Climate [co2 > 1000 ppm; co2 < 800 ppm] per place
"""
CANNOT_SAVE = """
return [...document.querySelectorAll('button')].find(one => one.innerText.startsWith('Save')).disabled
"""
PLACES = """
topic Climate (temperature float)
state Warm on Climate [temperature > 25; temperature < 24] per place
"""
EVIL = "<img src=x onerror=\"document.title='owned'\">"


def move_to_date(batch, dawn):
    """The generated day, on another date."""
    at = pa.array(times(batch) - demo.DAWN + dawn).cast(TIME)
    return batch.set_column(batch.schema.get_field_index("time"), "time", at)


def post(url, batch):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    answer = httpx.post(
        f"{url}/api/readings?topic=Climate",
        content=sink.getvalue().to_pybytes(),
        headers={"content-type": "application/vnd.apache.arrow.stream"},
        timeout=PATIENCE,
        trust_env=False,
    )
    assert answer.json()["taken"] == len(batch), answer.text


class ServicePage:
    """The page in a browser: the actions of a user and what is visible."""

    def __init__(self, window, url):
        self.window, self.url = window, url
        self._pictures = os.environ.get("HOLDFAST_PICTURES")

    def open(self, view):
        self.window.get(f"{self.url}/#{view}")

    def run(self, script, *values):
        return self.window.execute_script(script, *values)

    @property
    def text(self):
        return self.run("return document.querySelector('main').innerText")

    def sees(self, text):
        until(lambda: text in self.text, f"{text!r} on the page")

    def press(self, text, within="main"):
        script = (
            "const words = one => one.innerText.replace(/\\s+/g, ' ').trim();"
            "const all = [...document.querySelectorAll(`${arguments[1]} button, ${arguments[1]} a`)];"
            "const found = all.find(one => words(one).startsWith(arguments[0]) && !one.disabled);"
            "if (found) found.click(); return Boolean(found)"
        )
        until(lambda: self.run(script, text, within), f"a button {text!r}")

    def edit(self, old, new):
        script = (
            "const editor = document.querySelector('.CodeMirror').CodeMirror;"
            "editor.setValue(editor.getValue().replace(arguments[0], arguments[1]))"
        )
        self.run(script, old, new)

    def keys(self, *keys):
        from selenium.webdriver import ActionChains

        ActionChains(self.window).send_keys(*keys).perform()

    def chord(self, held, key):
        from selenium.webdriver import ActionChains

        ActionChains(self.window).key_down(held).send_keys(key).key_up(held).perform()

    def picture(self, name):
        if self._pictures:
            time.sleep(1.0)  # what moves has come to rest
            Path(self._pictures).mkdir(parents=True, exist_ok=True)
            self.window.save_screenshot(str(Path(self._pictures) / f"{name}.png"))

    def complaints(self):
        """Errors in the console of the browser, including those of the content policy."""
        return [one["message"] for one in self.window.get_log("browser") if one["level"] == "SEVERE"]


@pytest.fixture
def definition(tmp_path):
    path = tmp_path / "house.hf"
    path.write_text(APP)
    return path


def test_a_user_goes_from_an_empty_page_to_an_edited_rule(tmp_path, definition):
    today = time.time_ns() // 1_000
    with Served(tmp_path, definition) as service, browser() as window:
        page = ServicePage(window, service.url)
        page.open("now")
        page.sees("Nothing holds.")
        page.sees("Nothing was told yet.")

        # readings arrive, and the page shows active conditions without a reload
        dawn = today - 16 * HOUR
        post(service.url, move_to_date(demo.climate(), dawn - DAY))
        batch = move_to_date(demo.climate(), dawn)
        post(service.url, batch.slice(0, int((times(batch) < today).sum())))
        page.sees("Warm")
        page.sees("starts in")
        holding = httpx.get(f"{service.url}/api/conditions", timeout=PATIENCE, trust_env=False).json()
        assert holding, "the generated day ends with something that holds"
        page.sees(f"{len(holding)} conditions hold".replace("1 conditions", "1 condition").split(" ", 1)[1])

        # a user acknowledges the alarm
        page.press("Acknowledge")
        page.sees("seen by local")
        page.press("Mute 1 h")
        page.sees("muted until")
        page.picture("now")

        # when was it, and what was read then
        page.keys("2")
        page.sees("Stuffy")
        until(lambda: page.run("return document.querySelectorAll('.label').length") >= 6, "rows")
        page.press("Warm attic")
        page.sees("starts at > 25 °C")
        page.sees("ends at < 24 °C")
        until(lambda: page.run("return document.querySelectorAll('.chart canvas').length") == 1, "the chart")
        page.picture("timeline")
        wide = page.run("return document.querySelector('main [role=status]').innerText")
        page.keys("+", "+")
        until(
            lambda: page.run("return document.querySelector('main [role=status]').innerText") != wide,
            "a closer look",
        )

        # where
        page.keys("3")
        until(lambda: page.run("return document.querySelectorAll('.region').length") == 5, "the map")
        label = page.run(
            "return [...document.querySelectorAll('.region')].map(one => one.getAttribute('aria-label'))"
        )
        held = {one["scope"] for one in holding}
        assert {one.partition(":")[0] for one in label if "nothing holds" not in one} == held
        page.picture("map")

        # an invalid rule is refused with its place; then it becomes another rule
        page.keys("4")
        page.sees("2 subscriptions on 2 topics")
        page.edit("temperature > 25 °C", "temprature > 25 °C")
        page.sees("line 10")
        page.sees("temprature")
        assert page.run("return document.querySelector('.fault-error').textContent") == "temprature"
        assert page.run(CANNOT_SAVE)
        page.picture("definition-error")
        page.edit("temprature > 25 °C", "temperature > 23 °C")
        page.edit("temperature < 24 °C", "temperature < 22 °C")
        page.sees("Warm means something else than now")

        # when would this have fired?
        page.press("When would this have fired?")
        page.sees("It would have been told otherwise")
        page.sees("Would start, and did not")
        page.picture("definition")
        stale = "return document.querySelector('.found').classList.contains('stale')"
        for old, new, is_of_another in (("23 °C", "23.5 °C", True), ("23.5 °C", "23 °C", False)):
            page.edit(old, new)
            assert page.run(stale) is is_of_another, "an answer says when it is to another question"

        # save, with what happens to what holds
        page.press("Save")
        until(lambda: page.run("return document.querySelector('dialog[open]')"), "the question")
        asked = page.run("return document.querySelector('dialog[open]').innerText")
        assert "is kept as far as it follows" in asked
        assert re.search(r"Warm: (starts|ends) in \d+ places?|No place changes", asked)
        page.picture("save")
        page.press("Save", "dialog[open]")
        until(lambda: "temperature > 23 °C" in definition.read_text(), "the file")
        until(lambda: "Saved" in page.run("return document.body.innerText"), "the word of it")
        text = httpx.get(f"{service.url}/api/definition", timeout=PATIENCE, trust_env=False).json()["text"]
        assert text == definition.read_text()

        page.keys("5")
        page.open("health")
        page.sees("readings since it started")
        page.sees("Climate")
        page.picture("health")
        assert page.complaints() == []


def test_levels_and_refused_notifications_are_shown_and_sent_again(tmp_path):
    rules, settings = tmp_path / "levels.hf", tmp_path / "serve.toml"
    rules.write_text(
        "topic T (value float)\n"
        "levels Heat on T: warn [value > 25; value < 22], alarm [value > 30; value < 27] per source\n"
    )
    with Receiver(refuses=lambda body: "the pager knows no boilers") as receiver:
        settings.write_text(
            f'allowed_hosts = ["127.0.0.1"]\n[[webhook]]\nname = "pager"\nurl = "{receiver.url}"\n'
        )
        with Served(tmp_path, rules, "--config", settings) as service, browser() as window:
            page = ServicePage(window, service.url)
            for value in (26, 31):
                line = json.dumps({"topic": "T", "source": "boiler", "value": value})
                httpx.post(f"{service.url}/api/readings", content=line, timeout=PATIENCE, trust_env=False)
            page.open("now")
            page.sees("alarm")
            page.sees("is raised to alarm")
            page.open("health")
            page.sees("the pager knows no boilers")
            receiver.refuses = None
            page.press("Send all of pager again")
            page.sees("Nothing was refused.")
            found = [n for one in receiver.requests[-2:] for n in json.loads(one.body)["notifications"]]
            assert {one["status"] for one in found} == {"ingress", "raised"}
            assert page.complaints() == []


def test_names_are_shown_as_text_and_everything_fits_on_a_phone(tmp_path):
    """Script in names of places, sources and values is shown, never run; nothing is wider than a phone."""
    definition = tmp_path / "evil.hf"
    definition.write_text(PLACES)
    at = time.time_ns() // 1_000 - MINUTE
    batch = pa.RecordBatch.from_pydict(
        {
            "time": pa.array([at, at + 1]).cast(TIME),
            "source": [EVIL, EVIL],
            "place": [EVIL, "</script><script>document.title='owned'</script>"],
            "temperature": [30.0, 31.0],
        }
    )
    with Served(tmp_path, definition) as service, browser(390, 844, phone=True) as window:
        post(service.url, batch)
        bad = httpx.post(
            f"{service.url}/api/readings", content=EVIL.encode(), timeout=PATIENCE, trust_env=False
        )
        assert bad.status_code == 422
        page = ServicePage(window, service.url)
        for view, shown in (
            ("now", EVIL),
            ("timeline", EVIL),
            ("map", EVIL),
            ("definition", "per place"),
            ("health", "Climate"),
        ):
            page.open(view)
            page.sees(shown)
            width = page.run("return document.documentElement.scrollWidth")
            assert width <= 390, f"{view} is {width} wide on a phone of 390"
            page.picture(f"phone-{view}")
        page.open("timeline")
        page.sees(EVIL)
        page.press("<img")
        page.sees("readings of 1 source")
        assert "owned" not in page.run("return document.title")
        assert page.run("return document.querySelectorAll('main img').length") == 0
        assert page.complaints() == []


PLAN = """
[building]
house = {}

[floors]
ground = { in = "house" }

[rooms]
lab = { in = "ground", rectangle = [0, 0, 10, 5] }
hall = { in = "ground", circle = [20, 5, 4] }
store = { in = "ground", polygon = [[30, 0], [40, 0], [35, 9]] }
pantry = { in = "ground" }
"""
GROUNDS = """gazetteer "plan.toml"
topic Climate (temperature float °C)
state Warm on Climate [temperature > 25 °C; temperature < 24 °C] scope rooms
topic Fire (smoke float)
state Smoke on Fire [smoke > 5; smoke < 2] per source
fold Storm = Smoke cells 1 m within 4 m beyond 2
"""


def test_a_viewer_can_choose_zone_theme_and_plan_and_use_the_keyboard(tmp_path):
    """In Tokyo: local times, dark until light is chosen, a plan by coordinates, words that complete."""
    (tmp_path / "plan.toml").write_text(PLAN)
    definition = tmp_path / "grounds.hf"
    definition.write_text(GROUNDS)
    at = time.time_ns() // 1_000 // MINUTE * MINUTE - MINUTE
    lines = [
        {"topic": "Climate", "source": "a", "x": 20.5, "y": 5.5, "temperature": 26, "time": show_instant(at)},
        {"topic": "Climate", "source": "b", "place": "pantry", "temperature": 27, "time": show_instant(at)},
    ]
    with Served(tmp_path, definition) as service, browser() as window:
        body = "\n".join(map(json.dumps, lines))
        answer = httpx.post(f"{service.url}/api/readings", content=body, timeout=PATIENCE, trust_env=False)
        assert answer.json() == {"taken": 2, "rejected": []}
        window.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
        window.execute_cdp_cmd("Emulation.setLocaleOverride", {"locale": "en-GB"})
        dark = [{"name": "prefers-color-scheme", "value": "dark"}]
        window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": dark})
        page = ServicePage(window, service.url)
        page.open("now")
        page.sees("hall")
        there = datetime.fromtimestamp(at / 1e6, ZoneInfo("Asia/Tokyo"))
        page.sees(f"{there:%H:%M:%S}")
        paper = "return getComputedStyle(document.body).backgroundColor"
        assert page.run(paper) == "rgb(15, 21, 24)"
        page.run("document.querySelector('#theme').click()")
        assert page.run(paper) == "rgb(245, 247, 248)"

        # the focus stays after an acknowledgement by keyboard, although the list is drawn again
        acknowledge = "const one = document.querySelector('.actions button'); one?.focus(); return one"
        until(lambda: page.run(acknowledge), "a button")
        page.keys(Keys.ENTER)
        until(lambda: page.run("return document.activeElement.innerText") == "Unsee", "the next step")

        # the plan, by the keyboard alone
        page.keys("3")
        until(lambda: page.run("return document.querySelectorAll('.region').length") == 6, "the plan")
        labels = "return [...document.querySelectorAll('.region')].map(one => one.getAttribute('aria-label'))"
        held = {one for one in page.run(labels) if "nothing holds" not in one}
        assert held == {"hall: Warm", "pantry: Warm"}
        page.run("document.querySelector('.region[aria-label^=hall]').focus()")
        page.keys(Keys.ENTER)
        page.sees("hall\n")
        assert (
            page.run("return document.querySelector('.region.chosen').getAttribute('aria-label')")
            == "hall: Warm"
        )

        # a storm that is folded has its outline on the plan
        smoke = [
            {"topic": "Fire", "source": f"f{i}", "x": x, "y": y, "smoke": 6, "time": show_instant(at)}
            for i, (x, y) in enumerate(((20.5, 4.5), (21.5, 4.5), (20.5, 5.5)))
        ]
        body = "\n".join(map(json.dumps, smoke))
        httpx.post(f"{service.url}/api/readings", content=body, timeout=PATIENCE, trust_env=False)
        until(lambda: page.run("return document.querySelectorAll('.region.storm').length") == 1, "the storm")
        assert "Storm 2 m at 20,4: Storm (3)" in page.run(labels)
        page.picture("plan")

        # words of the language, names and units complete
        page.keys("4")
        page.sees("3 subscriptions")
        page.run(
            "const editor = document.querySelector('.CodeMirror').CodeMirror;"
            "editor.focus(); editor.setCursor(editor.lineCount(), 0)"
        )
        page.keys("filter Hot on Clim")
        hints = "return [...document.querySelectorAll('.CodeMirror-hint')].map(one => one.innerText)"
        until(lambda: any(one.startswith("Climate") for one in page.run(hints)), "the topic")
        page.keys(Keys.ENTER, " where temp")
        until(lambda: any(one.startswith("temperature") for one in page.run(hints)), "the attribute")
        page.keys(Keys.ENTER, " > 30 °")
        page.chord(Keys.CONTROL, " ")
        until(lambda: any(one.startswith("°C") for one in page.run(hints)), "the unit")
        page.keys(Keys.ENTER)
        page.sees("4 subscriptions on 2 topics")
        text = page.run("return document.querySelector('.CodeMirror').CodeMirror.getValue()")
        assert text.splitlines()[-1] == "filter Hot on Climate where temperature > 30 °C"
        assert page.complaints() == []


def test_with_users_the_page_asks_for_a_token(tmp_path, definition):
    from holdfast.service.api.access import digest

    settings = tmp_path / "serve.toml"
    settings.write_text(f'[[user]]\nname = "Ann"\nrole = "see"\ntoken = "{digest("hf_right")}"\n')
    with Served(tmp_path, definition, "--config", settings) as service, browser() as window:
        page = ServicePage(window, service.url)
        page.open("now")

        def give(token):
            until(lambda: page.run("return document.querySelector('#token').open"), "the question")
            page.run("document.querySelector('#token-text').value = arguments[0]", token)
            page.run("document.querySelector('#token button').click()")

        give("hf_wrong")
        until(
            lambda: "not known" in page.run("return document.querySelector('#token-why').textContent"),
            "no",
        )
        give("hf_right")
        page.sees("Nothing holds.")
        page.open("definition")
        page.sees("2 subscriptions")
        page.edit("> 25 °C", "> 23 °C")
        page.sees("If saved")
        assert page.run(CANNOT_SAVE), "who may only see cannot save"


def test_the_page_shows_damage_in_the_log_while_readings_are_accepted(tmp_path):
    definition = tmp_path / "app.hf"
    definition.write_text(stored_log.APP)
    stored_log.store_readings(tmp_path / "data", 0, 30)
    gone = min((tmp_path / "data/readings").glob("*-Climate.parquet"))
    gone.unlink()
    with Served(tmp_path, definition) as service, browser() as window:
        page = ServicePage(window, service.url)
        page.open("health")
        page.sees("Damaged or missing in the log")
        page.sees(f"readings/{gone.name} is missing")
        banner = page.run("return document.querySelector('#trouble').innerText")
        assert banner.startswith("Damage in the log: ")
        assert page.complaints() == []


def test_the_page_shows_that_a_broker_is_lost(tmp_path, definition):
    with (
        Mosquitto(tmp_path / "broker") as broker,
        browser() as window,
        Served(tmp_path, definition, "--mqtt", broker.url) as service,
    ):
        page = ServicePage(window, service.url)
        page.open("now")
        link = "return document.querySelector('#link').textContent"
        until(lambda: page.run(link) == "live", "the connection")
        page.sees("1 of 1")
        broker.stop()
        until(lambda: page.run(link) == "1 of 1 feeds not connected", "the loss in the header")
        page.sees("0 of 1")
        trouble = page.run("return document.querySelector('#trouble').textContent")
        assert f"feed {broker.url} is not connected" in trouble
        page.open("health")
        page.sees("not connected")
        broker.start()
        until(lambda: page.run(link) == "live", "its return")
        assert page.complaints() == []
