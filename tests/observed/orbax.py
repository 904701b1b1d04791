#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checkpoints that Orbax wrote, where those are at hand.

  orbax.py TENFOLD FIXTURES
"""
from expected import Watcher

Watcher("orbax").go()
