//! Benchmarks of tpc; see `benches/`. They report times and assert nothing.
