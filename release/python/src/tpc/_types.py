"""Results of tpc. This file is generated from the JSON Schemas by `release/python/types`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Union


@dataclass
class ModelReport:
    """The model."""

    path: str
    """The file."""
    arch: str
    """Architecture."""
    name: str
    """Name."""
    n_layer: int
    """Layers."""
    n_params: int
    """Elements of all tensors in the file."""
    bytes: int
    """Bytes of all tensors in the file."""
    n_ctx: int
    """KV cache cells."""
    unused_bytes: int
    """Bytes of tensors that the model does not use."""


@dataclass
class Processor:
    """Processor properties that limit speed besides memory bandwidth and arithmetic."""

    units: int
    """Streaming multiprocessors, or compute units."""
    clock: float
    """Boost clock in hertz."""
    memory: str
    """Kind of memory."""
    int8: Optional[float]
    """8-bit integer throughput in operations per second (two per multiply-add), if known."""
    ported: Optional[bool]
    """True if engines run kernels ported from another vendor's hardware; `None` if unknown."""


@dataclass
class DeviceProfile:
    """The memory and speed of a device."""

    name: str
    """Name in reports."""
    memory: Optional[float]
    """Bytes of memory. If `None`, plans are not checked against the memory."""
    reserve: float
    """Bytes reserved for the driver's context and the engine's own buffers."""
    bandwidth: float
    """Memory bandwidth in bytes per second."""
    flops: float
    """Arithmetic throughput in operations per second (two per multiply-add)."""
    processor: Optional[Processor]
    """Processor properties, if known."""
    beside: Optional[float] = field(default=None)
    """Bytes of the command's other models and adapters: drafts, image encoders, LoRA adapters."""
    pool: Optional[float] = field(default=None)
    """Bytes of memory shared by device and host; `None` for a device with its own memory."""


@dataclass
class Link:
    """The speed of a link between two places."""

    bandwidth: float
    """Bytes per second in each direction."""
    latency_us: float
    """Microseconds before the first byte arrives."""
    kind: str
    """The kind."""


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
class NetworkReport:
    """The network between machines."""

    name: Optional[str]
    """The name; `None` for other speeds."""
    link: Link
    """The link of a machine to the network."""


@dataclass
class MachineReport:
    """The machine of a plan. Memory is in bytes, bandwidth in bytes per second, arithmetic in operations per second."""

    devices: List[DeviceProfile]
    """Profiles of the devices."""
    host: DeviceProfile
    """The host."""
    link: Link
    """The link between devices, except the pairs in `links`."""
    links: List[PairLink]
    """Links between pairs of devices."""
    host_link: Link
    """The link of the host to each device."""
    assumed: bool
    """True if the user did not name the machine, so that profiles are defaults."""
    machines: Optional[List[List[int]]] = field(default=None)
    """The positions of each machine's devices. The first machine has the host. `None` on one machine."""
    network: Optional[NetworkReport] = field(default=None)
    """The network between machines; `None` on one machine."""


@dataclass
class Commands:
    """The commands that run a plan."""

    tpc: Optional[str]
    """`tpc run` with the options of the plan, started by `mpirun` on several machines; `None` for captured graphs and
    for models on the web."""
    tpc_reason: Optional[str]
    """The reason why `tpc` is absent."""
    llama_cpp: Optional[str] = field(metadata={"key": "llama.cpp"})
    """llama.cpp's server with the same placement; `None` if not possible."""
    llama_cpp_reason: Optional[str] = field(metadata={"key": "llama.cpp_reason"})
    """The reason why `llama_cpp` is absent."""
    llama_cpp_by_layers: Optional[str] = field(metadata={"key": "llama.cpp_by_layers"})
    """llama.cpp's server with a split by layers, if the planned split is not possible."""
    ik_llama_cpp: Optional[str] = field(metadata={"key": "ik_llama.cpp"})
    """ik_llama.cpp's server, if the plan is for this engine or no other engine runs the file."""
    ik_llama_cpp_reason: Optional[str] = field(metadata={"key": "ik_llama.cpp_reason"})
    """The reason why `ik_llama_cpp` is absent."""
    needs: Optional[str]
    """Requirements of the commands beyond the planned file."""
    llama_cpp_order: Optional[str] = field(default=None, metadata={"key": "llama.cpp_order"})
    """The device order that these commands assume, if devices differ."""


