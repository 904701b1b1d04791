# SPDX-License-Identifier: MIT
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

__all__ = ["TensorSource"]

class TensorSource(DataSource):
    @classmethod
    def name(cls) -> str: ...
    def schema(self) -> str: ...
    def reader(self, schema: StructType) -> DataSourceReader: ...
