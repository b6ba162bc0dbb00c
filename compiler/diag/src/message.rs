//! Messages with typed parts: text, names and numbers. Comparing the messages of different layers or device counts
//! ignores layers or numbers, without parsing text.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

/// A name that may include a layer number, such as `blk.7.attn_q.weight`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    before: String,
    layer: Option<u32>,
    after: String,
}

impl Name {
    /// Creates a name without a layer.
    pub fn plain(name: impl Into<String>) -> Name {
        Name {
            before: name.into(),
            layer: None,
            after: String::new(),
        }
    }

    /// Creates a name with a layer number between two texts.
    pub fn of_layer(before: impl Into<String>, layer: u32, after: impl Into<String>) -> Name {
        Name {
            before: before.into(),
            layer: Some(layer),
            after: after.into(),
        }
    }

    /// Returns the layer number.
    pub const fn layer(&self) -> Option<u32> {
        self.layer
    }

    /// Returns the name with layer 0, for comparing layers.
    #[must_use]
    pub fn without_layer(&self) -> Name {
        Name {
            layer: self.layer.map(|_| 0),
            ..self.clone()
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.before)?;
        if let Some(layer) = self.layer {
            write!(f, "{layer}")?;
        }
        f.write_str(&self.after)
    }
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Literal text.
    Text(Cow<'static, str>),
    /// A name of a tensor, state or op.
    Name(Name),
    /// A layer number.
    Layer(u32),
    /// A line of a capture.
    Line(usize),
    /// A text that may depend on the device count.
    Number(String),
}

/// A text that may depend on the device count, such as a size.
#[derive(Clone, Debug)]
pub struct Quantity<T>(pub T);

/// A layer number in a message.
#[derive(Clone, Copy, Debug)]
pub struct Layer(pub u32);

/// A line of a capture in a message.
#[derive(Clone, Copy, Debug)]
pub struct Line(pub usize);

/// A message or phrase.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Message {
    parts: Box<[Part]>,
}

impl Message {
    /// Replaces each `{}` of a template. [`message!`](crate::message) has checked the number of arguments.
    #[doc(hidden)]
    pub fn assemble(template: &'static str, arguments: Vec<Message>) -> Message {
        let mut parts = Vec::new();
        let mut arguments = arguments.into_iter();
        for (i, text) in template.split("{}").enumerate() {
            if i > 0 {
                parts.extend(arguments.next().into_iter().flat_map(|m| m.parts));
            }
            if !text.is_empty() {
                parts.push(Part::Text(Cow::Borrowed(text)));
            }
        }
        Message {
            parts: parts.into(),
        }
    }

    /// Joins messages with a separator.
    pub fn join(all: impl IntoIterator<Item = Message>, separator: &'static str) -> Message {
        let mut parts = Vec::new();
        for (i, one) in all.into_iter().enumerate() {
            if i > 0 {
                parts.push(Part::Text(Cow::Borrowed(separator)));
            }
            parts.extend(one.parts);
        }
        Message {
            parts: parts.into(),
        }
    }

    /// Returns the first layer number in the message.
    pub fn layer(&self) -> Option<u32> {
        self.parts.iter().find_map(|p| match p {
            Part::Name(name) => name.layer(),
            Part::Layer(layer) => Some(*layer),
            Part::Text(_) | Part::Line(_) | Part::Number(_) => None,
        })
    }

    /// Returns the message with layers and lines set to 0, for comparing layers.
    #[must_use]
    pub fn without_layers(&self) -> Message {
        self.map(|p| match p {
            Part::Name(name) => Part::Name(name.without_layer()),
            Part::Layer(_) => Part::Layer(0),
            Part::Line(_) => Part::Line(0),
            Part::Text(_) | Part::Number(_) => p.clone(),
        })
    }

    /// Returns the message without layers and numbers, for comparing device counts.
    #[must_use]
    pub fn without_numbers(&self) -> Message {
        self.without_layers().map(|p| match p {
            Part::Number(_) => Part::Number("*".to_owned()),
            Part::Text(_) | Part::Name(_) | Part::Layer(_) | Part::Line(_) => p.clone(),
        })
    }

    /// Combines messages that differ only in numbers: `2/3/5`.
    pub fn alongside(all: &[Message]) -> Message {
        let Some(first) = all.first() else {
            return Message::default();
        };
        let part = |(i, part): (usize, &Part)| {
            let each = all.iter().map(|m| m.parts.get(i).unwrap_or(part));
            let shown: Vec<String> = each.map(ToString::to_string).collect();
            match part {
                Part::Number(_) if shown.windows(2).any(|w| w[0] != w[1]) => {
                    Part::Number(shown.join("/"))
                }
                part => part.clone(),
            }
        };
        Message {
            parts: first.parts.iter().enumerate().map(part).collect(),
        }
    }

