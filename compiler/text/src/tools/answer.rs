//! The streaming parser of answers.

use serde_json::Value;

use super::arguments::ArgumentsReader;
use super::format::ToolFormat;
use super::gemma::GemmaReader;
use super::harmony::{self, Kind};
use super::head::{self, Head};
use super::list::ListReader;
use super::object::Step;
use super::output::{Delta, Output};
use super::reader::Reader;
use super::reply::ReplyReader;
use super::schema::Functions;
use super::shape::Shape;
use super::tags::{GLM, QWEN, TagReader};

/// The place of a model's reasoning in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reasoning {
    /// Reasoning stays in the content, with its markers.
    InContent,
    /// Reasoning between markers at the answer's start is separate.
    Separate,
    /// The prompt ends inside the reasoning, which is separate.
    Open,
}

impl Reasoning {
    /// Returns [`Reasoning::Open`] if a prompt ends with the format's marker before reasoning, else
    /// [`Reasoning::Separate`].
    pub fn after_prompt(format: ToolFormat, prompt: &str) -> Reasoning {
        let (open, _) = Shape::of(format).think;
        match format != ToolFormat::Harmony && prompt.trim_end().ends_with(open) {
            true => Reasoning::Open,
            false => Reasoning::Separate,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first text.
    Start,
    /// At the start of reasoning.
    FreshReasoning,
    Reasoning,
    Content,
    /// Behind a marker that a call must follow.
    Expect,
    /// Before a function's name.
    Head,
    Call,
    /// Behind the last brace of a call.
    Closing,
    /// Behind a call.
    After,
    /// Before a header of gpt-oss.
    Header,
}

/// A parser of an answer that arrives in parts.
///
/// It separates content, reasoning and calls. It holds text back while the text may be part of a marker, a call's name,
/// or a value in tags. The pieces of an answer do not depend on its parts.
///
/// A malformed call becomes content, with its markers. If the arguments are already out, the rest becomes content.
/// White space beside markers of calls and reasoning is dropped.
#[derive(Clone, Debug)]
pub struct AnswerParser {
    format: ToolFormat,
    shape: Shape,
    functions: Functions,
    reasoning: Reasoning,
    state: State,
    /// Text that no state has read.
    pending: String,
    /// White space before text or a marker.
    space: String,
    /// Text of the call that becomes content if the call is malformed.
    raw: String,
    reader: Option<Reader>,
    /// The number of calls before the current list.
    calls: usize,
    /// True after reasoning.
    thought: bool,
    out: Output,
}

/// Finds the first marker, or a start of a marker at the text's end. Returns the position and the marker.
fn find(text: &str, markers: &[&'static str]) -> (usize, Option<&'static str>) {
    for (i, _) in text.char_indices() {
        let rest = &text[i..];
        if let Some(found) = markers.iter().find(|m| rest.starts_with(**m)) {
            return (i, Some(found));
        }
        if markers.iter().any(|m| m.starts_with(rest)) {
            return (i, None);
        }
    }
    (text.len(), None)
}

/// Splits the white space off a text's start.
fn split_space(text: &str) -> (&str, &str) {
    text.split_at(text.len() - text.trim_start().len())
}

impl AnswerParser {
    /// Creates a parser.
    ///
    /// Without tools, calls stay content. The tools' schemas give the types of values in tags.
    pub fn new(format: ToolFormat, tools: &[Value], reasoning: Reasoning) -> AnswerParser {
        let state = match (format, reasoning) {
            (ToolFormat::Harmony, _) => State::Header,
            (_, Reasoning::Open) => State::FreshReasoning,
            _ => State::Start,
        };
        AnswerParser {
            format,
            shape: Shape::of(format),
            functions: Functions::of(tools),
            reasoning,
            state,
            pending: String::new(),
            space: String::new(),
            raw: String::new(),
            reader: None,
            calls: 0,
            thought: false,
            out: Output::default(),
        }
    }

    /// Reads a part of the answer's text, with special tokens shown. Returns the pieces that are certain.
    pub fn push(&mut self, text: &str) -> Vec<Delta> {
        self.pending.push_str(text);
        let text = std::mem::take(&mut self.pending);
        let mut at = 0;
        while let Some(length) = self.step(&text[at..]) {
            at += length;
        }
        self.pending = match at {
            0 => text,
            _ => text[at..].to_owned(),
        };
        self.out.take()
    }

    /// Ends the answer. Returns the held text.
    pub fn finish(&mut self) -> Vec<Delta> {
        let text = std::mem::take(&mut self.pending);
        match self.state {
            State::Reasoning | State::FreshReasoning => self.think(&text),
            State::Start | State::Content | State::Header | State::After => self.say(&text),
            State::Expect | State::Head => self.fail(&text),
            State::Call => {
                let reader = self.reader.take();
                match reader {
                    Some(mut r) if r.is_committed() => r.cut(&text, &mut self.out),
                    _ => self.fail(&text),
                }
            }
            State::Closing => {
                let is_marker = self.shape.close.starts_with(&text);
                let raw = std::mem::take(&mut self.raw);
                if !is_marker {
                    self.say(&raw);
                    self.say(&text);
                }
            }
        }
        if self.out.calls() == 0 && self.state != State::Reasoning {
            let space = std::mem::take(&mut self.space);
            self.out.content(&space);
        }
        self.state = State::Content;
        self.out.take()
    }

    /// Adds content; holds white space at its end back.
    fn say(&mut self, text: &str) {
        let end = text.trim_end().len();
        if end > 0 {
            let space = std::mem::take(&mut self.space);
            self.out.content(&space);
            self.out.content(&text[..end]);
        }
        self.space.push_str(&text[end..]);
    }

    /// Adds reasoning; holds white space at its end back.
    fn think(&mut self, text: &str) {
        let end = text.trim_end().len();
        if end > 0 {
            let space = std::mem::take(&mut self.space);
            self.out.reasoning(&space);
            self.out.reasoning(&text[..end]);
        }
        self.space.push_str(&text[end..]);
    }

    /// Returns the text of a malformed call to the content.
    fn fail(&mut self, text: &str) {
        let raw = std::mem::take(&mut self.raw);
        self.say(&raw);
        self.say(text);
        self.reader = None;
        self.state = State::Content;
    }

    /// Moves to a state after some bytes.
    fn go(&mut self, state: State, length: usize) -> Option<usize> {
        self.state = state;
        Some(length)
    }

    /// Reads from the start of the unread text. Returns the length of the read part; `None` to wait for more text.
    fn step(&mut self, text: &str) -> Option<usize> {
        if text.is_empty() {
            return None;
        }
        match self.state {
            State::Start => self.start(text),
            State::FreshReasoning => self.fresh_reasoning(text),
            State::Reasoning => self.reason(text),
            State::Content => self.content(text),
            State::Expect => self.expect(text),
            State::Head => self.head(text),
            State::Call => self.call(text),
            State::Closing => self.closing(text),
            State::After => self.after(text),
            State::Header => self.header(text),
        }
    }

    fn start(&mut self, text: &str) -> Option<usize> {
        let (space, _) = split_space(text);
        if !space.is_empty() {
            // White space between reasoning and an answer is dropped.
            self.space.push_str(if self.thought { "" } else { space });
            return Some(space.len());
        }
        let (open, _) = self.shape.think;
        if self.reasoning == Reasoning::Separate && !self.thought {
            if text.starts_with(open) {
                self.space.clear();
                return self.go(State::FreshReasoning, open.len());
            }
            if open.starts_with(text) {
                return None;
            }
        }
        if self.shape.bare_json && !self.functions.is_empty() && text.starts_with('{') {
            self.raw = std::mem::take(&mut self.space);
            return self.read_with(self.bare(), 0);
        }
        self.go(State::Content, 0)
    }

    /// Returns the reader of a call without markers.
    fn bare(&self) -> Reader {
        match self.format {
            ToolFormat::Generic => Reader::Reply(ReplyReader::new(self.functions.names())),
            _ => Reader::List(ListReader::new(Some(self.functions.names()))),
        }
    }

    fn read_with(&mut self, reader: Reader, length: usize) -> Option<usize> {
        self.reader = Some(reader);
        self.calls = self.out.calls();
        self.go(State::Call, length)
    }

    fn fresh_reasoning(&mut self, text: &str) -> Option<usize> {
        let (space, _) = split_space(text);
        let (open, _) = self.shape.think;
        if !space.is_empty() {
            return Some(space.len());
        }
        // A model may repeat the marker with which the prompt ends.
        if text.starts_with(open) && self.format != ToolFormat::Harmony {
            return Some(open.len());
        }
        if open.starts_with(text) {
            return None;
        }
        self.go(State::Reasoning, 0)
    }

    fn reason(&mut self, text: &str) -> Option<usize> {
        let is_harmony = self.format == ToolFormat::Harmony;
        let close = [self.shape.think.1];
        let markers = match is_harmony {
            true => self.markers(),
            false => close.to_vec(),
        };
        match find(text, &markers) {
            (0, None) => None,
            (0, Some(found)) => {
                self.space.clear();
                self.thought = true;
                match is_harmony {
                    true => self.go(State::Content, 0),
                    false => self.go(State::Start, found.len()),
                }
            }
            (n, _) => {
                self.think(&text[..n]);
                Some(n)
            }
        }
    }

    /// Returns the markers that interrupt content.
    fn markers(&self) -> Vec<&'static str> {
        if self.format == ToolFormat::Harmony {
            return [&harmony::STARTS[..], &harmony::ENDS[..]].concat();
        }
        let mut out = self.shape.silent.to_vec();
        if !self.functions.is_empty() {
            out.extend(self.shape.section.map(|(open, _)| open));
            out.extend(self.shape.open);
            out.extend(self.shape.bare_head);
        }
        out
    }

    fn content(&mut self, text: &str) -> Option<usize> {
        match find(text, &self.markers()) {
            (0, None) => None,
            (0, Some(found)) => self.marker(found),
            (n, _) => {
                self.say(&text[..n]);
                Some(n)
            }
        }
    }

    /// Reads a marker that interrupts content.
    fn marker(&mut self, found: &'static str) -> Option<usize> {
        if harmony::STARTS.contains(&found) {
            return self.go(State::Header, 0);
        }
        if harmony::ENDS.contains(&found) {
            return self.go(State::Header, found.len());
        }
        if self.shape.silent.contains(&found) {
            return Some(found.len());
        }
        self.raw = std::mem::take(&mut self.space);
        if self.shape.bare_head == Some(found) {
            return self.go(State::Head, 0);
        }
        self.raw.push_str(found);
        match self.shape.section {
            Some((open, _)) if open == found => self.go(State::Expect, found.len()),
            _ => self.open(found.len()),
        }
    }

    /// Continues after a call's opening marker.
    fn open(&mut self, length: usize) -> Option<usize> {
        match self.shape.has_head {
            true => self.go(State::Head, length),
            false => self.read_with(Reader::List(ListReader::new(None)), length),
        }
    }

    fn expect(&mut self, text: &str) -> Option<usize> {
        let (space, _) = split_space(text);
        if !space.is_empty() {
            self.raw.push_str(space);
            return Some(space.len());
        }
        let open = self.shape.open.unwrap_or_default();
        if text.starts_with(open) {
            self.raw.push_str(open);
            return self.open(open.len());
        }
        if open.starts_with(text) {
            return None;
        }
        if self.shape.bare_json && text.starts_with('{') {
            return self.read_with(self.bare(), 0);
        }
        self.fail("");
        Some(0)
    }

    fn head(&mut self, text: &str) -> Option<usize> {
        let (space, _) = split_space(text);
        if !space.is_empty() {
            self.raw.push_str(space);
            return Some(space.len());
        }
        let mixes_json = !matches!(self.format, ToolFormat::Gemma4 | ToolFormat::KimiK2);
        if mixes_json && text.starts_with(['{', '[']) {
            return self.read_with(Reader::List(ListReader::new(None)), 0);
        }
        match head::read(self.format, text) {
            head::Read::Waits => None,
            head::Read::Bad => {
                // The head of a call without an opening marker would be found again.
                let bare = self.shape.bare_head.filter(|b| text.starts_with(b));
                let length = bare.map_or(0, str::len);
                self.fail(&text[..length]);
                Some(length)
            }
            head::Read::Found(found) => {
                self.raw.push_str(&text[..found.length]);
                self.named(found)
            }
        }
    }

    /// Continues after a function's name.
    fn named(&mut self, Head { name, id, length }: Head) -> Option<usize> {
        let parameters = self.functions.parameters(&name);
        let reader = match self.format {
            ToolFormat::QwenCoder => Reader::Tags(TagReader::new(&QWEN, parameters)),
            ToolFormat::Glm45 => Reader::Tags(TagReader::new(&GLM, parameters)),
            ToolFormat::Gemma4 => Reader::Gemma(GemmaReader::new()),
            _ => Reader::Arguments(ArgumentsReader::new(name.clone(), id)),
        };
        let to = self.read_with(reader, length);
        if self.reader.as_ref().is_some_and(Reader::is_committed) {
            self.out.name(&name, None);
            self.raw.clear();
        }
        to
    }

    fn call(&mut self, text: &str) -> Option<usize> {
        let Some(reader) = &mut self.reader else {
            return self.go(State::Content, 0);
        };
        let (length, step) = reader.read(text, &mut self.raw, &mut self.out);
        let is_out = reader.is_committed();
        match step {
            Step::More if length == 0 => return None,
            Step::More => {}
            Step::Done if is_out || self.out.calls() > self.calls => {
                self.raw.clear();
                self.reader = None;
                self.state = State::Closing;
            }
            Step::Bad if is_out => {
                self.reader = None;
                self.state = State::Closing;
            }
            Step::Done | Step::Bad => self.fail(""),
        }
        Some(length)
    }

    fn closing(&mut self, text: &str) -> Option<usize> {
        let close = self.shape.close;
        if close.is_empty() {
            return self.go(State::After, 0);
        }
        // Models write too many braces at the end of a call.
        let rest = text.trim_start_matches(|c: char| c.is_whitespace() || "}]".contains(c));
        if rest.len() < text.len() {
            let length = text.len() - rest.len();
            self.raw.push_str(&text[..length]);
            return Some(length);
        }
        if text.starts_with(close) {
            self.raw.clear();
            return self.go(State::After, close.len());
        }
        if close.starts_with(text) {
            return None;
        }
        let raw = std::mem::take(&mut self.raw);
        self.say(&raw);
        self.go(State::After, 0)
    }

    fn after(&mut self, text: &str) -> Option<usize> {
        let (space, _) = split_space(text);
        if !space.is_empty() {
            self.space.push_str(space);
            return Some(space.len());
        }
        if let Some((_, close)) = self.shape.section {
            if text.starts_with(close) {
                self.space.clear();
                return self.go(State::Content, close.len());
            }
            if close.starts_with(text) {
                return None;
            }
        }
        // Llama separates parallel calls by semicolons.
        if self.format == ToolFormat::Llama3 && text.starts_with(';') {
            self.raw = std::mem::take(&mut self.space);
            self.raw.push(';');
            return self.go(State::Expect, 1);
        }
        self.go(State::Content, 0)
    }

    fn header(&mut self, text: &str) -> Option<usize> {
        let (space, _) = split_space(text);
        if !space.is_empty() {
            self.space.push_str(space);
            return Some(space.len());
        }
        match harmony::read(text) {
            harmony::Read::Waits => None,
            harmony::Read::Bad(length) => {
                self.say(&text[..length]);
                self.go(State::Content, length)
            }
            harmony::Read::Found(kind, length) => match kind {
                Kind::Content => {
                    self.space.clear();
                    self.go(State::Content, length)
                }
                Kind::Reasoning => {
                    self.space.clear();
                    self.go(State::FreshReasoning, length)
                }
                Kind::Call(name) => {
                    self.raw = std::mem::take(&mut self.space);
                    self.raw.push_str(&text[..length]);
                    let reader = ArgumentsReader::new(name, None);
                    self.read_with(Reader::Arguments(reader), length)
                }
            },
        }
    }
}
