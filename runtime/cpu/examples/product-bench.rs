//! Measures matrix products of every weight type, next to the machine's peak bandwidth and arithmetic.
//!
//! `cargo run --release -p tpc-cpu --example product-bench -- [--threads N] [--isa NAME] [--rounds N] [--tokens N,…] [TYPE …]`
//!
//! The matrices exceed a core's caches and are read in turn. GB/s count packed bytes. A product has two operations
//! per element, row and token.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use tpc_cpu::product::{
    Activations, BLOCK, Block, Epilogue, Format, Isa, Output, PANEL_ROWS, Packed, Product, Scratch,
    Tokens, quantise,
};
use tpc_ir::DType;
use tpc_ir::random::SplitMix64;

const ROWS: usize = 4096;
const K: usize = 2048;
/// Minimum bytes that a round of mat-vecs reads.
const MEMORY: usize = 1 << 30;
const BATCHES: [usize; 5] = [4, 8, 32, 128, 512];
const TOKENS: usize = 512;

struct Options {
    threads: usize,
    isa: Isa,
    rounds: usize,
    batches: Vec<usize>,
    types: Vec<DType>,
}

fn options() -> Result<Options, String> {
    let mut out = Options {
        threads: 2,
        isa: Isa::best(),
        rounds: 5,
        batches: BATCHES.to_vec(),
        types: Vec::new(),
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        let number = |text: String| -> Result<usize, String> {
            text.parse().map_err(|_| format!("{text} is not a number"))
        };
        match arg.as_str() {
            "--threads" => out.threads = number(value()?)?.max(1),
            "--rounds" => out.rounds = number(value()?)?.max(1),
            "--tokens" => {
                let all: Result<_, _> = value()?.split(',').map(|n| number(n.to_owned())).collect();
                out.batches = all?;
                if out.batches.iter().any(|n| !(1..=TOKENS).contains(n)) {
                    return Err(format!("a batch must have 1 to {TOKENS} tokens"));
                }
            }
            "--isa" => {
                let name = value()?;
                out.isa = Isa::from_name(&name)
                    .ok_or(format!("{name} is not available on this machine"))?;
            }
            name => {
                let dtype = DType::from_name(name).ok_or(format!("unknown type {name}"))?;
                out.types.push(dtype);
            }
        }
    }
    if out.types.is_empty() {
        let all = DType::ALL.iter().copied();
        out.types = all.filter(|&t| Format::supports(t)).collect();
    }
    Ok(out)
}

/// Returns the shortest time of a round. `worker` builds a thread's work.
fn time<W: FnMut()>(threads: usize, rounds: usize, worker: impl Fn(usize) -> W + Sync) -> Duration {
    let barrier = Barrier::new(threads);
    let (barrier, worker) = (&barrier, &worker);
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    let mut work = worker(thread);
                    let mut best = Duration::MAX;
                    for round in 0..=rounds {
                        barrier.wait();
                        let start = Instant::now();
                        work();
                        barrier.wait();
                        if round > 0 {
                            best = best.min(start.elapsed());
                        }
                    }
                    best
                })
            })
            .collect();
        let all = handles.into_iter().map(|h| h.join().expect("a thread"));
        all.max().unwrap_or_default()
    })
}

fn bandwidth(threads: usize, rounds: usize) -> f64 {
    let Ok(mut map) = memmap2::MmapMut::map_anon(MEMORY) else {
        return 0.0;
    };
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage);
    map.fill(1);
    let data = map.as_chunks::<8>().0;
    let took = time(threads, rounds, |thread| {
        let part = &data[data.len() * thread / threads..data.len() * (thread + 1) / threads];
        move || {
            let mut sums = [0_u64; 32];
            for chunk in part.as_chunks::<32>().0 {
                for (sum, v) in sums.iter_mut().zip(chunk) {
                    *sum = sum.wrapping_add(u64::from_ne_bytes(*v));
                }
            }
            black_box(sums);
        }
    });
    MEMORY as f64 / took.as_secs_f64()
}

/// Returns the int8 operations per second of the machine's best loop of dot instructions, or 0 if it has none.
#[cfg(target_arch = "x86_64")]
fn peak(threads: usize, rounds: usize) -> f64 {
    let turns = 10_000_000;
    let (bytes, dots): (usize, unsafe fn(usize)) = if is_x86_feature_detected!("avx512vnni") {
        (64, dots_512)
    } else if is_x86_feature_detected!("avx2") {
        (32, dots_256)
    } else {
        return 0.0;
    };
    let took = time(threads, rounds, |_| {
        || {
            // SAFETY: the machine has the instructions.
            #[expect(unsafe_code, reason = "intrinsics")]
            unsafe {
                dots(turns);
            }
        }
    });
    (turns * 12 * bytes * 2 * threads) as f64 / took.as_secs_f64()
}

#[cfg(not(target_arch = "x86_64"))]
fn peak(_: usize, _: usize) -> f64 {
    0.0
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vnni")]
fn dots_512(turns: usize) {
    use std::arch::x86_64::*;
    let (w, x) = (
        black_box(_mm512_set1_epi8(3)),
        black_box(_mm512_set1_epi8(5)),
    );
    let mut sums = [_mm512_setzero_si512(); 12];
    for _ in 0..turns {
        for sum in &mut sums {
            *sum = _mm512_dpbusd_epi32(*sum, w, x);
        }
        sums = black_box_registers(sums);
    }
    black_box(sums);
}

/// Dot products without dot instructions: products summed in pairs of 16 bits, then in 32 bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dots_256(turns: usize) {
    use std::arch::x86_64::*;
    let (w, x) = (
        black_box(_mm256_set1_epi8(3)),
        black_box(_mm256_set1_epi8(5)),
    );
    let one = _mm256_set1_epi16(1);
    let mut sums = [_mm256_setzero_si256(); 12];
    for _ in 0..turns {
        for sum in &mut sums {
            // Hides from the compiler that the products are always the same.
            let mut w = w;
            #[expect(unsafe_code, reason = "no instruction is emitted")]
            // SAFETY: the statement is a comment.
            unsafe {
                std::arch::asm!("/* {0} */", inout(ymm_reg) w, options(nostack, nomem));
            }
            let pairs = _mm256_maddubs_epi16(w, x);
            *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pairs, one));
        }
    }
    black_box(sums);
}

