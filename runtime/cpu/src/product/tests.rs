//! Compares every type and shape with f64, and every instruction set with the others.

use super::*;
use tpc_ir::DType;
use tpc_ir::random::SplitMix64;
use tpc_runtime::quant::dequantise;

fn types() -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(|&t| Format::supports(t))
}

struct Random(SplitMix64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn signed(&mut self) -> f32 {
        self.0.signed() as f32
    }

    fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.signed()).collect()
    }

    fn weights(&mut self, dtype: DType, elements: usize) -> Vec<u8> {
        match dtype {
            DType::F32 => return self.plain(elements, f32::to_le_bytes),
            DType::F64 => return self.plain(elements, |v| f64::from(v).to_le_bytes()),
            DType::F16 => return self.plain(elements, |v| half::f16::from_f32(v).to_le_bytes()),
            DType::Bf16 => return self.plain(elements, |v| half::bf16::from_f32(v).to_le_bytes()),
            _ => {}
        }
        let bytes = dtype.bytes(elements as u64).expect("whole blocks") as usize;
        let mut out: Vec<u8> = (0..bytes).map(|_| self.next() as u8).collect();
        for block in out.chunks_exact_mut(dtype.block_bytes() as usize) {
            self.scales(dtype, block);
        }
        out
    }

    fn plain<const N: usize>(&mut self, n: usize, bytes: impl Fn(f32) -> [u8; N]) -> Vec<u8> {
        (0..n).flat_map(|_| bytes(self.signed())).collect()
    }

    fn scales(&mut self, dtype: DType, block: &mut [u8]) {
        let f16s: &[usize] = match dtype {
            DType::Q4_1 | DType::Q5_1 | DType::Q4K | DType::Q5K | DType::Q8_1 => &[0, 2],
            DType::Q2K => &[80, 82],
            DType::Q3K => &[108],
            DType::Q6K => &[208],
            DType::Tq1_0 => &[52],
            DType::Tq2_0 => &[64],
            DType::Mxfp4 => {
                block[0] = 118 + (self.next() % 6) as u8;
                &[]
            }
            DType::Nvfp4 => &[],
            DType::F8E4M3 => {
                // At most 1; not NaN.
                block[0] = block[0] & 0x80 | block[0] & 0x7f & 0x37;
                &[]
            }
            DType::Iq1M => {
                let d = half::f16::from_f32(self.signed() / 64.0).to_bits();
                for n in 0..4 {
                    let nibble = (d >> (4 * n) & 15) as u8;
                    let byte = &mut block[48 + 2 * n + 1];
                    *byte = *byte & 15 | nibble << 4;
                }
                &[]
            }
            DType::Q8K => {
                block[..4].copy_from_slice(&(self.signed() / 64.0).to_le_bytes());
                &[]
            }
            _ => &[0],
        };
        for &at in f16s {
            let d = half::f16::from_f32(self.signed() / 64.0);
            block[at..at + 2].copy_from_slice(&d.to_le_bytes());
        }
        if dtype == DType::Tq1_0 {
            for byte in &mut block[..52] {
                *byte = ((u16::from(*byte) * 243 / 256 * 256).div_ceil(243)) as u8;
            }
        }
    }
}

struct Case {
    dtype: DType,
    rows: usize,
    k: usize,
    tokens: usize,
    bytes: Vec<u8>,
    x: Vec<f32>,
    blocks: Vec<Block>,
}

impl Case {
    fn new(dtype: DType, rows: usize, k: usize, tokens: usize) -> Case {
        let mut random = Random(SplitMix64::new(
            0x9e37_79b9 ^ (rows * 31 + k * 7 + tokens) as u64,
        ));
        let bytes = random.weights(dtype, rows * k);
        let x = random.floats(tokens * k);
        let blocks = blocks(&x, k);
        Case {
            dtype,
            rows,
            k,
            tokens,
            bytes,
            x,
            blocks,
        }
    }

