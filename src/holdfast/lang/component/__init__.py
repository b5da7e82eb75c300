"""The part of the language that speaks of State Maintenance Components."""
