#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models that TensorFlow converted, where those are at hand.

  tflite.py TENFOLD FIXTURES
"""
from expected import Watcher

Watcher("tflite").go()