@dataclass
class DeviceReport:
    """Bytes at one place."""

    name: str
    """Name."""
    kind: str
    """The kind of the place."""
    weights_bytes: int
    """Weights, packed as in the file."""
    kv_bytes: int
    """KV caches."""
    state_bytes: int
    """States other than KV caches."""
    layout_bytes: int
    """Additional bytes of weights, caches and states: the device's formats, and gaps between buffers. Negative if the
    formats save more than the gaps."""
    compute_bytes: int
    """Inputs, intermediate values and outputs of the largest batch."""
    staging_bytes: int
    """The part of `compute_bytes` for copies and collectives, at its own peak."""
    total_bytes: int
    """Bytes of weights, caches, states, layout and compute, which form the program's arenas, and of additional files."""
    capacity_bytes: Optional[int]
    """The device's memory, if known."""
    reserve_bytes: int
    """Bytes reserved for the driver and the engine's buffers."""
    card: Optional[str]
    """The card, if known."""
    beside_bytes: Optional[int] = field(default=None)
    """Bytes of additional files."""


@dataclass
class ShardingReport:
    """The sharding of a tensor."""

    kind: str
    """The kind of the sharding: `mirrored`, `split` into ranges, or `cells`: blocks of 64 cells, dealt to the devices in
    turn."""
    axis: Optional[int]
    """The split axis."""
    ranges: Union[List[List[int]], List[List[List[int]]]]
    """`[start, len]` or a list of segments per device; empty unless split into ranges."""


@dataclass
class TensorReport:
    """A tensor of the plan."""

    name: str
    """Name in the file, or the state's name."""
    dtype: str
    """Element type."""
    ne: List[int]
    """Sizes, axis 0 first."""
    place: str
    """`host`, a device, or a device group such as `tp0`."""
    sharding: ShardingReport
    """The sharding."""
    kind: str
    """The kind of the tensor."""
    layer: Optional[int]
    """The layer."""


@dataclass
class TrafficReport:
    """Transfers of one batch."""

    all_reduce: int
    """Number of all-reduces."""
    all_gather: int
    """Number of all-gathers."""
    reduce_scatter: int
    """Number of reduce-scatters."""
    all_to_all: int
    """Number of all-to-alls."""
    copies: int
    """Number of copies between the host and devices."""
    bytes: int
    """Operand bytes of one participant per transfer."""


@dataclass
class Collectives:
    """Transfers per batch."""

    decode: TrafficReport
    """Transfers of a batch of one token."""
    prefill: TrafficReport
    """Transfers of the largest batch."""


@dataclass
class PairBytes:
    """Bytes from one machine to another."""

    from_: int = field(metadata={"key": "from"})
    """The sending machine."""
    to: int
    """The receiving machine."""
    bytes: int
    """Bytes."""


@dataclass
class LinkBytesReport:
    """Bytes between and inside machines."""

    between: List[PairBytes]
    """Bytes between machines, one entry per ordered pair that exchanges data."""
    inside: List[int]
    """Bytes between the devices of each machine."""


@dataclass
class FasterNetwork:
    """Estimated speeds with another network."""

    network: str
    """The network."""
    decode_tps: float
    """Decoded tokens per second."""
    prompt_tps: float
    """Prompt tokens per second."""


@dataclass
class ClusterReport:
    """A plan on several machines."""

    division: str
    """The division among machines."""
    token: LinkBytesReport
    """Bytes for a decoded token."""
    prompt_token: LinkBytesReport
    """Bytes for a token of the largest prompt batch."""
    network_limits: bool
    """True if a faster network makes decoding or prompts at least 2 % faster."""
    faster: List[FasterNetwork]
    """Speeds with the next faster networks."""


@dataclass
class CachesReport:
    """KV caches on all places together."""

    split: str
    """`cells` if devices store parts of the cells, otherwise `heads`."""
    once_bytes: int
    """Bytes of one copy."""
    stored_bytes: int
    """Bytes on all places."""
    divided: int
    """Number of states of layers that devices divide by cells."""


@dataclass
class OtherBitsReport:
    """Sums whose bits may differ for one reason."""

    reason: str
    """The reason."""
    sums: int
    """Number of sums."""
    first: str
    """The value of the first sum."""


