"""The tool's answers as typed dictionaries. A key that an answer may lack stands in a class with `total=False`.

Names end in their units: `_s` seconds, `_bytes`, `_pct` per cent, `_ratio` of 1.
"""

from typing import Any, Dict, List, Optional, TypedDict, Union

Answer = Dict[str, Any]  # of a verb without a function of its own
Interval = List[float]  # the low and the high end, between which four of five runs lie


class _LayoutKeys(TypedDict):
    dp: int
    tp: int
    pp: int
    v: int
    zero: int
    sp: bool
    mbs: int
    recompute: str
    schedule: str


class Layout(_LayoutKeys, total=False):
    """Degrees of parallelism and what else `--layout` takes; keys that change nothing are left out."""

    cp: int
    ep: int
    etp: int
    cp_kind: str
    recompute_layers: int
    shard: int
    order: str
    offload: str
    group: int
    bucket_mib: int
    meshes: str
    split: List[int]


class Prediction(TypedDict):
    step_time_s: float
    makespan_s: float
    bubble_ratio: float
    span_bubble_ratio: float
    samples_per_s: Optional[float]
    tokens_per_s: Optional[float]
    mfu: Optional[float]
    peak_memory_bytes: List[int]
    peak_activations: List[int]
    step_time_interval_s: Interval
    peak_memory_interval_bytes: Interval
    critical_path: Optional[Any]
    ranks: Optional[Any]


class Setting(TypedDict):
    cluster: str
    devices: int
    precision: str
    optimizer: str


class BestPlan(TypedDict):
    layout: Layout
    prediction: Prediction
    notes: List[str]
    setting: Setting
    goal: Optional[Any]
    pipeline_model_parallel_layout: Optional[str]
    stack: str
    stack_assumed: Optional[str]


class RankedPlan(BestPlan):
    within_interval_of_best: bool
    variants: List[Layout]


class SearchCounts(TypedDict):
    families: int
    opened: int
    kinds_too_large: int
    priced: int
    simulated: int
    too_large: int
    outrun: int
    cannot_exist: int


class PlanAnswer(TypedDict):
    """Of `plan`: the best layout and the next ones, or why there is none."""

    feasible: bool
    best: Optional[BestPlan]
    ranked: List[RankedPlan]
    infeasible: Optional[Any]
    stopped: Optional[Any]
    counts: SearchCounts
    searched_order: Optional[Any]


class PathPart(TypedDict):
    replica: int
    rank: int
    position: int
    action: str
    start_s: float
    end_s: float
    adds_s: float


class MemoryHolder(TypedDict):
    kind: str
    stage: int
    bytes: int
    microbatches: List[int]


class MemoryAtPeak(TypedDict):
    peak_bytes: int
    peak_at_s: float
    running: str
    bytes_by_kind: Dict[str, int]
    holders: List[MemoryHolder]


class RankTimes(TypedDict):
    rank: int
    busy_s: float
    idle_s: float
    first_start_s: float
    last_end_s: float
    peak_memory_bytes: Optional[int]
    memory_at_peak: Optional[MemoryAtPeak]
    peak_activations: int
    idle_by_cause: Dict[str, float]
    time: Dict[str, float]
    on_critical_path: Optional[Dict[str, float]]


class Sensitivity(TypedDict):
    """Seconds of the step that each resource bounds, and what one per cent of a cluster's figure changes."""

    compute_by_stage_s: List[float]
    group_collectives_s: float
    bandwidth_s: float
    latency_s: float
    unshard_s: float
    reduction_s: float
    moves_s: float
    capacity_s: float
    shared_links: Dict[str, float]
    collectives: List[Any]
    links: List[Any]
    step_change_pct_per_pct_of: Optional[Dict[str, float]]


class Conditioning(TypedDict):
    number: float
    most: float
    is_ill: bool
    step_with_noise: Optional[Any]


class _SimulationKeys(TypedDict):
    title: str
    step_time_s: float
    makespan_s: float
    makespan_unshared_s: float
    simulated_replicas: int
    replica: int
    bubble_ratio: float
    span_bubble_ratio: float
    samples_per_s: Optional[float]
    tokens_per_s: Optional[float]
    mfu: Optional[float]
    peak_memory_bytes: Optional[List[int]]
    peak_activations: List[int]
    critical_path: List[PathPart]
    slow_ranks: List[Any]
    ranks: List[RankTimes]
    sensitivity: Sensitivity
    conditioning: Conditioning
    noise: Optional[Any]
    engine: str


