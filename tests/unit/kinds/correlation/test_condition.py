"""Checked correlations: the topics of their notifications."""

from __future__ import annotations

import pytest

from holdfast import DefinitionError, check, parse

TEXT = """
topic T (value float)
topic U (value float)
correlate Storm within 2 min
  T.value in [0, 2]
  U.value in [0, 2]
"""


def test_a_correlation_that_emits_simple_events_has_the_topics_of_its_filters():
    (condition,) = check(parse(TEXT)).conditions
    assert [topic.name for topic in condition.output_topics] == ["T", "U"]


def test_a_correlation_that_emits_events_of_several_topics_cannot_be_muted():
    with pytest.raises(DefinitionError):
        check(parse(TEXT + 'mute Storm during "Sat 00:00 – Mon 06:00" in "Europe/Berlin"\n'))
