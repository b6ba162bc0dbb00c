//! Checks the offset of every code, and that the catalogue is complete.

use tpc_ir::DType;

use tpc_ir::Code;

use super::super::parser::{DataCheck, parse_limited};
use super::super::{CODES, GgufError, GgufFile, GgufWriter, MetaArray, Subject, parse};
use super::shards::shard;
use super::{Scratch, bytes_of, header_of, sample};

/// A header assembled by hand, possibly invalid.
struct Raw(Vec<u8>);

impl Raw {
    fn new(tensors: u64, pairs: u64) -> Raw {
        Raw(b"GGUF\x03\0\0\0".to_vec()).u64(tensors).u64(pairs)
    }

    fn bytes(mut self, bytes: &[u8]) -> Raw {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u32(self, x: u32) -> Raw {
        self.bytes(&x.to_le_bytes())
    }

    fn u64(self, x: u64) -> Raw {
        self.bytes(&x.to_le_bytes())
    }

    fn str(self, s: &str) -> Raw {
        self.u64(s.len() as u64).bytes(s.as_bytes())
    }

    fn pair_u32(self, key: &str, value: u32) -> Raw {
        self.str(key).u32(4).u32(value)
    }

    fn tensor(mut self, name: &str, ne: &[u64], type_id: u32, offset: u64) -> Raw {
        self = self.str(name).u32(u32::try_from(ne.len()).unwrap());
        for &n in ne {
            self = self.u64(n);
        }
        self.u32(type_id).u64(offset)
    }

    fn defect(mut self, zeros: usize) -> GgufError {
        self.0.resize(self.0.len() + zeros, 0);
        parse(&self.0, self.0.len() as u64, "raw.gguf").unwrap_err()
    }
}

const PREAMBLE: u64 = 24;

fn one_tensor(name: &str, ne: &[u64], type_id: u32, offset: u64) -> GgufError {
    Raw::new(1, 0).tensor(name, ne, type_id, offset).defect(0)
}

/// Offsets in files with one tensor named `t`.
const N_DIMS_AT: u64 = PREAMBLE + 8 + 1;
const DIMS_AT: u64 = N_DIMS_AT + 4;

fn open_in(make: impl Fn(&Scratch) -> std::path::PathBuf) -> GgufError {
    let dir = Scratch::new();
    GgufFile::open(make(&dir)).unwrap_err()
}

fn limited() -> GgufError {
    let bytes = Raw::new(0, 1).str("k").u32(8).str(&"x".repeat(500)).0;
    assert!(parse(&bytes, bytes.len() as u64, "m.gguf").is_ok());
    parse_limited(
        &bytes,
        bytes.len() as u64,
        "m.gguf",
        200,
        DataCheck::Present,
    )
    .unwrap_err()
}

fn nested(depth: u32) -> GgufWriter {
    let mut array = MetaArray::U8(vec![1]);
    for _ in 1..depth {
        array = MetaArray::Array(vec![array]);
    }
    let mut w = GgufWriter::new("m.gguf");
    w.meta("k", array);
    w
}

fn short_data() -> GgufError {
    let mut w = GgufWriter::new("m.gguf");
    w.tensor("t", DType::F32, &[4]);
    w.write(Vec::new(), |_, _, out| out.write_all(&[0; 15]))
        .unwrap_err()
}

fn truncated_data() -> GgufError {
    let mut bytes = bytes_of(&sample());
    bytes.truncate(bytes.len() - 40);
    parse(&bytes, bytes.len() as u64, "m.gguf").unwrap_err()
}

fn mixed_shards(dir: &Scratch) -> std::path::PathBuf {
    dir.file("m-00001-of-00002.gguf", &header_of(&shard(1, 2, 2)));
    dir.file("m-00002-of-00002.gguf", &bytes_of(&shard(2, 2, 2)))
}

fn wrong_total(dir: &Scratch) -> std::path::PathBuf {
    dir.file("m-00001-of-00002.gguf", &header_of(&shard(1, 2, 7)));
    dir.file("m-00002-of-00002.gguf", &header_of(&shard(2, 2, 7)))
}

type Case = (&'static str, Option<u64>, GgufError, &'static str);

fn cases() -> Vec<Case> {
    let metadata = sample().header().unwrap().metadata().clone();
    let pair = PREAMBLE;
    vec![
        (
            "TPC0100",
            None,
            open_in(|dir| dir.path().join("absent.gguf")),
            "absent.gguf: cannot find",
        ),
        (
            "TPC0100",
            None,
            open_in(|dir| dir.path().to_owned()),
            "cannot read the file",
        ),
        (
            "TPC0101",
            Some(0),
            parse(b"tjggxxxx", 8, "m").unwrap_err(),
            "GGJT",
        ),
        (
            "TPC0101",
            Some(0),
            parse(b"PK\x03\x04", 4, "m").unwrap_err(),
            "zip",
        ),
        (
            "TPC0101",
            Some(0),
            parse(b"\x20\0\0\0\0\0\0\0{\"a\"", 12, "m").unwrap_err(),
            "safetensors",
        ),
        (
            "TPC0101",
            Some(0),
            parse(b"version https://git-lfs.github.com", 34, "m").unwrap_err(),
            "LFS",
        ),
        (
            "TPC0101",
            Some(0),
            parse(b"ABCD", 4, "m").unwrap_err(),
            "[41, 42, 43, 44]",
        ),
        (
            "TPC0102",
            Some(4),
            parse(b"GGUF\x01\0\0\0", 8, "m").unwrap_err(),
            "version 1",
        ),
        (
            "TPC0102",
            Some(4),
            parse(b"GGUF\0\0\0\x04", 8, "m").unwrap_err(),
            "version 4",
        ),
        (
            "TPC0102",
            Some(4),
            parse(b"GGUF\0\0\0\0", 8, "m").unwrap_err(),
            "version 0",
        ),
        (
            "TPC0103",
            Some(0),
            parse(b"", 0, "m").unwrap_err(),
            "found 0",
        ),
        (
            "TPC0103",
            Some(PREAMBLE + 8),
            Raw::new(0, 1).u64(20).defect(10),
            "expected 20 more bytes",
        ),
        ("TPC0104", Some(45), limited(), "200 bytes"),
        (
            "TPC0105",
            Some(8),
            Raw::new(1 << 60, 0).defect(100),
            "tensor count is",
        ),
        ("TPC0105", Some(16), Raw::new(0, 9).defect(100), "at most 7"),
        (
            "TPC0105",
            Some(pair + 17),
            Raw::new(0, 1).str("k").u32(9).u32(10).u64(9).defect(64),
            "array length is 9",
        ),
        (
            "TPC0106",
            Some(pair),
            Raw::new(0, 1).u64(0).defect(32),
            "empty",
        ),
        (
            "TPC0106",
            Some(pair),
            Raw::new(0, 1).u64(65_536).defect(70_000),
            "65536 bytes",
        ),
        (
            "TPC0106",
            Some(pair + 9),
            Raw::new(0, 1).u64(2).bytes(b"a\xff").defect(9),
            "UTF-8",
        ),
        (
            "TPC0107",
            Some(pair + 17),
            Raw::new(0, 2).pair_u32("k", 1).pair_u32("k", 1).defect(0),
            "first at byte 24",
        ),
        (
            "TPC0108",
            Some(pair + 9),
            Raw::new(0, 1).str("k").u32(13).defect(8),
            "type 13",
        ),
        (
            "TPC0109",
            Some(pair + 13),
            Raw::new(0, 1).str("k").u32(7).bytes(&[2]).defect(0),
            "found 2",
        ),
        (
            "TPC0109",
            Some(pair + 26),
            Raw::new(0, 1)
                .str("k")
                .u32(9)
                .u32(7)
                .u64(2)
                .bytes(&[1, 9])
                .defect(0),
            "found 9",
        ),
        (
            "TPC0110",
            Some(pair + 13 + 48),
            nested(5).header().unwrap_err(),
            "at most 4 levels",
        ),
        (
            "TPC0111",
            Some(pair),
            Raw::new(0, 1).pair_u32("general.alignment", 48).defect(0),
            "found 48",
        ),
        (
            "TPC0111",
            Some(pair),
            Raw::new(0, 1).pair_u32("general.alignment", 0).defect(0),
            "found 0",
        ),
        (
            "TPC0111",
            Some(pair),
            Raw::new(0, 1)
                .str("general.alignment")
                .u32(10)
                .u64(32)
                .defect(0),
            "found u64",
        ),
        (
            "TPC0112",
            Some(PREAMBLE),
            Raw::new(1, 0).u64(0).defect(40),
            "empty",
        ),
        (
            "TPC0112",
            Some(PREAMBLE),
            one_tensor(&"x".repeat(65), &[8], 0, 0),
            "65 bytes",
        ),
        (
            "TPC0113",
            Some(57),
            Raw::new(2, 0)
                .tensor("t", &[8], 0, 0)
                .tensor("t", &[8], 0, 32)
                .defect(0),
            "at byte 24",
        ),
        (
            "TPC0114",
            Some(N_DIMS_AT),
            Raw::new(1, 0).str("t").u32(0).defect(32),
            "found 0",
        ),
        (
            "TPC0114",
            Some(N_DIMS_AT),
            one_tensor("t", &[1; 5], 0, 0),
            "found 5",
        ),
        (
            "TPC0115",
            Some(DIMS_AT + 8),
            one_tensor("t", &[8, 0], 0, 0),
            "dimension 1",
        ),
        (
            "TPC0116",
            Some(DIMS_AT),
            one_tensor("t", &[1 << 32, 1 << 32], 0, 0),
            "4294967296",
        ),
        (
            "TPC0116",
            Some(DIMS_AT),
            one_tensor("t", &[1 << 62], 0, 0),
            "2^63",
        ),
        (
            "TPC0117",
            Some(DIMS_AT),
            one_tensor("t", &[2880, 2], 12, 0),
            "256",
        ),
        (
            "TPC0118",
            Some(DIMS_AT + 8),
            one_tensor("t", &[8], 1000, 0),
            "type 1000",
        ),
        (
            "TPC0118",
            Some(DIMS_AT + 8),
            one_tensor("t", &[8], 31, 0),
            "repacked",
        ),
        (
            "TPC0119",
            Some(DIMS_AT + 12),
            one_tensor("t", &[8], 0, 100),
            "100",
        ),
        (
            "TPC0120",
            Some(DIMS_AT + 12),
            one_tensor("t", &[8], 0, 1 << 63),
            "less than 2^63",
        ),
        (
            "TPC0120",
            Some(DIMS_AT + 12),
            one_tensor("t", &[8], 0, u64::MAX - 31),
            "less than 2^63",
        ),
        (
            "TPC0121",
            Some(82),
            Raw::new(2, 0)
                .tensor("a", &[9], 0, 0)
                .tensor("b", &[8], 0, 32)
                .defect(0),
            "\"a\"",
        ),
        (
            "TPC0122",
            Some(truncated_data().offset().unwrap()),
            truncated_data(),
            "cut short",
        ),
        (
            "TPC0123",
            None,
            open_in(|d| d.file("m-00001-of-00002.gguf", &bytes_of(&shard(1, 2, 2)))),
            "m-00002-of-00002",
        ),
        (
            "TPC0124",
            None,
            open_in(|d| d.file("m.gguf", &bytes_of(&shard(1, 2, 2)))),
            "m-00001-of-00002.gguf",
        ),
        (
            "TPC0125",
            None,
            open_in(|d| d.file("m-00001-of-00002.gguf", &bytes_of(&shard(2, 2, 2)))),
            "split.no",
        ),
        ("TPC0126", None, open_in(wrong_total), "hold 2 tensors"),
        ("TPC0127", None, open_in(mixed_shards), "no tensor data"),
        (
            "TPC0130",
            None,
            metadata.require_u32("absent").unwrap_err(),
            "missing",
        ),
        (
            "TPC0131",
            Some(PREAMBLE),
            metadata.get_u32("general.architecture").unwrap_err(),
            "found string",
        ),
        (
            "TPC0132",
            metadata.entry("a.i8").map(|e| e.offset),
            metadata.get_u32("a.i8").unwrap_err(),
            "found -3",
        ),
        (
            "TPC0133",
            metadata.entry("v.u16").map(|e| e.offset),
            metadata.get_u32_per_layer("v.u16", 2).unwrap_err(),
            "found 3",
        ),
        ("TPC0140", Some(64), short_data(), "expected 16 bytes"),
    ]
}

#[test]
fn each_defect_is_found_where_it_is() {
    for (code, offset, error, part) in cases() {
        assert_eq!(error.code(), code, "{error}");
        assert_eq!(error.offset(), offset, "{error}");
        assert!(
            error.to_string().contains(part),
            "{error} does not say {part:?}"
        );
        assert!(!error.help().is_empty() && !error.file().is_empty());
    }
}

#[test]
fn every_code_is_listed_and_fires() {
    let fired: Vec<&Code> = cases().iter().map(|case| case.2.code()).collect();
    for code in CODES {
        assert!(fired.contains(code), "no case fires {code}");
        assert!(matches!(code.number(), Some(100..150)), "{code}");
        assert!(!code.title.is_empty() && !code.title.ends_with('.'));
        assert!(!code.example.is_empty() && !code.cure.is_empty(), "{code}");
        assert!(
            !code.paragraphs().concat().contains("  "),
            "{code}: line continuations leave one space"
        );
    }
    assert!(
        CODES.windows(2).all(|w| w[0] < w[1]),
        "in order, without repetition"
    );
    assert!(fired.iter().all(|code| CODES.contains(code)));
}

#[test]
fn the_cure_for_an_unknown_type_lists_the_known() {
    let help = one_tensor("t", &[8], 1000, 0).help();
    assert!(
        DType::ALL
            .iter()
            .all(|t| help.contains(&format!("{} {}", t.gguf_id(), t.name())))
    );
}

#[test]
fn defects_name_what_they_concern_briefly() {
    assert_eq!(
        one_tensor("t", &[0], 0, 0).subject(),
        Some(&Subject::Tensor("t".into()))
    );
    let long = "k".repeat(60_000);
    let error = Raw::new(0, 1).str(&long).u32(13).defect(8);
    assert!(error.to_string().len() < 300);
    let escaped = Raw::new(0, 1).str("\x1b[2J").u32(13).defect(8);
    assert!(
        !escaped.to_string().contains('\x1b'),
        "no terminal escapes from a hostile file"
    );
}

#[test]
fn four_deep_arrays_are_read() {
    assert!(nested(4).header().is_ok());
}

#[test]
fn writer_refuses_what_the_reader_would() {
    let code = |ne: &[u64], dtype| {
        let mut w = GgufWriter::new("m.gguf");
        w.tensor("t", dtype, ne).tensor("u", DType::F32, &[1]);
        w.header().unwrap_err().code()
    };
    assert_eq!(code(&[], DType::F32), "TPC0114");
    assert_eq!(code(&[100], DType::Q8_0), "TPC0117");
    assert_eq!(code(&[u64::MAX, 2], DType::F32), "TPC0116");
    let mut w = GgufWriter::new("m.gguf");
    w.tensor("t", DType::I8, &[(1 << 63) - 64])
        .tensor("u", DType::F32, &[8]);
    assert_eq!(w.header().unwrap_err().code(), "TPC0120");
}
