"""``holdfast serve``: one process that takes readings, keeps them, says what holds, and shows it.

The log is the truth.  Whatever can change an answer (readings, time that goes on by the clock, a changed
definition) is an entry of it, durable before anybody is told that it was taken; the engine is a
function of the log, so that a snapshot and the entries after it give what there was before a crash.
"""
