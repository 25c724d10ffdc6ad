#!/usr/bin/env python3
"""Writes a layer trace of OPS ops for benchmarks: a chain of kernels, a weight for each ten of them.

Usage: scripts/synthetic_trace.py OPS FILE.json
Each kernel takes about 12 us on a CloudMatrix384 die; a weight of about 1 MB is read every 120 us, so the
weights ask for 8 GB/s of the 151 GB/s link: what does not fit in HBM can be hidden.
"""
import json
import sys

ops = int(sys.argv[1])
tensors = [{"name": f"w{i}", "bytes": 1_000_000 + i % 7 * 1000, "kind": "weight"} for i in range((ops + 9) // 10)]
tensors += [{"name": f"x{i}", "bytes": 1000, "kind": "activation"} for i in range(ops)]
kernels = []
for i in range(ops):
    reads = ([f"w{i // 10}"] if i % 10 == 0 else []) + ([f"x{i - 1}"] if i else [])
    kernels.append({"name": f"op{i}", "flops": 3.76e9 * (1 + i % 5 * 0.1), "hbm_bytes": 10_000_000 + i % 13 * 100_000,
                    "reads": reads, "writes": [f"x{i}"], "layer": i // 10})
with open(sys.argv[2], "w", encoding="utf-8") as out:
    json.dump({"format": "hyperoffload-trace", "version": 1, "name": f"synthetic-{ops}", "tensors": tensors, "ops": kernels}, out)
