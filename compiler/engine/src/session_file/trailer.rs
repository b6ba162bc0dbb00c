//! Parts that follow the session in its file.
//!
//! | part | content |
//! |---|---|
//! | payload | the bytes of the part |
//! | end | the payload's length and [`Checksum`] (u64 each), then eight bytes that name the part |

use tpc_runtime::Checksum;

const END: usize = 24;

pub(super) fn encode(name: &[u8; 8], mut payload: Vec<u8>) -> Vec<u8> {
    let (n, sum) = (payload.len() as u64, Checksum::of(&payload));
    payload.extend_from_slice(&n.to_le_bytes());
    payload.extend_from_slice(&sum.to_le_bytes());
    payload.extend_from_slice(name);
    payload
}

/// Returns the bytes before the last part, and its payload. `None` if the last part has another name or is damaged.
pub(super) fn split<'a>(name: &[u8; 8], bytes: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (body, end) = bytes.split_at_checked(bytes.len().checked_sub(END)?)?;
    let number = |at: usize| {
        let bytes = end.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let n = usize::try_from(number(0)?).ok()?;
    let (rest, payload) = body.split_at_checked(body.len().checked_sub(n)?)?;
    let whole = end.get(16..)? == name && number(8)? == Checksum::of(payload);
    whole.then_some((rest, payload))
}
