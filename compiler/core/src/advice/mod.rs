//! Advice: configurations that fit where the one asked for does not, or that are faster, each planned before it is named.
//!
//! A configuration is a point of a `space`: a way to divide the model, shares, what is on the host, the context,
//! the types of the caches, sequences and batches. The points are too many to be planned. A `bound` tells of each
//! in microseconds whether it can fit and about how fast it is; it is learnt from a few sketches of plans. The
//! `search` plans the best points for real, corrects the bound by what it finds, and proves what it names.
//!
//! Points differ in what they give up: context, precision of the caches, sequences. Of each set of these the fastest point
//! is named, unless one that gives up less is as fast.

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