class SimulationAnswer(_SimulationKeys, total=False):
    """Of `simulate`; the last keys are there where a model is predicted, not a schedule alone."""

    stack: str
    stack_assumed: Optional[str]
    step_time_interval_s: Interval
    peak_memory_interval_bytes: Interval
    framework_known: str


class RankMemory(TypedDict):
    rank: int
    parameter_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    transient_bytes_at_peak: int
    peak_bytes: int
    peak_at_s: float
    running: str
    bytes_by_kind: Dict[str, int]
    holders: List[MemoryHolder]
    left_bytes: int
    bytes_over_time: List[List[float]]
    bytes_over_time_by_kind: Dict[str, List[List[float]]]
    reserved_by_allocator: Optional[Dict[str, float]]


class MemoryAnswer(TypedDict):
    """Of `memory`: where the bytes of each rank go."""

    device_bytes: int
    reserved_bytes: int
    ranks: List[RankMemory]
    stack: str
    stack_assumed: Optional[str]
    step_time_interval_s: Interval
    peak_memory_interval_bytes: Interval
    framework_known: str
    arena: Optional[Any]


class WhatifRow(TypedDict):
    values: Dict[str, Union[int, float, str]]
    layout: Optional[Layout]
    stack: Optional[str]
    prediction: Optional[Prediction]
    infeasible: Optional[Any]


class WhatifAnswer(TypedDict):
    """Of `whatif`: a row for each combination of the values."""

    rows: List[WhatifRow]
    stack: str
    stack_assumed: Optional[str]


class BudgetRow(TypedDict):
    cluster: str
    devices: int
    global_batch: int
    layout: Layout
    step_time_s: float
    tokens: float
    days: float
    days_interval: Interval
    device_hours: float
    usd: Optional[float]
    energy_kwh: Optional[float]
    within: bool
    scaling_efficiency: float
    goodput: float
    simulated_goodput: float
    simulated_goodput_error: float
    mean_time_between_interruptions_s: Optional[float]
    checkpoint_bytes: float
    checkpoint_s: float
    checkpoint_interval_s: Optional[float]
    spare_nodes: int


class BudgetAnswer(TypedDict):
    """Of `budget`: a row for each cluster and number of devices, the ones within the limits first."""

    given: Dict[str, Optional[float]]
    feasible: bool
    rows: List[BudgetRow]
    knees: List[Dict[str, Any]]
    assumptions: List[str]


class CatalogueEntry(TypedDict):
    """A schedule of the catalogue: where it comes from, what it asks for, its bubble and activations in p, m, v."""

    name: str
    origin: str
    constraint: str
    bubble: str
    activations: str
    chunks: bool


class Stage(TypedDict):
    rank: int
    model_part: int
    lane: int


class Schedule(TypedDict):
    """A schedule in Plumb's form: `ranks[r]` has the actions of rank r in their order, as in "0F0 0B0"."""

    plumb_format: int
    name: str
    weights: str
    microbatches: int
    stages: List[Stage]
    ranks: List[str]


class Errors(TypedDict):
    count: int
    mape_pct: float
    median_pct: float
    max_pct: float
    bias_pct: float


class SkippedRow(TypedDict):
    id: str
    reason: str


class ScoredSource(TypedDict):
    file: str
    mappings: List[str]
    rows: int
    scored: int
    skipped: List[SkippedRow]
    step_time: Optional[Errors]
    memory: Optional[Errors]
    layer_time: Optional[Errors]
    kinds: List[Any]
    step_time_uncorrected: Optional[Errors]
    corrections: List[Any]
    assumptions: List[Any]
    limits: List[Any]
    fits: Dict[str, Any]
    rank_correlation: Optional[float]
    top1_regret_pct: Optional[float]


class ScoredRow(TypedDict):
    file: str
    id: str
    source: str
    stack: str
    framework: str
    device: str
    devices: int
    kind: str
    quantity: str
    predicted: float
    measured: float
    error_pct: float
    uncorrected_error_pct: Optional[float]
    components_s: Optional[Dict[str, float]]


class ScoreAnswer(TypedDict):
    """Of `score`: predictions against measured runs, by source and by row."""

    sources: List[ScoredSource]
    rows: List[ScoredRow]
    fit: Optional[Any]
    collectives: Optional[Any]
    timed_operations: List[Any]
    left_out: Optional[Any]
