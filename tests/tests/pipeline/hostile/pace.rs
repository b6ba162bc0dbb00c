//! The pace of the machine. Other programs use the same caches, memory and cores, so a test may need twice the processor
//! time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The time of [`reference_work`] on the quiet machine that the limits were measured on: a virtual machine with two
/// threads of an EPYC 7B13 at 3.5 GHz.
const QUIET: Duration = Duration::from_millis(15);

/// Work like a planner's: small allocations, ordered maps, comparisons.
fn reference_work() -> usize {
    let mut all: BTreeMap<Vec<u64>, Box<[u64]>> = BTreeMap::new();
    let mut x = 1_u64;
    for i in 0..24_000_u64 {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let key = vec![x >> 52, x >> 40 & 0xfff, i & 7];
        let value = all.entry(key).or_default();
        *value = value.iter().copied().chain([i]).collect();
        if i % 3 == 0 {
            all.pop_first();
        }
    }
    all.values().map(|v| v.len()).sum()
}

/// Returns the time that a quiet machine needs for a run that took `took` here and now.
pub(super) fn on_a_quiet_machine(took: Duration) -> Duration {
    let once = |_| {
        let start = Instant::now();
        std::hint::black_box(reference_work());
        start.elapsed()
    };
    // The fastest of some runs, so that an interruption does not count as pace.
    let now = (0..5).map(once).min().unwrap_or(QUIET);
    match now > QUIET {
        true => took.mul_f64(QUIET.as_secs_f64() / now.as_secs_f64()),
        false => took,
    }
}

/// Prints the time of the reference work, to set [`QUIET`].
#[test]
fn the_pace_is_known() {
    let start = Instant::now();
    let n = std::hint::black_box(reference_work());
    println!(
        "{n} numbers in {:?}; {QUIET:?} on a quiet machine",
        start.elapsed()
    );
    assert_eq!(on_a_quiet_machine(Duration::ZERO), Duration::ZERO);
    let second = Duration::from_secs(1);
    assert!(on_a_quiet_machine(second) <= second);
}
