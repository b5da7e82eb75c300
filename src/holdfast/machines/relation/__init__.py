"""Relationships between publishers: state filters over a measure of the latest readings of each tie."""
