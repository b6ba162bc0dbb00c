use tpc_rpc::{End, Version};

use super::support::{
    BASE, MEMORY, Wire, compute_as, conversation, message, recompute_as, replies, talk,
};

fn number(n: u64) -> Vec<u8> {
    n.to_le_bytes().to_vec()
}

#[test]
fn every_command_is_answered() {
    for version in Version::ALL {
        let (end, got) = talk(version, &conversation(version).concat());
        assert_eq!(end.expect("a conversation without faults"), End::Closed);
        let got = replies(&got);
        let mut hello = [&version.numbers()[..], &[0]].concat();
        hello.extend([0; 24]);
        let read: Vec<u8> = (8..24).collect();
        let memory = [number(MEMORY), number(MEMORY)].concat();
        let mut expected = vec![
            hello,
            vec![1, 0, 0, 0],
            memory,
            number(128),
            number(MEMORY),
            [number(BASE), number(4096)].concat(),
            number(BASE),
            number(64),
            vec![0],
            vec![1],
            read,
            vec![7; 64],
        ];
        if version == Version::V8 {
            expected.push(vec![1; 16]);
            expected.push(vec![0]);
        }
        assert_eq!(got, expected);
    }
}

#[test]
fn versions_are_those_of_the_releases() {
    assert_eq!(Version::V7.numbers(), [7, 0, 0]);
    assert_eq!(Version::V8.numbers(), [8, 0, 1]);
    assert_eq!(Version::from_major(8), Some(Version::V8));
    assert_eq!(Version::from_major(6), None);
}

#[test]
fn a_client_of_another_version_leaves_after_the_greeting() {
    for version in Version::ALL {
        let hello = conversation(version)[0].clone();
        let (end, _) = talk(version, &hello);
        assert_eq!(end.expect("a greeting"), End::AfterGreeting);
        let (end, _) = talk(version, &[]);
        assert_eq!(end.expect("a client that says nothing"), End::Closed);
    }
}

#[test]
fn memory_that_is_not_there_has_no_name() {
    let n = |n: u64| n.to_le_bytes();
    let mut sent = conversation(Version::V8)[0].clone();
    sent.extend(message(0, &[&[0; 4], &n(MEMORY + 1)]));
    sent.extend(message(0, &[&[0; 4], &n(u64::MAX)]));
    sent.extend(message(0, &[&[0; 4], &n(MEMORY)]));
    let (end, got) = talk(Version::V8, &sent);
    end.expect("a device may be full");
    assert_eq!(
        replies(&got)[1..],
        [
            [n(0), n(0)].concat(),
            [n(0), n(0)].concat(),
            [n(BASE), n(MEMORY)].concat()
        ]
    );
}

/// Pieces may be far apart: a column of a matrix, and one piece that is the whole tensor.
#[test]
fn pieces_are_written_and_read_at_their_stride() {
    let n = |n: u64| n.to_le_bytes();
    let x = Wire::new(1, [8, 2, 1, 1], 0, "x");
    let transfer = |command, [offset, size, count, stride]: [u64; 4], data: &[u8]| {
        let head = [n(offset), n(size), n(count), n(stride)].concat();
        message(command, &[&x.bytes(), &head, data])
    };
    let whole = message(8, &[&x.bytes(), &n(0), &n(64)]);
    let mut sent = conversation(Version::V8)[..6].concat();
    sent.extend(transfer(18, [8, 4, 2, 32], &[1, 2, 3, 4, 5, 6, 7, 8]));
    sent.extend(&whole);
    sent.extend(transfer(19, [8, 4, 2, 32], &[]));
    // The server ignores the stride of a single piece.
    sent.extend(transfer(18, [0, 64, 1, 0], &[9; 64]));
    sent.extend(transfer(19, [60, 4, 1, u64::MAX], &[]));
    sent.extend(&whole);
    let (end, got) = talk(Version::V8, &sent);
    end.expect("transfers within the tensor");
    let got = replies(&got);
    let mut expected = [0; 64];
    expected[8..12].copy_from_slice(&[1, 2, 3, 4]);
    expected[40..44].copy_from_slice(&[5, 6, 7, 8]);
    let own: [&[u8]; 4] = [&expected, &[1, 2, 3, 4, 5, 6, 7, 8], &[9; 4], &[9; 64]];
    assert_eq!(got[got.len() - 4..], own);
}

/// A transfer larger than one chunk arrives whole, with pieces across the chunks' ends.
#[test]
fn transfers_of_any_length_arrive_whole() {
    let n = |n: u64| n.to_le_bytes();
    // Rows of 7 floats, of which 5 are sent.
    let x = Wire::new(1, [7, 30_000, 1, 1], 0, "x");
    let head = [n(4), n(20), n(30_000), n(28)].concat();
    let data: Vec<u8> = (0..600_000_u32).map(|i| (i % 251) as u8).collect();
    let mut sent = conversation(Version::V8)[0].clone();
    sent.extend(message(0, &[&[0; 4], &n(840_000)]));
    sent.extend(message(18, &[&x.bytes(), &head, &data]));
    sent.extend(message(19, &[&x.bytes(), &head]));
    let (end, got) = talk(Version::V8, &sent);
    end.expect("a transfer within the tensor");
    assert!(replies(&got).last() == Some(&&data[..]));
}

/// Several graphs are stored, and client and server forget all of them before they store number 1025.
#[test]
fn graphs_are_stored_by_number() {
    let x = Wire::new(1, [8, 2, 1, 1], 0, "x");
    let y = Wire::new(2, [8, 2, 1, 1], 128, "y").op(9, &[1]);
    let v = Version::V8;
    let graph = |uid| compute_as(v, uid, &[2], &[x.clone(), y.clone()]);
    let ready = conversation(v)[..9].concat();
    let ends = |parts: &[Vec<u8>]| talk(v, &[ready.clone(), parts.concat()].concat()).0;
    let code = |parts: &[Vec<u8>]| match ends(parts) {
        Ok(_) => "served".to_owned(),
        Err(e) => e.diagnostic("client 1", v).code.id.to_owned(),
    };
    let again = |uid| recompute_as(v, uid);
    assert_eq!(
        code(&[graph(5), graph(6), again(5), again(6), again(5)]),
        "served"
    );
    assert_eq!(code(&[graph(5), again(6)]), "TPC0754");
    // Number 0 is not stored.
    assert_eq!(code(&[graph(0), again(0)]), "TPC0754");
    let many: Vec<Vec<u8>> = (1..=1024).map(graph).collect();
    assert_eq!(code(&[many.concat(), again(1), again(1024)]), "served");
    assert_eq!(code(&[many.concat(), graph(1025), again(1025)]), "served");
    assert_eq!(code(&[many.concat(), graph(1025), again(1024)]), "TPC0754");
    // A graph cannot use memory that was freed after the graph was stored.
    let freed = message(4, &[&BASE.to_le_bytes()]);
    assert_eq!(code(&[graph(5), freed.clone(), again(5)]), "TPC0754");
    assert_eq!(
        code(&[graph(5), freed, message(0, &[&[0; 4], &[0; 8]]), again(5)]),
        "TPC0754"
    );
}
