"""``python -m holdfast`` is ``holdfast``."""

from .cli import main

main()
