//! Metadata values and their decoding.

use super::cursor::{Cursor, Endianness};
use super::error::{GgufError, GgufErrorKind};

/// Maximum nesting of arrays. An array of scalars has depth 1, the deepest in published files.
pub const MAX_ARRAY_DEPTH: u32 = 4;

macro_rules! value_types {
    ($($variant:ident = $id:literal, $name:literal;)*) => {
        /// A metadata value's type, as numbered by the GGUF specification.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        #[expect(missing_docs, reason = "the names are GGUF's own")]
        pub enum ValueType { $($variant = $id,)* }

        impl ValueType {
            /// Returns the type with this id in files, if known.
            pub const fn from_gguf_id(id: u32) -> Option<ValueType> {
                match id { $($id => Some(ValueType::$variant),)* _ => None }
            }

            /// Returns the type's id in files.
            pub const fn gguf_id(self) -> u32 {
                self as u32
            }

            /// Returns the name in messages.
            pub const fn name(self) -> &'static str {
                match self { $(ValueType::$variant => $name,)* }
            }
        }
    };
}

value_types! {
    U8 = 0, "u8";
    I8 = 1, "i8";
    U16 = 2, "u16";
    I16 = 3, "i16";
    U32 = 4, "u32";
    I32 = 5, "i32";
    F32 = 6, "f32";
    Bool = 7, "bool";
    Str = 8, "string";
    Array = 9, "array";
    U64 = 10, "u64";
    I64 = 11, "i64";
    F64 = 12, "f64";
}

/// One metadata value.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "one variant per GGUF value type")]
pub enum MetaValue {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    /// Text; invalid UTF-8 is replaced by U+FFFD.
    Str(String),
    Array(MetaArray),
}

/// An array: elements of one type, stored densely.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "one variant per GGUF value type")]
pub enum MetaArray {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    Str(StrList),
    Array(Vec<MetaArray>),
}

/// Strings stored end to end: a token list takes two allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StrList {
    text: String,
    /// Each string's end in `text`, in bytes. Invariant: non-decreasing, on character boundaries.
    ends: Vec<usize>,
}

impl StrList {
    /// Makes an empty list.
    pub fn new() -> StrList {
        StrList::default()
    }

    /// Appends `s`.
    pub fn push(&mut self, s: &str) {
        self.text.push_str(s);
        self.ends.push(self.text.len());
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns string `i`, from 0, in constant time.
    pub fn get(&self, i: usize) -> Option<&str> {
        let end = *self.ends.get(i)?;
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        Some(&self.text[start..end])
    }

    /// Returns the strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|i| self.get(i).expect("invariant: i < len"))
    }
}

impl<S: AsRef<str>> FromIterator<S> for StrList {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> StrList {
        let mut list = StrList::new();
        for s in strings {
            list.push(s.as_ref());
        }
        list
    }
}

impl MetaValue {
    /// Returns the value's type.
    pub fn value_type(&self) -> ValueType {
        match self {
            MetaValue::U8(_) => ValueType::U8,
            MetaValue::I8(_) => ValueType::I8,
            MetaValue::U16(_) => ValueType::U16,
            MetaValue::I16(_) => ValueType::I16,
            MetaValue::U32(_) => ValueType::U32,
            MetaValue::I32(_) => ValueType::I32,
            MetaValue::U64(_) => ValueType::U64,
            MetaValue::I64(_) => ValueType::I64,
            MetaValue::F32(_) => ValueType::F32,
            MetaValue::F64(_) => ValueType::F64,
            MetaValue::Bool(_) => ValueType::Bool,
            MetaValue::Str(_) => ValueType::Str,
            MetaValue::Array(_) => ValueType::Array,
        }
    }

