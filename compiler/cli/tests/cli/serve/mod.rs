//! `tpc serve`, over HTTP.
//!
//! - `endpoints` checks the forms of requests and answers;
//! - `mistakes` sends wrong requests; `operations` stops, limits and hangs servers;
//! - `company` compares answers under load with answers alone, bit for bit.

mod client;
mod company;
mod endpoints;
mod mistakes;
mod operations;
