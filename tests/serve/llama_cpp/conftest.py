"""Prepares llama.cpp's tests for another model, stops servers, and writes a table of the results."""

import collections
import os
import re

import pytest
import utils

# Parameters with counts of llama.cpp's test model, and with its texts.
COUNTS = {"n_prompt", "n_tokens"}
TEXT_TESTS = {"test_completion", "test_completion_stream", "test_chat_completion", "test_chat_completion_stream"}

# Tests of something that tpc does not have or does in another way, and the reason.
NOT_APPLICABLE = [
    (r"test_compat_anthropic\.py", "Anthropic's /v1/messages"),
    (r"test_compat_oai_responses\.py", "OpenAI's /v1/responses"),
    (r"test_compat_gcp\.py", "Google's prediction API"),
    (r"test_infill\.py", "/infill"),
    (r"test_lora\.py", "LoRA"),
    (r"test_mcp_servers\.py|test_proxy\.py", "MCP"),
    (r"test_rerank\.py", "/rerank"),
    (r"test_router\.py|test_stream\.py", "several models per server"),
    (r"test_sleep\.py", "unloading an idle model"),
    (r"test_slot_save\.py", "slots saved to files"),
    (r"test_tools_builtin\.py", "tools that the server runs"),
    (r"test_vision_api\.py|test_local_media_file", "images"),
    (r"test_server_slots|test_metrics_disabled", "/slots and /metrics are always on"),
    (r"test_server_props", "/props does not tell the path of the model's file"),
    (r"test_load_split_model|test_with_and_without_draft|test_speculative\.py", "download of a test model"),
    (r"test_metrics\.py.*(prometheus_format|processed_and_cached|predicted_total|embedding_prompt)", "names of llama.cpp's metrics"),
    (r"test_cors_", "llama.cpp's CORS defaults: tpc refuses pages of other origins"),
    (r"test_context_size_exceeded", "llama.cpp's error type: tpc has OpenAI's `context_length_exceeded`"),
    (r"test_embedding_pooling_none\b", "/embeddings in llama.cpp's own form"),
    (r"test_embedding_mixed_input\[(-|input[3-9]|input10)", "empty texts, objects, and texts mixed with tokens"),
    (r"test_embedding_content_text_same_as_string", "texts as objects"),
    (r"test_embedding_error_prompt_too_long|test_ctx_shift_disabled_long_prompt", "words of llama.cpp's message"),
    (
        r"test_chat_completion_cached_tokens|test_nocache_long_input_prompt|test_embedding_usage_multiple"
        r"|test_ctx_shift_disabled_short_prompt.*248",
        "token counts of llama.cpp's test model",
    ),
    (r"assistant_prefill|continue_final_message_vllm|test_verbose", "verbose answers"),
    (r"test_invalid_chat_completion_req\[messages7\]", "two last messages of the assistant are an error"),
    (r"test_tokenize_with_bos", "a vocabulary that starts texts with token 1"),
    (r"test_ignore_eos\.py", "`generation_settings` of /completion"),
    (r"test_kv_keep_only_active\.py", "text of llama.cpp's log"),
    (r"test_completion_unified", "one cache that slots share"),
    (r"test_chat_completion.*This is not a chat template", "chat templates from the command line"),
]


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: downloads a model")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="n/a: download of a large model"))
        for pattern, reason in NOT_APPLICABLE:
            if re.search(pattern, item.nodeid):
                item.add_marker(pytest.mark.skip(reason=f"n/a: {reason}"))
        parameters = getattr(item, "callspec", None)
        if parameters is None:
            continue
        for name in COUNTS & parameters.params.keys():
            parameters.params[name] = utils.AnyCount(1)
        if item.originalname in TEXT_TESTS:
            parameters.params["re_content"] = r"\S"


@pytest.fixture(autouse=True)
def stop_servers():
    yield
    for server in list(utils.server_instances):
        server.stop()


def pytest_terminal_summary(terminalreporter):
    out = os.environ.get("REPORT")
    if not out:
        return
    files = collections.defaultdict(collections.Counter)
    reasons = collections.Counter()
    failures = []
    for kind in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(kind, []):
            file = report.nodeid.split("::")[0].rsplit("/", 1)[-1]
            if kind == "skipped":
                files[file]["not applicable"] += 1
                reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
                reasons[reason.removeprefix("Skipped: ").removeprefix("n/a: ")] += 1
            elif kind == "passed":
                if report.when == "call":
                    files[file]["passed"] += 1
            else:
                files[file]["failed"] += 1
                failures.append(report.nodeid)
    kinds = ("passed", "not applicable", "failed")
    lines = ["| file | " + " | ".join(kinds) + " |", "|---|--:|--:|--:|"]
    for file, counts in sorted(files.items()):
        lines.append(f"| `{file}` | " + " | ".join(str(counts[k]) for k in kinds) + " |")
    totals = [sum(c[k] for c in files.values()) for k in kinds]
    lines += ["| total | " + " | ".join(map(str, totals)) + " |", "", "| not applicable | tests |", "|---|--:|"]
    lines += [f"| {reason} | {n} |" for reason, n in reasons.most_common()]
    lines += [""] + [f"failed: {name}" for name in failures]
    with open(out, "w") as file:
        file.write("\n".join(lines) + "\n")
