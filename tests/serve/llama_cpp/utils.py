"""Lets llama.cpp's server tests start `tpc serve`.

llama.cpp's tests import `utils`. This file takes its place: it has the names that the tests use, starts `tpc serve` with
the equivalent options, and converts llama.cpp's own `/completion` to `/v1/completions`. A test of something that tpc
does not offer is skipped with a reason that starts with "n/a: ".

Environment: TPC (the program), MODEL (a GGUF file with a chat template), PORT (default 8980).
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import *

import pytest
import requests

DEFAULT_HTTP_TIMEOUT = 120
DEFAULT_REQUEST_TIMEOUT = 600
TMP_DIR = tempfile.gettempdir()

# Options of llama.cpp's server that tpc does not have.
NO_OPTION = {
    "lora_files": "LoRA",
    "models_dir": "several models per server",
    "models_preset": "several models per server",
    "model_tags": "several names and tags per model",
    "slot_save_path": "slots saved to files",
    "enable_ctx_shift": "context shift",
    "server_reranking": "/rerank",
    "server_tools": "tools that the server runs",
    "mcp_servers_config": "MCP",
    "mcp_servers_json": "MCP",
    "ui_mcp_proxy": "MCP",
    "gcp_compat": "Google's prediction API",
    "sleep_idle_seconds": "unloading an idle model",
    "media_path": "images",
    "mmproj_url": "images",
    "backend_sampling": "llama.cpp's sampling on the device",
    "spec_synth_rates": "llama.cpp's synthetic drafts",
    "spec_synth_len": "llama.cpp's synthetic drafts",
    "spec_type": "a second test model for drafts",
    "model_url": "download of a test model",
    "cors_origins": "llama.cpp's CORS defaults",
    "log_path": "text of llama.cpp's log",
    "router": "several models per server",
}

# Paths of llama.cpp's server that the OpenAI-compatible server does not have.
NO_PATH = re.compile(
    r"^(/v1)?/(infill|rerank|reranking|messages|responses|stream|cors-proxy|tools|lora-adapters|predict|audio)"
    r"|/input_tokens|/count_tokens|^/slots/|^/models/|^/sw\.js|^/manifest|^/_app"
)

# Request fields of llama.cpp's own `/completion`.
NO_FIELD = {
    "n_probs": "log-probabilities in the form of /completion",
    "response_fields": "response_fields of /completion",
    "return_tokens": "return_tokens of /completion",
    "return_progress": "progress of the prompt",
    "verbose": "verbose answers",
}

# Texts that only llama.cpp's test model writes.
MODEL_TEXTS = {
    "(going|bed)+", "(Suddenly)+", "(little|girl)+", "(wise|kind|owl|answer)+", "(\\{|John)+", "[ -3000 ]",
    "(princesses|everyone|kids|Anna|forest)+",
}


def na(reason: str) -> NoReturn:
    pytest.skip(f"n/a: {reason}")


class ServerError(Exception):
    def __init__(self, code, body):
        super().__init__(f"status {code}: {body}")
        self.code = code
        self.body = body


class ServerResponse:
    """An HTTP answer."""

    def __init__(self, status_code, headers, body):
        self.status_code = status_code
        self.headers = headers
        self.body = body


class Native(dict):
    """An answer of `/completion`. A field that `/v1/completions` cannot give skips the test."""

    def __missing__(self, key):
        na(f"the field `{key}` of /completion")

    def __contains__(self, key):
        if key == "error":
            return False
        return super().__contains__(key) or na(f"the field `{key}` of /completion")


class AnyCount(int):
    """Equals any number above 0: the counts of llama.cpp's test model."""

    def __eq__(self, other):
        return isinstance(other, int) and other > 0

    def __ne__(self, other):
        return not self == other

    def __rmul__(self, other):
        return self

    __hash__ = int.__hash__


server_instances: set["ServerProcess"] = set()


