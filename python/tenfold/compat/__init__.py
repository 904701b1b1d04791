# SPDX-License-Identifier: MIT
"""Replacements for other packages: safetensors, finalfusion and gensim."""
