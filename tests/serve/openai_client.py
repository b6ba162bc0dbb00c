"""Calls `tpc serve` with OpenAI's Python package.

    python openai_client.py BASE [--key-base BASE --key KEY] [--embed-base BASE] [--only TEXT]

BASE is an address such as http://127.0.0.1:8080/v1.
--key-base: a server started with `--api-key KEY --user-requests 2`.
--embed-base: a server started with `--embeddings`.
"""

import argparse
import asyncio
import base64
import json
import math
import re
import struct
import sys
import time
import traceback

import httpx
import jsonschema
import openai
import pydantic

CHECKS = []
MESSAGES = [{"role": "user", "content": "Write one sentence about the sea."}]


def check(function):
    CHECKS.append(function)
    return function


class Clients:
    """Clients of the servers; `None` for a server that was not given."""

    def __init__(self, options):
        def client(base, key="none"):
            return base and openai.OpenAI(base_url=base, api_key=key, max_retries=0, timeout=300)

        self.base = options.base
        self.root = options.base.removesuffix("/v1")
        self.main = client(options.base)
        self.key_base = options.key_base
        self.keyed = client(options.key_base, options.key)
        self.wrong = client(options.key_base, "wrong")
        self.embedder = client(options.embed_base)
        self.model = self.main.models.list().data[0].id

    def chat(self, **fields):
        fields.setdefault("messages", MESSAGES)
        fields.setdefault("max_tokens", 24)
        fields.setdefault("temperature", 0)
        return self.main.chat.completions.create(model=self.model, **fields)

    def complete(self, **fields):
        fields.setdefault("max_tokens", 12)
        fields.setdefault("temperature", 0)
        return self.main.completions.create(model=self.model, **fields)

    def refused(self, kind, param=None, code=None, call=None, **fields):
        """Checks that a chat with these fields, or `call`, fails with this kind of error."""
        try:
            (call or self.chat)(**fields)
        except kind as e:
            assert e.body["message"] and e.body["type"], e.body
            assert param is None or e.param == param, f"param {e.param}, not {param}: {e.message}"
            assert code is None or e.code == code, f"code {e.code}, not {code}"
            return e
        raise AssertionError(f"no {kind.__name__} for {str(fields)[:100]}")


def text_of(chunks):
    """Returns the texts of a stream's answers, by index."""
    texts, finishes = {}, {}
    for chunk in chunks:
        for choice in chunk.choices:
            texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
            finishes[choice.index] = choice.finish_reason or finishes.get(choice.index)
    return texts, finishes


@check
def models(c):
    listed = c.main.models.list().data
    assert len(listed) == 1 and listed[0].object == "model" and listed[0].created > 0
    assert c.main.models.retrieve(c.model).id == c.model


@check
def models_of_another_name_are_not_found(c):
    c.refused(openai.NotFoundError, call=c.main.models.retrieve, model="no-such-model")


@check
def chat(c):
    out = c.chat(max_tokens=8)
    assert out.id.startswith("chatcmpl-") and out.object == "chat.completion" and out.model == c.model
    [choice] = out.choices
    assert choice.message.role == "assistant" and choice.message.content.strip()
    assert choice.finish_reason == "length" and out.usage.completion_tokens == 8
    assert out.usage.total_tokens == out.usage.prompt_tokens + 8
    assert c.chat(max_tokens=None, max_completion_tokens=3).usage.completion_tokens == 3


