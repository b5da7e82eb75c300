"""One package per kind of condition."""