    /// Formats the value for reports: quoted text of up to 60 characters, or an array's length and first elements.
    pub fn preview(&self) -> String {
        const SHOWN: usize = 6;
        let text = |s: &str| {
            let cut: String = s.chars().take(60).flat_map(char::escape_debug).collect();
            let more = if s.chars().nth(60).is_some() {
                "…"
            } else {
                ""
            };
            format!("\"{cut}{more}\"")
        };
        let list = |shown: Vec<String>, len: usize| {
            let more = if len > SHOWN { ", …" } else { "" };
            format!("{} [{}{more}]", self.describe(), shown.join(", "))
        };
        match self {
            MetaValue::F32(x) => x.to_string(),
            MetaValue::F64(x) => x.to_string(),
            MetaValue::Bool(x) => x.to_string(),
            MetaValue::Str(s) => text(s),
            MetaValue::Array(MetaArray::Str(v)) => {
                list(v.iter().take(SHOWN).map(text).collect(), v.len())
            }
            MetaValue::Array(MetaArray::F32(v)) => list(
                v.iter().take(SHOWN).map(ToString::to_string).collect(),
                v.len(),
            ),
            MetaValue::Array(MetaArray::F64(v)) => list(
                v.iter().take(SHOWN).map(ToString::to_string).collect(),
                v.len(),
            ),
            MetaValue::Array(MetaArray::Bool(v)) => list(
                v.iter().take(SHOWN).map(ToString::to_string).collect(),
                v.len(),
            ),
            MetaValue::Array(array) => match array.integers() {
                Some(v) => list(v.take(SHOWN).map(|x| x.to_string()).collect(), array.len()),
                None => self.describe(),
            },
            scalar => scalar
                .as_integer()
                .map_or_else(|| self.describe(), |x| x.to_string()),
        }
    }

    /// Describes the type for messages: `u32`, `array of 5 f32`.
    pub fn describe(&self) -> String {
        match self {
            MetaValue::Array(array) => {
                format!("array of {} {}", array.len(), array.element_type().name())
            }
            scalar => scalar.value_type().name().to_owned(),
        }
    }

    /// Returns an integer of any width.
    pub fn as_integer(&self) -> Option<i128> {
        match *self {
            MetaValue::U8(x) => Some(x.into()),
            MetaValue::I8(x) => Some(x.into()),
            MetaValue::U16(x) => Some(x.into()),
            MetaValue::I16(x) => Some(x.into()),
            MetaValue::U32(x) => Some(x.into()),
            MetaValue::I32(x) => Some(x.into()),
            MetaValue::U64(x) => Some(x.into()),
            MetaValue::I64(x) => Some(x.into()),
            _ => None,
        }
    }
}

macro_rules! each_array {
    ($array:expr, $v:ident => $body:expr) => {
        match $array {
            MetaArray::U8($v) => $body,
            MetaArray::I8($v) => $body,
            MetaArray::U16($v) => $body,
            MetaArray::I16($v) => $body,
            MetaArray::U32($v) => $body,
            MetaArray::I32($v) => $body,
            MetaArray::U64($v) => $body,
            MetaArray::I64($v) => $body,
            MetaArray::F32($v) => $body,
            MetaArray::F64($v) => $body,
            MetaArray::Bool($v) => $body,
            MetaArray::Str($v) => $body,
            MetaArray::Array($v) => $body,
        }
    };
}

