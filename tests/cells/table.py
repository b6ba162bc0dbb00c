#!/usr/bin/env python3
"""Prints the book's table of caches divided by heads and by cells.

    tests/cells/table.py target/release/tpc ../shared/models
"""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MODELS = [
    ("DeepSeek V3.1", "deepseek-v3.1-q4_k_m"),
    ("Qwen3.5 35B A3B", "qwen3.5-35b-a3b-q4_k_m"),
    ("Qwen3.5 122B A10B", "qwen3.5-122b-a10b-ud-q4_k_xl"),
    ("Qwen3.6 27B", "qwen3.6-27b-mtp-q4_k_m"),
    ("Qwen3 30B A3B", "qwen3-30b-a3b-q4_k_m"),
    ("Qwen3 14B", "qwen3-14b-q4_k_m"),
    ("Phi 4", "phi-4-q4_k_m"),
    ("Gemma 3 27B", "gemma-3-27b-it-q4_k_m"),
    ("Gemma 4 31B", "gemma-4-31b-it-q4_k_m"),
    ("gpt-oss 120B", "gpt-oss-120b-mxfp4"),
    ("GLM 4.5 Air", "glm-4.5-air-106b-a12b-iq4_xs"),
    ("Llama 3.1 70B", "llama-3.1-70b-instruct-q4_k_m"),
]
DEPTHS = [0, 32000, 128000]


def plan(tpc, path, devices, depth, split):
    command = [tpc, "plan", str(path), "--devices", f"{devices}xH100-SXM", "-c", "131072"]
    command += ["--depth", str(depth), "-sm", "tensor", "--cache-split", split]
    done = subprocess.run(command + ["--format", "json"], capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        return None


def cell(tpc, path, devices, depth):
    heads, cells, auto = (plan(tpc, path, devices, depth, s) for s in ("heads", "cells", "auto"))
    if not heads or not cells or not auto:
        return "–"
    speeds = [p["estimate"]["decode_tps"] for p in (heads, cells)]
    shown = [f"{s:.0f}" for s in speeds]
    chosen = 1 if auto["caches"]["split"] == "cells" else 0
    shown[chosen] = f"**{shown[chosen]}**"
    return " / ".join(shown)


def row(tpc, folder, name, file, devices):
    path = folder / f"{file}.header.gguf"
    kv = [plan(tpc, path, devices, 0, s) for s in ("heads", "cells")]
    gib = [max(d["kv_bytes"] for d in p["devices"]) / 2**30 if p else 0 for p in kv]
    cells = [cell(tpc, path, devices, depth) for depth in DEPTHS]
    return f"| {name} | {devices} | {gib[0]:.2f} / {gib[1]:.2f} | " + " | ".join(cells) + " |"


def main():
    tpc, folder = sys.argv[1], Path(sys.argv[2])
    print("| model | devices | GiB per device | depth 0 | 32,000 | 128,000 |")
    print("|---|---:|---:|---:|---:|---:|")
    rows = [(name, file, n) for name, file in MODELS for n in (2, 4, 8)]
    with ThreadPoolExecutor(2) as pool:
        for line in pool.map(lambda r: row(tpc, folder, *r), rows):
            print(line, flush=True)


main()