@check
def roles_and_parts(c):
    parts = [{"type": "text", "text": "Say "}, {"type": "text", "text": "hello."}]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": parts}]
    assert c.chat(messages=messages).choices[0].message.content
    messages += [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Again."}]
    assert c.chat(messages=messages).choices[0].message.content
    assert c.chat(messages=[{"role": "developer", "content": "Be brief."}, *MESSAGES]).choices[0].message.content


@check
def a_stream_has_the_text_of_the_whole_answer(c):
    whole = c.chat()
    chunks = list(c.chat(stream=True))
    texts, finishes = text_of(chunks)
    assert texts == {0: whole.choices[0].message.content}
    assert finishes == {0: whole.choices[0].finish_reason}
    assert len({chunk.id for chunk in chunks}) == 1 and chunks[0].choices[0].delta.role == "assistant"
    assert all(chunk.choices[0].delta.role is None for chunk in chunks[1:])
    assert len(chunks) > 10, f"{len(chunks)} chunks: the text does not stream"


@check
def usage_of_streams(c):
    chunks = list(c.chat(stream=True, max_tokens=6, stream_options={"include_usage": True}))
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 6
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert all(chunk.usage is None for chunk in c.chat(stream=True, max_tokens=6))


@check
def several_answers(c):
    out = c.chat(n=2, temperature=1, seed=5)
    assert [choice.index for choice in out.choices] == [0, 1]
    texts = {choice.index: choice.message.content for choice in out.choices}
    assert texts[0] != texts[1]
    streamed, _ = text_of(c.chat(n=2, temperature=1, seed=5, stream=True))
    assert streamed == texts
    assert c.chat(temperature=1, seed=5).choices[0].message.content == texts[0]


@check
def seeds(c):
    text = lambda seed: c.chat(temperature=1, seed=seed).choices[0].message.content
    assert text(1) == text(1)
    assert len({text(seed) for seed in range(4)}) == 4


@check
def stop_texts(c):
    whole = c.chat(max_tokens=24).choices[0].message.content
    stop = whole.split()[4]
    out = c.chat(max_tokens=24, stop=[stop, "never written"]).choices[0]
    assert out.finish_reason == "stop"
    assert out.message.content == whole[: whole.index(stop)], (out.message.content, whole, stop)
    assert c.chat(max_tokens=24, stop=stop).choices[0].message.content == out.message.content
    streamed, finishes = text_of(c.chat(max_tokens=24, stop=stop, stream=True))
    assert streamed[0] == out.message.content and finishes[0] == "stop"


@check
def log_probabilities(c):
    out = c.chat(max_tokens=6, logprobs=True, top_logprobs=5).choices[0]
    tokens = out.logprobs.content
    assert len(tokens) == 6
    assert b"".join(bytes(t.bytes) for t in tokens).decode() == out.message.content
    for token in tokens:
        top = token.top_logprobs
        assert len(top) == 5 and top[0].token == token.token and math.isclose(top[0].logprob, token.logprob)
        assert token.logprob <= 0 and all(a.logprob >= b.logprob for a, b in zip(top, top[1:]))
        assert sum(math.exp(t.logprob) for t in top) <= 1.0001
    streamed = []
    for chunk in c.chat(max_tokens=6, logprobs=True, top_logprobs=5, stream=True):
        for choice in chunk.choices:
            streamed += choice.logprobs.content if choice.logprobs else []
    assert streamed == tokens
    assert c.chat(max_tokens=2, logprobs=True).choices[0].logprobs.content[0].top_logprobs == []
    assert c.chat(max_tokens=2).choices[0].logprobs is None


@check
def logit_bias(c):
    first = lambda **fields: c.chat(max_tokens=1, logprobs=True, top_logprobs=2, **fields).choices[0].logprobs.content[0]
    plain = first().model_dump()
    banned = first(logit_bias={str(plain["id"]): -100}).model_dump()
    assert banned["token"] != plain["token"]
    other = plain["top_logprobs"][1]
    assert first(logit_bias={str(other["id"]): 100}).token == other["token"]
    c.refused(openai.BadRequestError, "logit_bias", logit_bias={"999999999": 1})


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Returns the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "maxLength": 20},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
}
CLOCK = {
    "type": "function",
    "function": {"name": "get_time", "description": "Returns the time.", "parameters": {"type": "object", "properties": {}}},
}
ASK = [{"role": "user", "content": "How is the weather in Paris, in celsius?"}]


def check_call(call, name):
    assert call.id and call.type == "function" and call.function.name == name
    arguments = json.loads(call.function.arguments)
    tool = WEATHER if name == "get_weather" else CLOCK
    jsonschema.validate(arguments, tool["function"]["parameters"])
    return arguments


@check
def tools_required_and_named(c):
    out = c.chat(messages=ASK, tools=[WEATHER], tool_choice="required", max_tokens=120).choices[0]
    assert out.finish_reason == "tool_calls", out
    check_call(out.message.tool_calls[0], "get_weather")
    for name in ("get_time", "get_weather"):
        choice = {"type": "function", "function": {"name": name}}
        out = c.chat(messages=ASK, tools=[WEATHER, CLOCK], tool_choice=choice, max_tokens=120).choices[0]
        assert len(out.message.tool_calls) == 1 and out.finish_reason in ("tool_calls", "stop")
        check_call(out.message.tool_calls[0], name)
    choice = {"type": "function", "function": {"name": "no_such_tool"}}
    c.refused(openai.BadRequestError, "tool_choice", messages=ASK, tools=[WEATHER], tool_choice=choice)


