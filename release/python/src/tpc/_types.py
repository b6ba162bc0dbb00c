"""Results of tpc. This file is generated from the JSON Schemas by `release/python/types`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Union


@dataclass
class AdviceReport:
    """A planned configuration that fits."""

    decode_tps: float
    """Decoded tokens per second."""
    depth: int
    """Depth of the speeds, in tokens: `--depth`, or a quarter of the requested context."""
    fits: bool
    """True, because only fitting configurations are advised."""
    fullest: Optional[float]
    """The used fraction of the fullest device's memory; `null` if no memory is known."""
    host_bytes: int
    """Bytes on the host."""
    options: str
    """Options that replace the given ones."""
    price: str
    """The losses as text."""
    prompt_tps: float
    """Prompt tokens per second."""


@dataclass
class Part:
    """Bytes of a file at one place."""

    compute: int
    """Buffers for intermediate values."""
    kv: int
    """KV caches and other states."""
    weights: int
    """Weights."""


@dataclass
class ExtraFileMemory:
    """The memory of an additional file."""

    devices: List[Part]
    """Bytes per device."""
    file: str
    """The file."""
    host: Part
    """Bytes on the host."""
    what: str
    """The kind of file."""


@dataclass
class OtherBitsReport:
    """Sums whose bits may differ for one reason."""

    first: str
    """The value of the first sum."""
    reason: str
    """The reason."""
    sums: int
    """Number of sums."""


@dataclass
class BitsReport:
    """Comparison of a plan's logits with the logits of one device, bit by bit."""

    kept_at: Optional[float]
    """The speed with `--deterministic on`, as a share of this plan's speed. `None` if it is unknown, or if all sums keep
    their bits."""
    neighbours: bool
    """True if other sequences, each with its own part of the caches, do not change a token's bits."""
    others: List[OtherBitsReport]
    """Sums that may differ, by reason."""
    same: bool
    """True if all sums over devices have the bits of one device's sums."""
    widths: Optional[int]
    """The widest batch in which a token has the bits of a batch of one token; `None` for any batch."""


@dataclass
class TrafficReport:
    """Transfers of one batch."""

    all_gather: int
    """Number of all-gathers."""
    all_reduce: int
    """Number of all-reduces."""
    all_to_all: int
    """Number of all-to-alls."""
    bytes: int
    """Operand bytes of one participant per transfer."""
    copies: int
    """Number of copies between the host and devices."""
    reduce_scatter: int
    """Number of reduce-scatters."""


@dataclass
class Collectives:
    """Transfers per batch."""

    decode: TrafficReport
    """Transfers of a batch of one token."""
    prefill: TrafficReport
    """Transfers of the largest batch."""


@dataclass
class Commands:
    """The commands that run a plan."""

    ik_llama_cpp: Optional[str] = field(metadata={"key": "ik_llama.cpp"})
    """ik_llama.cpp's server, if the plan is for this engine or no other engine runs the file."""
    ik_llama_cpp_reason: Optional[str] = field(metadata={"key": "ik_llama.cpp_reason"})
    """The reason why `ik_llama_cpp` is absent."""
    llama_cpp: Optional[str] = field(metadata={"key": "llama.cpp"})
    """llama.cpp's server with the same placement; `None` if not possible."""
    llama_cpp_by_layers: Optional[str] = field(metadata={"key": "llama.cpp_by_layers"})
    """llama.cpp's server with a split by layers, if the planned split is not possible."""
    llama_cpp_reason: Optional[str] = field(metadata={"key": "llama.cpp_reason"})
    """The reason why `llama_cpp` is absent."""
    needs: Optional[str]
    """Requirements of the commands beyond the planned file."""
    tpc: Optional[str]
    """`tpc run` with the options of the plan; `None` for captured graphs and for models on the web."""
    tpc_reason: Optional[str]
    """The reason why `tpc` is absent."""
    llama_cpp_order: Optional[str] = field(default=None, metadata={"key": "llama.cpp_order"})
    """The device order that these commands assume, if devices differ."""


