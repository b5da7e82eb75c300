import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import parse
from support import whole
from support.overlays import each_alone, told
from support.runtimes import RUNTIMES, engine, in_order
from support.whole import cut, definitions, histories, visible

mine = definitions(kinds={"Mute": whole.mutes, "Filter": whole.filters})
some = settings(max_examples=12, deadline=None)


@pytest.mark.parametrize("name", ["engine in batches", "replay"])
@some
@given(text=mine, events=histories())
def test_in_this_process(name, text, events):
    app = parse(text)
    assert visible(RUNTIMES[name](app, events)) == visible(engine(app, events))


@some
@given(text=mine, events=histories(least=8))
def test_on_an_overlay(text, events):
    app = parse(text)
    assert visible(told(app, events)) == visible(each_alone(app, events))


@some
@given(text=mine, events=histories())
def test_history_in_shards_and_stages(text, events):
    sharded = pytest.importorskip("support.sharded")
    app = parse(text)
    assert visible(sharded.sharded(app, events)) == visible(engine(app, events))


@settings(max_examples=6, deadline=None)
@given(text=mine, events=histories(least=1), data=st.data())
def test_files_as_they_arrive(text, events, data):
    lives = pytest.importorskip("support.live")

    def run(here, app, **how):
        lives.Stream(here.live(app, shards=3, **how), readers=2).run()

    app, parts = parse(text), data.draw(cut(in_order(events)))
    assert visible(lives.in_parts(app, parts, run)) == visible(engine(app, events))
