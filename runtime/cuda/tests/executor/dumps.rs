//! Dumps of launches: files that are damaged or hostile.

use sha2::{Digest, Sha256};
use tpc_cuda::dump::{
    DeviceRecord, DumpError, DumpHeader, DumpMemory, KernelRecord, LaunchDump, LaunchRecord,
    RegionRecord, Role, TensorRecord, parse,
};
use tpc_cuda::kernels::{InstanceRecord, WeightArgument};

fn tensor(role: Role, dims: [u64; 4], (region, offset, bytes): (u32, u64, u64)) -> TensorRecord {
    TensorRecord {
        role,
        name: "x".to_owned(),
        value: "v1".to_owned(),
        dtype: "f32".to_owned(),
        storage: "file".to_owned(),
        dims,
        strides: [4, 16, 16, 16],
        region: Some(region),
        offset,
        bytes,
    }
}

fn sound() -> LaunchDump {
    let header = DumpHeader {
        producer: "tpc 0".to_owned(),
        fault: "a fault".to_owned(),
        launch: LaunchRecord {
            number: 3,
            device: "cuda:0".to_owned(),
            kernel: "cumsum_F32".to_owned(),
            ops: vec!["cumsum".to_owned()],
            tensor: "x".to_owned(),
            value: "v1".to_owned(),
            dtype: "f32".to_owned(),
            shape: [4, 1, 1, 1],
        },
        device: DeviceRecord {
            name: "a card".to_owned(),
            capability: (9, 0),
            target: "sm_90a".to_owned(),
            multiprocessors: 132,
        },
        kernel: KernelRecord {
            entry: "cumsum_F32".to_owned(),
            instance: InstanceRecord {
                family: "reduce".to_owned(),
                template: "cumsum<F32>".to_owned(),
                dtypes: vec!["f32".to_owned()],
                arguments: "views".to_owned(),
                prefetch: false,
                launch_bounds: None,
            },
            grid: [1, 1, 1],
            threads: 32,
            shared_bytes: 0,
            params: "0011ff".to_owned(),
            weights: Vec::new(),
        },
        tensors: vec![
            tensor(Role::Operand, [4, 1, 1, 1], (0, 0, 16)),
            tensor(Role::Result, [4, 1, 1, 1], (1, 16, 16)),
        ],
        regions: vec![
            RegionRecord {
                memory: DumpMemory::Device,
                bytes: 16,
                saved: 16,
            },
            RegionRecord {
                memory: DumpMemory::Host,
                bytes: 32,
                saved: 8,
            },
        ],
    };
    LaunchDump {
        header,
        source: "// a kernel\n".to_owned(),
        data: (0..24).collect(),
    }
}

fn bytes(dump: &LaunchDump) -> Vec<u8> {
    let mut out = Vec::new();
    dump.write(&mut out).expect("memory");
    out
}

/// Returns the file of a header in RON, with right lengths and the right hash.
fn sealed(header: &[u8], source: &[u8], data: &[u8]) -> Vec<u8> {
    let rest = [header, source, data].concat();
    let hash = Sha256::digest(&rest);
    let hash: String = hash.iter().map(|b| format!("{b:02x}")).collect();
    let (a, b, c) = (header.len(), source.len(), data.len());
    let mut out = format!("tpc-launch-dump 1 {a} {b} {c} {hash}\n").into_bytes();
    out.extend(rest);
    out
}

