"""tpc, a compiler for tensor-parallel inference of quantised GGUF models.

    >>> import tpc
    >>> plan = tpc.plan("model.gguf", devices="2x3090", ctx_size=32768)
    >>> plan.verdict, plan.split_mode
    ('ok', 'tensor')

Each function runs a command of the program and returns its JSON as a dataclass. An option is a keyword:
`split_mode="tensor"` is `--split-mode tensor`. A result may have errors; a command without a result raises `Error`.
"""

from __future__ import annotations

import os
from typing import Any, Optional, Sequence, Union

from . import _run
from ._run import Error, Value, program
from ._types import *  # noqa: F401,F403
from ._types import Check, Devices, Lint, Plan, Proof

Path = Union[str, "os.PathLike[str]"]
DeviceSpec = Union[None, int, str, Sequence[str]]

__all__ = ["Error", "check", "devices", "lint", "plan", "program", "verify"]


def plan(model: Path, devices: DeviceSpec = None, **options: Value) -> Plan:
    """Plans a model on devices. A plan with errors, such as one that does not fit, has the verdict `error`."""
    return _run.typed(Plan, ["plan", *_run.model(model, options, devices)])


def lint(model: Path, devices: DeviceSpec = None, **options: Value) -> Lint:
    """Finds mistakes in a model, a captured graph (`.jsonl`) and the options."""
    return _run.typed(Lint, ["lint", *_run.model(model, options, devices)])


def verify(model: Path, devices: DeviceSpec = None, **options: Value) -> Proof:
    """Proves that the programs of a model's plan, or of an artefact (`.tpc`), compute the model."""
    return _run.typed(Proof, ["verify", *_run.model(model, options, devices)])


def check(artefact: Path, devices: DeviceSpec = None, **options: Value) -> Check:
    """Checks if an artefact runs on this machine or needs a rebuild."""
    return _run.typed(Check, ["check", *_run.model(artefact, options, devices)])


def devices(**options: Value) -> Devices:
    """Returns the built-in cards and this machine's devices."""
    return _run.typed(Devices, ["devices", *_run.words(options)])
