"""DataFrames and streams of users as input, and Holdfast as a data source for Spark."""
