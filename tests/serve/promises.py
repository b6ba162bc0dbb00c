"""Measures two promises of `tpc serve`: `promises.py URL` needs the package jsonschema.

- The time to the first token with a cached prefix of 2,000 tokens is at most 10 % of the time without.
- All of 1,000 answers with a JSON schema are valid.
"""

import concurrent.futures
import json
import random
import sys
import time
import urllib.request

import jsonschema

NAME = {"type": "string", "maxLength": 12}
SCHEMAS = [
    {"type": "object", "properties": {"name": NAME, "age": {"type": "integer", "minimum": 0, "maximum": 130}},
     "required": ["name", "age"], "additionalProperties": False},
    {"type": "object", "properties": {"colour": {"enum": ["red", "green", "blue"]}, "on": {"type": "boolean"}},
     "required": ["colour", "on"]},
    {"type": "array", "items": {"type": "number", "minimum": -10, "maximum": 10}, "minItems": 1, "maxItems": 4},
    {"type": "object", "properties": {"code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{2}$"}}, "required": ["code"]},
    {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"x": {"const": 1}}, "required": ["x"]}]},
    {"type": "object", "properties": {"point": {"$ref": "#/$defs/point"}}, "required": ["point"],
     "$defs": {"point": {"type": "object", "properties": {"x": {"type": "integer", "minimum": 0, "maximum": 9},
                                                          "y": {"type": "integer", "minimum": 0, "maximum": 9}},
                         "required": ["x", "y"], "additionalProperties": False}}},
    {"type": "array", "prefixItems": [NAME, {"type": "boolean"}], "items": False, "minItems": 2, "maxItems": 2},
    {"type": "object", "properties": {"grüße": {"type": "string", "minLength": 1, "maxLength": 8}}, "required": ["grüße"]},
]


def post(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as response:
        return json.load(response)


def first_token(url, prompt, cached):
    """Returns the seconds of an answer of one token, and the number of cached tokens."""
    begun = time.monotonic()
    body = {"prompt": prompt, "max_tokens": 1, "temperature": 0, "cache_prompt": cached}
    answer = post(url, "/v1/completions", body)
    return time.monotonic() - begun, answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def prefixes(url):
    draw = random.Random(1)
    prompt = [draw.randrange(300, 40000) for _ in range(2000)]
    cold, _ = first_token(url, prompt + [301], False)
    post(url, "/v1/completions", {"prompt": prompt + [302], "max_tokens": 1})
    warm = []
    for i in range(5):
        # Other prompts use the slots in between, so that some prefixes come from the store.
        for _ in range(2):
            post(url, "/v1/completions", {"prompt": [draw.randrange(300, 40000) for _ in range(50)], "max_tokens": 1})
        seconds, cached = first_token(url, prompt + [400 + i], True)
        assert cached >= 1984, cached
        warm.append(seconds)
    warm = sorted(warm)[2]
    print(f"first token: {cold:.3f} s cold, {warm:.3f} s cached ({100 * warm / cold:.1f} %)")
    return warm <= 0.1 * cold


def schemas(url, count):
    def one(i):
        schema = SCHEMAS[i % len(SCHEMAS)]
        answer = post(url, "/v1/chat/completions", {
            "messages": [{"role": "user", "content": f"Give me example number {i} as JSON."}],
            "temperature": 1.0, "seed": i, "max_tokens": 400,
            "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
        })
        choice = answer["choices"][0]
        try:
            jsonschema.validate(json.loads(choice["message"]["content"]), schema)
            return True
        except (ValueError, jsonschema.ValidationError) as e:
            print("invalid:", i, choice["finish_reason"], choice["message"]["content"][:200], str(e)[:100])
            return False

    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        valid = sum(pool.map(one, range(count)))
    print(f"JSON schemas: {valid} of {count} answers are valid ({time.monotonic() - begun:.0f} s)")
    return valid == count


def main():
    url = sys.argv[1].rstrip("/")
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    good = [prefixes(url), schemas(url, count)]
    sys.exit(0 if all(good) else 1)


main()
