"""The local runtime: live events through an :class:`~holdfast.runtimes.local.engine.Engine`, history through
:func:`~holdfast.runtimes.local.replay.replay`.
"""