impl MetaArray {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        each_array!(self, v => v.len())
    }

    /// True if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the elements' type.
    pub fn element_type(&self) -> ValueType {
        match self {
            MetaArray::U8(_) => ValueType::U8,
            MetaArray::I8(_) => ValueType::I8,
            MetaArray::U16(_) => ValueType::U16,
            MetaArray::I16(_) => ValueType::I16,
            MetaArray::U32(_) => ValueType::U32,
            MetaArray::I32(_) => ValueType::I32,
            MetaArray::U64(_) => ValueType::U64,
            MetaArray::I64(_) => ValueType::I64,
            MetaArray::F32(_) => ValueType::F32,
            MetaArray::F64(_) => ValueType::F64,
            MetaArray::Bool(_) => ValueType::Bool,
            MetaArray::Str(_) => ValueType::Str,
            MetaArray::Array(_) => ValueType::Array,
        }
    }

    /// Returns the elements of an array of integers of any width.
    pub fn integers(&self) -> Option<Box<dyn Iterator<Item = i128> + '_>> {
        fn widen<T: Copy + Into<i128>>(v: &[T]) -> Option<Box<dyn Iterator<Item = i128> + '_>> {
            Some(Box::new(v.iter().map(|&x| x.into())))
        }
        match self {
            MetaArray::U8(v) => widen(v),
            MetaArray::I8(v) => widen(v),
            MetaArray::U16(v) => widen(v),
            MetaArray::I16(v) => widen(v),
            MetaArray::U32(v) => widen(v),
            MetaArray::I32(v) => widen(v),
            MetaArray::U64(v) => widen(v),
            MetaArray::I64(v) => widen(v),
            MetaArray::F32(_)
            | MetaArray::F64(_)
            | MetaArray::Bool(_)
            | MetaArray::Str(_)
            | MetaArray::Array(_) => None,
        }
    }
}

macro_rules! conversions {
    ($($variant:ident: $ty:ty;)*) => {$(
        impl From<$ty> for MetaValue {
            fn from(x: $ty) -> MetaValue { MetaValue::$variant(x) }
        }
        impl From<Vec<$ty>> for MetaValue {
            fn from(v: Vec<$ty>) -> MetaValue { MetaValue::Array(MetaArray::$variant(v)) }
        }
    )*};
}

conversions! {
    U8: u8;
    I8: i8;
    U16: u16;
    I16: i16;
    U32: u32;
    I32: i32;
    U64: u64;
    I64: i64;
    F32: f32;
    F64: f64;
    Bool: bool;
}

impl From<&str> for MetaValue {
    fn from(s: &str) -> MetaValue {
        MetaValue::Str(s.to_owned())
    }
}

impl From<String> for MetaValue {
    fn from(s: String) -> MetaValue {
        MetaValue::Str(s)
    }
}

impl From<StrList> for MetaValue {
    fn from(list: StrList) -> MetaValue {
        MetaValue::Array(MetaArray::Str(list))
    }
}

impl From<MetaArray> for MetaValue {
    fn from(array: MetaArray) -> MetaValue {
        MetaValue::Array(array)
    }
}

macro_rules! numbers {
    ($cursor:expr, $count:expr, $ty:ty) => {{
        const N: usize = size_of::<$ty>();
        let big = $cursor.endianness == Endianness::Big;
        let bytes = $cursor.take(($count as u64).saturating_mul(N as u64), "array elements")?;
        let (chunks, _) = bytes.as_chunks::<N>();
        chunks
            .iter()
            .map(|&c| {
                if big {
                    <$ty>::from_be_bytes(c)
                } else {
                    <$ty>::from_le_bytes(c)
                }
            })
            .collect()
    }};
}

macro_rules! number {
    ($cursor:expr, $ty:ty) => {{
        let raw = $cursor.chunk("a metadata value")?;
        match $cursor.endianness {
            Endianness::Little => <$ty>::from_le_bytes(raw),
            Endianness::Big => <$ty>::from_be_bytes(raw),
        }
    }};
}

pub(super) fn read_value(cursor: &mut Cursor<'_>) -> Result<MetaValue, GgufError> {
    Ok(match read_type(cursor)? {
        ValueType::U8 => number!(cursor, u8).into(),
        ValueType::I8 => number!(cursor, i8).into(),
        ValueType::U16 => number!(cursor, u16).into(),
        ValueType::I16 => number!(cursor, i16).into(),
        ValueType::U32 => number!(cursor, u32).into(),
        ValueType::I32 => number!(cursor, i32).into(),
        ValueType::U64 => number!(cursor, u64).into(),
        ValueType::I64 => number!(cursor, i64).into(),
        ValueType::F32 => number!(cursor, f32).into(),
        ValueType::F64 => number!(cursor, f64).into(),
        ValueType::Bool => read_bools(cursor, 1)?[0].into(),
        ValueType::Str => String::from_utf8_lossy(read_bytes(cursor)?)
            .into_owned()
            .into(),
        ValueType::Array => read_array(cursor, 1)?.into(),
    })
}