@dataclass
class BitsReport:
    """Comparison of a plan's logits with the logits of one device, bit by bit."""

    same: bool
    """True if all sums over devices have the bits of one device's sums."""
    others: List[OtherBitsReport]
    """Sums that may differ, by reason."""
    widths: Optional[int]
    """The widest batch in which a token has the bits of a batch of one token; `None` for any batch."""
    neighbours: bool
    """True if other sequences, each with its own part of the caches, do not change a token's bits."""
    kept_at: Optional[float]
    """The speed with `--deterministic on`, as a share of this plan's speed. `None` if it is unknown, or if all sums keep
    their bits."""


@dataclass
class DraftBytes:
    """Bytes at one place."""

    name: str
    """Name."""
    weights_bytes: int
    """Weights, without weights shared with the model."""
    kv_bytes: int
    """KV caches."""


@dataclass
class DraftsReport:
    """The part of a plan that drafts tokens. The plan's other numbers include it."""

    blocks: int
    """Number of drafting blocks; each predicts one token."""
    devices: List[DraftBytes]
    """Bytes per device."""
    host: DraftBytes
    """Bytes on the host."""
    collectives: Collectives
    """Transfers per batch."""


@dataclass
class PoolReport:
    """Memory that the host shares with devices."""

    devices: List[int]
    """Positions of the devices that share the pool."""
    total_bytes: int
    """Used bytes of devices and host."""
    capacity_bytes: int
    """Bytes of the pool."""
    reserve_bytes: int
    """Bytes reserved for the system and the drivers."""


@dataclass
class Part:
    """Bytes of a file at one place."""

    weights: int
    """Weights."""
    kv: int
    """KV caches and other states."""
    compute: int
    """Buffers for intermediate values."""


@dataclass
class ExtraFileMemory:
    """The memory of an additional file."""

    what: str
    """The kind of file."""
    file: str
    """The file."""
    devices: List[Part]
    """Bytes per device."""
    host: Part
    """Bytes on the host."""


@dataclass
class BandReport:
    """A range of speeds around an estimate. If calibrated, it contains 90 % of measured speeds."""

    error: float
    """Half the width of the range, as
    ln(estimated / measured)
    ."""
    low_tps: float
    """Lowest decoded tokens per second."""
    high_tps: float
    """Highest decoded tokens per second."""
    rows: int
    """Number of measurements."""
    of_this_machine: bool
    """True if this machine was measured."""


@dataclass
class BreakdownReport:
    """Parts of the time of a decoded token, in microseconds."""

    weights_us: float
    """Products with weights."""
    attention_us: float
    """Attention and recurrent states."""
    other_us: float
    """Other ops on the devices."""
    launches_us: float
    """Fixed time per kernel and per token."""
    collectives_us: float
    """Collectives and copies between devices."""
    host_us: float
    """Computation on the host, and copies from and to it."""


@dataclass
class EstimateReport:
    """Estimated times in microseconds, and speeds of one sequence."""

    engine: str
    """The engine."""
    depth: int
    """Tokens in the cache before the decoded token, and before the prompt."""
    decode_us: float
    """Time of a batch of one token."""
    prefill_us: float
    """Time of the largest batch."""
    baseline_single_us: float
    """Time of one token on a single device."""
    decode_tps: float
    """Decoded tokens per second."""
    prompt_tps: float
    """Prompt tokens per second."""
    error: float
    """Relative error of the estimate. Strategies within this error are equal."""
    band: Optional[BandReport]
    """The range of `decode_tps`; `None` for unknown devices."""
    calibrated: bool
    """True if estimates of this kind were measured. `band` is then the observed error."""
    not_calibrated_for: List[str]
    """Kinds without measurements."""
    breakdown: BreakdownReport
    """Parts of a decoded token's time."""


@dataclass
class StepKernel:
    """The launches of a kernel in a batch."""

    kernel: str
    """The kernel."""
    launches: int
    """Launches."""
    us_each: float
    """Microseconds of a launch on average, with the time before it."""
    us: float
    """Microseconds of all launches."""
    share: float
    """Share of the batch's time."""
    bound: str
    """The limit of the kernel's speed."""
    weight_bytes: int
    """Bytes of weights that all launches read."""


@dataclass
class StepTimes:
    """Predicted times of a batch."""

    tokens: int
    """Tokens of the batch."""
    cells: int
    """Tokens in the cache, including the batch."""
    us: float
    """Microseconds of the batch."""
    tps: float
    """Tokens per second."""
    error: float
    """Relative error of `tps`."""
    measured: bool
    """True if `error` was observed on cards, false if it is assumed."""
    kernels: List[StepKernel]
    """Kernels of the first device, slowest first."""
    edges_us: float
    """Microseconds of edges and transfers between devices."""
    other_us: float
    """Microseconds of other devices and of the host."""