class ServerProcess:
    """A `tpc serve` with llama.cpp's names for its options. Options that were not set are `None`."""

    def __init__(self, **options):
        self.server_host = "127.0.0.1"
        self.server_port = int(os.environ.get("PORT", "8980"))
        self.seed = 42
        self.temperature = 0.8
        self.process = None
        self.__dict__.update(options)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def start(self, timeout_seconds: int = DEFAULT_HTTP_TIMEOUT) -> None:
        for name, reason in NO_OPTION.items():
            if getattr(self, name):
                na(reason)
        hosts = self.server_host.split(",")
        if len(hosts) > 1:
            na("several listen addresses")
        args = [os.environ["TPC"], "serve", self.model(), "--host", hosts[0], "--port", self.server_port]
        args += ["--seed", self.seed, "--temp", self.temperature]
        for option, value in [("-c", self.n_ctx), ("-np", self.n_slots), ("-a", self.model_alias)]:
            if value:
                args += [option, value]
        if self.api_key:
            args += ["--api-key", self.api_key]
        if self.server_embeddings:
            args += ["--embeddings", "--pooling", self.pooling or "mean"]
            args = [a for a in args if a not in ("--seed", "--temp", self.seed, self.temperature)]
        if self.no_ui:
            args.append("--no-ui")
        log = open(os.environ.get("TPC_LOG", os.devnull), "ab")
        self.process = subprocess.Popen([str(a) for a in args], stdout=log, stderr=log)
        server_instances.add(self)
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"{args} ended with {self.process.returncode}")
            try:
                if requests.get(self.url("/health"), timeout=2).status_code == 200:
                    return
            except requests.RequestException:
                pass
            time.sleep(0.05)
        raise TimeoutError("the server did not start")

    def model(self) -> str:
        """Returns the model, with another chat template if the test asks for one."""
        file = os.environ["MODEL"]
        if self.chat_template_file:
            return with_template(file, Path(self.chat_template_file))
        if self.chat_template not in (None, "chatml"):
            na("chat templates by llama.cpp's names or from the command line")
        return file

    def stop(self) -> None:
        server_instances.discard(self)
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def url(self, path: str) -> str:
        return f"http://{self.server_host}:{self.server_port}{path}"

    def prepare(self, path, data):
        """Returns the path and body for tpc, and true if the answer must be converted to `/completion`'s form."""
        if NO_PATH.search(path):
            na(f"the path {re.split(r'[?/]', path.removeprefix('/v1').strip('/'))[0]}")
        native = path in ("/completion", "/completions")
        if not isinstance(data, dict):
            return path, data, False
        data = dict(data)
        for name, reason in NO_FIELD.items():
            if data.get(name):
                na(reason)
        if self.reasoning == "off" and "messages" in data:
            data.setdefault("chat_template_kwargs", {"enable_thinking": False})
        if native:
            path = "/v1/completions"
            # llama.cpp's test model never ends a text.
            data.setdefault("ignore_eos", True)
            prompts = data.get("prompt")
            listed = prompts if isinstance(prompts, list) else [prompts]
            if any(isinstance(p, dict) for p in listed):
                na("prompts as objects")
            if len({isinstance(p, str) for p in listed}) > 1 and any(isinstance(p, int) for p in listed):
                na("texts and tokens in one prompt")
        if "completion" in path:
            limit = self.n_predict if self.n_predict and self.n_predict > 0 else None
            asked = data.pop("n_predict", None)
            asked = data.get("max_tokens") if asked is None else asked
            if asked is None or asked < 0:
                asked = limit if limit is not None else (-1 if native else None)
            data["max_tokens"] = asked
        if data.get("stream") and (native or "messages" in data):
            data.setdefault("stream_options", {"include_usage": True})
        return path, data, native

    def make_request(self, method, path, data=None, headers=None, timeout=DEFAULT_REQUEST_TIMEOUT, host=None) -> ServerResponse:
        path, data, native = self.prepare(path, data)
        response = requests.request(method, self.url(path), headers=headers, json=data, timeout=timeout)
        try:
            body = response.json()
        except ValueError:
            body = response.text
        if native and response.status_code == 200:
            if body["object"] == "text_completion" and len(body["choices"]) > 1:
                body = [self.native(choice, body) for choice in body["choices"]]
            else:
                body = self.native(body["choices"][0], body)
        return ServerResponse(response.status_code, dict(response.headers), body)

    @staticmethod
    def native(choice, body):
        return Native(
            content=choice["text"],
            timings=body["timings"],
            tokens_predicted=body["usage"]["completion_tokens"],
            stop=True,
        )

    def make_stream_request(self, method, path, data=None, headers=None, host=None) -> Iterator[dict]:
        path, data, native = self.prepare(path, data)
        response = requests.request(method, self.url(path), headers=headers, json=data, stream=True)
        if response.status_code != 200:
            raise ServerError(response.status_code, response.json())
        finished = None
        for line in response.iter_lines():
            line = line.decode()
            if not line.startswith("data: ") or line == "data: [DONE]":
                continue
            chunk = json.loads(line.removeprefix("data: "))
            if not native:
                yield chunk
            elif chunk["choices"]:
                finished = chunk["choices"][0]["finish_reason"] or finished
                yield Native(content=chunk["choices"][0]["text"], stop=False)
            else:
                kind = "limit" if finished == "length" else "eos"
                yield Native(content="", stop=True, stop_type=kind, timings=chunk["timings"])

    def make_any_request(self, method, path, data=None, headers=None, timeout=None) -> dict:
        """Returns the body of a chat, whole or collected from a stream."""
        if not (data or {}).get("stream"):
            reply = self.make_request(method, path, data, headers, timeout=timeout)
            assert reply.status_code == 200, reply.body
            return reply.body
        message: dict = {"role": "assistant", "content": None, "reasoning_content": None, "tool_calls": None}
        finish = None
        for chunk in self.make_stream_request(method, path, data, headers):
            if not chunk["choices"]:
                assert "usage" in chunk and "timings" in chunk
                continue
            [choice] = chunk["choices"]
            finish = choice["finish_reason"] or finish
            delta = choice["delta"]
            for name in ("content", "reasoning_content"):
                if delta.get(name) is not None:
                    message[name] = (message[name] or "") + delta[name]
            for change in delta.get("tool_calls") or []:
                calls = message["tool_calls"] = message["tool_calls"] or []
                if change["index"] == len(calls):
                    assert change["id"] and change["type"] == "function" and change["function"]["name"]
                    calls.append({"id": change["id"], "type": "function", "function": {"name": "", "arguments": ""}})
                call = calls[change["index"]]["function"]
                for name in ("name", "arguments"):
                    call[name] += change["function"].get(name) or ""
        return {"choices": [{"index": 0, "finish_reason": finish, "message": message}]}


