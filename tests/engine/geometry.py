#!/usr/bin/env python3
"""Runs llama.cpp with split tensors on small models, and writes a row per job (tests/data/engines/geometry-*.jsonl).

    LLAMA_CPP=~/llama.cpp tests/engine/geometry.py JOBS.jsonl >> geometry.jsonl

A job is a line {"spec", "devices", "options"}: a specification of `tpc synth`, a number of devices, and options of
geometry.cpp. A row of tests/data/engines/geometry-*.jsonl is also a job: its runs are repeated. A row is
{"spec", "runs": [[devices, options, result]]}. All devices are the same processor, under ggml's own tensor split. Options
that place a tensor or a cache on the host need servers: --rpc starts one ggml-rpc-server per device.

LLAMA_CPP    llama.cpp's sources
LLAMA_BUILD  its build, with -DGGML_RPC=ON [default: $LLAMA_CPP/build]
TPC          the program [default: target/release/tpc]
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
FIRST_PORT = 28100


def environment():
    if "LLAMA_CPP" not in os.environ:
        sys.exit("LLAMA_CPP names the sources of llama.cpp")
    source = pathlib.Path(os.environ["LLAMA_CPP"])
    build = pathlib.Path(os.environ.get("LLAMA_BUILD", source / "build"))
    tpc = os.environ.get("TPC", str(HERE / "../../target/release/tpc"))
    return source, build, tpc


def compiled(source, build, folder):
    """Compiles geometry.cpp against the build."""
    program = folder / "geometry"
    libraries = build / "bin"
    command = ["c++", "-std=c++17", "-O1", str(HERE / "geometry.cpp"), "-o", str(program)]
    command += [f"-I{source / 'include'}", f"-I{source / 'ggml/include'}", f"-L{libraries}"]
    command += ["-lllama", "-lggml", "-lggml-base", "-lggml-rpc", f"-Wl,-rpath,{libraries}"]
    subprocess.run(command, check=True)
    return program


def servers(build, count):
    """Starts one server per device."""
    started = []
    for i in range(count):
        command = [str(build / "bin/ggml-rpc-server"), "-H", "127.0.0.1", "-p", str(FIRST_PORT + i), "-t", "1"]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    time.sleep(0.5)
    return started


def needs_servers(options):
    return any(word in ("--nkvo", "-ot", "-cmoe") for word in shlex.split(options))


def run(program, build, model, job):
    """The result of a job, as a row has it."""
    command = [str(program), str(model), str(job["devices"]), *shlex.split(job["options"])]
    behind = servers(build, job["devices"]) if needs_servers(job["options"]) else []
    try:
        if behind:
            command += ["--rpc", ",".join(f"127.0.0.1:{FIRST_PORT + i}" for i in range(len(behind)))]
        quiet = dict(os.environ, GGML_NO_BACKTRACE="1")
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=quiet)
    finally:
        for server in behind:
            server.kill()
            server.wait()
    found = re.search(r"nmse (\S+)", done.stdout)
    if found:
        return found.group(1)
    if "refused" in done.stdout or "no context" in done.stdout:
        return "refused: " + first_line(done.stderr)
    if "not loaded" in done.stdout:
        return None
    return "abort: " + first_line(done.stderr)


def first_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "ASSERT" in line or "error" in line or "abort" in line.lower()]
    return (telling or lines or ["no message"])[0][:160]


def jobs(path):
    """The jobs of a file: one a line, or the runs of a line."""
    for line in open(path):
        job = json.loads(line)
        for devices, options, _ in job.get("runs", []):
            yield {"spec": job["spec"], "devices": devices, "options": options}
        if "runs" not in job:
            yield job


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    source, build, tpc = environment()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        program = compiled(source, build, folder)
        for job in jobs(sys.argv[1]):
            model = folder / "model.gguf"
            model.unlink(missing_ok=True)
            made = subprocess.run([tpc, "synth", job["spec"], "-o", str(model)], capture_output=True, text=True)
            if made.returncode != 0:
                print(f"{job['spec']}: {made.stderr.strip().splitlines()[:1]}", file=sys.stderr)
                continue
            result = run(program, build, model, job)
            if result is None:
                print(f"{job['spec']}: llama.cpp does not load this file alone", file=sys.stderr)
                continue
            row = {"spec": job["spec"], "runs": [[job["devices"], job["options"], result]]}
            print(json.dumps(row, separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