#[test]
fn a_dump_is_read_as_it_was_written() {
    let dump = sound();
    let found = parse(bytes(&dump)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(found, dump);
    assert_eq!(found.saved(1), [16, 17, 18, 19, 20, 21, 22, 23]);
    assert_eq!(found.params(), [0, 0x11, 0xff]);
    let e = found.check_source().expect_err("another source");
    assert_eq!(e.code().id, "TPC0579");
}

#[test]
fn files_that_end_early_are_refused_at_every_byte() {
    let whole = bytes(&sound());
    for end in 0..whole.len() {
        let e = parse(whole[..end].to_vec()).expect_err("it ends early");
        assert_eq!(e.code().id, "TPC0578", "{end}: {e}");
    }
    let mut longer = whole;
    longer.push(0);
    let e = parse(longer).expect_err("too long");
    assert!(matches!(e, DumpError::Length { .. }), "{e}");
}

#[test]
fn every_changed_byte_is_found() {
    let whole = bytes(&sound());
    for at in 0..whole.len() {
        for change in [1, 0x20, 0x80] {
            let mut changed = whole.clone();
            changed[at] ^= change;
            // Digits of the hash may change their case.
            let same = changed[at].eq_ignore_ascii_case(&whole[at]);
            match parse(changed) {
                Ok(found) => assert!(same && found == sound(), "byte {at}"),
                Err(e) => assert_eq!(e.code().id, "TPC0578", "{at}: {e}"),
            }
        }
    }
}

#[test]
fn changed_headers_with_a_right_hash_never_panic() {
    let whole = bytes(&sound());
    let line = whole.iter().position(|b| *b == b'\n').expect("a line") + 1;
    let header = &whole[line..whole.len() - 24 - 12];
    let mut read = 0;
    for at in 0..header.len() {
        for new in *b"0917-+.,:()[]\"\\\0\xff xNS" {
            let mut changed = header.to_vec();
            changed[at] = new;
            if let Ok(found) = parse(sealed(&changed, b"// a kernel\n", &[7; 24])) {
                read += 1;
                let _ = (
                    found.saved(0),
                    found.saved(1),
                    found.params(),
                    found.module(),
                );
                assert!(found.check_source().is_err());
            }
        }
        let cut = parse(sealed(&header[..at], b"", &[]));
        assert!(cut.is_err(), "{at}");
    }
    assert!(read > 100, "{read} headers are read");
}

#[test]
fn fields_out_of_range_are_named() {
    type Change = fn(&mut DumpHeader);
    let cases: [(&str, Change); 18] = [
        ("kernel.threads", |h| h.kernel.threads = 0),
        ("kernel.threads", |h| h.kernel.threads = 1025),
        ("kernel.grid", |h| h.kernel.grid = [0, 1, 1]),
        ("kernel.grid", |h| h.kernel.grid = [u32::MAX; 3]),
        ("kernel.params", |h| h.kernel.params = "0".to_owned()),
        ("kernel.params", |h| h.kernel.params = "é0".to_owned()),
        ("kernel.params", |h| h.kernel.params = "00".repeat(65537)),
        ("kernel.weights", |h| {
            h.kernel.instance.arguments = "weights 2".to_owned();
        }),
        ("kernel.weights[0].operand", |h| {
            h.kernel.instance.arguments = "weights 1".to_owned();
            h.kernel.weights.push(WeightArgument {
                operand: 2,
                offsets: [0; 4],
                row_bytes: [16; 4],
                sizes: [1, 1],
                blocks: 1,
            });
        }),
        ("kernel.entry", |h| h.kernel.entry = "a();".to_owned()),
        ("regions[1].bytes", |h| h.regions[1].bytes = u64::MAX),
        ("regions[0].saved", |h| h.regions[0].saved = 17),
        ("regions[..].saved", |h| h.regions[0].saved = 15),
        ("tensors[1].region", |h| h.tensors[1].region = Some(2)),
        ("tensors[0].offset", |h| h.tensors[0].offset = u64::MAX),
        ("tensors[0].offset", |h| h.tensors[0].bytes = 17),
        ("tensors[0].dims", |h| h.tensors[0].dims[3] = 1 << 32),
        ("tensors[1].dtype", |h| {
            h.tensors[1].dtype = "f31".to_owned();
        }),
    ];
    for (name, change) in cases {
        let mut dump = sound();
        change(&mut dump.header);
        match parse(bytes(&dump)) {
            Err(DumpError::Field {
                field, expected, ..
            }) => {
                assert_eq!(field, name);
                assert!(!expected.is_empty());
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    let mut many = sound();
    let first = many.header.tensors[0].clone();
    many.header.tensors = vec![first; 1025];
    assert!(matches!(parse(bytes(&many)), Err(DumpError::Field { .. })));
}

#[test]
fn lengths_and_versions_are_checked_before_use() {
    for (line, wanted) in [
        ("tpc-launch-dump 2 0 0 0 00\n", "format 2"),
        ("tpc-launch-dump 1 0 0 0\n", "line 1"),
        ("tpc-launch-dump 1 -1 0 0 00\n", "line 1"),
        ("tpc-launch-dump", "line 1"),
        ("GGUF", "not a dump"),
        ("", "not a dump"),
    ] {
        let e = parse(line.as_bytes().to_vec()).expect_err(line);
        assert!(e.to_string().contains(wanted), "{line}: {e}");
    }
    let zeros = "0".repeat(64);
    for lengths in [
        "9999999999 0 0",
        "0 9999999999 0",
        "0 0 18446744073709551615",
    ] {
        let line = format!("tpc-launch-dump 1 {lengths} {zeros}\n");
        let e = parse(line.into_bytes()).expect_err(lengths);
        assert!(matches!(e, DumpError::TooLong { .. }), "{e}");
    }
}