@dataclass
class CandidateReport:
    """A strategy that `auto` compared."""

    chosen: bool
    """True if the strategy is chosen."""
    cost_us: float
    """Cost in microseconds, which `auto` compares: the decoded token's time with prompts and the price of memory."""
    decode_tps: float
    """Decoded tokens per second."""
    decode_us: float
    """Time of a batch of one token."""
    fits: bool
    """True if the strategy fits the memory."""
    fullest_bytes: int
    """Stored bytes on the fullest device."""
    name: str
    """`none`, `layer`, `tensor`, or `layer of 2 × tensor of 4`."""
    prefill_us: float
    """Time of the largest batch."""
    prompt_tps: float
    """Prompt tokens per second."""
    within_error: bool
    """True if both speeds are within the estimates' error of the chosen strategy's speeds."""


@dataclass
class CostReport:
    """Times and bytes of a choice."""

    bytes: List[int]
    """Bytes of weights and states per device."""
    decode_us: float
    """Time per token in µs."""
    prefill_us: float
    """Time per prompt batch in µs."""
    price_us: float
    """The price that the search compares, in µs per token."""


@dataclass
class LeanerReport:
    """A split with less memory, and its cost."""

    alternative: CostReport
    """The cost of the split in these layers."""
    chosen: CostReport
    """The cost of the plan, in the layers that would change."""
    factor: str
    """The split factor: `64 (experts)`."""
    lens: List[int]
    """Indices per device."""


@dataclass
class CopiesReport:
    """Copies of the tensors of one name in all layers."""

    bytes: int
    """Bytes beyond the first copy."""
    cause: str
    """The cause of the copies."""
    count: int
    """The number of tensors."""
    reason: str
    """The factors and ops that keep the copies."""
    tensor: str
    """The name without the layer."""
    leaner: Optional[LeanerReport] = field(default=None)
    """The cheapest split with less memory; `None` if every split takes as much."""


@dataclass
class DeviceReport:
    """Bytes at one place."""

    capacity_bytes: Optional[int]
    """The device's memory, if known."""
    card: Optional[str]
    """The card, if known."""
    compute_bytes: int
    """Inputs, intermediate values and outputs of the largest batch."""
    kind: str
    """The kind of the place."""
    kv_bytes: int
    """KV caches."""
    layout_bytes: int
    """Additional bytes of weights, caches and states: the device's formats, and gaps between buffers. Negative if the
    formats save more than the gaps."""
    name: str
    """Name."""
    reserve_bytes: int
    """Bytes reserved for the driver and the engine's buffers."""
    staging_bytes: int
    """The part of `compute_bytes` for copies and collectives, at its own peak."""
    state_bytes: int
    """States other than KV caches."""
    total_bytes: int
    """Bytes of weights, caches, states, layout and compute, which form the program's arenas, and of additional files."""
    weights_bytes: int
    """Weights, packed as in the file."""
    beside_bytes: Optional[int] = field(default=None)
    """Bytes of additional files."""


@dataclass
class Diagnostic:
    """A report to the user: the problem, its location, and the cure."""

    code: str
    """The code, for `tpc explain CODE`."""
    entity: str
    """The affected tensor, key, op, option, device or file."""
    help: Optional[str]
    """The cure."""
    message: str
    """The problem, as a sentence without a full stop."""
    severity: str
    """The severity: the code's, unless an option or a harmless case changes it."""


@dataclass
class DraftBytes:
    """Bytes at one place."""

    kv_bytes: int
    """KV caches."""
    name: str
    """Name."""
    weights_bytes: int
    """Weights, without weights shared with the model."""


@dataclass
class DraftsReport:
    """The part of a plan that drafts tokens. The plan's other numbers include it."""

    blocks: int
    """Number of drafting blocks; each predicts one token."""
    collectives: Collectives
    """Transfers per batch."""
    devices: List[DraftBytes]
    """Bytes per device."""
    host: DraftBytes
    """Bytes on the host."""


@dataclass
class EngineBuildReport:
    """An engine's release."""

    backends: List[Optional[str]]
    """Each device's back end, if known."""
    engine: str
    """The engine."""
    source: str
    """The source of tpc's facts about the release."""
    version: str
    """The version."""


@dataclass
class BandReport:
    """A range of speeds around an estimate. If calibrated, it contains 90 % of measured speeds."""

    error: float
    """Half the width of the range, as
    ln(estimated / measured)
    ."""
    high_tps: float
    """Highest decoded tokens per second."""
    low_tps: float
    """Lowest decoded tokens per second."""
    of_this_machine: bool
    """True if this machine was measured."""
    rows: int
    """Number of measurements."""


