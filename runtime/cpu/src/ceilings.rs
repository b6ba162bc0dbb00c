//! The fastest that this machine reads memory and multiplies bytes, measured.
#![expect(unsafe_code, reason = "kernels for instructions that the machine has")]

use std::array::from_fn;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::pages::Pages;
use crate::product::Isa;
use crate::product::simd::{Kernel, Simd, Width};

/// Bytes that each thread reads; more than the caches of one core.
const BYTES: usize = 64 << 20;
/// Steps of the arithmetic loop; each multiplies [`LANES`] pairs of bytes per accumulator.
const TURNS: usize = 1 << 18;
const ACCUMULATORS: usize = 4;
const LANES: usize = 64;
/// Products that 16 bits hold: see [`Simd::link`].
const LINKS: usize = 8;
const ROUNDS: usize = 3;

/// Measured limits of this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceilings {
    /// Bytes per second that the threads read from memory.
    pub bytes: f64,
    /// Operations per second of products of bytes. A product and its addition are two operations.
    pub operations: f64,
}

impl Ceilings {
    /// Measures this machine with `threads` threads, in about half a second. Returns `None` if memory or threads lack.
    pub fn measure(threads: usize) -> Option<Ceilings> {
        let memory: Result<Vec<Pages>, _> = (0..threads).map(|_| Pages::zeroed(BYTES)).collect();
        let mut memory = memory.ok()?;
        memory.iter_mut().for_each(|p| p.bytes_mut().fill(1));
        let reading = fastest(threads, |i| read(memory[i].bytes()))?;
        let isa = Isa::best();
        let multiplying = fastest(threads, |_| isa.run(Products))?;
        let operations = 2 * LANES * LINKS * ACCUMULATORS * TURNS;
        Some(Ceilings {
            bytes: (threads * BYTES) as f64 / reading.as_secs_f64(),
            operations: (threads * operations) as f64 / multiplying.as_secs_f64(),
        })
    }
}

/// Returns the shortest time in which all threads have done their work.
fn fastest(threads: usize, work: impl Fn(usize) + Sync) -> Option<Duration> {
    let barrier = Barrier::new(threads);
    let round = |i: usize| {
        barrier.wait();
        let begun = Instant::now();
        work(i);
        barrier.wait();
        begun.elapsed()
    };
    let rounds = |i: usize| (0..ROUNDS).map(|_| round(i)).min().unwrap_or_default();
    thread::scope(|scope| {
        let rounds = &rounds;
        let handles: Vec<_> = (0..threads)
            .map(|i| scope.spawn(move || rounds(i)))
            .collect();
        let all: Option<Vec<Duration>> = handles.into_iter().map(|h| h.join().ok()).collect();
        all?.into_iter().max().filter(|d| !d.is_zero())
    })
}

fn read(bytes: &[u8]) {
    let mut sums = [0_u64; 32];
    for chunk in bytes.as_chunks::<8>().0.as_chunks::<32>().0 {
        for (sum, v) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(u64::from_ne_bytes(*v));
        }
    }
    black_box(sums);
}

/// Products of bytes in registers, summed as the kernels of products sum them.
struct Products;

impl Kernel for Products {
    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let codes = [3_u8; LANES * LINKS];
        let activations = [5_u8; LANES * ACCUMULATORS];
        // SAFETY: `LANES` bytes at each address are inside the arrays.
        unsafe {
            let x: [S::I; ACCUMULATORS] =
                from_fn(|a| S::load(black_box(&activations).as_ptr().add(LANES * a)));
            let mut sums = [S::splat(0); ACCUMULATORS];
            for _ in 0..TURNS {
                let w = black_box(&codes).as_ptr();
                let mut pairs = [S::splat(0); ACCUMULATORS];
                for link in 0..LINKS {
                    let w = S::load(w.add(LANES * link));
                    for a in 0..ACCUMULATORS {
                        if S::CHAINS {
                            pairs[a] = S::link(pairs[a], w, x[a]);
                        } else {
                            sums[a] = S::dot(Width::Narrow, sums[a], w, x[a]);
                        }
                    }
                }
                if S::CHAINS {
                    sums = from_fn(|a| S::widen(sums[a], pairs[a]));
                }
            }
            let mut out = [0_u8; LANES];
            for sum in sums {
                S::store(out.as_mut_ptr(), sum);
                black_box(out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_plausible() {
        let found = Ceilings::measure(1).expect("memory and a thread");
        assert!(found.bytes > 1e8 && found.bytes < 1e13, "{found:?}");
        assert!(
            found.operations > 1e8 && found.operations < 1e14,
            "{found:?}"
        );
    }
}
