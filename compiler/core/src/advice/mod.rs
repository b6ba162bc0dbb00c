//! Advice: configurations that fit if the requested one does not, or that are faster. Each is planned before it is
//! named.
//!
//! A configuration is a point of a `space`: way to divide, shares, part on the host, context, cache types, sequences,
//! batches. There are too many points to plan all. A `bound` estimates in microseconds if a point can fit and its
//! speed, from a few sketches. The `search` plans the best points, corrects the bound by the results, and proves the
//! points that it names.
//!
//! Points are grouped by the losses of context, precision and sequences. The search names the fastest point per group,
//! unless a point with fewer losses is as fast.

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
