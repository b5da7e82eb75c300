"""The names of ``import holdfast``, which are imported on first use."""

from __future__ import annotations

import pytest

import holdfast


def test_every_public_name_leads_to_an_object_of_the_package() -> None:
    assert holdfast._HOME.keys() == set(holdfast.__all__)
    for name in holdfast.__all__:
        found = getattr(holdfast, name)
        assert found.__module__.startswith("holdfast.")
        assert name in dir(holdfast)


def test_an_unknown_name_raises_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'holdfast' has no attribute 'Engin'"):
        holdfast.Engin  # noqa: B018
