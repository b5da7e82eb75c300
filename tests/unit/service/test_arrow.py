"""Arrow bodies from anybody: what is wrong is refused before the log has it."""

from __future__ import annotations

import json
import random

import numpy as np
import pyarrow as pa
import pytest

from holdfast.errors import UsageError
from holdfast.model.batch import TIME, times
from holdfast.model.instant import DAY, SECOND, instant
from holdfast.model.topic import Attribute, Topic
from holdfast.service.feeds.arrow import read_stream

TOPIC = Topic(
    "Climate",
    (Attribute("value", "float"), Attribute("name", "text"), Attribute("n", "int"), Attribute("on", "bool")),
)
NOW = instant("2026-06-21T12:00:00Z")
MOST = 1 << 20
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}


def columns(rows=3, **other):
    return {
        "time": pa.array([NOW - i * SECOND for i in range(rows)], pa.timestamp("us", "UTC")),
        "source": pa.array([f"s{i}" for i in range(rows)]),
        "value": pa.array([26.0] * rows),
        **other,
    }


def stream(batch, **options):
    sink = pa.BufferOutputStream()
    batch = batch if isinstance(batch, pa.RecordBatch) else pa.RecordBatch.from_pydict(batch)
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def text(offsets, data):
    """A text column of such bytes, right or wrong."""
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def read(body, most=MOST):
    return read_stream(TOPIC, body, NOW, most)


def test_a_valid_arrow_body_is_read():
    found = read(stream(columns(name=pa.array(["a", None, "ü"]))))
    (batch,) = found.batches
    assert (found.corrected, batch.column("name").to_pylist()) == (0, ["a", None, "ü"])


@pytest.mark.parametrize("column", ["source", "name"])
@pytest.mark.parametrize(
    "wrong",
    [
        text([0, 1, 3, 4], b"a\xff\xfeb"),
        text([0, 1, 1 << 30, 2], b"ab"),
        text([0, 2, 1, 2], b"ab"),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 1], pa.int32()), text([0, 1, 2], b"a\xff")),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 90], pa.int32()), pa.array(["a", "b"]), safe=False),
    ],
    ids=["no text", "an offset beyond the text", "an offset that goes back", "no text in a dictionary",
         "a word that a dictionary lacks"],
)  # fmt: skip
def test_invalid_text_and_offsets_outside_the_buffer_are_refused(column, wrong):
    with pytest.raises(UsageError, match="not an Arrow stream that can be read"):
        read(stream(columns(**{column: wrong})))


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_compressed_body_that_expands_is_refused_before_it_is_decoded(codec):
    many = MOST // 4
    body = stream(columns(name=pa.array(["x"] + [None] * 2), value=pa.array([1.0] * 3)), compression=codec)
    assert len(read(body).batches) == 1
    zeros = columns(rows=1)
    zeros = {name: pa.concat_arrays([column] * many) for name, column in zeros.items()}
    body = stream(zeros, compression=codec)
    assert 4 * len(body) < many * 21, "bytes of a time, a source with its offset, and a value"
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(UsageError, match="at most"):
        read(body)
    assert pa.default_memory_pool().max_memory() == before


def test_dictionary_entries_that_expand_are_refused():
    word = pa.array(["x" * 10_000])
    index = pa.array(np.zeros(1_000, np.int8))
    body = stream(columns(rows=1_000, name=pa.DictionaryArray.from_arrays(index, word)))
    assert len(body) < 100_000
    with pytest.raises(UsageError, match="at most"):
        read(body)


def test_views_that_repeat_one_text_many_times_are_refused():
    views = pa.array(["x" * 10_000], pa.string_view())
    views = pa.concat_arrays([views] * 1_000)
    buffers = views.buffers()
    one = bytes(buffers[1])[:16]
    again = pa.Array.from_buffers(pa.string_view(), 1_000, [None, pa.py_buffer(one * 1_000), buffers[2]])
    assert read(stream(columns(name=pa.array(["short", None, "y" * 50], pa.string_view())))).batches
    with pytest.raises(UsageError, match="at most"):
        read(stream(columns(rows=1_000, name=again)))


