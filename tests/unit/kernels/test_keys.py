"""The hash table of keys, as Python and as machine code, against a dict."""

from itertools import pairwise
from zlib import crc32

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernels.keys import CRC, differ, look_up, rebuild
from support import naive_kernels as naive

keys = st.binary(max_size=6) | st.sampled_from([b"", b"a", b"b", b"ab", b"\x00", b"\xff" * 40])


class Table:
    """The arrays of a table with room for so many keys, and text to look up."""

    def __init__(self, room, slots):
        self.slots = np.full(slots, -1, np.int32)
        self.hashes = np.zeros(room, np.uint32)
        self.ends = np.zeros(room, np.int64)
        self.data = np.zeros(room * 40 + 1, np.uint8)
        self.after = np.zeros(room, np.int32)
        self.count = 0

    def look_up(self, how, wanted, most=-1):
        text = b"junk" + b"".join(wanted) + b"junk"
        bounds = np.cumsum([4, *map(len, wanted)]).astype(np.int32)
        codes = np.full(len(wanted), -7, np.int32)
        self.count = how(
            bounds[:-1],
            bounds[1:],
            np.frombuffer(text, np.uint8),
            CRC,
            self.slots,
            self.hashes,
            self.ends,
            self.data,
            self.after,
            self.count,
            most,
            codes,
        )
        return codes.tolist()

    def keys(self):
        ends = [0, *self.ends[: self.count].tolist()]
        return [self.data[begin:end].tobytes() for begin, end in pairwise(ends)]


def tight(size):
    """The fewest slots, a power of two, that leave one free: probing goes far and wraps around."""
    return 1 << size.bit_length()


@given(st.lists(keys, max_size=20), st.lists(keys, max_size=20))
def test_key_lookup_equals_numbering_with_a_dict(first, second):
    expected, known = naive.number(first, {})
    again, known = naive.number(second, known)
    for how in (look_up.body, look_up.compiled):
        table = Table(len(first) + len(second) + 1, tight(len(first) + len(second)))
        assert table.look_up(how, first) == expected
        assert table.look_up(how, second) == again
        assert table.keys() == list(known)
        assert table.hashes[: table.count].tolist() == [crc32(key) for key in known]


@given(st.lists(keys, max_size=30), st.integers(0, 2))
def test_a_rebuilt_table_finds_every_key_again(wanted, wider):
    expected, known = naive.number(wanted, {})
    for how in (rebuild.body, rebuild.compiled):
        table = Table(2 * len(wanted) + 1, tight(len(wanted)))
        table.look_up(look_up.body, wanted)
        table.slots = np.full(len(table.slots) << wider, -1, np.int32)
        how(table.hashes, table.count, table.slots)
        assert sorted(code for code in table.slots.tolist() if code >= 0) == list(range(len(known)))
        assert table.look_up(look_up.body, wanted) == expected
        assert table.count == len(known)


def test_keys_with_the_same_hash_are_distinguished():
    """ "plumless" and "buckeroo" have the same CRC-32."""
    twins = [b"plumless", b"buckeroo"]
    assert crc32(twins[0]) == crc32(twins[1])
    for how in (look_up.body, look_up.compiled):
        assert Table(4, 8).look_up(how, [*twins, *twins]) == [0, 1, 0, 1]


@given(st.lists(keys, max_size=30), st.lists(keys, max_size=30))
def test_a_full_table_finds_its_keys_and_accepts_no_new_one(first, second):
    _, known = naive.number(first, {})
    for how in (look_up.body, look_up.compiled):
        table = Table(len(first) + 1, tight(len(first)))
        table.look_up(how, first)
        assert table.look_up(how, second, most=table.count) == [known.get(key, -1) for key in second]
        assert table.count == len(known)


def test_a_hundred_thousand_keys_are_numbered_by_the_public_call():
    wanted = [b"sensor-%d" % (i * 7919 % 60_000) for i in range(120_000)]
    expected, known = naive.number(wanted, {})
    table = Table(len(wanted), 1 << 18)
    assert table.look_up(look_up, wanted) == expected
    assert table.keys() == list(known)


@given(st.lists(st.sampled_from([b"a", b"b", b"ab", b"plumless", b"buckeroo"]), min_size=1, max_size=4))
def test_switching_between_python_and_machine_code_changes_nothing(turn):
    """Keys that come in the same order again, and then one of them in another's place."""
    wanted = [*turn * 3, b"c", *turn, *turn[::-1]]
    expected, _ = naive.number(wanted, {})
    for how in (look_up.body, look_up.compiled):
        assert Table(len(wanted), tight(len(wanted))).look_up(how, wanted) == expected


@given(st.lists(keys | st.sampled_from([b"plumless", b"buckeroo"]), max_size=12))
def test_keys_are_different_exactly_if_a_set_has_as_many(wanted):
    bounds = np.cumsum([0, *map(len, wanted)]).astype(np.int32)
    text = np.frombuffer(b"".join(wanted) + b"junk", np.uint8)
    hashes = np.array([crc32(key) for key in wanted], np.uint32)
    for how in (differ.body, differ.compiled):
        slots = np.full(tight(len(wanted)), -1, np.int32)
        assert how(hashes, bounds[:-1], bounds[1:], text, slots) == (len(set(wanted)) == len(wanted))


@given(st.binary(max_size=300))
def test_the_hash_equals_crc_32_of_zlib(key):
    for how in (look_up.body, look_up.compiled):
        table = Table(10, 2)
        table.look_up(how, [key])
        assert table.hashes[0] == crc32(key)