@check
def tools_auto_and_none(c):
    out = c.chat(messages=ASK, tools=[WEATHER], max_tokens=60).choices[0]
    assert out.message.content or out.message.tool_calls
    for call in out.message.tool_calls or []:
        if out.finish_reason == "tool_calls":
            check_call(call, "get_weather")
    out = c.chat(messages=ASK, tools=[WEATHER], tool_choice="none", max_tokens=20).choices[0]
    assert out.message.tool_calls is None and out.message.content


@check
def tools_in_streams(c):
    fields = dict(messages=ASK, tools=[WEATHER], tool_choice="required", max_tokens=120, parallel_tool_calls=False)
    whole = c.chat(**fields).choices[0].message.tool_calls
    calls, finish = {}, None
    for chunk in c.chat(stream=True, **fields):
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            assert not choice.delta.content
            for change in choice.delta.tool_calls or []:
                call = calls.setdefault(change.index, {"id": "", "name": "", "arguments": ""})
                call["id"] += change.id or ""
                call["name"] += change.function.name or ""
                call["arguments"] += change.function.arguments or ""
    assert finish == "tool_calls" and len(calls) == 1 and calls[0]["id"]
    assert (calls[0]["name"], calls[0]["arguments"]) == (whole[0].function.name, whole[0].function.arguments)


@check
def results_of_tools(c):
    out = c.chat(messages=ASK, tools=[WEATHER], tool_choice="required", max_tokens=120).choices[0].message
    result = {"role": "tool", "tool_call_id": out.tool_calls[0].id, "content": '{"sky": "clear", "celsius": 21}'}
    out = c.chat(messages=[*ASK, out.model_dump(exclude_none=True), result], tools=[WEATHER], tool_choice="none")
    assert out.choices[0].message.content.strip()


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["red", "blue"]}, "minItems": 1, "maxItems": 2},
        "home": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
    },
    "required": ["name", "age", "tags", "home"],
    "additionalProperties": False,
}


@check
def json_schema(c):
    form = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": SCHEMA}}
    for seed in range(3):
        out = c.chat(response_format=form, max_tokens=200, temperature=1, seed=seed).choices[0]
        assert out.finish_reason == "stop"
        jsonschema.validate(json.loads(out.message.content), SCHEMA)
    streamed, _ = text_of(c.chat(response_format=form, max_tokens=200, temperature=1, seed=2, stream=True))
    assert streamed[0] == out.message.content
    for wrong in ({"type": "no such type"}, 7):
        bad = {"type": "json_schema", "json_schema": {"name": "x", "schema": wrong}}
        c.refused(openai.BadRequestError, "response_format", response_format=bad)
    c.refused(openai.BadRequestError, "response_format", response_format={"type": "sound"})


@check
def json_object(c):
    out = c.chat(response_format={"type": "json_object"}, max_tokens=300, temperature=0.5, seed=1).choices[0]
    if out.finish_reason == "stop":
        assert isinstance(json.loads(out.message.content), dict)
    else:
        assert out.message.content.lstrip().startswith("{"), out.message.content
    assert c.chat(response_format={"type": "text"}).choices[0].message.content


class Person(pydantic.BaseModel):
    """A form of answers."""

    model_config = pydantic.ConfigDict(extra="forbid")
    first_name: str = pydantic.Field(max_length=10)
    likes: list[bool] = pydantic.Field(max_length=2)


@check
def parse_with_pydantic(c):
    for place in (c.main.chat.completions, c.main.beta.chat.completions):
        if not hasattr(place, "parse"):
            continue
        out = place.parse(model=c.model, messages=MESSAGES, response_format=Person, temperature=0, max_tokens=200)
        assert isinstance(out.choices[0].message.parsed, Person)


@check
def completions(c):
    out = c.complete(prompt="The sea is")
    assert out.object == "text_completion" and out.choices[0].text and out.usage.completion_tokens == 12
    echoed = c.complete(prompt="The sea is", echo=True).choices[0].text
    assert echoed == "The sea is" + out.choices[0].text
    two = c.complete(prompt=["The sea is", "The sky is"], n=2)
    assert [choice.index for choice in two.choices] == [0, 1, 2, 3]
    assert two.choices[0].text == two.choices[1].text == out.choices[0].text != two.choices[2].text
    text = "".join(chunk.choices[0].text for chunk in c.complete(prompt="The sea is", stream=True))
    assert text == out.choices[0].text
    assert c.complete(prompt="The sea is", max_tokens=openai.NOT_GIVEN).usage.completion_tokens <= 16
    for wrong in (7, [], [[]], {"a": 1}):
        c.refused(openai.BadRequestError, "prompt", call=c.complete, prompt=wrong)


