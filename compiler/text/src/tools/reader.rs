//! Reads the arguments, or all, of a call in any format.

use super::arguments::ArgumentsReader;
use super::gemma::GemmaReader;
use super::list::ListReader;
use super::object::Step;
use super::output::Output;
use super::reply::ReplyReader;
use super::tags::TagReader;

/// A reader of a call after its opening marker and name.
#[derive(Clone, Debug)]
pub(super) enum Reader {
    List(ListReader),
    Arguments(ArgumentsReader),
    Reply(ReplyReader),
    Tags(TagReader),
    Gemma(GemmaReader),
}

impl Reader {
    /// True if the text since the last call's name cannot become content.
    pub(super) fn is_committed(&self) -> bool {
        match self {
            Reader::List(r) => r.is_committed(),
            Reader::Arguments(r) => r.is_committed(),
            Reader::Reply(r) => r.is_committed(),
            Reader::Tags(_) | Reader::Gemma(_) => true,
        }
    }

    /// Reads the start of a text. Returns the length of the read part.
    ///
    /// Keeps the text that may become content in `raw`.
    pub(super) fn read(&mut self, text: &str, raw: &mut String, out: &mut Output) -> (usize, Step) {
        match self {
            Reader::Tags(r) => return r.read(text, out),
            Reader::Gemma(r) => return r.read(text, out),
            _ => {}
        }
        for (i, c) in text.char_indices() {
            let was_committed = self.is_committed();
            let step = match self {
                Reader::List(r) => r.feed(c, out),
                Reader::Arguments(r) => r.feed(c, out),
                Reader::Reply(r) => r.feed(c, out),
                Reader::Tags(_) | Reader::Gemma(_) => Step::Bad,
            };
            match step {
                Step::Bad => return (i, Step::Bad),
                _ if was_committed || self.is_committed() => raw.clear(),
                _ => raw.push(c),
            }
            if step == Step::Done {
                return (i + c.len_utf8(), Step::Done);
            }
        }
        (text.len(), Step::More)
    }

    /// Writes the unread rest of a cut answer.
    pub(super) fn cut(&mut self, text: &str, out: &mut Output) {
        match self {
            Reader::Tags(r) => r.cut(text, out),
            Reader::Gemma(r) => r.cut(text, out),
            _ => {}
        }
    }
}
