"""How many subscriptions are left when covered ones are dropped and overlapping ones merged.

[Fulcrum, §3.4.6, figures 3-7 to 3-10; B12]  Subscriptions come from one connection, one after the other.
One that another covers goes; two that are equal in all attributes but one, and overlap there, become one.
"""
