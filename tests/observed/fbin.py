#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files of the fbin family and what they hold, where those are at hand.

  fbin.py TENFOLD FIXTURES
"""
from expected import Watcher, identical

Watcher("fbin").go(identical)
