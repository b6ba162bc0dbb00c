//! Public reports against ggml's own server, and defects of its kind. Each message is refused by name, leaves memory as
//! it was, and closes only its own connection. Numbers are issues of ggml-org/llama.cpp.

use std::sync::Arc;

use tpc_rpc::{Device, Limits, Pool, Version, serve};

use super::support::{
    BASE, Bytes, MEMORY, Wire, Wires, compute_as, conversation, message, recompute_as, replies,
};

const V: Version = Version::V8;

/// The messages up to the end of the allocation, and the contents of a tensor.
fn ready() -> (Vec<u8>, Wire, Vec<u8>) {
    let x = Wire::new(1, [8, 2, 1, 1], 0, "x");
    let data: Vec<u8> = (0..64).collect();
    let mut sent = conversation(V)[..6].concat();
    sent.extend(message(6, &[&x.bytes(), &[0], &[0; 8], &data]));
    (sent, x, data)
}

fn get(x: &Wire) -> Vec<u8> {
    message(8, &[&x.bytes(), &[0; 8], &64_u64.to_le_bytes()])
}

/// Sends `bad` on its own connection, with another connection before and after. Returns code and text of the refusal.
#[track_caller]
fn refused(bad: &[u8]) -> (String, String) {
    let device = Bytes::default();
    let pool = Arc::new(Pool::new(2 * MEMORY));
    let talk = |sent: &[u8]| {
        let mut got = Vec::new();
        let stream = Wires::new(sent, &mut got);
        let rules = (V, Limits::new(2 * MEMORY));
        let end = serve(stream, device.connect(), Arc::clone(&pool), rules);
        (end, got)
    };
    let (sent, x, data) = ready();
    let good = [sent.clone(), get(&x)].concat();
    let own = [sent.clone(), bad.to_vec(), get(&x)].concat();
    let (end, got) = talk(&own);
    let d = end.expect_err("a refusal").diagnostic("client 1", V);
    // The server does not answer after the bad message.
    assert_eq!(replies(&got).len(), 6, "{}", d.message);
    let (end, got) = talk(&good);
    end.expect("another connection goes on");
    assert!(replies(&got).last() == Some(&&data[..]));
    assert_eq!(pool.free(), 2 * MEMORY, "memory is given back");
    (d.code.id.to_owned(), d.message.to_string())
}

#[track_caller]
fn expect(bad: &[u8], code: &str, text: &str) {
    let (found, message) = refused(bad);
    assert_eq!(found, code, "{message}");
    assert!(message.contains(text), "{message}");
}

fn graph(nodes: &[u64], tensors: &[Wire]) -> Vec<u8> {
    compute_as(V, 1, nodes, tensors)
}

fn x() -> Wire {
    Wire::new(1, [8, 2, 1, 1], 0, "x")
}

/// Numbers of ops in version 8.
const ADD: u32 = 2;
const ACC: u32 = 5;
const SET: u32 = 33;
const VIEW: u32 = 37;
const GET_ROWS: u32 = 40;
const SET_ROWS: u32 = 42;
const GATED_DELTA_NET: u32 = 86;
const MAP_CUSTOM1: u32 = 93;
const CUSTOM: u32 = 96;
const I32: u32 = 26;

/// 25289: parameters that are the address of a function.
#[test]
fn functions_of_the_client() {
    for op in MAP_CUSTOM1..=CUSTOM {
        let mut y = Wire::new(2, [8, 2, 1, 1], 128, "y").op(op, &[1]);
        y.params = [0x4141_4141; 16];
        expect(&graph(&[2], &[x(), y.clone()]), "TPC0751", "CUSTOM");
        let set = message(6, &[&y.bytes(), &[0; 9], &[0; 4]]);
        expect(&set, "TPC0751", "calls a function");
    }
}

/// 24292 and 25703: a stored graph whose memory was freed.
#[test]
fn graphs_over_freed_memory() {
    let y = Wire::new(2, [8, 2, 1, 1], 128, "y").op(ADD, &[1, 1]);
    let stored = graph(&[2], &[x(), y]);
    let freed = message(4, &[&BASE.to_le_bytes()]);
    let again = recompute_as(V, 1);
    expect(
        &[stored.clone(), freed.clone(), again.clone()].concat(),
        "TPC0754",
        "freed",
    );
    // The address of a freed buffer does not come back.
    let other = message(0, &[&[0; 4], &4096_u64.to_le_bytes()]);
    let (code, _) = refused_after_another_buffer(&[stored, freed, other, again].concat());
    assert_eq!(code, "TPC0754");
}

#[track_caller]
fn refused_after_another_buffer(bad: &[u8]) -> (String, String) {
    let (sent, ..) = ready();
    let (end, _) = super::support::talk(V, &[sent, bad.to_vec()].concat());
    let d = end.expect_err("a refusal").diagnostic("client 1", V);
    (d.code.id.to_owned(), d.message.to_string())
}