@dataclass
class BreakdownReport:
    """Parts of the time of a decoded token, in microseconds."""

    attention_us: float
    """Attention and recurrent states."""
    collectives_us: float
    """Collectives and copies between devices."""
    host_us: float
    """Computation on the host, and copies from and to it."""
    launches_us: float
    """Fixed time per kernel and per token."""
    other_us: float
    """Other ops on the devices."""
    weights_us: float
    """Products with weights."""


@dataclass
class EstimateReport:
    """Estimated times in microseconds, and speeds of one sequence."""

    band: Optional[BandReport]
    """The range of `decode_tps`; `None` for unknown devices."""
    baseline_single_us: float
    """Time of one token on a single device."""
    breakdown: BreakdownReport
    """Parts of a decoded token's time."""
    calibrated: bool
    """True if estimates of this kind were measured. `band` is then the observed error."""
    decode_tps: float
    """Decoded tokens per second."""
    decode_us: float
    """Time of a batch of one token."""
    depth: int
    """Tokens in the cache before the decoded token, and before the prompt."""
    engine: str
    """The engine."""
    error: float
    """Relative error of the estimate. Strategies within this error are equal."""
    not_calibrated_for: List[str]
    """Kinds without measurements."""
    prefill_us: float
    """Time of the largest batch."""
    prompt_tps: float
    """Prompt tokens per second."""


@dataclass
class LeftOutReport:
    """A strategy that the engine refuses."""

    basis: str
    """The evidence for the reason."""
    code: str
    """Diagnostic code of the reason."""
    engine: str
    """The engine and its release."""
    name: str
    """The name, as in `considered`."""
    reason: str
    """The reason."""


@dataclass
class Processor:
    """Processor properties that limit speed besides memory bandwidth and arithmetic."""

    clock: float
    """Boost clock in hertz."""
    int8: Optional[float]
    """8-bit integer throughput in operations per second (two per multiply-add), if known."""
    memory: str
    """Kind of memory."""
    ported: Optional[bool]
    """True if engines run kernels ported from another vendor's hardware; `None` if unknown."""
    units: int
    """Streaming multiprocessors, or compute units."""


@dataclass
class DeviceProfile:
    """The memory and speed of a device."""

    bandwidth: float
    """Memory bandwidth in bytes per second."""
    flops: float
    """Arithmetic throughput in operations per second (two per multiply-add)."""
    memory: Optional[float]
    """Bytes of memory. If `None`, plans are not checked against the memory."""
    name: str
    """Name in reports."""
    processor: Optional[Processor]
    """Processor properties, if known."""
    reserve: float
    """Bytes reserved for the driver's context and the engine's own buffers."""
    beside: Optional[float] = field(default=None)
    """Bytes of the command's other models and adapters: drafts, image encoders, LoRA adapters."""
    pool: Optional[float] = field(default=None)
    """Bytes of memory shared by device and host; `None` for a device with its own memory."""


@dataclass
class Link:
    """The speed of a link between two places."""

    bandwidth: float
    """Bytes per second in each direction."""
    kind: str
    """The kind."""
    latency_us: float
    """Microseconds before the first byte arrives."""


@dataclass
class PairLink:
    """A link between two given devices."""

    a: int
    """One device's position."""
    b: int
    """The other device's position."""
    link: Link
    """The link."""


@dataclass
class MachineReport:
    """The machine of a plan. Memory is in bytes, bandwidth in bytes per second, arithmetic in operations per second."""

    assumed: bool
    """True if the user did not name the machine, so that profiles are defaults."""
    devices: List[DeviceProfile]
    """Profiles of the devices."""
    host: DeviceProfile
    """The host."""
    host_link: Link
    """The link of the host to each device."""
    link: Link
    """The link between devices, except the pairs in `links`."""
    links: List[PairLink]
    """Links between pairs of devices."""


@dataclass
class MirroredReport:
    """Bytes of weights beyond the first copy."""

    edge_block_bytes: int
    """Bytes of quantisation blocks that span two devices. Both devices hold them."""
    shared_head_bytes: int
    """Bytes of KV head rows that devices share."""
    whole_bytes: int
    """Bytes of tensors that are whole on every device."""


@dataclass
class ModelReport:
    """The model."""

    arch: str
    """Architecture."""
    bytes: int
    """Bytes of all tensors in the file."""
    n_ctx: int
    """KV cache cells."""
    n_layer: int
    """Layers."""
    n_params: int
    """Elements of all tensors in the file."""
    name: str
    """Name."""
    path: str
    """The file."""
    unused_bytes: int
    """Bytes of tensors that the model does not use."""


