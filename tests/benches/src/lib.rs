//! Benchmarks of tpc; see `benches/`. They report times and make no assertions.
