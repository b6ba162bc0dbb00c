//! The report of a plan, as tables, JSON, RON, a page or a drawing.
//!
//! [`PlanReport`] has all facts of a plan in serialisable form. Each renderer is a module that reads the report, or the
//! plan for graphs. The caller adds the findings. [`emit`] writes configurations of other programs.

mod answer;
mod assemble;
mod bits;
mod caches;
mod cards;
mod cluster;
mod columns;
mod commands;
mod comparison;
mod copies;
pub mod describe;
mod diff;
mod dot;
mod drafts;
pub mod emit;
mod estimate;
mod factors;
mod html;
mod kinds;
mod machine;
mod models;
mod plan;
mod query;
mod rewriting;
mod sharding;
mod step;
mod table;
mod why;

pub use bits::{BitsReport, OtherBitsReport, explain_difference};
pub use caches::CachesReport;
pub use cards::{CardReport, FabricReport, render_card, render_cards};
pub use cluster::{ClusterReport, FasterNetwork, LinkBytesReport, PairBytes};
pub use commands::{Commands, ShellCommand};
pub use comparison::{ComparedPlan, render_comparison};
pub use copies::NOTED_COPIES;
pub use diff::{
    Change, Fact, FactChange, FindingReport, NoSnapshot, PlaceChange, PlanDiff, Snapshot,
    TensorChange, render_diff,
};
pub use dot::{LayerRange, render_dot};
pub use estimate::{BandReport, BreakdownReport, EstimateReport};
pub use factors::render_factors;
pub use html::{page, refusal_page};
pub use kinds::{LayerKind, TensorRow, layer_kinds, suffix};
pub use machine::{MachineReport, NetworkReport};
pub use models::{ModelRow, render_models};
pub use plan::{
    AdviceReport, CandidateReport, Collectives, CopiesReport, DeviceReport, DraftBytes,
    DraftsReport, EngineBuildReport, LeftOutReport, MirroredReport, ModelReport, PlanReport,
    Ranges, RewritingReport, SearchReport, ShardingReport, TensorReport, TrafficReport,
};
pub use query::values;
pub use rewriting::render_rewriting;
pub use sharding::sharding_report;
pub use step::{StepKernel, StepReport, StepTimes};
pub use table::{Detail, render};
pub use why::{CostReport, FactorReport, Size, ThroughReport, WhyReport, explain};
