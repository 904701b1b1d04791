# SPDX-License-Identifier: MIT
"""Checkpoints with torch: torch_peers.py make FILE BYTES | open FILE N. "make" saves a checkpoint with the
names of a model of 7 billion parameters (32 layers of nine tensors, and three more), with BYTES in total. "open"
loads it without reading the numbers (mmap=True, weights_only=True) and visits every tensor, N times.
Prints one JSON object; only the work is timed."""
import json
import sys
import time

import torch

ROLES = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj",
         "mlp.up_proj", "mlp.down_proj", "input_layernorm", "post_attention_layernorm")


def make(path, size):
    width = int((size / (32 * 7 + 2) / 2) ** 0.5) // 64 * 64
    square = torch.randn(width, width).to(torch.bfloat16)
    tensors = {"model.embed_tokens.weight": square.clone(), "model.norm.weight": square[0].clone(), "lm_head.weight": square.clone()}
    for layer in range(32):
        for role in ROLES:
            tensors[f"model.layers.{layer}.{role}.weight"] = square[0].clone() if "norm" in role else square.clone()
    torch.save(tensors, path)


def look(path):
    start = time.monotonic()
    tensors = torch.load(path, mmap=True, weights_only=True)
    sum(len(name) + t.dim() for name, t in tensors.items())
    return time.monotonic() - start


def main():
    what, path, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if what == "make":
        make(path, n)
    else:
        look(path)  # not counted
        print(json.dumps({"seconds": [look(path) for _ in range(n)], "version": torch.__version__}))


if __name__ == "__main__":
    main()
