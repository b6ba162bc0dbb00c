use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::ApiError;

/// The fields of a request's JSON object. Unknown fields are ignored, as OpenAI's clients expect.
#[derive(Clone, Debug)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Parses a body.
    ///
    /// # Errors
    /// Returns an error if the body is not a JSON object.
    pub(crate) fn parse(body: &[u8]) -> Result<Fields, ApiError> {
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => Ok(Fields(fields)),
            Ok(_) => Err(ApiError::request("the body is not a JSON object")),
            Err(e) => Err(ApiError::request(format!("the body is not JSON: {e}"))),
        }
    }

    /// Returns a field's value; `None` if it is missing or null.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|v| !v.is_null())
    }

    /// Returns a field as `T`, which `expected` describes.
    ///
    /// # Errors
    /// Returns an error that names the field if its value has another type.
    pub(crate) fn get<T: DeserializeOwned>(
        &self,
        name: &str,
        expected: &str,
    ) -> Result<Option<T>, ApiError> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        match serde_json::from_value(value.clone()) {
            Ok(found) => Ok(Some(found)),
            Err(_) => Err(ApiError::field(
                name,
                format!("`{name}` must be {expected}, not {}", shown(value)),
            )),
        }
    }

    /// Returns a number within a range.
    ///
    /// # Errors
    /// Returns an error that names the field.
    pub(crate) fn number<T>(
        &self,
        name: &str,
        range: RangeInclusive<T>,
    ) -> Result<Option<T>, ApiError>
    where
        T: DeserializeOwned + PartialOrd + Display + Copy,
    {
        let expected = format!("a number from {} to {}", range.start(), range.end());
        match self.get(name, &expected)? {
            Some(n) if !range.contains(&n) => Err(ApiError::field(
                name,
                format!("`{name}` must be {expected}, not {n}"),
            )),
            found => Ok(found),
        }
    }

    /// Returns true or false, or else `default`.
    ///
    /// # Errors
    /// Returns an error that names the field.
    pub(crate) fn flag(&self, name: &str, default: bool) -> Result<bool, ApiError> {
        Ok(self.get(name, "true or false")?.unwrap_or(default))
    }
}

/// Returns the start of a value's JSON.
pub(crate) fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_field() {
        let fields = Fields::parse(br#"{"n": 3, "top_p": "x", "stop": null}"#).expect("JSON");
        assert_eq!(fields.number("n", 1..=4_u32).ok().flatten(), Some(3));
        let e = fields.number("n", 1..=2_u32).expect_err("too large");
        assert_eq!(e.message(), "`n` must be a number from 1 to 2, not 3");
        let e = fields.number("top_p", 0.0..=1.0_f32).expect_err("a text");
        assert_eq!(
            e.message(),
            "`top_p` must be a number from 0 to 1, not \"x\""
        );
        assert!(fields.value("stop").is_none());
        assert!(Fields::parse(b"[1]").is_err() && Fields::parse(b"{").is_err());
    }
}
