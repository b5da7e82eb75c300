"""The part of the language that speaks of correlations."""
