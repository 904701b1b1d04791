# SPDX-License-Identifier: MIT
"""Other packages' names over our reader: safetensors, finalfusion, gensim."""
