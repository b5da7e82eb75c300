"""Where readings come from.  A feed makes submissions; it acknowledges what the log has."""
