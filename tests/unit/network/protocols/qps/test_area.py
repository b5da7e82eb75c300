"""Parts of the plane: what rounding does to them does no harm."""

from holdfast.model.space import Polygon
from holdfast.network.protocols.qps import area


def test_an_area_that_crosses_itself_by_rounding_can_be_cut_and_joined():
    """One of 800 random layouts had this fault: a corner lies on the other side of a long side, by the
    last bit."""
    whole = area.of(Polygon(((16, 8), (24, 8), (24, 19.664083668059153), (18.35064658398561, 24), (16, 24))))
    spike = (4.213858945764123, 34.85007856438697), (18.35064658398561, 24.0)
    crossed = (((*spike, (16.0, 24.0), (16.0, 8.0), (24.0, 8.0), (24.0, 19.664083668059153)),),)
    assert area.difference(crossed, whole) == area.difference(whole, crossed) == area.NOTHING
    assert area.intersection(crossed, whole) == area.union(crossed, whole) == whole
