"""A real Delta table whose rows were deleted: with the release of Spark that Delta is made for, in an
environment of its own, so a long test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPARK, DELTA = "pyspark==4.2.0", "io.delta:delta-spark_4.2_2.13:4.4.0"
STORY = """
import json, sys
from pyspark.sql import SparkSession
import holdfast as hf
folder, package = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.jars.packages", package)
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.sql.execution.arrow.pyspark.enabled", "true")
    .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    .getOrCreate()
)
columns = "timestamp_micros(id * 1000000) AS time", "concat('s', id % 10) AS source", "id AS sequence"
value = "20 + 10 * sin(id / 50.0 + id % 10) AS value"
rows = spark.range(20_000).selectExpr(*columns, value)
rows.write.format("delta").save(folder)
spark.sql(f"ALTER TABLE delta.`{folder}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
spark.sql(f"DELETE FROM delta.`{folder}` WHERE source = 's3' OR sequence % 7 = 0")
app = "topic T (value float)\\nstate Warm on T [value > 25; value < 22] per source"
left = rows.where("source <> 's3' AND sequence % 7 <> 0").toPandas()
events = [
    hf.Event("T", row.time.value // 1000, row.source, {"value": row.value}, row.sequence)
    for row in left.sort_values("sequence").itertuples()
]
engine = hf.Engine(app)
expected = sorted(n.id for event in events for n in engine.push(event))
frame = spark.read.format("delta").load(folder)
found = {plan: sorted(row.id for row in hf.spark.replay(app, frame, plan=plan).collect())
         for plan in (None, "native", "packed")}
print(json.dumps([len(expected), [plan for plan, ids in found.items() if ids != expected]]))
"""


@pytest.mark.soak
def test_deleted_rows_of_a_delta_table_cause_no_notifications(tmp_path):
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, f"{ROOT}[spark]", SPARK], check=True)
    environment = os.environ | {"PYSPARK_PYTHON": str(python)}
    story = [python, "-c", STORY, tmp_path / "table", DELTA]
    done = subprocess.run(story, check=False, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3_000:]
    expected, wrong = json.loads(done.stdout.splitlines()[-1])
    assert expected > 500
    assert wrong == []
