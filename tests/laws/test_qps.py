"""Quad-PubSub: deliveries are those of a judge, whatever the network, the regions and the order."""

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from support.fields import World

few = settings(max_examples=int(os.environ.get("HOLDFAST_EXAMPLES") or 40), deadline=None)
POLICIES = st.sampled_from(["best-effort", "guaranteed"])


@few
@given(st.integers(0, 2**32), POLICIES, st.booleans(), st.booleans())
def test_every_subscriber_gets_every_matching_event_once(seed, compliance, settled, wide):
    world = World(seed, compliance, settled, wide)
    for _ in range(3):
        for _ in range(world.chance.randint(3, 12)):
            world.something()
        world.network.settle()
        world.came()
        due = world.publish()
        world.network.settle()
        assert world.came() == due
        world.require_partition()
        if compliance == "guaranteed":
            world.require_epsilon()
