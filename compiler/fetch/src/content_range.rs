/// A `Content-Range` such as `bytes 0-1023/4096`: first byte, last byte, and total length if known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContentRange {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) whole: Option<u64>,
}

impl ContentRange {
    pub(super) fn parse(text: &str) -> Option<ContentRange> {
        let rest = text.trim().strip_prefix("bytes")?.trim_start();
        let (range, whole) = rest.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let number = |t: &str| t.trim().parse::<u64>().ok();
        let whole = match whole.trim() {
            "*" => None,
            n => Some(number(n)?),
        };
        let (first, last) = (number(first)?, number(last)?);
        let sound = first <= last && whole.is_none_or(|w| last < w);
        sound.then_some(ContentRange { first, last, whole })
    }
}
