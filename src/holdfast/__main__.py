"""Entry point of ``python -m holdfast``, which runs the same program as the command ``holdfast``."""

from holdfast.cli import main

main()
