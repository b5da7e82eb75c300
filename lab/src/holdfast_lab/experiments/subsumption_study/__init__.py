"""How many subscriptions remain when covered ones are dropped and overlapping ones are merged.

[Fulcrum, §3.4.6, figures 3-7 to 3-10; B12] Subscriptions arrive one after the other over one connection. A
covered subscription is dropped. Two subscriptions that overlap in one attribute and are equal in all others
are merged.
"""
