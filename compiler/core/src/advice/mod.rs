//! Advice: configurations that fit if the requested one does not, or that are faster.
//!
//! The search space has too many configurations to plan all. A `bound` estimates in microseconds from a few sketches if
//! a configuration can fit, and its speed. The `search` drafts plans of the best configurations, corrects the bound by
//! these drafts, and proves the plans that it advises. Terms:
//!
//! - *way*: a split mode with its devices ([`Way`](crate::pipeline::Way));
//! - *chain*: an order of moving experts, layers and caches to the host; a *level* is a position in a chain, and each
//!   level has more on the host than the one before;
//! - *point*: a way, chain and level with a context, cache types, sequences and a batch size;
//! - *sketch*: a plan without programs, for its speed; *draft*: a plan with programs that are not proved;
//! - *class*: the set of losses of a point: shorter context, lower cache precision, fewer sequences;
//! - *mildest*: among points of the same class, way and chain, the point with the least on the host; if several have
//!   equally little there, the one with the largest context.
//!
//! The advice has the fastest point per class, unless a point with fewer losses is as fast.

mod advisor;
mod bound;
mod change;
mod class;
mod compute;
mod configuration;
mod counsel;
mod effort;
mod engine_level;
mod free_memory;
mod growth;
mod learning;
mod leaves;
mod load;
mod moves;
mod naming;
mod point;
mod price;
mod search;
mod shares;
mod space;
mod times;
mod trial;
mod way_profile;

pub use advisor::{AdviceCheck, Advisor, ProgressHook};
pub use change::Change;
pub use counsel::Counsel;
pub use effort::Limits;
pub use growth::Growth;
pub use price::{Advice, Shortfall};
