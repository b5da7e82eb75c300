"""States with guards, silence, or a beginning of their own."""
