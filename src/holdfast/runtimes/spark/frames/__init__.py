"""A user's own DataFrames and streams, and Holdfast as a data source."""