def with_template(model: str, template: Path) -> str:
    """Returns a copy of a GGUF file with another chat template."""
    if not template.exists():
        na(f"the template {template.name} is not in the source package")
    out = Path(tempfile.gettempdir()) / f"tpc-template-{template.stem}.gguf"
    if not out.exists():
        command = [sys.executable, "-m", "gguf.scripts.gguf_new_metadata", "--force"]
        partial = out.with_suffix(f".{os.getpid()}")
        command += ["--chat-template-file", str(template), model, str(partial)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        partial.rename(out)
    return str(out)


def small(**options) -> ServerProcess:
    return ServerProcess(model_alias="tinyllama-2", n_ctx=512, n_slots=2, n_predict=64, **options)


def embedder(n_ctx=512) -> ServerProcess:
    return ServerProcess(model_alias="bert-bge-small", n_ctx=n_ctx, n_slots=2, server_embeddings=True)


class ServerPreset:
    """llama.cpp's presets, all with the same model."""

    tinyllama2 = staticmethod(small)
    bert_bge_small = staticmethod(embedder)
    bert_bge_small_with_fa = staticmethod(lambda: embedder(1024))
    stories15m_moe = staticmethod(lambda: small(temperature=0.0))
    tinyllama_infill = staticmethod(lambda: small(temperature=0.0))
    jina_reranker_tiny = staticmethod(lambda: small(server_reranking=True))
    tinygemma3 = staticmethod(lambda: small(mmproj_url="images"))
    router = staticmethod(lambda: small(router=True))


def parallel_function_calls(calls) -> list:
    with ThreadPoolExecutor(max_workers=len(calls)) as pool:
        return [f.result() for f in [pool.submit(function, *args) for function, args in calls]]


def match_regex(regex: str, text: str) -> bool:
    if regex in MODEL_TEXTS:
        return text.strip() != ""
    return re.search(regex, text, re.IGNORECASE | re.MULTILINE | re.DOTALL) is not None


def download_file(url: str, output_file_path=None) -> str:
    na("download of a test model")


def is_slow_test_allowed() -> bool:
    return False
