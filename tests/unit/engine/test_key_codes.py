"""Keys are a dict from texts to 0, 1, 2, …"""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine import key_codes as module
from holdfast.engine.key_codes import KeyCodes, are_distinct, with_room
from holdfast.errors import UsageError
from support import naive_kernels as naive

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["", "a", "b", "room-1", "é", "日本", "🙂", "\x00", "a\x00", "x" * 300]
)
takings = st.lists(
    st.tuples(st.just("one"), texts) | st.tuples(st.just("many"), st.lists(texts, max_size=12)),
    max_size=12,
)


@pytest.fixture
def small_limits(monkeypatch):
    """Batches of three and more go through the kernel, five at a time, and only four recent keys are
    remembered."""
    monkeypatch.setattr(module, "_FEW", 3)
    monkeypatch.setattr(module, "_AT_ONCE", 5)
    monkeypatch.setattr(module, "_RECENT", 4)


def agrees(keys, known):
    """The keys are exactly those of a dict, whichever way they are asked for."""
    size = len(known)
    assert len(keys) == size
    assert keys.all().to_pylist() == list(known)
    assert [keys.key(code) for code in range(size)] == list(known)
    backwards = np.arange(size)[::-1]
    assert keys.take(backwards).to_pylist() == list(known)[::-1]
    assert [keys.code(key) for key in known] == list(known.values())
    return True


def take_all(takings):
    """Number keys singly and in batches, with KeyCodes and with a dict."""
    keys, known = KeyCodes(), {}
    for how, what in takings:
        expected, known = naive.number([what] if how == "one" else what, known)
        got = [keys.code(what)] if how == "one" else keys.codes(pa.array(what, pa.string())).tolist()
        assert got == expected
    return keys, known


@given(takings)
def test_key_codes_equal_a_dict(takings):
    assert agrees(*take_all(takings))


@pytest.mark.usefixtures("small_limits")
@given(takings)
def test_key_codes_equal_a_dict_across_the_limits_of_batch_and_memory(takings):
    assert agrees(*take_all(takings))


@pytest.mark.usefixtures("small_limits")
@given(st.lists(texts, min_size=3, max_size=12), st.data())
def test_a_slice_of_an_array_is_read_from_its_offset(values, data):
    begin = data.draw(st.integers(0, len(values)))
    size = data.draw(st.integers(0, len(values) - begin))
    part = pa.array(values, pa.string()).slice(begin, size)
    assert KeyCodes().codes(part).tolist() == naive.number(values[begin : begin + size], {})[0]


@pytest.mark.usefixtures("small_limits")
@given(st.lists(st.lists(st.none() | texts, max_size=12), max_size=4))
def test_dictionary_encoding_has_no_unused_words(batches):
    keys = KeyCodes()
    for names in batches:
        coded = keys.encode(pa.array(names, pa.string()))
        assert coded.to_pylist() == names
        words = coded.dictionary.to_pylist()
        assert len(set(words)) == len(words) <= max(len(names), len(set(names)))


@pytest.mark.usefixtures("small_limits")
@given(st.lists(texts, max_size=12), st.integers(0, 3))
def test_keys_are_distinct_exactly_if_a_set_has_as_many(values, begin):
    part = pa.array(values, pa.string()).slice(begin)
    assert are_distinct(part) == (len(set(values[begin:])) == len(values[begin:]))


@pytest.mark.parametrize("size", [4_095, 4_096, 4_097, 20_000])
def test_batches_on_both_sides_of_the_limit_agree(size):
    values = [f"key {i * 31 % 5_000}" for i in range(size)]
    keys = KeyCodes()
    expected, known = naive.number(values, {})
    assert keys.codes(pa.array(values)).tolist() == expected
    assert agrees(keys, known)


def test_a_batch_of_empty_texts_is_one_key():
    keys = KeyCodes()
    assert set(keys.codes(pa.array([""] * 5_000)).tolist()) == {0}
    assert (len(keys), keys.key(0), keys.code("")) == (1, "", 0)


def test_two_hundred_thousand_keys_are_numbered_singly_and_in_batches():
    """More than are remembered as recent, so that old ones are found in the table."""
    keys = KeyCodes()
    singly = [f"s{i}" for i in range(70_000)]
    together = [f"s{i}" for i in range(60_000, 200_000)]
    assert [keys.code(key) for key in singly] == list(range(70_000))
    assert keys.codes(pa.array(together)).tolist() == list(range(60_000, 200_000))
    assert [keys.code(key) for key in ("s0", "s69999", "s199999", "new")] == [0, 69_999, 199_999, 200_000]
    assert keys.take(np.array([3, 0, 199_999])).to_pylist() == ["s3", "s0", "s199999"]
    everything = np.arange(200_001)
    assert keys.take(everything).equals(keys.all())
    assert keys.nbytes < 10_000_000


def test_an_extracted_array_does_not_change_when_keys_are_added():
    keys = KeyCodes()
    keys.code("a")
    early = keys.all()
    for i in range(1_000):
        keys.code(f"b{i}")
    assert early.to_pylist() == ["a"]


def test_keys_with_equal_hashes_are_distinguished():
    keys = KeyCodes()
    assert [keys.code(k) for k in ("plumless", "buckeroo", "plumless")] == [0, 1, 0]


def test_half_of_a_surrogate_pair_is_refused_as_invalid_text():
    with pytest.raises(UsageError, match="not valid text"):
        KeyCodes().code("\ud800")


# --- grown ---


def test_an_array_grows_to_the_requested_size_and_at_least_doubles():
    array = np.array([1, 2, 3])
    assert with_room(array, 3) is array
    assert with_room(array, 4, fill=-1).tolist() == [1, 2, 3, -1, -1, -1]
    assert with_room(array, 9).tolist() == [1, 2, 3, 0, 0, 0, 0, 0, 0]


def test_a_table_grows_along_its_last_axis_and_keeps_its_kind():
    table = np.array([[1, 2], [3, 4]], np.uint8)
    wider = with_room(table, 3, fill=7)
    assert wider.tolist() == [[1, 2, 7, 7], [3, 4, 7, 7]]
    assert wider.dtype == np.uint8
    assert with_room(np.zeros(0, np.int64), 2).tolist() == [0, 0]
