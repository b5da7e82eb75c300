import os, pytest
from hypothesis import Phase, given, settings, HealthCheck
from hypothesis import strategies as st
import holdfast as hf
from holdfast import parse
from support.runtimes import RUNTIMES, engine, in_order, session
from support import whole
from support.whole import cut, definitions, histories, visible
few=settings(max_examples=2,phases=[Phase.generate],deadline=None,database=None,suppress_health_check=list(HealthCheck))
long=histories(least=30,most=60).filter(lambda e: len({x.source for x in e})>1)
many=definitions(least=10,most=14,kinds={k:whole.KINDS[k] for k in ("Intervals","Fold")})
@few
@given(text=many,events=long)
def test_history(text,events):
    app=parse(text); want=visible(engine(app,events))
    print(len(want), sum('"topic": "Fold' in w or '"topic": "Intervals' in w for w in want))
    assert visible(RUNTIMES["spark"](app,events))==want
@few
@given(text=many,events=long,data=st.data())
def test_live(text,events,data):
    lives,spark=pytest.importorskip("support.live"),session()
    def run(here,app,**how):
        how|={"checkpoint":here.checkpoint,"every":None,"settle":0,"shards":3}
        hf.spark.run(hf.spark.live(app,here.inbox,**how),spark)
    app,parts=parse(text),data.draw(cut(in_order(events),parts=2))
    assert visible(lives.in_parts(app,parts,run))==visible(engine(app,events))
