"""The part of the language that speaks of relationships between publishers."""
