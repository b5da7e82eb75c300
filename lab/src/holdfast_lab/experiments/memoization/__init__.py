"""Distributed memoization on three brokers. [Fulcrum §7.3, Table 7-10; B44–B47, B75]

A chain ping – EB1 – EB2 – EB3 – pong runs over TCP. Each client makes n advertisements and n subscriptions
that differ only in their last attribute (``Id = A, Source = ping|pong, Count = #``), then publishes
notifications. The experiment measures a broker's complete work on one message: matching, storing and routing.
*Memoized* is the time of EB2 and EB3 when the previous broker sent its matches. *Regular* is their time
without them.
"""
