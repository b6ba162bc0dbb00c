//! The turns of a conversation, which follow the session in its file.
//!
//! | part | content |
//! |---|---|
//! | session | the bytes of [`Session::save`](tpc_runtime::Session::save) |
//! | turns | a JSON array of roles and texts |
//! | end | the array's length and [`Checksum`] (u64 each), then `tpcturns` |
//!
//! A file of plain text holds only the session.

use tpc_runtime::Checksum;
use tpc_text::Message;

const MAGIC: &[u8; 8] = b"tpcturns";
const END: usize = 24;

pub(super) fn encode(turns: &[Message]) -> Vec<u8> {
    let turns: Vec<[&str; 2]> = turns
        .iter()
        .map(|m| [m.role.as_str(), m.content.as_str()])
        .collect();
    let mut out = serde_json::to_vec(&turns).unwrap_or_default();
    let (n, sum) = (out.len() as u64, Checksum::of(&out));
    out.extend_from_slice(&n.to_le_bytes());
    out.extend_from_slice(&sum.to_le_bytes());
    out.extend_from_slice(MAGIC);
    out
}

/// Splits a file into session and turns. If the end is missing or damaged, all bytes are the session. Its checksum then
/// detects the damage.
pub(super) fn split(bytes: &[u8]) -> (&[u8], Option<Vec<Message>>) {
    parse(bytes).map_or((bytes, None), |(session, turns)| (session, Some(turns)))
}

fn parse(bytes: &[u8]) -> Option<(&[u8], Vec<Message>)> {
    let (body, end) = bytes.split_at_checked(bytes.len().checked_sub(END)?)?;
    let number = |at: usize| {
        let bytes = end.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let n = usize::try_from(number(0)?).ok()?;
    let (session, turns) = body.split_at_checked(body.len().checked_sub(n)?)?;
    if end.get(16..)? != MAGIC || number(8)? != Checksum::of(turns) {
        return None;
    }
    let turns: Vec<[String; 2]> = serde_json::from_slice(turns).ok()?;
    let turns = turns
        .into_iter()
        .map(|[role, content]| Message { role, content });
    Some((session, turns.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_restores_encoded_turns() {
        let turns = [
            Message::new("user", "tpcturns \"\n"),
            Message::new("assistant", "ä"),
        ];
        let session = b"a session".to_vec();
        let file = [session.clone(), encode(&turns)].concat();
        assert_eq!(split(&file), (&session[..], Some(turns.to_vec())));
        assert_eq!(split(&session), (&session[..], None));
        for n in 0..file.len() {
            assert_eq!(split(&file[..n]), (&file[..n], None), "cut at {n}");
        }
        for at in session.len()..file.len() {
            let mut bad = file.clone();
            bad[at] ^= 1;
            assert_eq!(split(&bad).1, None, "{at}");
        }
    }
}
