//! The digests come from the `gguf` Python package (`gguf.quants`). The package does not encode iq4_nl: its digest
//! comes from a transcription of the published algorithm.

use super::*;
use tpc_ir::random::Xorshift64;

/// Test data. The digests depend on the sequence.
struct Xorshift(Xorshift64);

impl Xorshift {
    const fn new() -> Self {
        Xorshift(Xorshift64::new(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| (self.next() >> 56) as u8).collect()
    }

    fn uniform(&mut self) -> f32 {
        ((self.next() >> 40) as f32 - 8_388_608.0) / 1_048_576.0
    }

    fn uniforms(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.uniform()).collect()
    }

    fn normals(&mut self, n: usize) -> Vec<f32> {
        (0..n)
            .map(|_| (0..12).map(|_| self.uniform()).sum::<f32>() / 16.0)
            .collect()
    }
}

fn digest(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn decoded(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    let elements = bytes.len() as u64 / dtype.block_bytes() * dtype.block_len();
    let mut out = vec![f32::NAN; elements as usize];
    dequantise(dtype, bytes, &mut out).expect("whole blocks");
    out
}

fn encoded(dtype: DType, values: &[f32]) -> Vec<u8> {
    let mut out = Vec::new();
    quantise(dtype, values, &mut out).expect("whole blocks");
    out
}

const BLOCKS: usize = 8;

/// Format; high bytes of a block's f16 fields; first, second and last value; digest of all values of eight random
/// blocks. The test clears a bit of each high byte, so that the field is finite.
type DecoderCase = (DType, &'static [usize], [f32; 3], u64);

const DECODED: &[DecoderCase] = &[
    (
        DType::F16,
        &[1],
        [0.018981934, 0.14001465, -8.7320805e-5],
        0xb8ac_fb49_85e9_5e0e,
    ),
    (
        DType::Bf16,
        &[1],
        [9.540979e-17, 9.131327e-10, -1.7397316e-35],
        0x8f4d_5649_4bc3_7161,
    ),
    (
        DType::Q4_0,
        &[1],
        [0.0569458, -0.15185547, 9.477539],
        0x368c_e750_77d8_d239,
    ),
    (
        DType::Q4_1,
        &[1, 3],
        [0.36779785, 0.27288818, -0.21870708],
        0x8178_1701_e425_244f,
    ),
    (
        DType::Q5_0,
        &[1],
        [0.18981934, 0.1708374, -0.48776245],
        0xfff6_3b99_424a_53de,
    ),
    (
        DType::Q5_1,
        &[1, 3],
        [0.3867798, 0.42474365, 0.84907085],
        0x877c_1d62_5d1f_b434,
    ),
    (
        DType::Q8_0,
        &[1],
        [2.3347778, 0.9111328, -0.63877106],
        0x9586_2680_e773_ebb6,
    ),
    (
        DType::Q2K,
        &[81, 83],
        [-18.789795, -54.953857, -11.858042],
        0x7fc0_f46e_cf9a_87d9,
    ),
    (
        DType::Q3K,
        &[109],
        [-0.00021028519, -0.00084114075, 2.296875],
        0x786e_4c61_fb31_eecd,
    ),
    (
        DType::Q4K,
        &[1, 3],
        [0.115600586, -1.5548096, 1.2756805],
        0x8210_f183_be0a_99ef,
    ),
    (
        DType::Q5K,
        &[1, 3],
        [11.808472, 11.808472, -43.86621],
        0x4dd9_c83e_8aec_6668,
    ),
    (
        DType::Q6K,
        &[209],
        [0.2698326, 0.37776566, -762.7539],
        0x1b1b_ba31_17b3_f920,
    ),
    (
        DType::Iq4Nl,
        &[1],
        [0.7213135, -2.4107056, 130.79004],
        0x6525_2567_6c42_68e1,
    ),
    (
        DType::Iq4Xs,
        &[1],
        [36.673096, 60.058838, -0.006851554],
        0xddcc_ef06_b1f3_9caa,
    ),
    (
        DType::Mxfp4,
        &[],
        [1.9807041e28, -1.485528e28, -2.7755576e-17],
        0x573d_eff0_cb0a_a077,
    ),
    (
        DType::Nvfp4,
        &[],
        [-48.0, 144.0, -0.15234375],
        0x5e0d_e1fd_13fc_f5d9,
    ),
    (
        DType::Tq1_0,
        &[53],
        [0.10858154, 0.0, -0.0],
        0x5a39_7afa_a373_b917,
    ),
    (
        DType::Tq2_0,
        &[65],
        [-0.18261719, -0.18261719, 0.000118494034],
        0x9d85_6ea2_204c_be7b,
    ),
];

#[test]
fn decoders_agree_with_an_independent_implementation() {
    for &(dtype, f16_fields, expect, expect_digest) in DECODED {
        let mut bytes = Xorshift::new().bytes(BLOCKS * dtype.block_bytes() as usize);
        for block in bytes.chunks_exact_mut(dtype.block_bytes() as usize) {
            for &at in f16_fields {
                block[at] &= 0xbf;
            }
        }
        let out = decoded(dtype, &bytes);
        assert_eq!([out[0], out[1], out[out.len() - 1]], expect, "{dtype}");
        assert_eq!(
            digest(out.iter().flat_map(|x| x.to_le_bytes())),
            expect_digest,
            "{dtype}"
        );
    }
}

const ELEMENTS: usize = 1024;

const ENCODED: &[(DType, u64)] = &[
    (DType::F16, 0xa6fa_31ed_be51_1219),
    (DType::Bf16, 0x37a6_bdd6_74eb_3556),
    (DType::Q4_0, 0x9986_e29e_d800_e0bf),
    (DType::Q4_1, 0x63ab_afe3_ffea_1c47),
    (DType::Q5_0, 0x384e_bec8_97aa_8ce3),
    (DType::Q5_1, 0x1233_bb34_123f_cdc3),
    (DType::Q8_0, 0x8b68_0041_0735_6ed4),
    (DType::Mxfp4, 0xaf71_469d_68a4_2394),
    (DType::Iq4Nl, 0xa188_cdd7_4354_c084),
];

#[test]
fn encoders_agree_with_an_independent_implementation() {
    let values = Xorshift::new().uniforms(ELEMENTS);
    for &(dtype, expect) in ENCODED {
        assert_eq!(digest(encoded(dtype, &values)), expect, "{dtype}");
    }
}

/// Format; maximum error of an element, relative to the block's largest magnitude; root mean square error, relative to
/// the values' root mean square.
const ERRORS: &[(DType, f32, f64)] = &[
    (DType::F32, 0.0, 0.0),
    (DType::F16, 0.0005, 0.0003),
    (DType::Bf16, 0.004, 0.002),
    // Numbers below the smallest one become 0.
    (DType::F8E4M3, 1.0, 0.03),
    (DType::Q8_0, 0.0045, 0.006),
    (DType::Q5_1, 0.034, 0.04),
    (DType::Q5_0, 0.063, 0.045),
    (DType::Q4_1, 0.068, 0.08),
    (DType::Q4_0, 0.126, 0.09),
    (DType::Iq4Nl, 0.13, 0.085),
    (DType::Iq4Xs, 0.13, 0.085),
    (DType::Mxfp4, 0.251, 0.125),
    (DType::Q6K, 0.032, 0.02),
    (DType::Q5K, 0.034, 0.042),
    (DType::Q4K, 0.07, 0.085),
    (DType::Q3K, 0.26, 0.17),
    (DType::Q2K, 0.37, 0.38),
    (DType::Nvfp4, 0.26, 0.13),
    (DType::Tq1_0, 0.501, 0.95),
    (DType::Tq2_0, 0.501, 0.95),
    (DType::Q1_0, 1.0, 0.65),
    (DType::Q2_0, 0.501, 0.9),
];

#[test]
fn round_trips_stay_within_the_error_of_the_format() {
    let values = Xorshift::new().normals(64 * 256);
    for &dtype in DType::ALL.iter().filter(|&&dtype| can_quantise(dtype)) {
        let &(_, greatest, mean) = ERRORS
            .iter()
            .find(|(t, ..)| *t == dtype)
            .expect("every encoder has its error bounds");
        // Scaling by powers of two does not change relative errors while f16 values stay normal. The floor under `amax`
        // accounts for subnormal values. Scales of nvfp4 and numbers of f8_e4m3 end at 448.
        let largest = match dtype {
            DType::Nvfp4 => 256.0,
            DType::F8E4M3 => 64.0,
            _ => 1024.0,
        };
        for scale in [1.0, largest, 1.0 / 16.0] {
            let values: Vec<f32> = values.iter().map(|x| x * scale).collect();
            let back = decoded(dtype, &encoded(dtype, &values));
            let blocks = values.chunks_exact(dtype.block_len() as usize);
            for (x, y) in blocks.zip(back.chunks_exact(dtype.block_len() as usize)) {
                let amax = x.iter().fold(1.0 / 8192.0, |m: f32, x| m.max(x.abs()));
                for (x, y) in x.iter().zip(y) {
                    assert!(
                        (x - y).abs() <= greatest * amax,
                        "{dtype}: {x} came back as {y}, block to {amax}"
                    );
                }
            }
            let square = |v: f32| f64::from(v) * f64::from(v);
            let error: f64 = values.iter().zip(&back).map(|(x, y)| square(x - y)).sum();
            let norm: f64 = values.iter().map(|&x| square(x)).sum();
            assert!(
                error.sqrt() <= mean * norm.sqrt(),
                "{dtype}: error {}",
                (error / norm).sqrt()
            );
        }
    }
}

#[test]
fn round_trips_keep_zero_and_constant_blocks() {
    for &(dtype, greatest, _) in ERRORS {
        for value in [0.0, 3.0, -3.0] {
            let values = [value; 256];
            for y in decoded(dtype, &encoded(dtype, &values)) {
                assert!(
                    (y - value).abs() <= greatest * value.abs(),
                    "{dtype}: {value} came back as {y}"
                );
            }
        }
    }
}

/// Wrong array lengths in a decoder or encoder would leave elements or bytes unwritten.
#[test]
fn blocks_have_the_geometry_of_their_dtype() {
    for &dtype in DType::ALL {
        let (len, bytes) = (dtype.block_len() as usize, dtype.block_bytes() as usize);
        if can_dequantise(dtype) {
            let out = decoded(dtype, &vec![0; 3 * bytes]);
            assert!(
                out.len() == 3 * len && out.iter().all(|x| x.is_finite()),
                "{dtype}"
            );
        }
        if can_quantise(dtype) {
            assert!(can_dequantise(dtype), "{dtype} can be read back");
            assert_eq!(
                encoded(dtype, &vec![0.0; 3 * len]).len(),
                3 * bytes,
                "{dtype}"
            );
        }
    }
}

#[test]
fn wrong_lengths_are_errors() {
    for &dtype in DType::ALL.iter().filter(|&&dtype| can_dequantise(dtype)) {
        let (len, bytes) = (dtype.block_len() as usize, dtype.block_bytes() as usize);
        for found in [0, bytes - 1, bytes + 1, 2 * bytes] {
            assert_eq!(
                dequantise(dtype, &vec![0; found], &mut vec![0.0; len]),
                Err(QuantError::Length {
                    dtype,
                    elements: len,
                    expected: bytes as u64,
                    found
                })
            );
        }
        if dtype.is_quantised() {
            let partial = QuantError::PartialBlock {
                dtype,
                elements: len + 1,
            };
            assert_eq!(
                dequantise(dtype, &vec![0; bytes], &mut vec![0.0; len + 1]),
                Err(partial.clone())
            );
            if can_quantise(dtype) {
                let mut out = vec![7];
                assert_eq!(quantise(dtype, &vec![0.0; len + 1], &mut out), Err(partial));
                assert_eq!(out, [7]);
            }
        }
        assert_eq!(dequantise(dtype, &[], &mut []), Ok(()));
    }
}

#[test]
fn every_format_has_a_decoder_and_those_with_grids_no_encoder() {
    for &dtype in DType::ALL {
        let bytes = vec![0; dtype.block_bytes() as usize];
        let mut out = vec![f32::NAN; dtype.block_len() as usize];
        assert_eq!(dequantise(dtype, &bytes, &mut out), Ok(()));
        assert!(out.iter().all(|v| v.abs() < 1e-36), "{dtype}");
    }
    for name in [
        "iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s",
    ] {
        let dtype = DType::from_name(name).expect("a known name");
        assert_eq!(
            quantise(dtype, &[0.0; 256], &mut Vec::new()),
            Err(QuantError::NoEncoder { dtype })
        );
    }
}

#[test]
fn no_bytes_and_no_values_panic() {
    let mut random = Xorshift::new();
    let odd = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN_POSITIVE,
        1e-45,
        -1e-20,
        -0.0,
        1e5,
    ];
    for &dtype in DType::ALL {
        if can_dequantise(dtype) {
            decoded(dtype, &random.bytes(256 * dtype.block_bytes() as usize));
            decoded(dtype, &vec![0xff; dtype.block_bytes() as usize]);
        }
        if can_quantise(dtype) {
            for value in odd {
                encoded(dtype, &[value; 256]);
                let mut values = random.uniforms(256);
                values[random.next() as usize % 256] = value;
                encoded(dtype, &values);
            }
            let values: Vec<f32> = (0..256)
                .map(|_| f32::from_bits(random.next() as u32))
                .collect();
            encoded(dtype, &values);
        }
    }
}

/// The search minimises the weighted error, so its plain error is larger only by the effect of the weights.
#[test]
fn searched_scales_have_less_error() {
    let values = Xorshift::new().normals(64 * 256);
    for dtype in [
        DType::Q2K,
        DType::Q3K,
        DType::Q4K,
        DType::Q5K,
        DType::Q6K,
        DType::Iq4Xs,
    ] {
        let error = |bytes: &[u8]| -> f64 {
            let back = decoded(dtype, bytes);
            let all = values.iter().zip(&back);
            all.map(|(x, y)| f64::from((x - y) * (x - y))).sum()
        };
        let direct = encoded(dtype, &values);
        let mut searched = vec![0; direct.len()];
        quantise_searched(dtype, &values, &mut searched).expect("whole blocks");
        let (found, plain) = (error(&searched), error(&direct));
        assert!(found < 0.98 * plain, "{dtype}: {found} {plain}");
        for value in [0.0, 3.0, -3.0] {
            let mut block = vec![0; dtype.block_bytes() as usize];
            quantise_searched(dtype, &[value; 256], &mut block).expect("a block");
            for y in decoded(dtype, &block) {
                assert!(
                    (y - value).abs() <= 0.04 * value.abs(),
                    "{dtype}: {y} {value}"
                );
            }
        }
    }
}
