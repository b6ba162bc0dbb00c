//! Checks that a written file reads back unchanged.

use tpc_ir::DType;

use super::super::{Endianness, GgufFile, GgufWriter, MetaValue, StrList, Version, parse};
use super::{Scratch, bytes_of, header_of, sample};

#[test]
fn every_version_and_byte_order_reads_back() {
    for version in [Version::V2, Version::V3] {
        for endianness in [Endianness::Little, Endianness::Big] {
            let mut writer = sample();
            let written = writer
                .version(version)
                .endianness(endianness)
                .header()
                .unwrap();
            let bytes = bytes_of(&writer);
            let read = parse(&bytes, bytes.len() as u64, "sample.gguf").unwrap();
            assert_eq!(read, written);
            assert_eq!(read.endianness, endianness);
            assert_eq!(read.version, if version == Version::V2 { 2 } else { 3 });
            let values = |h: &super::super::Header| -> Vec<MetaValue> {
                h.metadata()
                    .entries()
                    .iter()
                    .map(|e| e.value.clone())
                    .collect()
            };
            assert_eq!(
                values(&read),
                values(&sample().header().unwrap()),
                "the same values in every encoding"
            );
        }
    }
}

#[test]
fn layout_is_aligned_and_in_order() {
    let mut writer = sample();
    writer.meta("general.alignment", 128u32);
    let header = writer.header().unwrap();
    assert_eq!(header.alignment, 128);
    let mut end = header.data_offset;
    for t in header.tensors() {
        assert_eq!(t.offset % 128, 0);
        assert!(t.offset >= end && t.offset < end + 128);
        assert_eq!(Some(t.bytes), t.dtype.tensor_bytes(&t.ne));
        end = t.end();
    }
    let exps = header.tensor("blk.0.ffn_down_exps.weight").unwrap();
    assert_eq!(
        (exps.shape(), exps.ne, exps.bytes),
        (&[32, 2, 5][..], [32, 2, 5, 1], 340)
    );
    assert!(header.tensor("blk.0").is_none());
    assert_eq!(header.data_bytes(), 432 + 12 + 340 + 12);
}

#[test]
fn mapped_file_yields_tensor_data() {
    let dir = Scratch::new();
    let file = GgufFile::open(dir.file("m.gguf", &bytes_of(&sample()))).unwrap();
    assert!(file.has_data());
    for (i, tensor) in file.header().tensors().iter().enumerate() {
        let data = file.tensor_data(tensor).unwrap();
        assert_eq!(data.len() as u64, tensor.bytes);
        assert!(data.iter().all(|&b| usize::from(b) == i + 1));
    }
}

#[test]
fn bare_header_has_no_data() {
    let dir = Scratch::new();
    let padded = header_of(&sample());
    let without_padding = &padded[..padded.len() - 1];
    for bytes in [&padded, without_padding] {
        let file = GgufFile::open(dir.file("m.gguf", bytes)).unwrap();
        assert!(!file.has_data());
        assert_eq!(file.header().tensors().len(), 4);
        assert!(file.tensor_data(&file.header().tensors()[0]).is_none());
    }
}

#[test]
fn strings_that_are_not_utf8_read_with_replacement() {
    let mut writer = GgufWriter::new("m.gguf");
    writer
        .meta("t", ["ab", "cd"].into_iter().collect::<StrList>())
        .meta("s", "xyz");
    let mut bytes = header_of(&writer);
    for (good, bad) in [(&b"ab"[..], 0xffu8), (b"xyz", 0xc0)] {
        let at = bytes.windows(good.len()).position(|w| w == good).unwrap();
        bytes[at] = bad;
    }
    let header = parse(&bytes, bytes.len() as u64, "m.gguf").unwrap();
    let tokens: Vec<&str> = header
        .metadata()
        .require_array_str("t")
        .unwrap()
        .iter()
        .collect();
    assert_eq!(tokens, ["\u{fffd}b", "cd"]);
    assert_eq!(header.metadata().require_str("s").unwrap(), "\u{fffd}yz");
}

#[test]
fn long_token_list_reads_back() {
    let tokens: StrList = (0..128_000).map(|i| format!("tok{i}")).collect();
    let mut writer = GgufWriter::new("m.gguf");
    writer
        .meta("tokenizer.ggml.tokens", tokens.clone())
        .meta("tokenizer.ggml.scores", vec![0.25f32; 128_000]);
    let header = writer.header().unwrap();
    let read = header
        .metadata()
        .require_array_str("tokenizer.ggml.tokens")
        .unwrap();
    assert_eq!(read, &tokens);
    assert_eq!(read.get(127_999), Some("tok127999"));
    assert_eq!(read.get(128_000), None);
}

#[test]
fn every_tensor_type_is_laid_out() {
    let mut writer = GgufWriter::new("m.gguf");
    for &dtype in DType::ALL.iter().chain(DType::IK) {
        writer.tensor(dtype.name(), dtype, &[dtype.block_len() * 3, 2]);
    }
    let header = writer.header().unwrap();
    for t in header.tensors() {
        let row = 3 * t.dtype.block_bytes() + t.dtype.row_extra();
        assert_eq!(t.bytes, 2 * row, "{}", t.dtype);
    }
}
