"""Loads `tpc serve` and compares every answer with its answer alone, bit by bit: `soak.py URL [SECONDS] [CLIENTS] [PID]`.

Each request first runs alone on the idle server without cached tokens. Then clients send requests, break off, and send
bad requests. An answer is compared with its text and the log-probabilities of its tokens. With a PID of the server, its
memory is checked too. A file of the answers alone (`SOAK_ALONE=FILE`) is compared with another server's if it exists.
"""

import http.client
import json
import os
import random
import socket
import sys
import threading
import time
import urllib.parse


def connection(url):
    parts = urllib.parse.urlsplit(url)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=600)


def post(url, body):
    link = connection(url)
    link.request("POST", "/v1/completions", body if isinstance(body, bytes) else json.dumps(body))
    answer = link.getresponse()
    text = answer.read()
    link.close()
    return answer.status, text


def choices(text):
    return json.loads(text)["choices"]


def requests(count):
    draw = random.Random(5)
    shared = [[draw.randrange(300, 40000) for _ in range(n)] for n in (40, 150, 400)]
    for i in range(count):
        prompt = draw.choice([[], *shared]) + [draw.randrange(300, 40000) for _ in range(draw.randrange(1, 60))]
        yield {
            "prompt": prompt, "max_tokens": draw.randrange(1, 40), "temperature": draw.choice([0, 0.7, 1.5]),
            "seed": draw.randrange(1000), "logprobs": 3, "ignore_eos": draw.random() < 0.5,
        }


class Soak:
    def __init__(self, url, seconds, alone):
        self.url, self.end, self.alone = url, time.monotonic() + seconds, alone
        self.lock = threading.Lock()
        self.counts = {"compared": 0, "streams": 0, "aborted": 0, "bad": 0, "wrong": 0, "lost": 0}
        self.gaps = []

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def client(self, seed):
        draw = random.Random(seed)
        while time.monotonic() < self.end:
            body, expected = draw.choice(self.alone)
            kind = draw.randrange(8)
            try:
                if kind == 0:
                    self.abort(body, draw.random() * 0.5)
                elif kind == 1:
                    status, _ = post(self.url, json.dumps(body)[:draw.randrange(200)].encode())
                    self.count("bad" if status == 400 else "wrong")
                elif kind == 2:
                    self.stream(body, expected)
                else:
                    status, text = post(self.url, body)
                    right = status == 200 and choices(text) == expected
                    if not right:
                        print("wrong:", status, text[:300], expected)
                    self.count("compared" if right else "wrong")
            except OSError as e:
                print("lost:", e)
                self.count("lost")

    def abort(self, body, after):
        parts = urllib.parse.urlsplit(self.url)
        text = json.dumps({**body, "stream": random.random() < 0.5}).encode()
        with socket.create_connection((parts.hostname, parts.port)) as link:
            head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(text)}\r\n\r\n"
            link.sendall(head.encode() + text)
            time.sleep(after)
        self.count("aborted")

    def stream(self, body, expected):
        link = connection(self.url)
        link.request("POST", "/v1/completions", json.dumps({**body, "stream": True, "logprobs": None}))
        answer, text, last = link.getresponse(), "", None
        for line in answer:
            if line.startswith(b"data: {"):
                chunk = json.loads(line[6:])
                now = time.monotonic()
                piece = "".join(c["text"] for c in chunk["choices"])
                if piece:
                    if last is not None:
                        with self.lock:
                            self.gaps.append(now - last)
                    last = now
                text += piece
        link.close()
        self.count("streams" if text == expected[0]["text"] else "wrong")


def memory(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


def main():
    url = sys.argv[1].rstrip("/")
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60
    clients = int(sys.argv[3]) if len(sys.argv) > 3 else 32
    pid = sys.argv[4] if len(sys.argv) > 4 else None
    alone = []
    for body in requests(60):
        status, text = post(url, {**body, "cache_prompt": False})
        assert status == 200, text
        alone.append((body, choices(text)))
    stored = os.environ.get("SOAK_ALONE")
    if stored and os.path.exists(stored):
        with open(stored) as file:
            same = json.load(file) == [expected for _, expected in alone]
        print("answers alone equal the other server's:", same)
        assert same
    elif stored:
        with open(stored, "w") as file:
            json.dump([expected for _, expected in alone], file)
    _, chunk = post(url, {"prompt": list(range(300, 428)), "max_tokens": 1, "cache_prompt": False})
    chunk = json.loads(chunk)["timings"]["prompt_ms"]
    soak = Soak(url, seconds, alone)
    threads = [threading.Thread(target=soak.client, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    before = None
    while any(thread.is_alive() for thread in threads):
        time.sleep(1)
        if pid and before is None and time.monotonic() > soak.end - seconds * 2 / 3:
            before = memory(pid)
    for thread in threads:
        thread.join()
    print(soak.counts)
    if soak.gaps:
        gaps = sorted(soak.gaps)
        p99 = gaps[int(len(gaps) * 0.99)] * 1e3
        print(f"time between chunks of streams: p50 {gaps[len(gaps) // 2] * 1e3:.0f} ms, p99 {p99:.0f} ms; "
              f"a chunk of 128 prompt tokens alone takes {chunk:.0f} ms")
    if pid:
        print(f"memory: {before:.0f} MiB after a third of the time, {memory(pid):.0f} MiB at the end")
    sys.exit(1 if soak.counts["wrong"] or soak.counts["lost"] else 0)


main()
