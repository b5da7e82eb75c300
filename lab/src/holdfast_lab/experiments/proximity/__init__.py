"""Proximity of buddies, monitored by agents at the edge of an overlay. [Fulcrum §7.1]

The document replays a week of positions of 643 users of ActiveCampus, which are not public. We use walks on a
campus (KAIST), repeated with offsets in time and place.
"""
