"""``holdfast serve``: one process that receives readings, stores them, evaluates conditions and notifies.

Everything that can change a result is an entry of the log: readings, time that advances by the clock, a
changed definition. An entry is on disk before its sender gets an acknowledgement. The engine is a function of
the log, so after a crash a snapshot and the entries after it give the same state.

``service`` joins the parts: ``feeds`` deliver readings, ``log`` stores them, ``core`` evaluates them, and
``sinks`` send notifications. ``api`` is the HTTP interface, and ``serve`` runs all of it.
"""
