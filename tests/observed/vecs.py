#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files of the vecs family and what they hold, where those are at hand.

  vecs.py TENFOLD FIXTURES
"""
from expected import Watcher, identical

Watcher("vecs").go(identical)