    fn map(&self, f: impl Fn(&Part) -> Part) -> Message {
        Message {
            parts: self.parts.iter().map(f).collect(),
        }
    }

    /// True if the rendered message contains `text`.
    pub fn contains(&self, text: &str) -> bool {
        self.to_string().contains(text)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Text(text) => f.write_str(text),
            Part::Name(name) => write!(f, "{name}"),
            Part::Layer(layer) => write!(f, "{layer}"),
            Part::Line(line) => write!(f, "{line}"),
            Part::Number(number) => f.write_str(number),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| write!(f, "{part}"))
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl JsonSchema for Message {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Message".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

/// An argument of a template.
pub trait Argument {
    /// Returns the argument as a message.
    fn phrase(&self) -> Message;
}

impl<T: Argument + ?Sized> Argument for &T {
    fn phrase(&self) -> Message {
        (**self).phrase()
    }
}

impl Argument for str {
    fn phrase(&self) -> Message {
        Part::Text(Cow::Owned(self.to_owned())).into()
    }
}

impl Argument for String {
    fn phrase(&self) -> Message {
        self.as_str().phrase()
    }
}

impl Argument for Message {
    fn phrase(&self) -> Message {
        self.clone()
    }
}

impl Argument for Name {
    fn phrase(&self) -> Message {
        Part::Name(self.clone()).into()
    }
}

impl Argument for Layer {
    fn phrase(&self) -> Message {
        Part::Layer(self.0).into()
    }
}

impl Argument for Line {
    fn phrase(&self) -> Message {
        Part::Line(self.0).into()
    }
}

impl<T: fmt::Display> Argument for Quantity<T> {
    fn phrase(&self) -> Message {
        Part::Number(self.0.to_string()).into()
    }
}

macro_rules! numbers {
    ($($ty:ty)*) => {
        $(
            impl Argument for $ty {
                fn phrase(&self) -> Message {
                    Part::Number(self.to_string()).into()
                }
            }
        )*
    };
}

numbers! { u8 u16 u32 u64 usize i64 f32 f64 tpc_ir::Dim }

impl From<Part> for Message {
    fn from(part: Part) -> Message {
        Message {
            parts: Box::new([part]),
        }
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Message {
        text.phrase()
    }
}

impl From<String> for Message {
    fn from(text: String) -> Message {
        Part::Text(Cow::Owned(text)).into()
    }
}

impl From<&String> for Message {
    fn from(text: &String) -> Message {
        text.phrase()
    }
}

/// Returns the number of `{}` in a template, or `None` if another brace is present.
#[doc(hidden)]
pub const fn places(template: &str) -> Option<usize> {
    let bytes = template.as_bytes();
    let (mut i, mut n) = (0, 0);
    while i < bytes.len() {
        if bytes[i] == b'{' {
            if i + 1 == bytes.len() || bytes[i + 1] != b'}' {
                return None;
            }
            (i, n) = (i + 1, n + 1);
        } else if bytes[i] == b'}' {
            return None;
        }
        i += 1;
    }
    Some(n)
}

/// Creates a message from a template and an argument for each `{}`. Other placeholders do not compile.
///
/// Names, [`Layer`](crate::Layer)s and [`Line`](crate::Line)s become parts that depend on the layer. Numbers and
/// [`Quantity`](crate::Quantity) become parts that depend on the device count.
#[macro_export]
macro_rules! message {
    ($template:literal $(, $argument:expr)* $(,)?) => {{
        const {
            let arguments: &[&str] = &[$(stringify!($argument)),*];
            assert!(matches!($crate::places($template), Some(n) if n == arguments.len()));
        }
        $crate::Message::assemble($template, vec![$($crate::Argument::phrase(&$argument)),*])
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(layer: u32, number: u64) -> Message {
        let name = Name::of_layer("blk.", layer, ".x");
        message!("{}: {} of {} in layer {}", name, number, "y", Layer(layer))
    }

    #[test]
    fn layers_and_numbers_can_be_taken_out() {
        let message = found(7, 3);
        assert_eq!(message.to_string(), "blk.7.x: 3 of y in layer 7");
        assert_eq!(message.layer(), Some(7));
        assert_eq!(message.without_layers(), found(8, 3).without_layers());
        assert_ne!(message.without_layers(), found(7, 4).without_layers());
        assert_eq!(message.without_numbers(), found(8, 4).without_numbers());
    }

    #[test]
    fn a_quantity_is_no_layer() {
        let time = |ms: f64| message!("takes layer {} ms", Quantity(format!("{ms:.2}")));
        assert_eq!(time(43.44).to_string(), "takes layer 43.44 ms");
        assert_eq!(time(43.44).layer(), None);
        assert_ne!(time(43.44).without_layers(), time(44.44).without_layers());
        let text = Message::from("layer 43.44 ms");
        assert_eq!((text.layer(), text.without_layers()), (None, text));
    }
}
