#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checkpoints that TensorFlow wrote, where those are at hand.

  tensorbundle.py TENFOLD FIXTURES
"""
from expected import Watcher

Watcher("tensorbundle").go()