    fn activations(&self) -> Activations<'_> {
        match self.dtype {
            DType::F32 | DType::F64 | DType::F16 | DType::Bf16 | DType::F8E4M3 => {
                Activations::Float(&self.x)
            }
            _ => Activations::Quantised(&self.blocks),
        }
    }

    fn packed(&self) -> Packed {
        Packed::new(self.dtype, &self.bytes, self.rows, self.k).expect("a packed matrix")
    }

    fn product(&self, isa: Isa, packed: &Packed, way: Way) -> Vec<f32> {
        let mut out = vec![f32::NAN; self.rows * self.tokens];
        let product = Product::new(
            isa,
            packed.matrix(),
            self.activations(),
            Tokens::First(self.tokens),
            Epilogue::default(),
        )
        .expect("a product");
        let mut to = Output::new(&mut out, self.rows, self.rows, 1).expect("an output");
        let panels = 0..packed.matrix().format().panels();
        match way {
            Way::Gemv => product.gemv(panels, &mut to),
            Way::Gemm => product.gemm(panels, &mut to, &mut Scratch::new()),
        }
        .expect("rows");
        out
    }

    /// Computes the product in f64, and the sum of its terms' magnitudes.
    fn reference(&self, x: impl Fn(usize, usize) -> f64) -> Vec<(f64, f64)> {
        let mut weights = vec![0.0; self.rows * self.k];
        dequantise(self.dtype, &self.bytes, &mut weights).expect("decoded weights");
        let mut out = Vec::new();
        for t in 0..self.tokens {
            for row in weights.chunks_exact(self.k) {
                let terms = row.iter().enumerate().map(|(i, &w)| f64::from(w) * x(t, i));
                out.push(terms.fold((0.0, 0.0), |(s, a), v| (s + v, a + v.abs())));
            }
        }
        out
    }
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Gemv,
    Gemm,
}

fn blocks(x: &[f32], k: usize) -> Vec<Block> {
    let mut out = Vec::new();
    for row in x.chunks_exact(k) {
        let mut blocks = vec![Block::ZERO; k.div_ceil(BLOCK)];
        quantise(Isa::best(), row, &mut blocks).expect("blocks");
        out.extend(blocks);
    }
    out
}

/// Returns widths of K: one file block, several blocks, more blocks than chunks, and more than are decoded together.
fn widths(dtype: DType) -> Vec<usize> {
    let block = dtype.block_len() as usize;
    if block == 1 {
        return vec![1, 5, 32, 33, 64, 97, 513, 1024];
    }
    let few = [block, 3 * block, 4 * block];
    few.into_iter()
        .chain((block < 256).then_some(19 * block))
        .chain([1280, 5120])
        .collect()
}

fn same_bits(a: &[f32], b: &[f32]) -> bool {
    let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    a.len() == b.len() && a.iter().zip(b).all(same)
}