@dataclass
class StepReport:
    """Predicted times of tpc's kernels on cards, from a model of each launch."""

    card: str
    """The card of the first device."""
    token: StepTimes
    """A batch of one token."""
    prompt: StepTimes
    """The largest batch of a prompt."""


@dataclass
class MirroredReport:
    """Bytes of weights beyond the first copy."""

    whole_bytes: int
    """Bytes of tensors that are whole on every device."""
    edge_block_bytes: int
    """Bytes of quantisation blocks that span two devices. Both devices hold them."""
    shared_head_bytes: int
    """Bytes of KV head rows that devices share."""


@dataclass
class CostReport:
    """Times and bytes of a choice."""

    decode_us: float
    """Time per token in µs."""
    prefill_us: float
    """Time per prompt batch in µs."""
    price_us: float
    """The price that the search compares, in µs per token."""
    bytes: List[int]
    """Bytes of weights and states per device."""


@dataclass
class LeanerReport:
    """A split with less memory, and its cost."""

    factor: str
    """The split factor: `64 (experts)`."""
    lens: List[int]
    """Indices per device."""
    chosen: CostReport
    """The cost of the plan, in the layers that would change."""
    alternative: CostReport
    """The cost of the split in these layers."""


@dataclass
class CopiesReport:
    """Copies of the tensors of one name in all layers."""

    tensor: str
    """The name without the layer."""
    count: int
    """The number of tensors."""
    cause: str
    """The cause of the copies."""
    bytes: int
    """Bytes beyond the first copy."""
    reason: str
    """The factors and ops that keep the copies."""
    leaner: Optional[LeanerReport] = field(default=None)
    """The cheapest split with less memory; `None` if every split takes as much."""


@dataclass
class SearchReport:
    """The search for splits."""

    distinct: int
    """Number of distinct sections."""
    priced: int
    """Number of priced sets of splits."""
    optimal: bool
    """True if all sets of splits were priced."""
    at_most_above: float
    """Maximum relative distance of the chosen cost from the cheapest; 0 for the cheapest."""


@dataclass
class RewritingReport:
    """Transfers before and after rewriting, and the rules that applied."""

    collectives_before: int
    """Collectives before."""
    collectives_after: int
    """Collectives after."""
    copies_before: int
    """Copies between places before."""
    copies_after: int
    """Copies between places after."""
    saturated: bool
    """True if the rules reached a fixed point everywhere."""
    rules: Dict[str, int]
    """Number of matches per rule in distinct sections."""


@dataclass
class ThroughReport:
    """A factor's position in a tensor."""

    tensor: str
    """The tensor."""
    axis: int
    """The axis."""
    position: int
    """Position among the factors of the axis, from 0, major first."""
    factors: int
    """Number of factors of the axis."""
    segment: Optional[int]
    """Segment, from 0; null for all segments."""


@dataclass
class FactorReport:
    """One factor of a tensor."""

    factor: str
    """Handle in `dump --stage factors`, such as `f7`."""
    size: Union[int, str]
    """The size."""
    kind: Optional[str]
    """Name such as `kv heads`; `None` if no weight or state has the factor."""
    granule: Optional[int]
    """Ranges end at multiples of this number; null if quantisation blocks permit no position."""
    shares_blocks: bool
    """True if ranges may end inside blocks, which two devices then hold."""
    through: List[ThroughReport]
    """Weights and states with this factor."""
    verdict: str
    """The verdict on a split of the factor."""
    class_: Optional[str] = field(metadata={"key": "class"})
    """The class that splits it."""
    ranges: List[List[int]]
    """Indices per device. For a whole factor, these are the indices of the alternative."""
    reason: Optional[str]
    """The reason that forbids a split."""
    op: Optional[str]
    """The forbidding op."""
    op_result: Optional[str]
    """The op's first result."""
    op_layer: Optional[int]
    """The op's layer."""
    instead_of: List[str]
    """Classes that the alternative excludes."""
    chosen: Optional[CostReport]
    """Cost of the plan in the layers that the alternative would change."""
    alternative: Optional[CostReport]
    """Cost of the alternative in these layers: a whole factor split, or a split factor whole."""


