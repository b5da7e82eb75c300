"""Buddies who come near one another, watched by agents at the edge of an overlay.  [Fulcrum §7.1]

The document replays a week of positions of 643 users of ActiveCampus, which are not public.  Ours are walks
on a campus (KAIST), used again with offsets in time and place.
"""
