"""Measures a server with concurrent clients. Works with any OpenAI-compatible server.

    python load.py BASE [--clients 8] [--requests 32] [--tokens 64] [--words 60] [--shared 0] [--json FILE]

Each client sends a request, reads the stream to its end, and sends the next. The prompts are fixed texts of `--words`
words; the first `--shared` words are the same in all of them. The answers have exactly `--tokens` tokens if the server
knows `ignore_eos`.

Time to first token: from the request to the first chunk with text. Time between tokens: between chunks with text.
"""

import argparse
import asyncio
import json
import random
import sys
import time

import httpx

WORDS = (
    "the a sea wind stone river house light tree road bird time hand day night work life part place case week point "
    "world school state family group country problem fact year long great little own other old right big high small"
).split()


def prompt(number: int, words: int, shared: int) -> str:
    common, own = random.Random(1), random.Random(1000 + number)
    text = [common.choice(WORDS) for _ in range(shared)]
    text += [own.choice(WORDS) for _ in range(words - shared)]
    return "Continue this text: " + " ".join(text)


async def one(client: httpx.AsyncClient, number: int, options) -> dict:
    """Returns the times and counts of a request, or its error."""
    try:
        return await answer(client, number, options)
    except httpx.HTTPError as e:
        return {"error": f"{type(e).__name__}: {e}"}


async def answer(client: httpx.AsyncClient, number: int, options) -> dict:
    body = {
        "messages": [{"role": "user", "content": prompt(number, options.words, options.shared)}],
        "max_tokens": options.tokens,
        "temperature": 0,
        "seed": 1,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if options.model:
        body["model"] = options.model
    begun = time.perf_counter()
    times, usage, text = [], None, []
    async with client.stream("POST", f"{options.base}/chat/completions", json=body) as response:
        if response.status_code != 200:
            await response.aread()
            return {"error": f"status {response.status_code}: {response.text[:200]}"}
        async for line in response.aiter_lines():
            if not line.startswith("data: {"):
                continue
            now = time.perf_counter()
            chunk = json.loads(line[6:])
            if "error" in chunk:
                return {"error": str(chunk["error"])[:200]}
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"]:
                if choice["delta"].get("content"):
                    times.append(now)
                    text.append(choice["delta"]["content"])
    if not times or usage is None:
        return {"error": "no text or no usage"}
    return {
        "first": times[0] - begun,
        "gaps": [b - a for a, b in zip(times, times[1:])],
        "whole": time.perf_counter() - begun,
        "prompt": usage["prompt_tokens"],
        "cached": (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0,
        "answer": usage["completion_tokens"],
        "text": "".join(text),
    }


def at(values: list[float], share: float) -> float:
    """Returns the value below which this share of the values lies."""
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


async def measure(options) -> tuple[list[dict], float]:
    numbers = iter(range(options.requests))
    results = []
    headers = {"authorization": f"Bearer {options.key}"} if options.key else {}
    limits = httpx.Limits(max_connections=options.clients, max_keepalive_connections=options.clients)
    async with httpx.AsyncClient(timeout=None, headers=headers, limits=limits) as client:
        if options.warm and "error" in (first := await one(client, -1, options)):
            sys.exit(f"failed: {first['error']}")

        async def work():
            for number in numbers:
                result = await one(client, number, options)
                results.append({"number": number, **result})

        begun = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(options.clients)))
        return results, time.perf_counter() - begun


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("base", help="such as http://127.0.0.1:8080/v1")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=64, help="tokens per answer")
    parser.add_argument("--words", type=int, default=60, help="words per prompt")
    parser.add_argument("--shared", type=int, default=0, help="first words that all prompts share")
    parser.add_argument("--model", default="")
    parser.add_argument("--key", default="")
    parser.add_argument("--no-warm", dest="warm", action="store_false", help="leave out the first, unmeasured request")
    parser.add_argument("--json", help="write the results of all requests into this file")
    options = parser.parse_args()
    options.shared = min(options.shared, options.words)
    results, seconds = asyncio.run(measure(options))
    good = [r for r in results if "error" not in r]
    gaps = [gap for r in good for gap in r["gaps"]]
    first = [r["first"] for r in good]
    summary = {
        "clients": options.clients,
        "requests": len(results),
        "failed": len(results) - len(good),
        "seconds": round(seconds, 3),
        "prompt_tokens": sum(r["prompt"] for r in good),
        "cached_tokens": sum(r["cached"] for r in good),
        "answer_tokens": sum(r["answer"] for r in good),
        "answer_tokens_per_second": round(sum(r["answer"] for r in good) / seconds, 2),
        "first_token_ms": {f"p{p}": round(at(first, p / 100) * 1e3, 1) for p in (50, 90, 99)},
        "between_tokens_ms": {f"p{p}": round(at(gaps, p / 100) * 1e3, 1) for p in (50, 90, 99)},
        "longest_gap_ms": round(max(gaps, default=0) * 1e3, 1),
        "requests_per_second": round(len(good) / seconds, 3),
    }
    print(json.dumps(summary, indent=1))
    for error in sorted({r["error"] for r in results if "error" in r}):
        print(f"failed: {error}", file=sys.stderr)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"summary": summary, "requests": sorted(results, key=lambda r: r["number"])}, file)
    sys.exit(bool(len(results) - len(good)))


if __name__ == "__main__":
    main()
