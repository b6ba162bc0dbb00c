use super::support::{conversation, message, talk};
use tpc_ir::random::SplitMix64;
use tpc_rpc::Version;

struct Random(SplitMix64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    fn edge(&mut self) -> u64 {
        let edges = [
            0,
            1,
            2,
            7,
            127,
            128,
            255,
            1 << 16,
            1 << 20,
            1 << 31,
            1 << 32,
            1 << 40,
            1 << 63,
            u64::MAX,
        ];
        edges[self.below(edges.len())]
            .wrapping_add(self.0.next_u64() % 3)
            .wrapping_sub(1)
    }
}

fn mutate(random: &mut Random, messages: &mut Vec<Vec<u8>>) {
    let at = random.below(messages.len());
    let len = messages[at].len();
    match random.below(7) {
        0 => {
            let byte = random.below(len);
            messages[at][byte] ^= 1 << random.below(8);
        }
        1 | 2 => {
            let first = 9 + 4 * random.below(len / 4);
            for (to, from) in messages[at]
                .iter_mut()
                .skip(first)
                .zip(random.edge().to_le_bytes())
            {
                *to = from;
            }
        }
        3 => {
            messages.remove(at);
        }
        4 => {
            let again = messages[at].clone();
            let to = random.below(messages.len());
            messages.insert(to, again);
        }
        5 => {
            let keep = 9.min(len) + random.below(len);
            let payload = messages[at]
                .get(9..keep.min(len))
                .unwrap_or_default()
                .to_vec();
            messages[at] = message(messages[at][0], &[&payload]);
        }
        _ => messages[at][0] = random.below(26) as u8,
    }
}

#[test]
fn no_message_does_harm() {
    let cases = std::env::var("TPC_CASES").ok().and_then(|n| n.parse().ok());
    for version in Version::ALL {
        let mut random = Random(SplitMix64::new(1));
        let (mut served, mut refused) = (0_u32, 0_u32);
        for _ in 0..cases.unwrap_or(10_000) {
            let mut messages = conversation(version);
            for _ in 0..=random.below(3) {
                mutate(&mut random, &mut messages);
            }
            match talk(version, &messages.concat()).0 {
                Ok(_) => served += 1,
                Err(_) => refused += 1,
            }
        }
        // Some changes remain valid.
        assert!(
            refused > served && served > 0,
            "{version}: {served} served, {refused} refused"
        );
    }
}
