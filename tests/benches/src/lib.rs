//! Benchmarks of tpc, in `benches/`. They report times without assertions.
