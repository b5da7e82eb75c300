"""The README of a distribution, which is read outside the repository, and its addresses.

Links into the repository lead to where HOLDFAST_HOME says that it is read (an address that ends before the
path); without it they are plain words, because a link that leads nowhere is worse than none.
"""

import os
import re
from pathlib import Path

from setuptools import setup

LINK = re.compile(r"(!?)\[((?:!\[[^]]*\]\([^)]*\)|[^][])*)\]\((?!https?://|#)([^)]*)\)")


def outside(text: str, home: str) -> str:
    """A page of the repository, as it is read elsewhere; pictures inside links come first."""

    def led(found: re.Match[str]) -> str:
        picture, words, path = found.groups()
        words = outside(words, home)
        return f"{picture}[{words}]({home.rstrip('/')}/{path})" if home else words

    return LINK.sub(led, text)


PAGES = {"Documentation": "docs/README.md", "Changelog": "CHANGELOG.md", "Source": ""}


def addresses(home: str) -> dict[str, str]:
    """Where people find what belongs to a distribution, if that is anywhere."""
    return {name: f"{home.rstrip('/')}/{path}" for name, path in PAGES.items()} if home else {}


if __name__ == "__main__":
    readme = Path(__file__).with_name("README.md").read_text("utf-8")
    home = os.environ.get("HOLDFAST_HOME", "")
    setup(
        long_description=outside(readme, home),
        long_description_content_type="text/markdown",
        project_urls=addresses(home),
    )
