"""DataFrames and streams of users as input, and Holdfast as a data source for Spark.

``replay`` selects a plan for a DataFrame; ``native``, ``closed`` and ``scan`` are plans. ``stream`` is for
streaming DataFrames, ``datasource`` for ``spark.read.format("holdfast")``.
"""
