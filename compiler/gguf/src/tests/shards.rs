//! Tests of split models.

use std::path::PathBuf;

use tpc_ir::DType;

use super::super::{Endianness, GgufFile, GgufWriter, SplitName};
use super::{Scratch, bytes_of, header_of};

pub(super) fn shard(number: u16, count: u16, tensors: i32) -> GgufWriter {
    let mut w = GgufWriter::new("shard");
    if number == 1 {
        w.meta("general.architecture", "llama");
    }
    w.meta("split.no", number - 1)
        .meta("split.count", count)
        .meta("split.tensors.count", tensors)
        .tensor(&format!("t{number}"), DType::F32, &[8, u64::from(number)]);
    w
}

fn three(dir: &Scratch, suffix: &str, encode: fn(&GgufWriter) -> Vec<u8>) -> Vec<PathBuf> {
    (1..=3)
        .map(|n| {
            dir.file(
                &format!("m-{n:05}-of-00003{suffix}"),
                &encode(&shard(n, 3, 3)),
            )
        })
        .collect()
}

#[test]
fn any_shard_opens_the_model() {
    for (suffix, has_data) in [(".gguf", true), (".header.gguf", false)] {
        let dir = Scratch::new();
        let paths = three(&dir, suffix, if has_data { bytes_of } else { header_of });
        for path in &paths {
            let file = GgufFile::open(path).unwrap();
            assert_eq!(file.has_data(), has_data);
            assert_eq!(
                file.header()
                    .metadata()
                    .require_str("general.architecture")
                    .unwrap(),
                "llama"
            );
            assert_eq!(
                file.shards()
                    .iter()
                    .map(|s| s.path().to_owned())
                    .collect::<Vec<_>>(),
                paths
            );
            for (i, name) in ["t1", "t2", "t3"].into_iter().enumerate() {
                let tensor = file.header().tensor(name).unwrap();
                assert_eq!((tensor.shard, tensor.bytes), (i, 32 * (i as u64 + 1)));
                assert_eq!(file.tensor_data(tensor).is_some(), has_data);
            }
        }
    }
}

#[test]
fn first_shard_may_hold_metadata_only() {
    let dir = Scratch::new();
    let mut first = GgufWriter::new("shard");
    first
        .meta("split.no", 0u16)
        .meta("split.count", 2u16)
        .meta("split.tensors.count", 1i32);
    dir.file("m-00001-of-00002.gguf", &header_of(&first));
    let file =
        GgufFile::open(dir.file("m-00002-of-00002.gguf", &bytes_of(&shard(2, 2, 1)))).unwrap();
    assert!(file.has_data());
    assert!(file.tensor_data(&file.header().tensors()[0]).is_some());
}

#[test]
fn missing_shard_is_named() {
    let dir = Scratch::new();
    let paths = three(&dir, ".gguf", bytes_of);
    std::fs::remove_file(&paths[1]).unwrap();
    let e = GgufFile::open(&paths[2]).unwrap_err();
    assert_eq!(e.code(), "TPC0123");
    assert!(
        e.to_string().contains(&paths[1].display().to_string()),
        "{e}"
    );
}

#[test]
fn shards_of_different_models_are_refused() {
    let code = |make: &dyn Fn(&Scratch) -> PathBuf| {
        let dir = Scratch::new();
        GgufFile::open(make(&dir)).unwrap_err().code()
    };
    let with = |number: u16, other: GgufWriter| {
        move |dir: &Scratch| {
            let paths = three(dir, ".gguf", bytes_of);
            dir.file(&format!("m-{number:05}-of-00003.gguf"), &bytes_of(&other));
            paths[0].clone()
        }
    };
    assert_eq!(code(&with(2, shard(1, 3, 3))), "TPC0125", "wrong number");
    assert_eq!(code(&with(2, shard(2, 4, 3))), "TPC0125", "wrong count");
    assert_eq!(
        code(&with(2, shard(2, 3, 9))),
        "TPC0125",
        "wrong tensor count"
    );
    let mut big = shard(2, 3, 3);
    big.endianness(Endianness::Big);
    assert_eq!(code(&with(2, big)), "TPC0125", "wrong byte order");
    let mut more = shard(3, 3, 3);
    more.tensor("extra", DType::F32, &[1]);
    assert_eq!(code(&with(3, more)), "TPC0126");
    let mut same = shard(3, 3, 4);
    same.tensor("t1", DType::F32, &[1]);
    let again = |dir: &Scratch| {
        let mut all = three(dir, ".gguf", bytes_of);
        dir.file("m-00001-of-00003.gguf", &bytes_of(&shard(1, 3, 4)));
        dir.file("m-00002-of-00003.gguf", &bytes_of(&shard(2, 3, 4)));
        dir.file("m-00003-of-00003.gguf", &bytes_of(&same));
        all.remove(0)
    };
    assert_eq!(code(&again), "TPC0113");
    let mut plain = GgufWriter::new("shard");
    plain.tensor("t2", DType::F32, &[8]);
    assert_eq!(code(&with(2, plain)), "TPC0125", "no split keys");
    let bare = |dir: &Scratch| {
        let paths = three(dir, ".gguf", bytes_of);
        dir.file("m-00003-of-00003.gguf", &header_of(&shard(3, 3, 3)));
        paths[0].clone()
    };
    assert_eq!(code(&bare), "TPC0127");
}

#[test]
fn names_are_taken_apart() {
    let name = SplitName::parse("glm-4.5-of-it-00002-of-00003.header.gguf").unwrap();
    assert_eq!(
        (name.prefix.as_str(), name.number, name.count),
        ("glm-4.5-of-it", 2, 3)
    );
    assert_eq!(name.sibling(3), "glm-4.5-of-it-00003-of-00003.header.gguf");
    for not_a_shard in [
        "m.gguf",
        "m-00000-of-00003.gguf",
        "m-00004-of-00003.gguf",
        "m-1-of-3.gguf",
        "m-00001-of-00003x.gguf",
        "m-+0001-of-00003.gguf",
        "m-00001-of-0000é.gguf",
        "-of-",
    ] {
        assert_eq!(SplitName::parse(not_a_shard), None, "{not_a_shard}");
    }
}

#[test]
fn one_shard_of_one_needs_no_keys() {
    let dir = Scratch::new();
    let mut w = GgufWriter::new("m");
    w.tensor("t", DType::F32, &[8]);
    assert!(GgufFile::open(dir.file("m-00001-of-00001.gguf", &bytes_of(&w))).is_ok());
    assert_eq!(
        GgufFile::open(dir.file("m-00001-of-00002.gguf", &bytes_of(&w)))
            .unwrap_err()
            .code(),
        "TPC0125"
    );
}
