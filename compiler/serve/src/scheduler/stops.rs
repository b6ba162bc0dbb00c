/// Finds stop texts in a text that arrives in pieces. Holds back text that may become a stop text.
#[derive(Clone, Debug, Default)]
pub(super) struct StopMatcher {
    stops: Vec<String>,
    held: String,
}

/// The result of a piece of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// The text goes on. The string is the text that no stop text can contain.
    Open(String),
    /// A stop text was found. The first string is the text before it.
    At(String, String),
}

impl StopMatcher {
    /// Creates a matcher. Ignores empty stop texts.
    pub(super) fn new(stops: Vec<String>) -> StopMatcher {
        StopMatcher {
            stops: stops.into_iter().filter(|s| !s.is_empty()).collect(),
            held: String::new(),
        }
    }

    /// Appends a piece of text.
    pub(super) fn push(&mut self, text: &str) -> Stopped {
        self.held.push_str(text);
        // The earliest match counts; of matches at one place, the one that ends first.
        let found = self.stops.iter().filter_map(|stop| {
            let at = self.held.find(stop.as_str())?;
            Some((at, stop.len(), stop))
        });
        if let Some((at, _, stop)) = found.min_by_key(|(at, len, _)| (*at, *len)) {
            let stop = stop.clone();
            self.held.truncate(at);
            return Stopped::At(std::mem::take(&mut self.held), stop);
        }
        let kept = self.stops.iter().map(|stop| overlap(&self.held, stop));
        let kept = kept.max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - kept);
        Stopped::Open(std::mem::replace(&mut self.held, rest))
    }

    /// Returns the text held back, at the end of the answer.
    pub(super) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// Returns the length of the longest end of `text` that begins `stop`.
fn overlap(text: &str, stop: &str) -> usize {
    let most = text.len().min(stop.len().saturating_sub(1));
    let bounds = (1..=most).rev().filter(|n| stop.is_char_boundary(*n));
    bounds
        .into_iter()
        .find(|&n| text.ends_with(&stop[..n]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], pieces: &[&str]) -> (String, Option<String>) {
        let mut matcher = StopMatcher::new(stops.iter().map(|s| (*s).to_owned()).collect());
        let mut out = String::new();
        for piece in pieces {
            match matcher.push(piece) {
                Stopped::Open(text) => out.push_str(&text),
                Stopped::At(text, stop) => return (out + &text, Some(stop)),
            }
        }
        (out + &matcher.finish(), None)
    }

    #[test]
    fn a_stop_text_may_arrive_in_pieces() {
        let stop = |text: &str, stop: &str| (text.to_owned(), Some(stop.to_owned()));
        assert_eq!(run(&["END"], &["a E", "N", "Db"]), stop("a ", "END"));
        assert_eq!(run(&["\n\n"], &["x\n", "y\n", "\nz"]), stop("x\ny", "\n\n"));
        assert_eq!(run(&["ab", "b"], &["a", "b"]), stop("", "ab"));
        assert_eq!(run(&["bc", "b"], &["abc"]), stop("a", "b"));
        assert_eq!(run(&["é"], &["caf", "é!"]), stop("caf", "é"));
    }

    #[test]
    fn text_without_a_stop_text_is_complete() {
        assert_eq!(run(&["END"], &["E", "N", "E"]), ("ENE".to_owned(), None));
        assert_eq!(run(&["", "éa"], &["é", "b"]), ("éb".to_owned(), None));
        assert_eq!(run(&[], &["a"]), ("a".to_owned(), None));
    }

    #[test]
    fn only_the_start_of_a_stop_text_is_held_back() {
        let mut matcher = StopMatcher::new(vec!["aab".to_owned()]);
        assert_eq!(matcher.push("xaaa"), Stopped::Open("xa".to_owned()));
        assert_eq!(
            matcher.push("b"),
            Stopped::At(String::new(), "aab".to_owned())
        );
    }
}