def test_rows_without_data_are_refused():
    nothing = pa.nulls(MOST)
    with pytest.raises(UsageError):
        read(stream({"time": nothing, "source": nothing, "value": nothing}))


def test_columns_that_the_topic_does_not_declare_are_not_read():
    deep = pa.array([[{"a": [1]}]] * 3)
    (batch,) = read(stream(columns(other=deep))).batches
    assert "other" not in batch.schema.names


def test_a_reading_from_the_future_gets_the_time_of_its_arrival():
    at = pa.array([NOW, NOW + 30 * SECOND, instant("9990-01-01")], pa.timestamp("us", "UTC"))
    found = read(stream(columns(time=at)))
    assert (times(found.batches[0]).tolist(), found.corrected) == ([NOW, NOW + 30 * SECOND, NOW], 1)
    ours = pa.array([NOW, NOW, NOW + 8_000 * 365 * DAY], pa.timestamp("us", "UTC"))
    with pytest.raises(UsageError, match="outside the years"):
        read(stream(columns(time=ours)))


def test_random_bodies_are_read_or_refused():
    """Random damage to bodies of all kinds: what is taken is whole, all else is an error in words."""
    words = pa.array(["a", "bb", "a"]).dictionary_encode()
    whole = [
        stream(columns(name=pa.array(["a", None, "cc"]), n=pa.array([1, None, 3]), on=pa.array([True] * 3))),
        stream(columns(name=words)),
        stream(columns(name=words), compression="zstd"),
        stream(columns(rows=200, n=pa.array(range(200))), compression="lz4"),
        stream(columns(name=pa.array(["a", None, "y" * 50], pa.string_view()))),
        stream(columns(name=pa.array(["a", None, "y" * 50], pa.large_string()))),
    ]
    chance, taken = random.Random(7), 0
    for _ in range(3_000):
        body = bytearray(chance.choice(whole))
        for _ in range(chance.choice([1, 1, 1, 2, 5])):
            place = chance.randrange(len(body))
            body[place] = chance.choice([0, 1, 127, 128, 255, body[place] ^ (1 << chance.randrange(8))])
        if chance.random() < 0.1:
            del body[chance.randrange(len(body)) :]
        try:
            found = read(bytes(body))
        except UsageError:
            continue
        for batch in found.batches:
            batch.validate(full=True)
            json.dumps(batch.to_pylist(), default=str)
            taken += 1
    assert taken > 100


def test_a_poisoned_body_is_refused_and_the_service_continues(asked):
    async def story(client, site):
        url, before = "/api/readings?topic=Badge", site.service.log.next
        poison = columns(name=text([0, 1, 3, 4], b"a\xff\xfeb"))
        answer = await client.post(url, content=stream(poison), headers=ARROW)
        assert (answer.status_code, site.service.log.next) == (422, before)
        answer = await client.post(url, content=stream(columns(name=pa.array(["John"] * 3))), headers=ARROW)
        assert answer.json() == {"taken": 3, "rejected": []}
        late = columns(name=pa.array(["John"] * 3), time=pa.array([instant("9990-01-01")] * 3).cast(TIME))
        assert (await client.post(url, content=stream(late), headers=ARROW)).json()["taken"] == 3
        assert site.service.counts.corrected == 3
        await site.service.wait_until_evaluated()
        assert not site.service.failed.done()

    asked(story)


def test_the_limit_of_a_decoded_body_is_a_setting(asked):
    async def story(client, site):
        body = stream(columns(rows=1_000, name=pa.array(["John"] * 1_000)))
        answer = await client.post("/api/readings?topic=Badge", content=body, headers=ARROW)
        assert (answer.status_code, "at most 10,000 bytes" in answer.text) == (422, True)

    asked(story, limits={"decoded": "10 kB"})
