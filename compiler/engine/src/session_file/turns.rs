//! The turns of a conversation, which follow the session in its file.
//!
//! They are a JSON array of roles and texts. A session of plain text is saved without them.

use tpc_text::Message;

use super::trailer;

const NAME: &[u8; 8] = b"tpcturns";

pub(super) fn encode(turns: &[Message]) -> Vec<u8> {
    let turns: Vec<[&str; 2]> = turns
        .iter()
        .map(|m| [m.role.as_str(), m.content.as_str()])
        .collect();
    trailer::encode(NAME, serde_json::to_vec(&turns).unwrap_or_default())
}

/// Splits a file into session and turns. If the end is missing or damaged, all bytes are the session. Its checksum then
/// detects the damage.
pub(super) fn split(bytes: &[u8]) -> (&[u8], Option<Vec<Message>>) {
    parse(bytes).map_or((bytes, None), |(session, turns)| (session, Some(turns)))
}

fn parse(bytes: &[u8]) -> Option<(&[u8], Vec<Message>)> {
    let (session, turns) = trailer::split(NAME, bytes)?;
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