/// Prevents precomputation of a loop, but keeps values in registers.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn black_box_registers<T>(v: T) -> T {
    v
}

fn weights(dtype: DType, elements: usize) -> Vec<u8> {
    let mut random = SplitMix64::new(1);
    let mut next = move || random.next_u64();
    let bytes = dtype.bytes(elements as u64).unwrap_or(0) as usize;
    let mut out = Vec::with_capacity(bytes + 8);
    while out.len() < bytes {
        let bits = match dtype {
            // All floats are normal numbers.
            DType::F32 | DType::F64 => next() & 0xbfff_ffff_bfff_ffff | 0x3c00_0000_3c00_0000,
            DType::F16 | DType::Bf16 => next() & 0xbfff_bfff_bfff_bfff | 0x3c00_3c00_3c00_3c00,
            _ => next() & 0x1f1f_1f1f_1f1f_1f1f | 0x1010_1010_1010_1010,
        };
        out.extend_from_slice(&bits.to_le_bytes());
    }
    out.truncate(bytes);
    out
}

struct Case {
    dtype: DType,
    packed: Packed,
    copies: Vec<Packed>,
    x: Vec<f32>,
    blocks: Vec<Block>,
}

impl Case {
    fn new(dtype: DType, isa: Isa) -> Option<Case> {
        let bytes = weights(dtype, ROWS * K);
        let packed = Packed::new(dtype, &bytes, ROWS, K).ok()?;
        let count = MEMORY / packed.matrix().format().bytes();
        let copies: Result<Vec<Packed>, _> = (0..count).map(|_| packed.copy()).collect();
        let copies = copies.ok()?;
        let tokens = TOKENS;
        let x: Vec<f32> = (0..tokens * K)
            .map(|i| ((i * 7919 % 1009) as f32 - 500.0) / 500.0)
            .collect();
        let mut blocks = vec![Block::ZERO; tokens * K / BLOCK];
        quantise(isa, &x, &mut blocks).ok()?;
        Some(Case {
            dtype,
            packed,
            copies,
            x,
            blocks,
        })
    }

    fn product<'a>(&'a self, isa: Isa, packed: &'a Packed, tokens: usize) -> Option<Product<'a>> {
        let format = *packed.matrix().format();
        let x = if format.takes_quantised() {
            Activations::Quantised(&self.blocks)
        } else {
            Activations::Float(&self.x)
        };
        let epilogue = Epilogue::default();
        Product::new(isa, packed.matrix(), x, Tokens::First(tokens), epilogue).ok()
    }

    fn run(
        &self,
        product: &Product,
        tokens: usize,
        share: (usize, usize),
        scratch: &mut Scratch,
        out: &mut [f32],
    ) {
        let panels = ROWS / PANEL_ROWS;
        let (thread, threads) = share;
        let panels = panels * thread / threads..panels * (thread + 1) / threads;
        let mut out = Output::new(&mut out[..ROWS * tokens], ROWS, ROWS, 1).expect("an output");
        product.run(panels, &mut out, scratch).expect("rows");
    }

    /// Returns the seconds of a mat-vec and of a batch, from memory.
    fn seconds(&self, options: &Options, tokens: usize) -> f64 {
        let Options {
            threads,
            isa,
            rounds,
            ..
        } = *options;
        let turns = if tokens == 1 { self.copies.len() } else { 1 };
        let took = time(threads, rounds, |thread| {
            let mut out = vec![0.0; ROWS * tokens];
            let mut scratch = Scratch::new();
            move || {
                for copy in &self.copies[..turns] {
                    let packed = if tokens == 1 { copy } else { &self.packed };
                    let Some(product) = self.product(isa, packed, tokens) else {
                        return;
                    };
                    self.run(&product, tokens, (thread, threads), &mut scratch, &mut out);
                }
                black_box(&out);
            }
        });
        took.as_secs_f64() / turns as f64
    }
}

fn main() {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    };
    let (threads, rounds) = (options.threads, options.rounds);
    println!("{ROWS} rows, K {K}, {threads} threads, {}", options.isa);
    print!("| type | GB/s of a mat-vec | limit | share |");
    for &n in &options.batches {
        print!(" {n} tokens, GOP/s |");
    }
    println!(" peak | share |");
    println!(
        "|---|---|---|---|{}---|---|",
        "---|".repeat(options.batches.len())
    );
    for &dtype in &options.types {
        let Some(case) = Case::new(dtype, options.isa) else {
            continue;
        };
        let limit = bandwidth(threads, rounds) / 1e9;
        let bytes = case.packed.matrix().format().bytes() as f64;
        let gb = bytes / case.seconds(&options, 1) / 1e9;
        print!(
            "| {} | {gb:.1} | {limit:.1} | {:.0} % |",
            case.dtype,
            100.0 * gb / limit
        );
        let peak = peak(threads, rounds) / 1e9;
        let mut last = 0.0;
        for &n in &options.batches {
            last = (2 * ROWS * K * n) as f64 / case.seconds(&options, n) / 1e9;
            print!(" {last:.0} |");
        }
        println!(" {peak:.0} | {:.0} % |", 100.0 * last / peak);
    }
}
