#!/usr/bin/env python3
"""Measures the memory that llama.cpp allocates, and writes it as JSON.

    memory.py TOOL HEADERS OUT.json     TOOL is memory.cpp built against llama.cpp (see its first lines)

HEADERS is a folder of header-only GGUF files. Each is extended to the size of its full file, without data, and loaded
without allocating. A row has the placement in tpc's words, and llama.cpp's bytes per device and on the host.
"""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

# Elements and bytes of a block of each element type, by ggml's number.
BLOCKS = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
          11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 16: (256, 66), 17: (256, 74), 18: (256, 98),
          19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4),
          27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 39: (32, 17)}
FIXED = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

# The placements in tpc's words, and the tool's options if they differ.
PLACEMENTS = [
    ({"devices": 1, "ctx": 4096}, []),
    ({"devices": 2, "ctx": 8192, "parallel": 4, "unified": True, "serves": True}, []),
    ({"devices": 3, "ctx": 16384, "ubatch": 1024}, []),
    ({"devices": 3, "ctx": 8192, "parallel": 4, "unified": True, "serves": True, "cards": "3x3090"}, ["--pipelines"]),
    ({"devices": 2, "ctx": 8192, "split_mode": "tensor"}, []),
    ({"devices": 3, "ctx": 4096, "split_mode": "tensor", "tensor_split": [3, 1, 1], "serves": True}, []),
    ({"devices": 2, "ctx": 8192, "flash_attention": False, "serves": True}, []),
    ({"devices": 1, "ctx": 8192, "kv_on_host": True, "serves": True}, []),
    ({"devices": 2, "ctx": 32768, "cache": "q8_0", "parallel": 2, "serves": True}, []),
    ({"devices": 2, "ctx": 8192, "n_cpu_moe": 6, "serves": True}, []),
]


def size(path):
    """The bytes that the full file would have."""
    data = open(path, "rb").read()
    at = 8

    def take(form):
        nonlocal at
        values = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return values

    def skip(kind):
        nonlocal at
        if kind == 8:
            length = take("Q")[0]
            at += length
        elif kind == 9:
            of, count = take("IQ")
            for _ in range(count):
                skip(of)
        else:
            at += FIXED[kind]

    tensors, keys = take("QQ")
    for _ in range(keys):
        skip(8)
        skip(take("I")[0])
    end = 0
    for _ in range(tensors):
        skip(8)
        rank = take("I")[0]
        sizes = take(f"{rank}Q")
        kind, offset = take("IQ")
        elements = 1
        for n in sizes:
            elements *= n
        block, stored = BLOCKS[kind]
        end = max(end, offset + (elements // block * stored + 31) // 32 * 32)
    return (at + 31) // 32 * 32 + end


def words(placement):
    """The tool's options for a placement."""
    out = ["--devices", str(placement["devices"]), "-c", str(placement["ctx"]), "--no-swa-full"]
    out += ["-sm", placement.get("split_mode", "layer")]
    if "tensor_split" in placement:
        out += ["-ts", ",".join(str(n) for n in placement["tensor_split"])]
    out += ["-ub", str(placement.get("ubatch", 512)), "-np", str(placement.get("parallel", 1))]
    if placement.get("unified"):
        out.append("-kvu")
    if placement.get("serves"):
        out += ["--outputs", str(placement.get("parallel", 1))]
    if "cache" in placement:
        out += ["-ctk", placement["cache"], "-ctv", placement["cache"]]
    if not placement.get("flash_attention", True):
        out += ["-fa", "off"]
    if placement.get("kv_on_host"):
        out.append("-nkvo")
    if "n_cpu_moe" in placement:
        out += ["-ncmoe", str(placement["n_cpu_moe"])]
    return out


def measured(tool, file, placement, more):
    """llama.cpp's bytes, or none where it refuses."""
    run = subprocess.run([tool, "-m", file, *words(placement), *more], capture_output=True, text=True)
    if run.returncode != 0:
        return None
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    buffers = lines[0]["buffers"]
    count = placement["devices"]
    devices = [{"weights": 0, "caches": 0, "compute": 0} for _ in range(count)]
    host = {"weights": 0, "caches": 0, "compute": 0}
    for b in buffers:
        part = {"weights": b["model"], "caches": b["context"], "compute": b["compute"]}
        if b["host"]:
            for k, v in part.items():
                host[k] += v
        elif b["name"].startswith("DEV"):
            devices[int(b["name"][3:])] = part
        else:
            # Devices of a tensor split report as one: the weights by llama.cpp's own split, without caches.
            for d, weights in zip(devices, lines[1]["devices"]):
                d.update(weights=int(weights), compute=part["compute"], caches=None)
    return {"devices": devices, "host": host}


def main():
    tool, folder, out = sys.argv[1:4]
    rows = []
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".header.gguf") or "-of-0" in name:
            continue
        header = os.path.join(folder, name)
        with tempfile.TemporaryDirectory() as at:
            file = os.path.join(at, "model.gguf")
            shutil.copyfile(header, file)
            os.truncate(file, size(header))
            for placement, more in PLACEMENTS:
                found = measured(tool, file, placement, more)
                if found is not None:
                    rows.append({"header": name, "placement": placement, **found})
    with open(out, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")
    print(len(rows), "rows")


if __name__ == "__main__":
    main()
