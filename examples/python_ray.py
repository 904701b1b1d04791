# SPDX-License-Identifier: MIT
"""Word vectors as a Ray dataset: each task of a Datasource reads a range of rows, as record batches
without a copy. python_ray.py [FILE]"""
import os
import sys
import tempfile

try:
    import pyarrow as pa
    import ray
    from ray.data import Datasource, ReadTask
    from ray.data.block import BlockMetadata
except ImportError:
    print("this example needs ray: pip install 'ray[data]'")
    sys.exit(77)

import tenfold


class Rows(Datasource):
    """The rows of a file of vectors: word, row, vector."""

    def __init__(self, path):
        self.path = path
        with tenfold.open(path) as file:
            info = tenfold._tenfold.Embeddings(file, {"no_index": True}).info
        self.rows = info["words"] if info["has_words"] else info["rows"]
        self.row_bytes = 4 * info["dims"] + 16

    def estimate_inmemory_data_size(self):
        return self.rows * self.row_bytes

    def get_read_tasks(self, parallelism, per_task_row_limit=None, **more):
        n = max(1, min(parallelism, self.rows))
        cuts = [(self.rows * i // n, self.rows * (i + 1) // n) for i in range(n)]
        path = self.path  # a task holds the path, not an open file
        return [ReadTask(lambda a=a, b=b: read_rows(path, a, b),
                         BlockMetadata(num_rows=b - a, size_bytes=(b - a) * self.row_bytes,
                                       input_files=[path], exec_stats=None))
                for a, b in cuts]


def read_rows(path, start, stop, step=20000):
    """Record batches of rows [start, stop)."""
    with tenfold.open(path) as file:
        emb = tenfold._tenfold.Embeddings(file, {"no_index": True, "threads": 1})
        for at in range(start, stop, step):
            rows = range(at, min(at + step, stop))
            array = emb.rows(rows)
            n, dims = array.shape
            values = pa.Array.from_buffers(pa.float32(), n * dims, [None, pa.py_buffer(array.raw)])
            yield pa.table({"word": [emb.word(row) for row in rows] if emb.info["has_words"] else
                            pa.nulls(n, pa.string()),
                            "row": pa.array(rows, pa.int64()),
                            "vector": pa.FixedSizeListArray.from_arrays(values, dims)})


def main():
    with tempfile.TemporaryDirectory() as directory:
        path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(directory, "words.txt")
        if len(sys.argv) < 2:
            with open(path, "w", encoding="utf-8") as out:
                out.write("1000 4\n")
                out.writelines(f"word{i} {i} {i + 1} {i + 2} {i + 3}\n" for i in range(1000))
            tenfold.convert(path, os.path.join(directory, "words.fifu"), source_format="textdims")
            path = os.path.join(directory, "words.fifu")
        ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR",
                 runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}})
        frame = ray.data.read_datasource(Rows(path), override_num_blocks=4)
        rows = sorted(frame.take_all(), key=lambda row: row["row"])
        print(len(rows), "rows;", rows[0]["word"], list(rows[0]["vector"]))
        ray.shutdown()
    return rows


if __name__ == "__main__":
    main()
