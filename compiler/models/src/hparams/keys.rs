//! Metadata keys of an architecture, and checks of hyper-parameters.

use std::fmt;

use crate::error::ArchError;
use crate::size::Size;
use tpc_gguf::{MetaArray, MetaValue, Metadata};

/// Maximum count. Products of two counts fit in 63 bits.
const MAX_COUNT: u64 = (1 << 31) - 1;

#[derive(Clone, Copy)]
pub(super) struct Keys<'a> {
    metadata: &'a Metadata,
    prefix: &'static str,
}

impl<'a> Keys<'a> {
    pub(super) fn new(metadata: &'a Metadata, prefix: &'static str) -> Keys<'a> {
        Keys { metadata, prefix }
    }

    pub(super) fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.prefix)
    }

    fn in_range(&self, key: &str, n: u64) -> Result<u64, ArchError> {
        if n <= MAX_COUNT {
            return Ok(n);
        }
        Err(self.out_of_range(key, n, format!("at most {MAX_COUNT}")))
    }

    pub(super) fn out_of_range(
        &self,
        key: &str,
        found: impl fmt::Display,
        expected: impl Into<String>,
    ) -> ArchError {
        ArchError::OutOfRange {
            key: self.name(key),
            found: found.to_string(),
            expected: expected.into(),
        }
    }

    /// Returns a count; `None` if absent or 0.
    pub(super) fn count(&self, key: &str) -> Result<Option<u64>, ArchError> {
        match self.metadata.get_u64(&self.name(key))? {
            None | Some(0) => Ok(None),
            Some(n) => self.in_range(key, n).map(Some),
        }
    }

    pub(super) fn is_zero(&self, key: &str) -> Result<bool, ArchError> {
        Ok(self.metadata.get_u64(&self.name(key))? == Some(0))
    }

    pub(super) fn require_count(&self, key: &str) -> Result<u64, ArchError> {
        match self.metadata.require_u64(&self.name(key))? {
            0 => Err(self.out_of_range(key, 0, "at least 1")),
            n => self.in_range(key, n),
        }
    }

    pub(super) fn require_size(&self, key: &'static str) -> Result<Size, ArchError> {
        Size::try_new(self.require_count(key)?, key)
    }

    /// Returns a layer's size, or an error for 0.
    pub(super) fn require_in_layer(
        &self,
        layer: usize,
        n: u64,
        key: &'static str,
    ) -> Result<Size, ArchError> {
        if n == 0 {
            return Err(ArchError::EmptyLayer {
                layer: u32::try_from(layer).expect("invariant: at most MAX_LAYERS"),
                key: self.name(key),
            });
        }
        Size::try_new(n, key)
    }

    /// Checks that `n`, the value of `key`, divides `of`, the value of `of_key`.
    pub(super) fn require_divisor(
        &self,
        key: &str,
        n: u64,
        of_key: &str,
        of: u64,
    ) -> Result<(), ArchError> {
        if of.is_multiple_of(n) {
            return Ok(());
        }
        Err(ArchError::Contradiction {
            key: self.name(key),
            found: n.to_string(),
            with: format!("{} = {of}", self.name(of_key)),
            expected: "a divisor of that number".into(),
        })
    }

    pub(super) fn count_per_layer(
        &self,
        key: &str,
        n_layer: usize,
    ) -> Result<Option<Vec<u64>>, ArchError> {
        let Some(counts) = self.metadata.get_u32_per_layer(&self.name(key), n_layer)? else {
            return Ok(None);
        };
        counts
            .into_iter()
            .map(|n| self.in_range(key, n.into()))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    pub(super) fn require_count_per_layer(
        &self,
        key: &str,
        n_layer: usize,
    ) -> Result<Vec<u64>, ArchError> {
        match self.count_per_layer(key, n_layer)? {
            Some(counts) => Ok(counts),
            None => self.require_count(key).map(|n| vec![n; n_layer]),
        }
    }

    /// Returns a required number from 0 on per layer. A list may be longer.
    pub(super) fn require_counts_from_first(
        &self,
        key: &str,
        n_layer: usize,
    ) -> Result<Vec<u64>, ArchError> {
        let found = match self.metadata.value(&self.name(key)) {
            Some(MetaValue::Array(list)) => list.len(),
            _ => n_layer,
        };
        let mut counts = match self.count_per_layer(key, found.max(n_layer))? {
            Some(counts) => counts,
            None => vec![self.require_count(key)?; n_layer],
        };
        counts.truncate(n_layer);
        Ok(counts)
    }

    pub(super) fn float(&self, key: &str) -> Result<Option<f32>, ArchError> {
        match self.metadata.get_f32(&self.name(key))? {
            Some(x) if !x.is_finite() => Err(self.out_of_range(key, x, "a finite number")),
            x => Ok(x),
        }
    }

    /// Returns a finite number above 0; `None` if absent or 0.
    pub(super) fn positive(&self, key: &str) -> Result<Option<f32>, ArchError> {
        match self.float(key)? {
            None | Some(0.0) => Ok(None),
            Some(x) if x > 0.0 => Ok(Some(x)),
            Some(x) => Err(self.out_of_range(key, x, "a number above 0")),
        }
    }

    /// Returns a finite number above 0; `None` if absent, 0, or negative, which means "not set".
    pub(super) fn above_0(&self, key: &str) -> Result<Option<f32>, ArchError> {
        Ok(self.float(key)?.filter(|&x| x > 0.0))
    }

    pub(super) fn require_above_0(&self, key: &str) -> Result<f32, ArchError> {
        match self.metadata.require_f32(&self.name(key))? {
            x if x.is_finite() && x > 0.0 => Ok(x),
            x => Err(self.out_of_range(key, x, "a number above 0")),
        }
    }

    /// Returns a number below 0; `None` if absent, 0, or -∞.
    pub(super) fn below_0(&self, key: &str) -> Result<Option<f32>, ArchError> {
        match self.metadata.get_f32(&self.name(key))? {
            None | Some(0.0 | f32::NEG_INFINITY) => Ok(None),
            Some(x) if x.is_finite() && x < 0.0 => Ok(Some(x)),
            Some(x) => Err(self.out_of_range(key, x, "a number below 0")),
        }
    }

    pub(super) fn float_per_layer(
        &self,
        key: &str,
        n_layer: usize,
    ) -> Result<Option<Vec<f32>>, ArchError> {
        let Some(numbers) = self.metadata.get_f32_per_layer(&self.name(key), n_layer)? else {
            return Ok(None);
        };
        match numbers.iter().find(|x| !x.is_finite()) {
            Some(x) => Err(self.out_of_range(key, x, "finite numbers")),
            None => Ok(Some(numbers)),
        }
    }

    /// Returns required finite numbers per layer, or one for all, under a key without the architecture's prefix.
    pub(super) fn require_shared_floats(
        &self,
        key: &str,
        n_layer: usize,
    ) -> Result<Vec<f32>, ArchError> {
        let numbers = match self.metadata.get_f32_per_layer(key, n_layer)? {
            Some(numbers) => numbers,
            None => vec![self.metadata.require_f32(key)?; n_layer],
        };
        match numbers.iter().find(|x| !x.is_finite()) {
            None => Ok(numbers),
            Some(x) => Err(ArchError::OutOfRange {
                key: key.to_owned(),
                found: x.to_string(),
                expected: "finite numbers".into(),
            }),
        }
    }

    /// Returns a finite number of at least 0, if present.
    pub(super) fn epsilon(&self, key: &str) -> Result<Option<f32>, ArchError> {
        match self.float(key)? {
            Some(x) if x < 0.0 => Err(self.out_of_range(key, x, "a number not below 0")),
            x => Ok(x),
        }
    }

    /// Returns a required finite number of at least 0.
    pub(super) fn require_epsilon(&self, key: &str) -> Result<f32, ArchError> {
        let x = self.metadata.require_f32(&self.name(key))?;
        if x.is_finite() && x >= 0.0 {
            return Ok(x);
        }
        Err(self.out_of_range(key, x, "a small number, not below 0"))
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, ArchError> {
        Ok(self.metadata.get_str(&self.name(key))?)
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, ArchError> {
        Ok(self.metadata.get_bool(&self.name(key))?)
    }

    pub(super) fn require_flag(&self, key: &str) -> Result<bool, ArchError> {
        Ok(self.metadata.require_bool(&self.name(key))?)
    }

    /// Returns a list of numbers from 0 on; empty if absent.
    pub(super) fn list(&self, key: &str) -> Result<Vec<u64>, ArchError> {
        Ok(self
            .metadata
            .get_array_u64(&self.name(key))?
            .unwrap_or_default())
    }

    /// Returns a list of numbers of any sign; empty if absent.
    pub(super) fn signed_list(&self, key: &str) -> Result<Vec<i32>, ArchError> {
        Ok(self
            .metadata
            .get_array_i32(&self.name(key))?
            .unwrap_or_default())
    }

    /// Returns a list of `N` finite numbers, if present.
    pub(super) fn floats<const N: usize>(&self, key: &str) -> Result<Option<[f32; N]>, ArchError> {
        let Some(numbers) = self.metadata.get_array_f32(&self.name(key))? else {
            return Ok(None);
        };
        if let Some(x) = numbers.iter().find(|x| !x.is_finite()) {
            return Err(self.out_of_range(key, x, "finite numbers"));
        }
        let found = format!("a list of {}", numbers.len());
        let numbers = numbers.try_into();
        numbers
            .map(Some)
            .map_err(|_| self.out_of_range(key, found, format!("a list of {N}")))
    }

    pub(super) fn require_number(&self, key: &str) -> Result<u64, ArchError> {
        let n = self.metadata.require_u64(&self.name(key))?;
        self.in_range(key, n)
    }

    /// Returns a list of `N` counts, if present.
    pub(super) fn counts<const N: usize>(&self, key: &str) -> Result<Option<[u64; N]>, ArchError> {
        let list = self.metadata.get_array_u32(&self.name(key))?;
        list.map(|list| self.checked_counts(key, list)).transpose()
    }

    pub(super) fn require_counts<const N: usize>(&self, key: &str) -> Result<[u64; N], ArchError> {
        self.checked_counts(key, self.metadata.require_array_u32(&self.name(key))?)
    }

    fn checked_counts<const N: usize>(
        &self,
        key: &str,
        list: Vec<u32>,
    ) -> Result<[u64; N], ArchError> {
        let found = format!("a list of {}", list.len());
        let list: [u32; N] = list
            .try_into()
            .map_err(|_| self.out_of_range(key, found, format!("a list of {N}")))?;
        for n in list {
            self.in_range(key, n.into())?;
        }
        Ok(list.map(u64::from))
    }

    /// Returns the listed layers or the period, if present.
    pub(super) fn pattern(&self, key: &str, n_layer: usize) -> Result<Option<Pattern>, ArchError> {
        let name = self.name(key);
        match self.metadata.value(&name) {
            None => Ok(None),
            Some(MetaValue::Array(MetaArray::Bool(_))) => Ok(self
                .metadata
                .get_bool_per_layer(&name, n_layer)?
                .map(Pattern::Layers)),
            Some(MetaValue::Array(_)) => Ok(self
                .metadata
                .get_u32_per_layer(&name, n_layer)?
                .map(|v| Pattern::Layers(v.into_iter().map(|n| n != 0).collect()))),
            Some(_) => Ok(self.metadata.get_u32(&name)?.map(Pattern::Period)),
        }
    }
}

pub(super) enum Pattern {
    Period(u32),
    Layers(Vec<bool>),
}
