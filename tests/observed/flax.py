#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files that Flax wrote, if they are available.

  flax.py TENFOLD FIXTURES
"""
from expected import Watcher, identical


def again(watcher, path, scratch):
    if path.name != "chunked.msgpack":  # made with a smaller limit for pieces
        identical(watcher, path, scratch)


Watcher("flax").go(again)
