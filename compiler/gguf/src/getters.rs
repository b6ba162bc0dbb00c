//! Typed access to metadata.
//!
//! Files differ in integer widths, and have one value or one per layer. Integer getters accept any width; per-layer
//! getters accept a scalar or an array.

use super::error::{GgufError, GgufErrorKind};
use super::metadata::{Entry, Metadata};
use super::value::{MetaArray, MetaValue, StrList};

/// Maximum number of layers for which a scalar is repeated, so that a malicious `block_count` cannot exhaust memory.
const MAX_LAYERS: usize = 65_535;

enum DecodeError {
    Type,
    Range(String),
}

trait Decode<'a>: Sized {
    fn decode(value: &'a MetaValue) -> Result<Self, DecodeError>;
}

trait DecodeArray: Sized {
    fn decode_array(array: &MetaArray) -> Result<Vec<Self>, DecodeError>;
}

fn fit<T: TryFrom<i128>>(x: i128) -> Result<T, DecodeError> {
    T::try_from(x).map_err(|_| DecodeError::Range(x.to_string()))
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Decode<'_> for $ty {
            fn decode(value: &MetaValue) -> Result<$ty, DecodeError> {
                fit(value.as_integer().ok_or(DecodeError::Type)?)
            }
        }
        impl DecodeArray for $ty {
            fn decode_array(array: &MetaArray) -> Result<Vec<$ty>, DecodeError> {
                array.integers().ok_or(DecodeError::Type)?.map(fit).collect()
            }
        }
    )*};
}

integers!(u32, u64, i32, i64);

#[expect(
    clippy::cast_possible_truncation,
    reason = "an f64 hyper-parameter is rounded to f32, the type of its uses"
)]
fn narrow(x: f64) -> f32 {
    x as f32
}

impl Decode<'_> for f32 {
    fn decode(value: &MetaValue) -> Result<f32, DecodeError> {
        match *value {
            MetaValue::F32(x) => Ok(x),
            MetaValue::F64(x) => Ok(narrow(x)),
            _ => Err(DecodeError::Type),
        }
    }
}

impl DecodeArray for f32 {
    fn decode_array(array: &MetaArray) -> Result<Vec<f32>, DecodeError> {
        match array {
            MetaArray::F32(v) => Ok(v.clone()),
            MetaArray::F64(v) => Ok(v.iter().map(|&x| narrow(x)).collect()),
            _ => Err(DecodeError::Type),
        }
    }
}

impl Decode<'_> for bool {
    fn decode(value: &MetaValue) -> Result<bool, DecodeError> {
        match *value {
            MetaValue::Bool(x) => Ok(x),
            _ => Err(DecodeError::Type),
        }
    }
}

impl DecodeArray for bool {
    fn decode_array(array: &MetaArray) -> Result<Vec<bool>, DecodeError> {
        match array {
            MetaArray::Bool(v) => Ok(v.clone()),
            _ => Err(DecodeError::Type),
        }
    }
}

impl<'a> Decode<'a> for &'a str {
    fn decode(value: &'a MetaValue) -> Result<&'a str, DecodeError> {
        match value {
            MetaValue::Str(s) => Ok(s),
            _ => Err(DecodeError::Type),
        }
    }
}

impl<'a> Decode<'a> for &'a StrList {
    fn decode(value: &'a MetaValue) -> Result<&'a StrList, DecodeError> {
        match value {
            MetaValue::Array(MetaArray::Str(list)) => Ok(list),
            _ => Err(DecodeError::Type),
        }
    }
}

impl<T: DecodeArray> Decode<'_> for Vec<T> {
    fn decode(value: &MetaValue) -> Result<Vec<T>, DecodeError> {
        match value {
            MetaValue::Array(array) => T::decode_array(array),
            _ => Err(DecodeError::Type),
        }
    }
}

impl Metadata {
    fn decode<'a, T: Decode<'a>>(
        &'a self,
        key: &str,
        expected: &'static str,
    ) -> Result<Option<T>, GgufError> {
        let Some(entry) = self.entry(key) else {
            return Ok(None);
        };
        T::decode(&entry.value)
            .map(Some)
            .map_err(|e| self.decode_error(entry, e, expected))
    }

