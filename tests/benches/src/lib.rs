//! Benchmarks of tpc, in `benches/`. They only report times.
