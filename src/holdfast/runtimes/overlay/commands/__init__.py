"""Behind the commands of the overlay.

serve      a broker as a process, and what it has done so far
publish    events from lines to a broker; lines, how a line is read
subscribe  what a subscriber hears, as lines; wanted, a filter as people write it
"""