    fn decode_per_layer<'a, T: Decode<'a> + DecodeArray + Clone>(
        &'a self,
        key: &str,
        n_layers: usize,
        expected: &'static str,
    ) -> Result<Option<Vec<T>>, GgufError> {
        let Some(entry) = self.entry(key) else {
            return Ok(None);
        };
        let array = match &entry.value {
            MetaValue::Array(array) => array,
            scalar if n_layers <= MAX_LAYERS => {
                let x = T::decode(scalar).map_err(|e| self.decode_error(entry, e, expected))?;
                return Ok(Some(vec![x; n_layers]));
            }
            _ => {
                let e = DecodeError::Range(format!("one value for {n_layers} layers"));
                return Err(self.decode_error(entry, e, "a model of at most 65535 layers"));
            }
        };
        if array.len() != n_layers {
            let kind = GgufErrorKind::WrongLength {
                expected: n_layers,
                found: array.len(),
            };
            return Err(GgufError::new(&self.file, kind)
                .at(entry.offset)
                .in_key(&entry.key));
        }
        T::decode_array(array)
            .map(Some)
            .map_err(|e| self.decode_error(entry, e, expected))
    }

    fn decode_error(&self, entry: &Entry, e: DecodeError, expected: &'static str) -> GgufError {
        let kind = match e {
            DecodeError::Type => GgufErrorKind::WrongType {
                expected,
                found: entry.value.describe(),
            },
            DecodeError::Range(found) => GgufErrorKind::OutOfRange { expected, found },
        };
        GgufError::new(&self.file, kind)
            .at(entry.offset)
            .in_key(&entry.key)
    }

    fn require<T>(
        &self,
        found: Option<T>,
        key: &str,
        expected: &'static str,
    ) -> Result<T, GgufError> {
        found.ok_or_else(|| {
            GgufError::new(&self.file, GgufErrorKind::MissingKey { expected }).in_key(key)
        })
    }
}

macro_rules! getters {
    ($($get:ident, $require:ident: $ty:ty, $what:literal;)*) => {
        impl Metadata {$(
            #[doc = concat!("Returns the value of `key`, ", $what, "; `None` if the key is absent.")]
            ///
            /// # Errors
            ///
            /// Returns an error if the value has the wrong type or range.
            pub fn $get(&self, key: &str) -> Result<Option<$ty>, GgufError> {
                self.decode(key, $what)
            }

            #[doc = concat!("Returns the value of `key`, ", $what, ".")]
            ///
            /// # Errors
            ///
            /// Returns an error if the key is absent, or its value has the wrong type or range.
            pub fn $require(&self, key: &str) -> Result<$ty, GgufError> {
                self.require(self.decode(key, $what)?, key, $what)
            }
        )*}
    };
}

getters! {
    get_u32, require_u32: u32, "an integer from 0 to 2^32-1";
    get_u64, require_u64: u64, "an integer from 0 to 2^64-1";
    get_i32, require_i32: i32, "an integer from -2^31 to 2^31-1";
    get_i64, require_i64: i64, "an integer from -2^63 to 2^63-1";
    get_f32, require_f32: f32, "a float";
    get_bool, require_bool: bool, "a boolean";
    get_str, require_str: &str, "a string";
    get_array_u32, require_array_u32: Vec<u32>, "an array of integers from 0 to 2^32-1";
    get_array_u64, require_array_u64: Vec<u64>, "an array of integers from 0 to 2^64-1";
    get_array_i32, require_array_i32: Vec<i32>, "an array of integers from -2^31 to 2^31-1";
    get_array_f32, require_array_f32: Vec<f32>, "an array of floats";
    get_array_bool, require_array_bool: Vec<bool>, "an array of booleans";
    get_array_str, require_array_str: &StrList, "an array of strings";
}

macro_rules! per_layer {
    ($($get:ident, $require:ident: $ty:ty, $what:literal;)*) => {
        impl Metadata {$(
            #[doc = concat!("Returns the value of `key` for each of `n_layers` layers, ", $what, "; a scalar applies to all layers.")]
            /// Returns `None` if the key is absent.
            ///
            /// # Errors
            ///
            /// Returns an error if the value has the wrong type, range or length.
            pub fn $get(&self, key: &str, n_layers: usize) -> Result<Option<Vec<$ty>>, GgufError> {
                self.decode_per_layer(key, n_layers, $what)
            }

            #[doc = concat!("Returns the value of `key` for each of `n_layers` layers, ", $what, "; a scalar applies to all layers.")]
            ///
            /// # Errors
            ///
            /// Returns an error if the key is absent, or its value has the wrong type, range or length.
            pub fn $require(&self, key: &str, n_layers: usize) -> Result<Vec<$ty>, GgufError> {
                self.require(self.decode_per_layer(key, n_layers, $what)?, key, $what)
            }
        )*}
    };
}

per_layer! {
    get_u32_per_layer, require_u32_per_layer: u32, "an integer from 0 to 2^32-1, or an array of such integers";
    get_i32_per_layer, require_i32_per_layer: i32, "an integer from -2^31 to 2^31-1, or an array of such integers";
    get_f32_per_layer, require_f32_per_layer: f32, "a float, or an array of floats";
    get_bool_per_layer, require_bool_per_layer: bool, "a boolean, or an array of booleans";
}
