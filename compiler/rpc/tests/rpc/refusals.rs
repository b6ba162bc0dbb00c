use tpc_rpc::Version;

use super::support::{BASE, MEMORY, Wire, compute_as, conversation, graph, message, talk};

const V: Version = Version::V8;

/// Returns the refusal of `sent` after the first `n` messages: code and text.
fn refusal(n: usize, sent: &[u8]) -> (String, String) {
    let mut all = conversation(V)[..n].concat();
    all.extend(sent);
    let refusal = talk(V, &all).0.expect_err("a refusal");
    let d = refusal.diagnostic("client 1", V);
    (d.code.id.to_owned(), d.message.to_string())
}

fn code(n: usize, sent: &[u8]) -> String {
    refusal(n, sent).0
}

/// The number of messages up to the first allocation.
const READY: usize = 9;

#[test]
fn other_protocols() {
    assert_eq!(code(0, b"GET / HTTP/1.1\r\n"), "TPC0750");
    assert_eq!(code(0, &message(15, &[])), "TPC0750");
    assert_eq!(code(1, &message(14, &[&[0; 24]])), "TPC0750");
    assert_eq!(code(0, &message(14, &[&[0; 25]])), "TPC0750");
    assert_eq!(code(1, &message(11, &[&1_u32.to_le_bytes()])), "TPC0750");
    assert_eq!(code(1, &message(16, &[&[0; 12]])), "TPC0754");
    let mut long = message(6, &[&[0; 400]]);
    long[1..9].copy_from_slice(&(MEMORY * 2).to_le_bytes());
    assert_eq!(code(1, &long), "TPC0753");
}

#[test]
fn tensors_that_ggml_does_not_have() {
    let good = Wire::new(1, [8, 2, 1, 1], 0, "x");
    let set = |w: &Wire| message(6, &[&w.bytes(), &[0; 9], &[0; 4]]);
    let unknown = Wire {
        dtype: 4,
        ..good.clone()
    };
    let (id, text) = refusal(READY, &set(&unknown));
    assert_eq!((id.as_str(), text.contains("\"x\"")), ("TPC0751", true));
    assert_eq!(
        code(
            READY,
            &set(&Wire {
                op: 102,
                ..good.clone()
            })
        ),
        "TPC0751"
    );
    assert_eq!(
        code(
            READY,
            &set(&Wire {
                ne: [u32::MAX; 4],
                ..good.clone()
            })
        ),
        "TPC0751"
    );
    let rows = Wire {
        dtype: 8,
        ne: [33, 1, 1, 1],
        ..good.clone()
    };
    assert_eq!(code(READY, &set(&rows)), "TPC0751");
    assert_eq!(
        code(
            READY,
            &set(&Wire {
                data: u64::MAX - 3,
                ..good
            })
        ),
        "TPC0751"
    );
}

#[test]
fn memory_of_others() {
    let n = |n: u64| n.to_le_bytes();
    let x = Wire::new(1, [8, 2, 1, 1], 0, "x");
    assert_eq!(code(READY, &message(4, &[&n(BASE + 4096)])), "TPC0752");
    assert_eq!(code(READY, &message(3, &[&n(0)])), "TPC0752");
    let get = |w: &Wire, at: u64, size: u64| message(8, &[&w.bytes(), &n(at), &n(size)]);
    assert_eq!(code(READY, &get(&x, 4095, 2)), "TPC0752");
    assert_eq!(code(READY, &get(&x, u64::MAX, 2)), "TPC0752");
    let behind = Wire::new(1, [8, 2, 1, 1], 4096 - 60, "x");
    assert_eq!(code(READY, &get(&behind, 0, 1)), "TPC0752");
    let before = Wire {
        data: BASE - 4,
        ..x.clone()
    };
    assert_eq!(code(READY, &get(&before, 0, 1)), "TPC0752");
    let mut freed = message(4, &[&n(BASE)]);
    freed.extend(get(&x, 0, 1));
    assert_eq!(code(READY, &freed), "TPC0752");
}

#[test]
fn graphs_that_are_none() {
    let x = Wire::new(1, [8, 2, 1, 1], 0, "x");
    let y = Wire::new(2, [8, 2, 1, 1], 128, "y").op(9, &[1]);
    let z = Wire::new(3, [8, 2, 1, 1], 256, "z").op(9, &[2]);
    let compute = |nodes: &[u64], tensors: &[Wire]| compute_as(V, 1, nodes, tensors);
    let all = [x.clone(), y.clone(), z.clone()];
    assert!(
        talk(
            V,
            &[conversation(V)[..READY].concat(), compute(&[2, 3], &all)].concat()
        )
        .0
        .is_ok()
    );
    assert_eq!(code(READY, &compute(&[3, 2], &all)), "TPC0754");
    assert_eq!(code(READY, &compute(&[2, 2], &all)), "TPC0754");
    assert_eq!(code(READY, &compute(&[2, 4], &all)), "TPC0754");
    assert_eq!(
        code(READY, &compute(&[2], &[x.clone(), y.clone(), x.clone()])),
        "TPC0754"
    );
    assert_eq!(
        code(READY, &compute(&[3], &[y.clone(), z.clone()])),
        "TPC0754"
    );
    let circle = Wire {
        view_src: 2,
        ..y.clone()
    };
    assert_eq!(code(READY, &compute(&[2], &[x.clone(), circle])), "TPC0754");
    let itself = y.op(9, &[2]);
    assert_eq!(code(READY, &compute(&[2], &[x, itself])), "TPC0754");
    let mut many = graph(&[], &[]);
    many[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(code(READY, &message(10, &[&[0; 12], &many])), "TPC0753");
    many[..4].copy_from_slice(&1000_u32.to_le_bytes());
    assert_eq!(code(READY, &message(10, &[&[0; 12], &many])), "TPC0750");
}

#[test]
fn too_many_buffers() {
    let one = message(0, &[&[0; 4], &0_u64.to_le_bytes()]);
    assert_eq!(code(1, &one.repeat(5000)), "TPC0753");
}