fn read_type(cursor: &mut Cursor<'_>) -> Result<ValueType, GgufError> {
    let offset = cursor.offset();
    let found = cursor.u32("a value type")?;
    ValueType::from_gguf_id(found)
        .ok_or_else(|| cursor.error_at(offset, GgufErrorKind::UnknownValueType { found }))
}

fn read_bytes<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], GgufError> {
    let length = cursor.u64("the length of a string")?;
    cursor.take(length, "a string")
}

fn read_bools(cursor: &mut Cursor<'_>, count: u64) -> Result<Vec<bool>, GgufError> {
    let offset = cursor.offset();
    let bytes = cursor.take(count, "a boolean")?;
    if let Some(i) = bytes.iter().position(|&b| b > 1) {
        return Err(cursor.error_at(
            offset + i as u64,
            GgufErrorKind::BadBool { found: bytes[i] },
        ));
    }
    Ok(bytes.iter().map(|&b| b == 1).collect())
}

fn read_array(cursor: &mut Cursor<'_>, depth: u32) -> Result<MetaArray, GgufError> {
    let offset = cursor.offset();
    if depth > MAX_ARRAY_DEPTH {
        return Err(cursor.error_at(
            offset,
            GgufErrorKind::NestedTooDeep {
                max: MAX_ARRAY_DEPTH,
            },
        ));
    }
    let element = read_type(cursor)?;
    let offset = cursor.offset();
    let count = cursor.u64("an array length")?;
    let count = cursor.check_count(count, min_bytes(element), "array length", offset)?;
    Ok(match element {
        ValueType::U8 => MetaArray::U8(numbers!(cursor, count, u8)),
        ValueType::I8 => MetaArray::I8(numbers!(cursor, count, i8)),
        ValueType::U16 => MetaArray::U16(numbers!(cursor, count, u16)),
        ValueType::I16 => MetaArray::I16(numbers!(cursor, count, i16)),
        ValueType::U32 => MetaArray::U32(numbers!(cursor, count, u32)),
        ValueType::I32 => MetaArray::I32(numbers!(cursor, count, i32)),
        ValueType::U64 => MetaArray::U64(numbers!(cursor, count, u64)),
        ValueType::I64 => MetaArray::I64(numbers!(cursor, count, i64)),
        ValueType::F32 => MetaArray::F32(numbers!(cursor, count, f32)),
        ValueType::F64 => MetaArray::F64(numbers!(cursor, count, f64)),
        ValueType::Bool => MetaArray::Bool(read_bools(cursor, count as u64)?),
        ValueType::Str => {
            let mut list = StrList::new();
            for _ in 0..count {
                list.push(&String::from_utf8_lossy(read_bytes(cursor)?));
            }
            MetaArray::Str(list)
        }
        ValueType::Array => {
            let mut arrays = Vec::new();
            for _ in 0..count {
                arrays.push(read_array(cursor, depth + 1)?);
            }
            MetaArray::Array(arrays)
        }
    })
}

fn min_bytes(element: ValueType) -> u64 {
    match element {
        ValueType::U8 | ValueType::I8 | ValueType::Bool => 1,
        ValueType::U16 | ValueType::I16 => 2,
        ValueType::U32 | ValueType::I32 | ValueType::F32 => 4,
        // A string takes at least the 8 bytes of its length.
        ValueType::U64 | ValueType::I64 | ValueType::F64 | ValueType::Str => 8,
        // A type and a length.
        ValueType::Array => 12,
    }
}