/// 26825: ids for two batches of a table with one.
#[test]
fn get_rows_of_batches_that_are_not_there() {
    let ids = Wire {
        dtype: I32,
        ..Wire::new(3, [1, 2, 1, 1], 256, "ids")
    };
    let y = Wire::new(2, [8, 1, 2, 1], 128, "leak").op(GET_ROWS, &[1, 3]);
    expect(
        &graph(&[2], &[x(), ids, y]),
        "TPC0754",
        "GET_ROWS \"leak\": ids of [1, 2, 1, 1]",
    );
}

/// 26912: rows for two batches of a target with one.
#[test]
fn set_rows_of_batches_that_are_not_there() {
    let rows = Wire::new(2, [8, 1, 2, 1], 128, "rows");
    let ids = Wire {
        dtype: I32,
        ..Wire::new(3, [1, 1, 1, 1], 256, "ids")
    };
    let y = Wire {
        view_src: 1,
        ..Wire::new(4, [8, 2, 1, 1], 0, "y").op(SET_ROWS, &[2, 3, 1])
    };
    expect(
        &graph(&[4], &[x(), rows, ids, y]),
        "TPC0754",
        "SET_ROWS \"y\": rows of [8, 1, 2, 1]",
    );
}

/// 25288: rows that are not whole blocks.
#[test]
fn rows_of_partial_blocks() {
    let q = Wire {
        dtype: 8,
        ne: [33, 1, 1, 1],
        ..x()
    };
    expect(&message(12, &[&q.bytes()]), "TPC0751", "not whole blocks");
}

/// 25704: a number of states that the result has no room for.
#[test]
fn more_states_than_the_result_holds() {
    let v = Wire::new(2, [4, 2, 3, 1], 0, "v");
    let gate = Wire::new(3, [1, 2, 3, 1], 256, "gate");
    let state = Wire::new(4, [4, 4, 2, 1], 512, "state");
    let mut y = Wire::new(5, [8, 7, 1, 1], 1024, "y").op(GATED_DELTA_NET, &[2, 2, 2, 3, 3, 4]);
    y.params[0] = 100;
    expect(
        &graph(&[5], &[v, gate, state, y]),
        "TPC0754",
        "GATED_DELTA_NET \"y\"",
    );
}

/// 25764: strides in parameters that leave the target.
#[test]
fn parts_beyond_their_target() {
    let part = Wire::new(2, [2, 2, 1, 1], 128, "part");
    for op in [ACC, SET] {
        for params in [[-32, 64, 64, 32], [32, 64, 64, 60], [i32::MAX, 64, 64, 0]] {
            let mut y = Wire::new(3, [8, 2, 1, 1], 256, "y").op(op, &[1, 2]);
            y.params[..4].copy_from_slice(&params);
            let (code, text) = refused(&graph(&[3], &[x(), part.clone(), y]));
            assert_eq!(code, "TPC0754", "{text}");
        }
    }
}

/// 20908, CVE-2026-34159: an address without a buffer.
#[test]
fn addresses_without_a_buffer() {
    let wild = Wire {
        buffer: 0,
        data: 0x7fff_0000_0000,
        ..x()
    };
    expect(
        &message(8, &[&wild.bytes(), &[0; 8], &[4, 0, 0, 0, 0, 0, 0, 0]]),
        "TPC0751",
        "without a buffer",
    );
    let y = Wire::new(2, [8, 2, 1, 1], 128, "y").op(ADD, &[1, 1]);
    expect(&graph(&[2], &[wild, y]), "TPC0751", "without a buffer");
}

/// The server of llama.cpp 0.8.0 indexes its table of names with the op of a bad tensor.
#[test]
fn ops_beyond_the_table() {
    let odd = Wire {
        op: 0x7fff_ffff,
        data: BASE + (1 << 30),
        ..x()
    };
    expect(
        &message(6, &[&odd.bytes(), &[0; 9], &[0; 4]]),
        "TPC0751",
        "unknown op",
    );
}

/// A name of 64 bytes has no end.
#[test]
fn names_without_an_end() {
    let mut bytes = x().bytes();
    bytes[228..292].fill(b'n');
    bytes[8..12].copy_from_slice(&4_u32.to_le_bytes());
    expect(&message(12, &[&bytes]), "TPC0751", &"n".repeat(64));
}

/// The server of llama.cpp 0.8.0 computes node 0, which is a null pointer.
#[test]
fn the_node_that_is_no_tensor() {
    expect(&graph(&[0], &[x()]), "TPC0754", "not in the message");
}

/// The server of llama.cpp 0.8.0 calls itself once per source.
#[test]
fn long_chains_do_not_overflow_the_stack() {
    let step = |id: u64| Wire::new(id, [8, 2, 1, 1], 0, "y").op(11, &[id - 1]);
    let mut tensors = vec![x()];
    tensors.extend((2..100_002).map(step));
    let nodes: Vec<u64> = (2..100_002).collect();
    let (sent, ..) = ready();
    let (end, _) = super::support::talk(V, &[sent, graph(&nodes, &tensors)].concat());
    end.expect("a chain is a graph");
    // A circle is not.
    tensors[1].src[0] = 100_001;
    expect(
        &graph(&nodes, &tensors),
        "TPC0754",
        "before one of its sources",
    );
}

