#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checkpoints that Orbax wrote, if they are available.

  orbax.py TENFOLD FIXTURES
"""
from expected import Watcher

Watcher("orbax").go()
