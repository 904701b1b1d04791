# SPDX-License-Identifier: MIT
from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from .jobs import Job, _Path

__all__ = ["TensorSource", "convert", "hash", "nearest", "run", "verify"]

class TensorSource(DataSource):
    @classmethod
    def name(cls) -> str: ...
    def schema(self) -> str: ...
    def reader(self, schema: StructType) -> DataSourceReader: ...

def run(spark: SparkSession, job: Job, *, base: _Path | None = None, trust_content: bool = False,
        threads: int = 1) -> dict[str, Any]: ...
def convert(spark: SparkSession, src: _Path, dst: _Path, parts: int, **keywords: Any) -> dict[str, Any]: ...
def verify(spark: SparkSession, src: _Path | Sequence[_Path], parts: int,
           **keywords: Any) -> dict[str, Any]: ...
def hash(spark: SparkSession, src: _Path | Sequence[_Path], parts: int,
         **keywords: Any) -> dict[str, Any]: ...
def nearest(spark: SparkSession, src: _Path, queries: Sequence[str], k: int = 10, *, parts: int,
            **keywords: Any) -> dict[str, Any]: ...