#[test]
fn every_type_and_shape_is_the_sum_of_its_terms() {
    for dtype in types() {
        for k in widths(dtype) {
            for (rows, tokens) in [(1, 1), (16, 2), (17, 3), (37, 7), (33, 40)] {
                let case = Case::new(dtype, rows, k, tokens);
                let packed = case.packed();
                let blocks = k.div_ceil(BLOCK);
                let expect = match case.activations() {
                    Activations::Float(x) => case.reference(|t, i| f64::from(x[t * k + i])),
                    Activations::Quantised(x) => {
                        case.reference(|t, i| f64::from(x[t * blocks + i / BLOCK].value(i % BLOCK)))
                    }
                };
                for way in [Way::Gemv, Way::Gemm] {
                    let found = case.product(Isa::best(), &packed, way);
                    for (i, (found, (sum, terms))) in found.iter().zip(&expect).enumerate() {
                        let error = (f64::from(*found) - sum).abs();
                        assert!(
                            error <= 4e-6 * terms + 1e-30,
                            "{dtype} {rows}×{k}×{tokens} {way:?} at {i}: {found}, not {sum}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn quantised_activations_are_near_the_f32() {
    for dtype in types() {
        let case = Case::new(dtype, 64, 1280, 5);
        let expect = case.reference(|t, i| f64::from(case.x[t * case.k + i]));
        let found = case.product(Isa::best(), &case.packed(), Way::Gemm);
        let (error, all) = found
            .iter()
            .zip(&expect)
            .fold((0.0, 0.0), |(e, a), (f, (s, _))| {
                (e + (f64::from(*f) - s).powi(2), a + s * s)
            });
        let limit = match case.activations() {
            Activations::Float(_) => 1e-11,
            Activations::Quantised(_) => 1e-4,
        };
        assert!(error / all < limit, "{dtype}: NMSE {}", error / all);
    }
}

#[test]
fn every_instruction_set_and_way_gives_the_same_bits() {
    for dtype in types() {
        for k in widths(dtype) {
            for (rows, tokens) in [(17, 1), (40, 13)] {
                let case = Case::new(dtype, rows, k, tokens);
                let packed = case.packed();
                let expect = case.product(Isa::PORTABLE, &packed, Way::Gemv);
                for &isa in Isa::available() {
                    for way in [Way::Gemv, Way::Gemm] {
                        let found = case.product(isa, &packed, way);
                        assert!(
                            same_bits(&found, &expect),
                            "{dtype} {rows}×{k}×{tokens} {isa} {way:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn rows_may_be_shared_among_threads() {
    for dtype in [DType::Q4K, DType::Q6K, DType::Bf16] {
        let case = Case::new(dtype, 100, 768, 30);
        let packed = case.packed();
        let expect = case.product(Isa::best(), &packed, Way::Gemm);
        for threads in 1..=7 {
            let mut out = vec![f32::NAN; case.rows * case.tokens];
            let product = Product::new(
                Isa::best(),
                packed.matrix(),
                case.activations(),
                Tokens::First(case.tokens),
                Epilogue::default(),
            )
            .expect("a product");
            let mut rest = Output::new(&mut out, case.rows, case.rows, 1).expect("an output");
            std::thread::scope(|scope| {
                for i in 0..threads {
                    let panels = 7 * i / threads..7 * (i + 1) / threads;
                    let row = (panels.end * PANEL_ROWS).min(case.rows);
                    let (mut mine, after) = rest.split_at(row).expect("two outputs");
                    rest = after;
                    scope.spawn(move || product.run(panels, &mut mine, &mut Scratch::new()));
                }
            });
            assert!(same_bits(&out, &expect), "{dtype} on {threads} threads");
        }
    }
}

#[test]
fn parts_of_k_at_chunks_have_the_bits_of_the_whole() {
    for dtype in types() {
        let block = dtype.block_len() as usize;
        for k in [768, 2048] {
            let case = Case::new(dtype, 20, k, 3);
            let whole = case.product(Isa::best(), &case.packed(), Way::Gemv);
            for cuts in [vec![0, 4, 8], vec![0, 3, 5, 8], vec![0, 1, 7, 8]] {
                let ends: Vec<usize> = cuts.iter().map(|c| k / 8 * c).collect();
                let parts: Vec<Part> = ends
                    .windows(2)
                    .map(|w| Part::new(k, w[0]..w[1]).expect("a part"))
                    .collect();
                let whole_blocks = block == 64 && !Format::has_steps(dtype);
                if whole_blocks && ends.iter().any(|e| e % 64 != 0) {
                    let refused = parts.iter().any(|&p| Format::new(dtype, 20, p).is_err());
                    assert!(refused, "{dtype} {ends:?}");
                    continue;
                }
                for way in [Way::Gemv, Way::Gemm] {
                    let roots: Vec<Vec<f32>> =
                        parts.iter().flat_map(|&p| part(&case, p, way)).collect();
                    let all = Combination::new(&parts).expect("a combination");
                    assert_eq!(all.roots(), roots.len());
                    let sums: Vec<f32> =
                        (0..whole.len()).map(|i| all.sum(|r| roots[r][i])).collect();
                    assert!(same_bits(&sums, &whole), "{dtype} {k} {ends:?} {way:?}");
                }
            }
        }
    }
}

fn part(case: &Case, part: Part, way: Way) -> Vec<Vec<f32>> {
    let source = Source {
        bytes: &case.bytes,
        from: 0,
        k: case.k,
    };
    let packed = Packed::part(case.dtype, source, case.rows, part).expect("a packed part");
    let x: Vec<f32> = case
        .x
        .chunks_exact(case.k)
        .flat_map(|row| row[part.start()..part.end()].to_vec())
        .collect();
    let own = Case {
        k: part.k(),
        blocks: blocks(&x, part.k()),
        x,
        bytes: Vec::new(),
        ..*case
    };
    let n = case.rows * case.tokens;
    let mut out = vec![f32::NAN; n * part.roots()];
    let mut to = Output::new(&mut out, case.rows, case.rows, part.roots()).expect("an output");
    let product = Product::new(
        Isa::best(),
        packed.matrix(),
        own.activations(),
        Tokens::First(case.tokens),
        Epilogue::default(),
    )
    .expect("a product");
    let panels = 0..packed.matrix().format().panels();
    match way {
        Way::Gemv => product.gemv(panels, &mut to),
        Way::Gemm => product.gemm(panels, &mut to, &mut Scratch::new()),
    }
    .expect("rows");
    out.chunks_exact(n).map(<[f32]>::to_vec).collect()
}

#[test]
fn a_part_that_cuts_a_chunk_gives_its_plain_sum() {
    let case = Case::new(DType::Q4K, 16, 2048, 2);
    let halves = [Part::new(2048, 0..704), Part::new(2048, 704..2048)];
    let sums: Vec<Vec<Vec<f32>>> = halves
        .into_iter()
        .map(|p| part(&case, p.expect("a part"), Way::Gemv))
        .collect();
    let whole = case.product(Isa::best(), &case.packed(), Way::Gemv);
    for (i, whole) in whole.iter().enumerate() {
        assert_eq!(sums[0].len(), 1);
        let sum = sums[0][0][i] + sums[1][0][i];
        assert!((sum - whole).abs() < 1e-3, "{sum} {whole}");
    }
}

#[test]
fn experts_have_the_bits_of_their_own_products() {
    let (experts, used, tokens, rows, k) = (5, 2, 40, 50, 256);
    for dtype in [DType::Q4K, DType::Mxfp4, DType::F16] {
        let case = Case::new(dtype, experts * rows, k, tokens);
        // No token uses expert 3. Most tokens use expert 0.
        let chosen: Vec<u32> = (0..tokens as u32)
            .flat_map(|t| [if t % 5 == 0 { 4 } else { 0 }, 1 + t % 2])
            .collect();
        let mut routes = Routes::with_capacity(experts, tokens * used);
        routes.set(experts, used, &chosen).expect("routes");
        let format = Format::new(dtype, rows, Part::whole(k)).expect("a format");
        let mut bytes = vec![0; format.bytes() * experts];
        let size = case.bytes.len() / experts;
        let packed: Vec<Packed> = case
            .bytes
            .chunks_exact(size)
            .map(|b| Packed::new(dtype, b, rows, k).expect("an expert"))
            .collect();
        for (expert, out) in case
            .bytes
            .chunks_exact(size)
            .zip(bytes.chunks_exact_mut(format.bytes()))
        {
            let source = Source {
                bytes: expert,
                from: 0,
                k,
            };
            format
                .pack(source, 0..format.panels(), out)
                .expect("an expert");
        }
        let bias = Random(SplitMix64::new(7)).floats(experts * rows);
        let epilogue = Epilogue {
            bias: Some(&bias),
            ..Epilogue::default()
        };
        for of in [1, 2, 3, 8] {
            let mut out = vec![f32::NAN; tokens * used * rows];
            let x = (case.activations(), Input::PerToken);
            let grouped = Grouped::new(Isa::best(), (format, &bytes), x, &routes, epilogue)
                .expect("a grouped product");
            for index in 0..of {
                let mut to = Output::new(&mut out, rows, rows, 1).expect("an output");
                grouped
                    .run(Share { index, of }, &mut to, &mut Scratch::new())
                    .expect("a share");
            }
            for (pair, &e) in chosen.iter().enumerate() {
                let one = Case {
                    rows,
                    bytes: Vec::new(),
                    x: case.x.clone(),
                    blocks: case.blocks.clone(),
                    ..case
                };
                let expect = one.product(Isa::best(), &packed[e as usize], Way::Gemv);
                let t = pair / used;
                for r in 0..rows {
                    let expect = expect[t * rows + r] + bias[e as usize * rows + r];
                    let found = out[pair * rows + r];
                    assert_eq!(found.to_bits(), expect.to_bits(), "{dtype} {pair} {r}");
                }
            }
        }
    }
}

#[test]
fn activations_that_are_no_numbers_make_their_tokens_nan_and_no_others() {
    for dtype in types() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut case = Case::new(dtype, 17, 512, 3);
            case.x[512 + 300] = bad;
            case.blocks = blocks(&case.x, 512);
            let packed = case.packed();
            for &isa in Isa::available() {
                let out = case.product(isa, &packed, Way::Gemm);
                let (token, others) = (&out[17..34], [&out[..17], &out[34..]].concat());
                assert!(token.iter().all(|v| !v.is_finite()), "{dtype} {isa} {bad}");
                assert!(others.iter().all(|v| v.is_finite()), "{dtype} {isa} {bad}");
            }
        }
    }
}

#[test]
fn any_bytes_are_weights() {
    let mut random = Random(SplitMix64::new(3));
    for dtype in types() {
        let mut case = Case::new(dtype, 33, 512, 7);
        for byte in &mut case.bytes {
            *byte = random.next() as u8;
        }
        let packed = case.packed();
        let expect = case.product(Isa::PORTABLE, &packed, Way::Gemv);
        for &isa in Isa::available() {
            let found = case.product(isa, &packed, Way::Gemm);
            assert!(same_bits(&found, &expect), "{dtype} {isa}");
        }
    }
}

#[test]
fn rows_are_those_of_the_file() {
    for dtype in types() {
        let (rows, k) = (37, 1024 + 256);
        let case = Case::new(dtype, rows, k, 1);
        let packed = case.packed();
        let mut expect = vec![0.0; k];
        let file = case.bytes.chunks_exact(case.bytes.len() / rows);
        for (row, bytes) in file.enumerate() {
            dequantise(dtype, bytes, &mut expect).expect("a row");
            for (from, len) in [(0, k), (512, 512), (32, 31)] {
                for &isa in Isa::available() {
                    let mut found = vec![0.0; len];
                    let read = packed.matrix().read_row(isa, row, from, &mut found);
                    assert_eq!(read, Ok(()), "{dtype}");
                    assert!(
                        same_bits(&found, &expect[from..from + len]),
                        "{dtype} row {row} {isa}"
                    );
                }
            }
        }
        for (row, from, len) in [(rows, 0, 1), (0, k, 1), (0, 16, 1), (0, 0, k + 1)] {
            let read = packed
                .matrix()
                .read_row(Isa::best(), row, from, &mut vec![0.0; len]);
            assert!(matches!(read, Err(ProductError::Shape { .. })), "{dtype}");
        }
    }
}

#[test]
fn results_may_be_added_and_have_gaps() {
    let case = Case::new(DType::Q8_0, 20, 64, 2);
    let packed = case.packed();
    let plain = case.product(Isa::best(), &packed, Way::Gemv);
    let epilogue = Epilogue {
        write: Write::Add,
        bias: None,
    };
    let product = Product::new(
        Isa::best(),
        packed.matrix(),
        case.activations(),
        Tokens::First(2),
        epilogue,
    )
    .expect("a product");
    let mut out = vec![1.0; 30 + 20];
    let mut to = Output::new(&mut out, 20, 30, 1).expect("an output");
    product.gemv(0..2, &mut to).expect("rows");
    for (i, out) in out.iter().enumerate() {
        let (t, r) = (i / 30, i % 30);
        let expect = if r < 20 { 1.0 + plain[t * 20 + r] } else { 1.0 };
        assert_eq!(*out, expect, "{t} {r}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let unsupported = Format::new(DType::I32, 4, Part::whole(32));
    assert!(matches!(unsupported, Err(ProductError::Unsupported { .. })));
    let size = |dtype, rows, k| Format::new(dtype, rows, Part::whole(k));
    assert!(matches!(
        size(DType::Q4K, 4, 300),
        Err(ProductError::Size { .. })
    ));
    assert!(matches!(
        size(DType::F32, usize::MAX, 4),
        Err(ProductError::Size { .. })
    ));
    assert!(matches!(
        size(DType::F32, 4, 0),
        Err(ProductError::Size { .. })
    ));
    let short = Packed::new(DType::Q8_0, &[0; 33], 1, 32);
    assert!(matches!(short, Err(ProductError::Length { .. })));
    let case = Case::new(DType::Q8_0, 20, 64, 2);
    let packed = case.packed();
    let product = |x, tokens, bias| {
        let epilogue = Epilogue {
            bias,
            ..Epilogue::default()
        };
        Product::new(Isa::best(), packed.matrix(), x, tokens, epilogue)
    };
    let x = case.activations();
    assert!(product(Activations::Float(&case.x), Tokens::First(2), None).is_err());
    assert!(product(x, Tokens::First(3), None).is_err());
    assert!(product(x, Tokens::First(2), Some(&[0.0; 19])).is_err());
    let (from, to) = (&[0, 2][..], &[0, 1][..]);
    assert!(product(x, Tokens::Listed { from, to }, None).is_err());
    let good = product(x, Tokens::First(2), None).expect("a product");
    let mut data = [0.0; 40];
    let mut out = Output::new(&mut data, 20, 20, 1).expect("an output");
    assert!(good.gemv(0..3, &mut out).is_err());
    let (mut first, _) = out.split_at(16).expect("two outputs");
    assert!(good.gemv(0..2, &mut first).is_err());
    assert!(good.gemv(0..1, &mut first).is_ok());
    assert!(Output::new(&mut data, 20, 10, 1).is_err());
    assert!(Output::new(&mut data, 20, 20, 3).is_err());
    assert!(Routes::default().set(2, 1, &[2]).is_err());
    assert!(Routes::default().set(2, 2, &[1]).is_err());
}