@check
def completions_of_tokens(c):
    tokens = httpx.post(f"{c.root}/tokenize", json={"content": "The sea is", "add_special": True}).json()["tokens"]
    text = c.complete(prompt="The sea is").choices[0].text
    assert c.complete(prompt=tokens).choices[0].text == text
    assert [choice.text for choice in c.complete(prompt=[tokens, tokens]).choices] == [text, text]
    c.refused(openai.BadRequestError, "prompt", call=c.complete, prompt=[10**9])


@check
def completions_log_probabilities(c):
    out = c.complete(prompt="The sea is", logprobs=3, max_tokens=5).choices[0]
    logprobs = out.logprobs
    assert "".join(logprobs.tokens) == out.text and len(logprobs.token_logprobs) == 5
    for token, logprob, top in zip(logprobs.tokens, logprobs.token_logprobs, logprobs.top_logprobs):
        assert 1 <= len(top) <= 3 and math.isclose(top[token], logprob)
    assert logprobs.text_offset[0] == 0 and logprobs.text_offset == sorted(logprobs.text_offset)


@check
def embeddings(c):
    if c.embedder is None:
        return
    model = c.embedder.models.list().data[0].id
    ask = lambda **fields: c.embedder.embeddings.create(model=model, **fields)
    texts = ["The sea is blue.", "The sky is blue.", "The sea is blue."]
    out = ask(input=texts, encoding_format="float")
    vectors = [d.embedding for d in out.data]
    assert [d.index for d in out.data] == [0, 1, 2] and out.usage.prompt_tokens == out.usage.total_tokens > 9
    assert vectors[0] == vectors[2] != vectors[1]
    assert all(math.isclose(sum(x * x for x in v), 1, rel_tol=1e-4) for v in vectors)
    assert ask(input=texts[0]).data[0].embedding == vectors[0], "base64 is the package's default"
    raw = httpx.post(f"{c.embedder.base_url}embeddings", json={"input": texts[0], "encoding_format": "base64"}).json()
    data = base64.b64decode(raw["data"][0]["embedding"], validate=True)
    assert list(struct.unpack(f"<{len(data) // 4}f", data)) == [struct.unpack("<f", struct.pack("<f", x))[0] for x in vectors[0]]
    assert len(ask(input=[[1, 2, 3], [4, 5]]).data) == 2
    c.refused(openai.BadRequestError, "input", call=ask, input="")
    c.refused(openai.BadRequestError, "input", call=ask, input=[])
    c.refused(openai.BadRequestError, "encoding_format", call=ask, input="x", encoding_format="hex")
    c.refused(openai.APIStatusError, call=c.embedder.chat.completions.create, model=model, messages=MESSAGES)


@check
def embeddings_need_a_server_for_them(c):
    c.refused(openai.APIStatusError, call=c.main.embeddings.create, model=c.model, input="x")


@check
def wrong_fields(c):
    wrong = {
        "n": [0, "two", 100000],
        "top_p": [2, -1, "x"],
        "temperature": [-1, "x"],
        "max_tokens": [-5, "x", 1.5],
        "stop": [7, [1], [["a"]]],
        "seed": ["x", 1.5],
        "stream": ["yes"],
        "top_logprobs": [3, 1000],
        "presence_penalty": ["x"],
        "messages": [[], "text", [7], [{}], [{"role": "user"}], [{"role": "user", "content": 7}]],
        "tools": [7, [7], [{"type": "function"}], [{"type": "function", "function": {}}]],
        "tool_choice": ["no such choice", 7],
        "response_format": [7, {}, {"type": "json_schema"}],
    }
    problems = []
    for name, values in wrong.items():
        for value in values:
            fields = {name: value}
            if name == "tool_choice":
                fields["tools"] = [WEATHER]
            try:
                e = c.refused(openai.BadRequestError, call=lambda **f: c.chat(**f), **fields)
                assert (e.param or "").split(".")[0].split("[")[0] in (name, "logprobs"), f"param {e.param}: {e.message}"
            except (AssertionError, openai.APIError) as e:
                problems.append(f"{name}={value!r}: {type(e).__name__} {e}")
    assert not problems, "\n".join(problems)


@check
def images_are_refused(c):
    parts = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    e = c.refused(openai.APIStatusError, messages=[{"role": "user", "content": parts}])
    assert e.status_code in (400, 501), e.status_code


@check
def prompts_above_the_context(c):
    long = [{"role": "user", "content": "word " * 200_000}]
    c.refused(openai.BadRequestError, "messages", "context_length_exceeded", messages=long)
    c.refused(openai.BadRequestError, "messages", "context_length_exceeded", messages=long, stream=True)