@dataclass
class WhyReport:
    """The reasons for the split of a tensor, and of equal tensors in other layers."""

    tensor: str
    """Name."""
    value: str
    """The handle in the placed graph: `v12`."""
    dtype: str
    """Element type."""
    ne: List[Union[int, str]]
    """Sizes, axis 0 first: numbers, or polynomials that depend on the batch."""
    layer: Optional[int]
    """The layer."""
    place: str
    """The place."""
    alike: List[str]
    """Tensors of other layers that are split in the same way for the same reasons."""
    axes: List[str]
    """Factors of each axis: a product per segment, with the major factor first."""
    factors: List[FactorReport]
    """The factors."""


@dataclass
class CandidateReport:
    """A strategy that `auto` compared."""

    name: str
    """`none`, `layer`, `tensor`, or `layer of 2 × tensor of 4`."""
    decode_us: float
    """Time of a batch of one token."""
    prefill_us: float
    """Time of the largest batch."""
    fullest_bytes: int
    """Stored bytes on the fullest device."""
    fits: bool
    """True if the strategy fits the memory."""
    cost_us: float
    """Cost in microseconds, which `auto` compares: the decoded token's time with prompts and the price of memory."""
    chosen: bool
    """True if the strategy is chosen."""
    decode_tps: float
    """Decoded tokens per second."""
    prompt_tps: float
    """Prompt tokens per second."""
    within_error: bool
    """True if both speeds are within the estimates' error of the chosen strategy's speeds."""


@dataclass
class LeftOutReport:
    """A strategy that the engine refuses."""

    name: str
    """The name, as in `considered`."""
    engine: str
    """The engine and its release."""
    code: str
    """Diagnostic code of the reason."""
    reason: str
    """The reason."""
    basis: str
    """The evidence for the reason."""


@dataclass
class EngineBuildReport:
    """An engine's release."""

    engine: str
    """The engine."""
    version: str
    """The version."""
    source: str
    """The source of tpc's facts about the release."""
    backends: List[Optional[str]]
    """Each device's back end, if known."""


@dataclass
class AdviceReport:
    """A planned configuration that fits."""

    options: str
    """Options that replace the given ones."""
    decode_tps: float
    """Decoded tokens per second."""
    prompt_tps: float
    """Prompt tokens per second."""
    depth: int
    """Depth of the speeds, in tokens: `--depth`, or a quarter of the requested context."""
    fits: bool
    """True, because only fitting configurations are advised."""
    fullest: Optional[float]
    """The used fraction of the fullest device's memory; `null` if no memory is known."""
    host_bytes: int
    """Bytes on the host."""
    price: str
    """The losses as text."""


@dataclass
class Diagnostic:
    """A report to the user: the problem, its location, and the cure."""

    code: str
    """The code, for `tpc explain CODE`."""
    severity: str
    """The severity: the code's, unless an option or a harmless case changes it."""
    message: str
    """The problem, as a sentence without a full stop."""
    entity: str
    """The affected tensor, key, op, option, device or file."""
    help: Optional[str]
    """The cure."""


@dataclass
class PlanReport:
    """The object that `plan --format json` prints. Keys may be added, but never changed."""

    tpc: int
    """Format version."""
    model: ModelReport
    """The model."""
    verdict: str
    """`error` if a finding is an error.
    - `ok`: No errors.
    - `error`: At least one error."""
    machine: MachineReport
    """The machine."""
    commands: Commands
    """Commands that run the plan."""
    split_mode: str
    """The planned split mode: `none`, `layer`, `tensor` or `hybrid`."""
    devices: List[DeviceReport]
    """Bytes per device."""
    host: DeviceReport
    """Bytes on the host."""
    tensors: List[TensorReport]
    """Every used tensor of the file, then every cache."""
    collectives: Collectives
    """Transfers per batch."""
    bits: BitsReport
    """Comparison with one device's logits, bit by bit."""
    estimate: EstimateReport
    """Estimated times."""
    mirrored_bytes: int
    """Bytes of weights beyond the first copy."""
    mirrored: MirroredReport
    """Bytes of weights beyond the first copy, by cause."""
    copies: List[CopiesReport]
    """The copies by tensor; empty unless they take more than three per cent of the model."""
    search: SearchReport
    """The search for splits."""
    rewriting: RewritingReport
    """Collectives and copies before and after rewriting."""
    considered: List[CandidateReport]
    """Strategies that `auto` compared; empty for other modes."""
    advice: List[AdviceReport]
    """Fitting configurations, the fastest first, if the plan does not fit."""
    diagnostics: List[Diagnostic]
    """Findings."""
    cluster: Optional[ClusterReport] = field(default=None)
    """The traffic between machines; `None` on one machine."""
    caches: Optional[CachesReport] = field(default=None)
    """The KV caches; `None` without caches."""
    drafts: Optional[DraftsReport] = field(default=None)
    """The part that drafts tokens; `None` without drafts."""
    pool: Optional[PoolReport] = field(default=None)
    """Memory that the host shares with devices."""
    beside: Optional[List[ExtraFileMemory]] = field(default=None)
    """Additional files."""
    step: Optional[StepReport] = field(default=None)
    """Predicted times of tpc's kernels, if the devices are cards and the engine is tpc."""
    why: Optional[List[WhyReport]] = field(default=None)
    """Explanations for `--why`."""
    left_out: Optional[List[LeftOutReport]] = field(default=None)
    """Strategies that the engine refuses."""
    engine_build: Optional[EngineBuildReport] = field(default=None)
    """The release whose limits apply, if the plan is not for tpc."""