@dataclass
class PoolReport:
    """Memory that the host shares with devices."""

    capacity_bytes: int
    """Bytes of the pool."""
    devices: List[int]
    """Positions of the devices that share the pool."""
    reserve_bytes: int
    """Bytes reserved for the system and the drivers."""
    total_bytes: int
    """Used bytes of devices and host."""


@dataclass
class RewritingReport:
    """Transfers before and after rewriting, and the rules that applied."""

    collectives_after: int
    """Collectives after."""
    collectives_before: int
    """Collectives before."""
    copies_after: int
    """Copies between places after."""
    copies_before: int
    """Copies between places before."""
    rules: Dict[str, int]
    """Number of matches per rule in distinct sections."""
    saturated: bool
    """True if the rules reached a fixed point everywhere."""


@dataclass
class SearchReport:
    """The search for splits."""

    at_most_above: float
    """Maximum relative distance of the chosen cost from the cheapest; 0 for the cheapest."""
    distinct: int
    """Number of distinct sections."""
    optimal: bool
    """True if all sets of splits were priced."""
    priced: int
    """Number of priced sets of splits."""


@dataclass
class StepKernel:
    """The launches of a kernel in a batch."""

    bound: str
    """The limit of the kernel's speed."""
    kernel: str
    """The kernel."""
    launches: int
    """Launches."""
    share: float
    """Share of the batch's time."""
    us: float
    """Microseconds of all launches."""
    us_each: float
    """Microseconds of a launch on average, with the time before it."""
    weight_bytes: int
    """Bytes of weights that all launches read."""


@dataclass
class StepTimes:
    """Predicted times of a batch."""

    cells: int
    """Tokens in the cache, including the batch."""
    edges_us: float
    """Microseconds of edges and transfers between devices."""
    error: float
    """Relative error of `tps`."""
    kernels: List[StepKernel]
    """Kernels of the first device, slowest first."""
    measured: bool
    """True if `error` was observed on cards, false if it is assumed."""
    other_us: float
    """Microseconds of other devices and of the host."""
    tokens: int
    """Tokens of the batch."""
    tps: float
    """Tokens per second."""
    us: float
    """Microseconds of the batch."""


@dataclass
class StepReport:
    """Predicted times of tpc's kernels on cards, from a model of each launch."""

    card: str
    """The card of the first device."""
    prompt: StepTimes
    """The largest batch of a prompt."""
    token: StepTimes
    """A batch of one token."""


@dataclass
class ShardingReport:
    """The sharding of a tensor."""

    axis: Optional[int]
    """The split axis."""
    kind: str
    """The kind of the sharding."""
    ranges: Union[List[List[int]], List[List[List[int]]]]
    """`[start, len]` or a list of segments per device; empty if not split."""


@dataclass
class TensorReport:
    """A tensor of the plan."""

    dtype: str
    """Element type."""
    kind: str
    """The kind of the tensor."""
    layer: Optional[int]
    """The layer."""
    name: str
    """Name in the file, or the state's name."""
    ne: List[int]
    """Sizes, axis 0 first."""
    place: str
    """`host`, a device, or a device group such as `tp0`."""
    sharding: ShardingReport
    """The sharding."""


@dataclass
class ThroughReport:
    """A factor's position in a tensor."""

    axis: int
    """The axis."""
    factors: int
    """Number of factors of the axis."""
    position: int
    """Position among the factors of the axis, from 0, major first."""
    segment: Optional[int]
    """Segment, from 0; null for all segments."""
    tensor: str
    """The tensor."""


@dataclass
class FactorReport:
    """One factor of a tensor."""

    alternative: Optional[CostReport]
    """Cost of the alternative in these layers: a whole factor split, or a split factor whole."""
    chosen: Optional[CostReport]
    """Cost of the plan in the layers that the alternative would change."""
    class_: Optional[str] = field(metadata={"key": "class"})
    """The class that splits it."""
    factor: str
    """Handle in `dump --stage factors`, such as `f7`."""
    granule: Optional[int]
    """Ranges end at multiples of this number; null if quantisation blocks permit no position."""
    instead_of: List[str]
    """Classes that the alternative excludes."""
    kind: Optional[str]
    """Name such as `kv heads`; `None` if no weight or state has the factor."""
    op: Optional[str]
    """The forbidding op."""
    op_layer: Optional[int]
    """The op's layer."""
    op_result: Optional[str]
    """The op's first result."""
    ranges: List[List[int]]
    """Indices per device. For a whole factor, these are the indices of the alternative."""
    reason: Optional[str]
    """The reason that forbids a split."""
    shares_blocks: bool
    """True if ranges may end inside blocks, which two devices then hold."""
    size: Union[int, str]
    """The size."""
    through: List[ThroughReport]
    """Weights and states with this factor."""
    verdict: str
    """The verdict on a split of the factor."""


