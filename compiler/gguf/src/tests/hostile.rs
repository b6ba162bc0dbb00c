//! Damaged files give an error or a header, without a panic or excessive memory.

use super::super::{Endianness, Header, MetaValue, parse};
use super::{bytes_of, header_of, sample};
use tpc_ir::random::SplitMix64;

fn exercise(header: &Header, file_len: u64) {
    for tensor in header.tensors() {
        assert!(tensor.offset >= header.data_offset);
        assert!(header.data_offset >= file_len || tensor.end() <= file_len);
        assert_eq!(tensor.dtype.tensor_bytes(&tensor.ne), Some(tensor.bytes));
        assert!(
            header
                .tensor(&tensor.name)
                .is_some_and(|found| found == tensor)
        );
    }
    for entry in header.metadata().entries() {
        assert_eq!(
            header
                .metadata()
                .value(&entry.key)
                .map(MetaValue::value_type),
            Some(entry.value.value_type())
        );
    }
    assert!(
        header.metadata().get_u32_per_layer("v.u16", 3).is_ok()
            || header.metadata().contains("v.u16")
    );
}

fn check(bytes: &[u8]) -> bool {
    let len = bytes.len() as u64;
    match parse(bytes, len, "hostile.gguf") {
        Ok(header) => {
            exercise(&header, len);
            true
        }
        Err(e) => {
            assert!(!e.to_string().is_empty() && !e.help().is_empty());
            assert!(e.offset().is_none_or(|offset| offset <= len), "{e}");
            false
        }
    }
}

#[test]
fn every_truncation_is_an_error_or_a_bare_header() {
    let bytes = bytes_of(&sample());
    let header = parse(&bytes, bytes.len() as u64, "m").unwrap();
    let last_end = header.tensors().last().unwrap().end();
    for len in 0..bytes.len() {
        let result = parse(&bytes[..len], len as u64, "m");
        let len = len as u64;
        if len > header.data_offset {
            assert_eq!(result.is_ok(), len >= last_end, "cut to {len}");
        }
        match result {
            Ok(h) => exercise(&h, len),
            Err(e) if len <= header.data_offset => assert!(
                matches!(e.code().id, "TPC0103" | "TPC0105"),
                "cut to {len}: {e}"
            ),
            Err(e) => assert_eq!(e.code(), "TPC0122"),
        }
    }
}

fn mutate(bytes: &mut Vec<u8>, rng: &mut SplitMix64) {
    const WORDS: [u64; 8] = [
        0,
        1,
        0x7fff_ffff,
        0xffff_ffff,
        1 << 40,
        i64::MAX as u64,
        1 << 63,
        u64::MAX,
    ];
    let at = rng.below(bytes.len());
    match rng.below(8) {
        0..=3 => bytes[at] = rng.next_u64().to_le_bytes()[0],
        4 => bytes[at] ^= 1 << rng.below(8),
        5 => {
            let word = WORDS[rng.below(WORDS.len())].to_le_bytes();
            let n = word.len().min(bytes.len() - at);
            bytes[at..at + n].copy_from_slice(&word[..n]);
        }
        6 => {
            let (from, n) = (rng.below(bytes.len()), 1 + rng.below(16));
            let n = n.min(bytes.len() - at.max(from));
            bytes.copy_within(from..from + n, at);
        }
        _ => {
            bytes.remove(at);
        }
    }
}

#[test]
fn random_damage_never_panics() {
    let mut seeds = vec![header_of(&sample()), bytes_of(&sample())];
    seeds.push(header_of(sample().endianness(Endianness::Big)));
    let mut rng = SplitMix64::new(1);
    let (mut good, mut bad) = (0u32, 0u32);
    for round in 0..120_000 {
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..=rng.below(3) {
            mutate(&mut bytes, &mut rng);
        }
        if check(&bytes) {
            good += 1;
        } else {
            bad += 1;
        }
    }
    assert!(
        good > 1_000 && bad > 1_000,
        "the mutations reach both outcomes: {good} good, {bad} bad"
    );
}

#[test]
fn random_bytes_after_a_good_preamble_never_panic() {
    let mut rng = SplitMix64::new(42);
    for _ in 0..20_000 {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend((rng.next_u64() % 3).to_le_bytes());
        bytes.extend((rng.next_u64() % 3).to_le_bytes());
        for _ in 0..rng.below(40) {
            let word = rng.next_u64();
            bytes.extend((if word & 3 == 0 { word } else { word >> 60 }).to_le_bytes());
        }
        check(&bytes);
    }
}

#[test]
fn nested_array_bomb_is_refused() {
    // 20,000 nested arrays: unlimited recursion overflows the stack.
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend(0u64.to_le_bytes());
    bytes.extend(1u64.to_le_bytes());
    bytes.extend(1u64.to_le_bytes());
    bytes.push(b'k');
    bytes.extend(9u32.to_le_bytes());
    for _ in 0..20_000 {
        bytes.extend(9u32.to_le_bytes());
        bytes.extend(1u64.to_le_bytes());
    }
    assert_eq!(
        parse(&bytes, bytes.len() as u64, "m").unwrap_err().code(),
        "TPC0110"
    );
}