@dataclass
class RefusedModel:
    """A model that cannot be planned."""

    path: str
    """The file."""


@dataclass
class Refusal:
    """The report on a model or option that cannot be planned. In contrast to a plan, it lacks `split_mode`."""

    tpc: int
    """Format version."""
    model: RefusedModel
    """The model."""
    verdict: str
    """Always `error`.
    - `ok`: No errors.
    - `error`: At least one error."""
    diagnostics: List[Diagnostic]
    """The reasons."""


@dataclass
class Change:
    """A value in both plans."""

    old: str
    """The earlier value."""
    new: str
    """The newer value."""


@dataclass
class FactChange:
    """A changed fact."""

    what: str
    """The name."""
    old: Union[str, int, float]
    """The earlier value."""
    new: Union[str, int, float]
    """The newer value."""


@dataclass
class PlaceChange:
    """A place with changed bytes. Values of a plan without this place are `None`."""

    name: str
    """Name in the newer plan, or else in the earlier plan."""
    old_bytes: Optional[int]
    """Earlier bytes."""
    new_bytes: Optional[int]
    """Newer bytes."""
    old_capacity_bytes: Optional[int]
    """Earlier memory size in bytes."""
    new_capacity_bytes: Optional[int]
    """Newer memory size in bytes."""


@dataclass
class TensorChange:
    """Tensors with the same change."""

    tensor: str
    """The name without the layer."""
    layers: List[int]
    """The layers; empty outside layers."""
    old: Optional[str]
    """Place and split in the earlier plan, and the type if changed; `None` if absent."""
    new: Optional[str]
    """Place and split in the newer plan, and the type if changed; `None` if absent."""


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
class PlanDiff:
    """The changes between two plans."""

    tpc: int
    """Format version."""
    since: str
    """The file with the earlier plan."""
    same_model: bool
    """True if architecture, name, layers and parameters are equal. Otherwise tensors are not compared."""
    models: Change
    """Description of the model in both plans."""
    changed: List[FactChange]
    """Changed facts: `verdict`, `split_mode`, `context`, `engine`, `depth`, `decode_tps` and so on."""
    places: List[PlaceChange]
    """Places with changed bytes."""
    tensors: List[TensorChange]
    """Tensors with changed type, place or split. Equal layers have one entry."""
    new_findings: List[FindingReport]
    """Findings that only the newer plan has."""
    gone_findings: List[FindingReport]
    """Findings that only the earlier plan has."""


@dataclass
class Summary:
    """Findings by severity. Accepted findings are counted apart."""

    errors: int
    """Includes denied findings."""
    warnings: int
    """The number of warnings."""
    notes: int
    """The number of notes."""
    accepted: Optional[int] = field(default=None)
    """The number of accepted findings."""


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
    severity: str
    """The severity: the code's, unless an option or a harmless case changes it."""
    message: str
    """The problem, as a sentence without a full stop."""
    entity: str
    """The affected tensor, key, op, option, device or file."""
    help: Optional[str]
    """The cure."""
    count: int
    """The number of merged diagnostics for one device count."""
    layers: List[int]
    """The affected layers, in order."""
    entities: List[str]
    """The affected entities."""
    devices: List[int]
    """The affected device counts; empty if the finding is independent of devices."""
    varies: bool
    """True if the message's numbers depend on the device count."""
    denied: bool
    """True if an option turned the finding into an error."""
    messages: Optional[List[str]] = field(default=None)
    """The message for each of `devices` if the numbers vary."""
    baseline: Optional[str] = field(default=None)
    """The relation to the accepted findings; `None` without such a list."""
    origin: Optional[Origin] = field(default=None)
    """The line of the sources that makes the op; `None` if unknown."""