@dataclass
class WhyReport:
    """The reasons for the split of a tensor, and of equal tensors in other layers."""

    alike: List[str]
    """Tensors of other layers that are split in the same way for the same reasons."""
    axes: List[str]
    """Factors of each axis: a product per segment, with the major factor first."""
    dtype: str
    """Element type."""
    factors: List[FactorReport]
    """The factors."""
    layer: Optional[int]
    """The layer."""
    ne: List[Union[int, str]]
    """Sizes, axis 0 first: numbers, or polynomials that depend on the batch."""
    place: str
    """The place."""
    tensor: str
    """Name."""
    value: str
    """The handle in the placed graph: `v12`."""


@dataclass
class PlanReport:
    """The object that `plan --format json` prints. Keys may be added, but never changed."""

    advice: List[AdviceReport]
    """Fitting configurations, the fastest first, if the plan does not fit."""
    bits: BitsReport
    """Comparison with one device's logits, bit by bit."""
    collectives: Collectives
    """Transfers per batch."""
    commands: Commands
    """Commands that run the plan."""
    considered: List[CandidateReport]
    """Strategies that `auto` compared; empty for other modes."""
    copies: List[CopiesReport]
    """The copies by tensor; empty unless they take more than three per cent of the model."""
    devices: List[DeviceReport]
    """Bytes per device."""
    diagnostics: List[Diagnostic]
    """Findings."""
    estimate: EstimateReport
    """Estimated times."""
    host: DeviceReport
    """Bytes on the host."""
    machine: MachineReport
    """The machine."""
    mirrored: MirroredReport
    """Bytes of weights beyond the first copy, by cause."""
    mirrored_bytes: int
    """Bytes of weights beyond the first copy."""
    model: ModelReport
    """The model."""
    rewriting: RewritingReport
    """Collectives and copies before and after rewriting."""
    search: SearchReport
    """The search for splits."""
    split_mode: str
    """The planned split mode: `none`, `layer`, `tensor` or `hybrid`."""
    tensors: List[TensorReport]
    """Every used tensor of the file, then every cache."""
    tpc: int
    """Format version."""
    verdict: str
    """`error` if a finding is an error.
    - `ok`: No errors.
    - `error`: At least one error."""
    beside: Optional[List[ExtraFileMemory]] = field(default=None)
    """Additional files."""
    drafts: Optional[DraftsReport] = field(default=None)
    """The part that drafts tokens; `None` without drafts."""
    engine_build: Optional[EngineBuildReport] = field(default=None)
    """The release whose limits apply, if the plan is not for tpc."""
    left_out: Optional[List[LeftOutReport]] = field(default=None)
    """Strategies that the engine refuses."""
    pool: Optional[PoolReport] = field(default=None)
    """Memory that the host shares with devices."""
    step: Optional[StepReport] = field(default=None)
    """Predicted times of tpc's kernels, if the devices are cards and the engine is tpc."""
    why: Optional[List[WhyReport]] = field(default=None)
    """Explanations for `--why`."""


@dataclass
class RefusedModel:
    """A model that cannot be planned."""

    path: str
    """The file."""


@dataclass
class Refusal:
    """The report on a model or option that cannot be planned. In contrast to a plan, it lacks `split_mode`."""

    diagnostics: List[Diagnostic]
    """The reasons."""
    model: RefusedModel
    """The model."""
    tpc: int
    """Format version."""
    verdict: str
    """Always `error`.
    - `ok`: No errors.
    - `error`: At least one error."""


@dataclass
class FactChange:
    """A changed fact."""

    new: Union[str, int, float]
    """The newer value."""
    old: Union[str, int, float]
    """The earlier value."""
    what: str
    """The name."""


@dataclass
class FindingReport:
    """A finding of only one plan."""

    code: str
    """The code."""
    entity: str
    """The entity that the finding is about."""
    message: str
    """The message."""


