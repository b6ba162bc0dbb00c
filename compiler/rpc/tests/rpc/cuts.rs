use tpc_rpc::{Refusal, Version};

use super::support::{conversation, talk};

#[test]
fn a_connection_may_be_cut_at_every_byte() {
    for version in Version::ALL {
        cut(version);
    }
}

fn cut(version: Version) {
    let messages = conversation(version);
    let whole = messages.concat();
    let mut ends = std::collections::BTreeSet::new();
    let mut at = 0;
    for m in &messages {
        ends.insert(at);
        at += m.len();
    }
    ends.insert(at);
    for cut in 0..=whole.len() {
        let (end, _) = talk(version, &whole[..cut]);
        match end {
            Ok(_) => assert!(ends.contains(&cut), "byte {cut} is within a message"),
            Err(Refusal::Lost(_)) => assert!(!ends.contains(&cut), "byte {cut} ends a message"),
            Err(e) => panic!("byte {cut}: {e}"),
        }
    }
}