@check
def wrong_bodies(c):
    post = lambda **body: httpx.post(f"{c.base}/chat/completions", timeout=60, **body)
    headers = {"content-type": "application/json"}
    bodies = [b"", b"{", b"[]", b"7", b"\xff\xfe", b'{"messages": [}', b"[" * 100_000, b'{"messages": ' + b"[" * 100_000]
    for body in bodies:
        reply = post(content=body, headers=headers)
        assert reply.status_code == 400, (body[:20], reply.status_code)
        assert reply.json()["error"]["type"] == "invalid_request_error"
    assert post(content=b'{"x": "' + b"a" * (17 << 20) + b'"}').status_code == 413
    reply = httpx.get(f"{c.base}/chat/completions")
    assert reply.status_code == 405 and reply.json()["error"]["message"]
    reply = httpx.post(f"{c.base}/no/such/path", json={})
    assert reply.status_code == 404 and reply.json()["error"]["message"]
    assert c.chat(max_tokens=1).choices


@check
def api_keys(c):
    if c.keyed is None:
        return
    ask = lambda client: client.chat.completions.create(model=c.model, messages=MESSAGES, max_tokens=1)
    e = c.refused(openai.AuthenticationError, code="invalid_api_key", call=lambda: ask(c.wrong))
    assert e.status_code == 401
    assert httpx.post(f"{c.key_base}/chat/completions", json={"messages": MESSAGES}).status_code == 401
    assert ask(c.keyed).choices


@check
def limits_of_a_user(c):
    if c.keyed is None:
        return
    ask = lambda n: c.keyed.chat.completions.create(model=c.model, messages=MESSAGES, max_tokens=1, n=n)
    e = c.refused(openai.RateLimitError, call=lambda: ask(3))
    assert int(e.response.headers["retry-after"]) >= 1
    assert len(ask(2).choices) == 2


def wait_until_idle(c):
    deadline = time.monotonic() + 10
    while any(slot["is_processing"] for slot in httpx.get(f"{c.root}/slots").json()):
        assert time.monotonic() < deadline, "a slot is still busy"
        time.sleep(0.05)


@check
def a_client_that_leaves_frees_its_slot(c):
    with c.chat(stream=True, max_tokens=2000, temperature=1, extra_body={"ignore_eos": True}) as stream:
        for _, chunk in zip(range(3), stream):
            assert chunk.choices
        busy = httpx.get(f"{c.root}/slots").json()
        assert any(slot["is_processing"] for slot in busy)
    wait_until_idle(c)
    try:
        c.main.with_options(timeout=0.5).chat.completions.create(
            model=c.model, messages=MESSAGES, max_tokens=2000, extra_body={"ignore_eos": True}
        )
        raise AssertionError("no timeout")
    except openai.APITimeoutError:
        wait_until_idle(c)


@check
def answers_do_not_depend_on_the_batch(c):
    prompts = [f"Write a sentence about the number {i}." for i in range(6)]

    async def all_of(client):
        async def one(i, text):
            stream = await client.chat.completions.create(
                model=c.model, messages=[{"role": "user", "content": text}], max_tokens=16, temperature=1, seed=i, stream=True,
            )
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

        return await asyncio.gather(*(one(i, text) for i, text in enumerate(prompts)))

    alone = []
    for i, text in enumerate(prompts):
        out = c.chat(messages=[{"role": "user", "content": text}], max_tokens=16, temperature=1, seed=i)
        alone.append(out.choices[0].message.content)

    async def twice():
        async with openai.AsyncOpenAI(base_url=c.base, api_key="none", timeout=300) as client:
            return await all_of(client), await all_of(client)

    first, second = asyncio.run(twice())
    assert first == alone and second == alone


@check
def cached_prefixes_do_not_change_answers(c):
    messages = [{"role": "user", "content": f"{time.time()} " + "Repeat: one two three. " * 20}]
    fresh = c.chat(messages=messages, temperature=1, seed=9)
    cached = c.chat(messages=messages, temperature=1, seed=9)
    assert cached.usage.prompt_tokens_details.cached_tokens > 0
    assert cached.choices[0].message.content == fresh.choices[0].message.content


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("base")
    parser.add_argument("--key-base")
    parser.add_argument("--key", default="")
    parser.add_argument("--embed-base")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    clients = Clients(options)
    failed = 0
    for run in CHECKS:
        if not re.search(options.only, run.__name__):
            continue
        begun = time.monotonic()
        try:
            run(clients)
            print(f"ok      {run.__name__} ({time.monotonic() - begun:.1f} s)", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED  {run.__name__}\n{traceback.format_exc(limit=-3)}", flush=True)
    print(f"{failed} failed" if failed else "all fine")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
