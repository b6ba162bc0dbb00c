use super::support::{BASE, MEMORY, conversation, replies, talk};

#[test]
fn every_command_is_answered() {
    let (end, got) = talk(&conversation().concat());
    end.expect("a conversation without faults");
    let got = replies(&got);
    let number = |n: u64| n.to_le_bytes().to_vec();
    let mut hello = vec![7, 0, 0, 0];
    hello.extend([0; 24]);
    let read: Vec<u8> = (8..24).collect();
    let memory = [number(MEMORY), number(MEMORY)].concat();
    let expected = [
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
    assert_eq!(got, expected);
}

#[test]
fn memory_that_is_not_there_has_no_name() {
    let n = |n: u64| n.to_le_bytes();
    let mut sent = conversation()[0].clone();
    sent.extend(super::support::message(0, &[&[0; 4], &n(MEMORY + 1)]));
    sent.extend(super::support::message(0, &[&[0; 4], &n(u64::MAX)]));
    sent.extend(super::support::message(0, &[&[0; 4], &n(MEMORY)]));
    let (end, got) = talk(&sent);
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