@dataclass
class Change:
    """A value in both plans."""

    new: str
    """The newer value."""
    old: str
    """The earlier value."""


@dataclass
class PlaceChange:
    """A place with changed bytes. Values of a plan without this place are `None`."""

    name: str
    """Name in the newer plan, or else in the earlier plan."""
    new_bytes: Optional[int]
    """Newer bytes."""
    new_capacity_bytes: Optional[int]
    """Newer memory size in bytes."""
    old_bytes: Optional[int]
    """Earlier bytes."""
    old_capacity_bytes: Optional[int]
    """Earlier memory size in bytes."""


@dataclass
class TensorChange:
    """Tensors with the same change."""

    layers: List[int]
    """The layers; empty outside layers."""
    new: Optional[str]
    """Place and split in the newer plan, and the type if changed; `None` if absent."""
    old: Optional[str]
    """Place and split in the earlier plan, and the type if changed; `None` if absent."""
    tensor: str
    """The name without the layer."""


@dataclass
class PlanDiff:
    """The changes between two plans."""

    changed: List[FactChange]
    """Changed facts: `verdict`, `split_mode`, `context`, `engine`, `depth`, `decode_tps` and so on."""
    gone_findings: List[FindingReport]
    """Findings that only the earlier plan has."""
    models: Change
    """Description of the model in both plans."""
    new_findings: List[FindingReport]
    """Findings that only the newer plan has."""
    places: List[PlaceChange]
    """Places with changed bytes."""
    same_model: bool
    """True if architecture, name, layers and parameters are equal. Otherwise tensors are not compared."""
    since: str
    """The file with the earlier plan."""
    tensors: List[TensorChange]
    """Tensors with changed type, place or split. Equal layers have one entry."""
    tpc: int
    """Format version."""


@dataclass
class EngineFacts:
    """An engine release and the source of its facts."""

    backends: List[str]
    """The devices' known back ends."""
    date: str
    """The month of the release."""
    name: str
    """The engine."""
    rpc_protocol: Optional[List[int]]
    """The RPC protocol's version."""
    source: str
    """The source of the facts."""
    version: str
    """The engine's version."""


@dataclass
class Origin:
    """A line of a source file."""

    file: str
    """The path, relative to the folder of the sources."""
    line: int
    """The line, from 1."""


@dataclass
class Finding:
    """A diagnostic and its number of occurrences."""

    code: str
    """The code, for `tpc explain CODE`."""
    count: int
    """The number of merged diagnostics for one device count."""
    denied: bool
    """True if an option turned the finding into an error."""
    devices: List[int]
    """The affected device counts; empty if the finding is independent of devices."""
    entities: List[str]
    """The affected entities."""
    entity: str
    """The affected tensor, key, op, option, device or file."""
    help: Optional[str]
    """The cure."""
    layers: List[int]
    """The affected layers, in order."""
    message: str
    """The problem, as a sentence without a full stop."""
    severity: str
    """The severity: the code's, unless an option or a harmless case changes it."""
    varies: bool
    """True if the message's numbers depend on the device count."""
    baseline: Optional[str] = field(default=None)
    """The relation to the accepted findings; `None` without such a list."""
    messages: Optional[List[str]] = field(default=None)
    """The message for each of `devices` if the numbers vary."""
    origin: Optional[Origin] = field(default=None)
    """The line of the sources that makes the op; `None` if unknown."""


@dataclass
class Accepted:
    """An accepted finding."""

    code: str
    """The code."""
    count: int
    """The number of accepted occurrences."""
    entity: str
    """The first affected tensor, key, op, option or device."""
    file: str
    """The file with the finding."""
    fingerprint: str
    """The hash of code, entity and message, without lines, layers and numbers."""


@dataclass
class Summary:
    """Findings by severity. Accepted findings are counted apart."""

    errors: int
    """Includes denied findings."""
    notes: int
    """The number of notes."""
    warnings: int
    """The number of warnings."""
    accepted: Optional[int] = field(default=None)
    """The number of accepted findings."""


