"""Whether scopes are in order, as Python and as machine code, against a naive twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernels.order import UNORDERED, extents
from support import naive_kernels as naive

SCOPES = 3

rows = st.lists(
    st.tuples(st.integers(-1, SCOPES - 1), st.integers(0, 6), st.integers(0, 1), st.integers(0, 1)),
    max_size=12,
)


@pytest.mark.parametrize("how", [extents.body, extents.compiled], ids=["python", "compiled"])
@given(rows=rows | rows.map(lambda some: sorted(some, key=lambda row: row[1:])))
def test_the_last_rows_of_ordered_scopes_are_found(how, rows):
    codes, times, ranks, sequences = (np.array([row[i] for row in rows], np.int64) for i in range(4))
    first, last = np.full((2, SCOPES), -1, np.int64)
    found = how(codes.astype(np.int32), times, ranks.astype(np.int32), sequences, first, last)
    wanted = naive.extents(rows, SCOPES)
    assert found == (UNORDERED if wanted is None else wanted[0])
    if wanted is not None:
        assert (first.tolist(), last.tolist()) == wanted[1:]
