//! Tests with a deterministic model in place of a loaded one.
//!
//! - `model` has the model and its vocabulary; `running` runs a scheduler and sends requests to the routes;
//! - `batching` checks the scheduler; `mutated` sends damaged requests.

mod batching;
mod model;
mod mutated;
mod running;