@dataclass
class LintReport:
    """The object of `lint --format json`. Keys may be added but never changed."""

    devices: List[int]
    """The device counts of the plans."""
    findings: List[Finding]
    """The findings."""
    path: str
    """The file."""
    summary: Summary
    """The number of findings."""
    tpc: int
    """The version of this format."""
    verdict: str
    """`error` if a finding is an error.
    - `ok`: No errors.
    - `error`: At least one error."""
    engine: Optional[EngineFacts] = field(default=None)
    """The command line's engine release and the source of its facts."""
    equivalent: Optional[str] = field(default=None)
    """The equivalent `tpc` command."""
    stale: Optional[List[Accepted]] = field(default=None)
    """The accepted findings that no longer occur."""


@dataclass
class LintReports:
    """The JSON object for several files. Keys may be added, never changed."""

    files: List[LintReport]
    """The files."""
    summary: Summary
    """The number of findings of all files."""
    tpc: int
    """Format version."""
    verdict: str
    """`error` if a finding is an error.
    - `ok`: No errors.
    - `error`: At least one error."""
    plans: Optional[List[PlanReport]] = field(default=None)
    """The plans of captured graphs."""


@dataclass
class ModelName:
    """The verified model."""

    path: str
    """The file."""
    name: Optional[str] = field(default=None)
    """The name; absent if the model cannot be planned."""


@dataclass
class Agreement:
    """The result of a successful comparison."""

    batches: int
    """The number of batches."""
    max_abs: float
    """The maximum absolute difference of two elements."""
    nmse: float
    """The maximum error of an output: `Σ(a − b)² / Σa²`, with `a` of the whole model."""
    numbers: int
    """The number of compared elements."""
    outputs: int
    """The number of compared outputs, over all batches."""
    stand_ins: Optional[List[str]] = field(default=None)
    """Ops of the capture that tpc does not know. A stand-in ran instead: a fixed linear function of their operands."""


@dataclass
class SmallLayer:
    """A layer of the small model."""

    layer: int
    """The layer of the model."""
    stands_for: List[int]
    """The equal layers that this layer represents."""


@dataclass
class ChangedSize:
    """A changed size."""

    axis: int
    """The axis."""
    from_: int = field(metadata={"key": "from"})
    """The size in the model."""
    parts: List[int]
    """The part of each device, in the small model."""
    tensor: str
    """The tensor."""
    to: int
    """The size in the small model."""


@dataclass
class NumericCheck:
    """The check of a small model by numbers."""

    layers: List[SmallLayer]
    """The layers of the small model."""
    sizes: List[ChangedSize]
    """The changed sizes."""
    types: Dict[str, str]
    """The replaced element types, and the types in their place."""
    agreement: Optional[Agreement] = field(default=None)
    """The agreement of the results; absent if the check failed."""


@dataclass
class ProofSize:
    """The size of a proof."""

    distinct: int
    """The number of distinct sections."""
    sections: int
    """The number of sections."""
    terms: int
    """The number of terms of the largest section."""


@dataclass
class VerifiedModel:
    """The verification of a model's plan."""

    diagnostics: List[Diagnostic]
    """Findings."""
    model: ModelName
    """The model."""
    tpc: int
    """Format version."""
    verdict: str
    """`error` if a finding is an error.
    - `ok`: No errors.
    - `error`: At least one error."""
    bits: Optional[BitsReport] = field(default=None)
    """Comparison with one device's logits, bit by bit."""
    numeric: Optional[NumericCheck] = field(default=None)
    """The check by numbers of `--numeric`."""
    proof: Optional[ProofSize] = field(default=None)
    """The proof's size; absent if the proof failed."""


@dataclass
class VerifiedArtefact:
    """The verification of an artefact."""

    artefact: str
    """The file."""
    tpc: int
    """Format version."""
    verdict: str
    """`proved`; without the model, `verified`."""
    proof: Optional[ProofSize] = field(default=None)
    """The proof's size; absent without the model."""


@dataclass
class Mismatch:
    """A difference that needs a rebuild."""

    code: str
    """The diagnostic code."""
    field: str
    """The field of the artefact, or the property of the machine."""
    found: str
    """The value in the artefact."""
    wanted: str
    """The value here."""


@dataclass
class Check:
    """Output of `tpc check --format json`: the differences between an artefact and this machine. Later versions of tpc may add keys. They do not change or remove keys. A text with `x-extensible-enum` may get further values; a text with `enum` does not."""

    artefact: str
    """The file."""
    bits: str
    """The conditions under which results keep their bits."""
    mismatches: List[Mismatch]
    """The differences that need a rebuild."""
    tpc: int
    """Format version."""
    verdict: str
    """`valid`, `rebuild` or `no model`. For an unreadable artefact, the command reports a diagnostic."""
    command: Optional[str] = field(default=None)
    """The command that rebuilds the artefact, if needed."""


