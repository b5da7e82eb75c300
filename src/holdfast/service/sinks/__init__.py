"""Where notifications go.  Each sink has its own position, and one that is down delays nobody."""
