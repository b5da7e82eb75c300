"""Items as columns of floats: nothing that is asked for is missed, and little else is found."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.network.protocols.cbps.columns import BoxColumns
from holdfast.network.protocols.cbps.content import BoxRelation, Constraint, Filter, box_of, is_related
from support import naive_match as naive


def some_filters():
    return st.lists(naive.filters() | naive.numeric_filters, max_size=8).map(
        lambda found: [f for f in found if f.box and not f.is_empty]
    )


@given(some_filters(), naive.filters() | naive.numeric_filters)
def test_every_item_that_contains_a_box_or_lies_in_it_is_found(filters, asked):
    if asked.is_empty:
        return
    columns = BoxColumns({i: filter_.box for i, filter_ in enumerate(filters)})
    for found, relation in (
        (columns.containing(asked.box), BoxRelation("superset", "subset")),
        (columns.within(asked.box), BoxRelation("subset", "superset")),
    ):
        wanted = {i for i, filter_ in enumerate(filters) if is_related(asked.box, filter_.box, relation)}
        assert wanted <= set(found)


def ranges(count):
    return {
        i: Filter((Constraint("x", "double", ">=", i), Constraint("x", "double", "<=", i + 1.5))).box
        for i in range(count)
    }


def test_disjoint_items_are_not_found():
    columns = BoxColumns(ranges(200))
    assert sorted(columns.containing(box_of({"x": 50.25}))) == [49, 50]
    assert sorted(columns.containing(box_of({"y": 50.25}))) == []
    wide = Filter((Constraint("x", "long", ">=", 50), Constraint("x", "long", "<=", 53)))
    assert sorted(columns.within(wide.box)) == [50, 51]
    narrow = Filter((Constraint("x", "double", ">", 50.1), Constraint("x", "double", "<", 50.2)))
    assert sorted(columns.containing(narrow.box)) == [49, 50]


def test_inserted_items_are_found_and_deleted_items_are_not():
    columns = BoxColumns(ranges(100))
    columns.remove(50)
    columns.add({7000: ranges(51)[50]})
    assert sorted(columns.containing(box_of({"x": 50.25}))) == [49, 7000]
    assert columns.fits(ranges(1)[0])
    assert not columns.fits(box_of({"colour": "red"}))


def test_texts_are_distinguished_by_their_prefix():
    def name_box(op, value):
        return Filter((Constraint("name", "text", op, value),)).box

    columns = BoxColumns(
        {
            0: name_box("=", "John"),
            1: name_box("prefix", "Jo"),
            2: name_box(">", "K"),
            3: name_box("any", None),
        }
    )
    assert sorted(columns.containing(box_of({"name": "John"}))) == [0, 1, 3]
    assert sorted(columns.containing(box_of({"name": "Zoë"}))) == [2, 3]
    assert sorted(columns.within(name_box("prefix", "J"))) == [0, 1]


def test_numbers_beyond_the_range_of_floats_are_found():
    columns = BoxColumns({0: Filter((Constraint("x", "double", ">", 1e300),)).box})
    assert list(columns.containing(box_of({"x": 10**400}))) == [0]