@dataclass
class EngineFacts:
    """An engine release and the source of its facts."""

    name: str
    """The engine."""
    version: str
    """The engine's version."""
    date: str
    """The month of the release."""
    source: str
    """The source of the facts."""
    rpc_protocol: Optional[List[int]]
    """The RPC protocol's version."""
    backends: List[str]
    """The devices' known back ends."""


@dataclass
class Accepted:
    """An accepted finding."""

    file: str
    """The file with the finding."""
    code: str
    """The code."""
    entity: str
    """The first affected tensor, key, op, option or device."""
    fingerprint: str
    """The hash of code, entity and message, without lines, layers and numbers."""
    count: int
    """The number of accepted occurrences."""


@dataclass
class LintReport:
    """The object of `lint --format json`. Keys may be added but never changed."""

    tpc: int
    """The version of this format."""
    path: str
    """The file."""
    verdict: str
    """`error` if a finding is an error.
    - `ok`: No errors.
    - `error`: At least one error."""
    devices: List[int]
    """The device counts of the plans."""
    summary: Summary
    """The number of findings."""
    findings: List[Finding]
    """The findings."""
    engine: Optional[EngineFacts] = field(default=None)
    """The command line's engine release and the source of its facts."""
    equivalent: Optional[str] = field(default=None)
    """The equivalent `tpc` command."""
    stale: Optional[List[Accepted]] = field(default=None)
    """The accepted findings that no longer occur."""


@dataclass
class LintReports:
    """The JSON object for several files. Keys may be added, never changed."""

    tpc: int
    """Format version."""
    verdict: str
    """`error` if a finding is an error.
    - `ok`: No errors.
    - `error`: At least one error."""
    summary: Summary
    """The number of findings of all files."""
    files: List[LintReport]
    """The files."""
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
class ProofSize:
    """The size of a proof."""

    sections: int
    """The number of sections."""
    distinct: int
    """The number of distinct sections."""
    terms: int
    """The number of terms of the largest section."""


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

    tensor: str
    """The tensor."""
    axis: int
    """The axis."""
    from_: int = field(metadata={"key": "from"})
    """The size in the model."""
    to: int
    """The size in the small model."""
    parts: List[int]
    """The part of each device, in the small model."""


@dataclass
class Agreement:
    """The result of a successful comparison."""

    batches: int
    """The number of batches."""
    outputs: int
    """The number of compared outputs, over all batches."""
    numbers: int
    """The number of compared elements."""
    nmse: float
    """The maximum error of an output: `Σ(a − b)² / Σa²`, with `a` of the whole model."""
    max_abs: float
    """The maximum absolute difference of two elements."""
    stand_ins: Optional[List[str]] = field(default=None)
    """Ops of the capture that tpc does not know. A stand-in ran instead: a fixed linear function of their operands."""


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
class VerifiedModel:
    """The verification of a model's plan."""

    tpc: int
    """Format version."""
    model: ModelName
    """The model."""
    verdict: str
    """`error` if a finding is an error.
    - `ok`: No errors.
    - `error`: At least one error."""
    diagnostics: List[Diagnostic]
    """Findings."""
    proof: Optional[ProofSize] = field(default=None)
    """The proof's size; absent if the proof failed."""
    numeric: Optional[NumericCheck] = field(default=None)
    """The check by numbers of `--numeric`."""
    bits: Optional[BitsReport] = field(default=None)
    """Comparison with one device's logits, bit by bit."""


@dataclass
class VerifiedArtefact:
    """The verification of an artefact."""

    tpc: int
    """Format version."""
    artefact: str
    """The file."""
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

    tpc: int
    """Format version."""
    artefact: str
    """The file."""
    verdict: str
    """`valid`, `rebuild` or `no model`. For an unreadable artefact, the command reports a diagnostic."""
    mismatches: List[Mismatch]
    """The differences that need a rebuild."""
    bits: str
    """The conditions under which results keep their bits."""
    command: Optional[str] = field(default=None)
    """The command that rebuilds the artefact, if needed."""


@dataclass
class FabricReport:
    """Links other than PCI Express."""

    kind: str
    """The kind of link."""
    bandwidth: float
    """Bytes per second in both directions of all links together."""
    devices: int
    """Number of joined devices."""