/// A view of another tensor's memory, beyond its end.
#[test]
fn views_beyond_the_memory_that_they_view() {
    let of = |offset: u64, ne: [u32; 4]| Wire {
        view_src: 1,
        ..Wire::new(2, ne, offset, "seen").op(VIEW, &[1])
    };
    for (offset, ne) in [(64, [1, 1, 1, 1]), (32, [9, 1, 1, 1]), (0, [8, 3, 1, 1])] {
        let (code, text) = refused(&graph(&[2], &[x(), of(offset, ne)]));
        assert_eq!(
            (code.as_str(), text.contains("beyond")),
            ("TPC0754", true),
            "{text}"
        );
    }
}

/// The server of llama.cpp 0.8.0 answers 256 MiB for 4 bytes of tensor at stride 0.
#[test]
fn pieces_that_overlap_or_leave_the_tensor() {
    let n = |n: u64| n.to_le_bytes();
    let two = |[offset, size, count, stride]: [u64; 4]| {
        [n(offset), n(size), n(count), n(stride)].concat()
    };
    let wrong = [
        ([0, 4, 1 << 26, 0], "TPC0750"),
        ([0, 4, 2, 3], "TPC0750"),
        ([0, 0, 2, 4], "TPC0750"),
        ([0, 4, 0, 4], "TPC0750"),
        ([0, 4, 2, 64], "TPC0752"),
        ([61, 4, 1, 0], "TPC0752"),
        ([0, 4, u64::MAX, u64::MAX], "TPC0752"),
        ([u64::MAX, 1, 1, 1], "TPC0752"),
        ([0, u64::MAX, 1, 0], "TPC0752"),
        ([0, 8, 1 << 61, 8], "TPC0752"),
    ];
    for (fields, code) in wrong {
        let (found, text) = refused(&message(19, &[&x().bytes(), &two(fields)]));
        assert_eq!(found, code, "{fields:?}: {text}");
    }
    // The data must be exactly the pieces, also if the product wraps.
    for (fields, data) in [([0, 4, 2, 32], 7), ([0, 1 << 32, 1 << 32, 1 << 32], 0)] {
        let sent = message(18, &[&x().bytes(), &two(fields), &vec![0; data]]);
        expect(&sent, "TPC0750", "SET_TENSOR_2D has");
    }
}

/// Every stride from 0 to 4 GiB, at the edges and between them: reads stay within the tensor.
#[test]
fn pieces_at_every_stride() {
    let n = |n: u64| n.to_le_bytes();
    let (sent, x, data) = ready();
    let strides = (0..=80).chain((0..=32).flat_map(|i| [(1 << i) - 1, 1 << i, (1 << i) + 1]));
    for stride in strides {
        for (size, count) in [(1, 2), (4, 3), (8, 8), (32, 2)] {
            let head = [n(0), n(size), n(count), n(stride)].concat();
            let all = [sent.clone(), message(19, &[&x.bytes(), &head])].concat();
            let (end, got) = super::support::talk(V, &all);
            let fits = stride >= size && (count - 1) * stride + size <= 64;
            assert_eq!(end.is_ok(), fits, "stride {stride}, {count} of {size}");
            if fits {
                let piece = |i: u64| &data[(i * stride) as usize..][..size as usize];
                let expected: Vec<u8> = (0..count).flat_map(piece).copied().collect();
                assert_eq!(replies(&got).last(), Some(&&expected[..]));
            }
        }
    }
}

/// A server that a client tells to connect elsewhere is a way through firewalls. tpc declines, and goes on.
#[test]
fn connections_to_other_hosts_are_declined() {
    let (sent, x, data) = ready();
    let mut request = [0; 80];
    request[16..30].copy_from_slice(b"192.168.1.1\0\0\0");
    let all = [sent, message(20, &[&request]), get(&x)].concat();
    let (end, got) = super::support::talk(V, &all);
    end.expect("a refusal in words of the protocol");
    let got = replies(&got);
    assert_eq!(got[got.len() - 2..], [&[0][..], &data[..]]);
    expect(
        &message(21, &[&[0; 4], &x.bytes()]),
        "TPC0750",
        "refused COMM_INIT",
    );
    expect(&message(22, &[&[0; 4]]), "TPC0750", "refused COMM_INIT");
}

/// A tensor reaches only its own bytes, not its neighbours in the buffer.
#[test]
fn neighbours_in_a_buffer() {
    let n = |n: u64| n.to_le_bytes();
    let head = [n(60), n(8)].concat();
    expect(
        &message(8, &[&x().bytes(), &head]),
        "TPC0752",
        "not within the 64 bytes",
    );
    let set = message(6, &[&x().bytes(), &[0], &n(60), &[0; 8]]);
    expect(&set, "TPC0752", "not within the 64 bytes");
    expect(
        &message(17, &[&x().bytes(), &head, &[1]]),
        "TPC0752",
        "not within the 64 bytes",
    );
}
