"""The local runtime, in this process.

An :class:`~holdfast.runtimes.local.engine.Engine` evaluates live events;
:func:`~holdfast.runtimes.local.replay.replay` processes history.
"""