@dataclass
class CardReport:
    """A card: memory in bytes, bandwidths in bytes per second, arithmetic in operations per second."""

    name: str
    """The name."""
    aliases: List[str]
    """Alternative names."""
    vendor: Optional[str]
    """The vendor."""
    arch: Optional[str]
    """The architecture."""
    compute_capability: Optional[str]
    """The CUDA compute capability."""
    memory_bytes: int
    """Bytes that the driver gives to a program."""
    memory_source: str
    """The source of the memory size."""
    reserve_bytes: int
    """Bytes left free by default."""
    bandwidth: float
    """Memory bandwidth."""
    memory_kind: Optional[str]
    """The kind of memory."""
    flops: float
    """Operations per second that plans assume."""
    fp16: Optional[float]
    """Operations per second of dense fp16 products."""
    int8: Optional[float]
    """Operations per second of dense 8-bit products."""
    units: Optional[int]
    """Streaming multiprocessors, or compute units."""
    clock: Optional[float]
    """Boost clock in hertz."""
    pcie_gen: int
    """PCI Express generation."""
    pcie_lanes: int
    """PCI Express lanes."""
    peer: bool
    """True if the driver copies directly between cards over PCI Express."""
    fabric: Optional[FabricReport]
    """NVLink or a similar link."""
    link: Link
    """The assumed link between two such cards."""
    source: str
    """The source of the figures."""
    note: Optional[str]
    """Further remarks."""


@dataclass
class AmbiguousName:
    """An ambiguous name."""

    name: str
    """The name."""
    card: str
    """The card that tpc chooses."""


@dataclass
class Gpu:
    """A GPU."""

    name: str
    """The driver's name of the card."""
    card: Optional[str]
    """The card's name in tpc's table."""
    memory_bytes: Optional[int]
    """The total memory, in bytes."""
    free_bytes: Optional[int]
    """The free memory, in bytes."""
    bus: str
    """The PCI bus address, or the driver's device number."""
    pcie_gen: Optional[int]
    """The PCI Express generation."""
    pcie_lanes: Optional[int]
    """The number of PCI Express lanes."""


@dataclass
class Cpu:
    """The CPU and the host's memory."""

    name: Optional[str]
    """The name."""
    threads: Optional[int]
    """The number of hardware threads."""
    memory_bytes: Optional[int]
    """The total memory, in bytes."""
    available_bytes: Optional[int]
    """The available memory, in bytes."""


@dataclass
class NumaNode:
    """A NUMA node."""

    name: str
    """The name in `--devices`."""
    cores: int
    """The number of physical cores that this process may use."""
    memory_bytes: Optional[int]
    """The total memory, in bytes."""


@dataclass
class Machine:
    """A machine's devices."""

    gpus: List[Gpu]
    """The GPUs."""
    devices: Optional[str]
    """The value of `--devices` for these GPUs, if tpc knows every card."""
    cpu: Cpu
    """The CPU and the host's memory."""
    notes: List[str]
    """Reasons for missing facts, and differences from tpc's card table."""
    nodes: Optional[List[NumaNode]] = field(default=None)
    """The NUMA nodes that this process may use; absent if there is only one."""


@dataclass
class Check2:
    """A check of the machine."""

    section: str
    """The group of checks."""
    name: str
    """The name."""
    status: str
    """The status."""
    finding: str
    """The result in words."""
    cure: Optional[str]
    """The cure of a warning or failure."""
    figures: Dict[str, float]
    """Measured numbers by name."""


@dataclass
class Devices:
    """Output of `tpc devices --format json`: the built-in cards and this machine's devices. Later versions of tpc may add keys. They do not change or remove keys. A text with `x-extensible-enum` may get further values; a text with `enum` does not."""

    tpc: int
    """Format version."""
    cards: List[CardReport]
    """The built-in cards, or the cards with the given name."""
    meant: Optional[List[AmbiguousName]] = field(default=None)
    """Ambiguous names, with the card that tpc chooses."""
    here: Optional[Machine] = field(default=None)
    """This machine; absent if a card is named."""
    probe: Optional[List[Check2]] = field(default=None)
    """The measurements of `--probe`."""


Plan = Union[PlanReport, Refusal, List[Union[PlanReport, Refusal]], PlanDiff]


Lint = Union[LintReport, LintReports]


Proof = Union[VerifiedModel, VerifiedArtefact]
