"""Calls `tpc serve` with clients other than OpenAI's package, if they are installed: langchain-openai and litellm.

    python other_clients.py BASE
"""

import importlib.util
import os
import sys
import traceback

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
BASE = sys.argv[1]
ASK = "Write one sentence about the sea."


def langchain_openai():
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from pydantic import BaseModel, Field

    class City(BaseModel):
        """A city."""

        name: str = Field(max_length=12)
        large: bool

    @tool
    def get_weather(city: str) -> str:
        """Returns the weather of a city."""
        return f"sunny in {city}"

    chat = ChatOpenAI(base_url=BASE, api_key="none", model="tpc", temperature=0, max_tokens=60, max_retries=0)
    whole = chat.invoke(ASK)
    assert whole.content and whole.usage_metadata["output_tokens"] > 0
    assert "".join(chunk.content for chunk in chat.stream(ASK)) == whole.content
    assert [m.content for m in chat.batch([ASK, ASK])] == [whole.content] * 2
    bound = chat.bind_tools([get_weather], tool_choice="required").invoke("How is the weather in Rome?")
    assert bound.tool_calls[0]["name"] == "get_weather" and "city" in bound.tool_calls[0]["args"], bound
    for method in ("json_schema", "function_calling"):
        assert isinstance(chat.with_structured_output(City, method=method).invoke("Paris"), City), method


def litellm():
    import litellm

    ask = dict(model="openai/tpc", api_base=BASE, api_key="none", temperature=0, max_tokens=12, num_retries=0)
    messages = [{"role": "user", "content": ASK}]
    whole = litellm.completion(messages=messages, **ask).choices[0].message.content
    assert whole
    chunks = litellm.completion(messages=messages, stream=True, **ask)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole
    try:
        litellm.completion(messages=[], **ask)
    except litellm.BadRequestError:
        return
    raise AssertionError("no error for an empty list of messages")


failed = 0
for check in (langchain_openai, litellm):
    if importlib.util.find_spec(check.__name__) is None:
        print(f"skipped {check.__name__}: not installed")
        continue
    try:
        check()
        print(f"ok      {check.__name__}")
    except Exception:
        failed += 1
        print(f"FAILED  {check.__name__}\n{traceback.format_exc(limit=-3)}")
sys.exit(bool(failed))
