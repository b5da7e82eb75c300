"""Distributed memoization on three brokers.

[Fulcrum §7.3, Table 7-10; B44–B47, B75]  A chain ping – EB1 – EB2 – EB3 – pong over TCP.  Each client
makes n advertisements and n subscriptions that differ in their last attribute only (``Id = A, Source =
ping|pong, Count = #``), then notifications.  What is timed is a broker's whole work on one message:
matching, storing, and saying where it goes.  *Memoized* is what EB2 and EB3 need when the broker before
has told them what it matched; *regular* is what the same two need when it has not.
"""