@dataclass
class FabricReport:
    """Links other than PCI Express."""

    bandwidth: float
    """Bytes per second in both directions of all links together."""
    devices: int
    """Number of joined devices."""
    kind: str
    """The kind of link."""


@dataclass
class CardReport:
    """A card: memory in bytes, bandwidths in bytes per second, arithmetic in operations per second."""

    aliases: List[str]
    """Alternative names."""
    arch: Optional[str]
    """The architecture."""
    bandwidth: float
    """Memory bandwidth."""
    clock: Optional[float]
    """Boost clock in hertz."""
    compute_capability: Optional[str]
    """The CUDA compute capability."""
    fabric: Optional[FabricReport]
    """NVLink or a similar link."""
    flops: float
    """Operations per second that plans assume."""
    fp16: Optional[float]
    """Operations per second of dense fp16 products."""
    int8: Optional[float]
    """Operations per second of dense 8-bit products."""
    link: Link
    """The assumed link between two such cards."""
    memory_bytes: int
    """Bytes that the driver gives to a program."""
    memory_kind: Optional[str]
    """The kind of memory."""
    memory_source: str
    """The source of the memory size."""
    name: str
    """The name."""
    note: Optional[str]
    """Further remarks."""
    pcie_gen: int
    """PCI Express generation."""
    pcie_lanes: int
    """PCI Express lanes."""
    peer: bool
    """True if the driver copies directly between cards over PCI Express."""
    reserve_bytes: int
    """Bytes left free by default."""
    source: str
    """The source of the figures."""
    units: Optional[int]
    """Streaming multiprocessors, or compute units."""
    vendor: Optional[str]
    """The vendor."""


@dataclass
class Cpu:
    """The CPU and the host's memory."""

    available_bytes: Optional[int]
    """The available memory, in bytes."""
    memory_bytes: Optional[int]
    """The total memory, in bytes."""
    name: Optional[str]
    """The name."""
    threads: Optional[int]
    """The number of hardware threads."""


@dataclass
class Gpu:
    """A GPU."""

    bus: str
    """The PCI bus address, or the driver's device number."""
    card: Optional[str]
    """The card's name in tpc's table."""
    free_bytes: Optional[int]
    """The free memory, in bytes."""
    memory_bytes: Optional[int]
    """The total memory, in bytes."""
    name: str
    """The driver's name of the card."""
    pcie_gen: Optional[int]
    """The PCI Express generation."""
    pcie_lanes: Optional[int]
    """The number of PCI Express lanes."""


@dataclass
class Machine:
    """A machine's devices."""

    cpu: Cpu
    """The CPU and the host's memory."""
    devices: Optional[str]
    """The value of `--devices` for these GPUs, if tpc knows every card."""
    gpus: List[Gpu]
    """The GPUs."""
    notes: List[str]
    """Reasons for missing facts, and differences from tpc's card table."""


@dataclass
class AmbiguousName:
    """An ambiguous name."""

    card: str
    """The card that tpc chooses."""
    name: str
    """The name."""


@dataclass
class Check2:
    """A check of the machine."""

    cure: Optional[str]
    """The cure of a warning or failure."""
    figures: Dict[str, float]
    """Measured numbers by name."""
    finding: str
    """The result in words."""
    name: str
    """The name."""
    section: str
    """The group of checks."""
    status: str
    """The status."""


@dataclass
class Devices:
    """Output of `tpc devices --format json`: the built-in cards and this machine's devices. Later versions of tpc may add keys. They do not change or remove keys. A text with `x-extensible-enum` may get further values; a text with `enum` does not."""

    cards: List[CardReport]
    """The built-in cards, or the cards with the given name."""
    tpc: int
    """Format version."""
    here: Optional[Machine] = field(default=None)
    """This machine; absent if a card is named."""
    meant: Optional[List[AmbiguousName]] = field(default=None)
    """Ambiguous names, with the card that tpc chooses."""
    probe: Optional[List[Check2]] = field(default=None)
    """The measurements of `--probe`."""


Plan = Union[PlanReport, Refusal, List[Union[PlanReport, Refusal]], PlanDiff]


Lint = Union[LintReport, LintReports]


Proof = Union[VerifiedModel, VerifiedArtefact]
