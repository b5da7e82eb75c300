"""DuckDB: readings that say nothing dropped, the others compared with the one before by ``lag``."""

from __future__ import annotations

import os
from pathlib import Path


def run(folder: Path, output: Path) -> None:
    import duckdb

    output.mkdir()
    with duckdb.connect(config={"threads": os.cpu_count()}) as connection:
        connection.execute(
            f"""
            copy (
              with bits as (
                select time, source, value > 25 as warm from read_parquet('{folder}/*.parquet')
                where value > 25 or value < 22),
              turned as (
                select *, lag(warm, 1, false) over (partition by source order by time) as before from bits)
              select time, source, case when warm then 'ingress' else 'egress' end as status
              from turned where warm != before)
            to '{output}/transitions.parquet' (format parquet)
            """
        )
