//! Benchmarks of tpc, in `benches/`. They report times and assert nothing.
