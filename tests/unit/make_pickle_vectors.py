#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pickles that Python's own pickle module writes, with their values, for test_pickle.c.

  make_pickle_vectors.py > vectors/pickle.txt

A line is: hex of the pickle, a tab, Python's repr() of the value (calls by their names).
"""
import collections
import decimal
import pickle
import pickletools

VALUES = [
    None, True, False, 0, 1, -1, 255, 256, 65535, 65536, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 0.0, -0.0, 1.5,
    1e300, 1e-5, 0.1, 123456789.125, 1e16, float("inf"), float("-inf"), "", "abc", "it's", 'both \' and "', "h\u00e9llo \U0001f600",
    "line\nfeed\ttab\\", b"", b"abc\x00\xff", [], [1], [1, 2, 3], (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), {}, {"a": 1},
    {"a": [1, {"b": (2, None)}], 5: "x"}, [[[]]], list(range(1500)),
]


def shown(value, protocol):
    if value == b"" and isinstance(value, bytes) and protocol < 3:
        return "builtins.bytes()"
    if isinstance(value, bytes) and protocol < 3:
        text = value.decode("latin-1")
        return f"_codecs.encode({text!r}, 'latin1')"
    return repr(value)


def main():
    for value in VALUES:
        for protocol in range(6):
            for data in (pickle.dumps(value, protocol), pickletools.optimize(pickle.dumps(value, protocol))):
                print(data.hex(), shown(value, protocol), sep="\t")
    for protocol in range(6):
        print(pickle.dumps(collections.OrderedDict(), protocol).hex(), "collections.OrderedDict()", sep="\t")
        print(pickle.dumps(decimal.Decimal("1.5"), protocol).hex(), "decimal.Decimal('1.5')", sep="\t")
        print(pickle.dumps(bytearray(b"a\xff"), 5).hex(), "bytearray(b'a\\xff')", sep="\t")
        print(pickle.dumps(1 << 70, protocol).hex(), "0x400000000000000000", sep="\t")
        print(pickle.dumps(-(1 << 70), protocol).hex(), "0xc00000000000000000", sep="\t")
    print(pickle.dumps({7}, 4).hex(), "{7}", sep="\t")
    print(pickle.dumps(frozenset({7}), 4).hex(), "frozenset({7})", sep="\t")


if __name__ == "__main__":
    main()
