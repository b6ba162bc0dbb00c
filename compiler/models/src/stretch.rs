use tpc_gguf::{Header, Metadata};

/// A context stretched by scaling the rotation of positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Positions before scaling.
    pub original: u64,
    /// Stretch factor; 1 without stretching.
    pub factor: f64,
}

impl Stretch {
    /// Returns the number of positions that the context reaches.
    pub fn reach(self) -> u64 {
        (self.original as f64 * self.factor.max(1.0)).round() as u64
    }
}

/// Scaling settings of the rotation, from the file or from options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RopeScaling {
    /// `none`, `linear`, `yarn`, or another value from the file.
    pub kind: Option<String>,
    /// Scaling factor.
    pub factor: Option<f64>,
    /// Context before scaling.
    pub original: Option<u64>,
    /// Context length in the file.
    pub context: Option<u64>,
}

impl RopeScaling {
    /// Reads a file's scaling settings.
    pub fn of_file(header: &Header) -> RopeScaling {
        let metadata = header.metadata();
        let arch = metadata.get_str("general.architecture").ok().flatten();
        arch.map_or_else(RopeScaling::default, |arch| {
            RopeScaling::read(metadata, arch)
        })
    }

    pub(crate) fn read(metadata: &Metadata, arch: &str) -> RopeScaling {
        let key = |name: &str| format!("{arch}.{name}");
        let count = |name: &str| metadata.get_u64(&key(name)).ok().flatten();
        let kind = metadata.get_str(&key("rope.scaling.type")).ok().flatten();
        let factor = metadata.get_f32(&key("rope.scaling.factor")).ok().flatten();
        RopeScaling {
            kind: kind.map(str::to_owned),
            factor: factor.map(f64::from),
            original: count("rope.scaling.original_context_length"),
            context: count("context_length"),
        }
    }

    /// Fills missing settings from `file`.
    #[must_use]
    pub fn or(self, file: RopeScaling) -> RopeScaling {
        RopeScaling {
            kind: self.kind.or(file.kind),
            factor: self.factor.or(file.factor),
            original: self.original.filter(|&n| n > 0).or(file.original),
            context: self.context.or(file.context),
        }
    }

    /// True if no setting is present.
    pub fn is_empty(&self) -> bool {
        *self == RopeScaling::default()
    }

    /// Returns a file's stretched context; `None` if the context is not longer than the stated one.
    pub fn of_context(&self) -> Option<Stretch> {
        let factor = self.factor.filter(|&f| f > 1.0 && f.is_finite())?;
        // With linear scaling, the stated context is the scaled one, unless the file states the original.
        let original = match self.kind.as_deref() {
            Some("yarn") => self.original.or(self.context)?,
            Some("linear") => self.original?,
            _ => return None,
        };
        let stretch = Stretch { original, factor };
        (stretch.reach() > self.context.unwrap_or(0)).then_some(stretch)
    }

    /// Returns the context under options that override some settings. `file` has only the file's settings.
    pub fn of_options(&self, file: &RopeScaling) -> Option<Stretch> {
        let context = self.context?;
        let is_off = self.kind.as_deref() == Some("none");
        let factor = self.factor.filter(|&f| f > 1.0 && f.is_finite() && !is_off);
        let plain = match file.factor.is_some_and(|f| f > 1.0) && is_off {
            true => self.original.unwrap_or(context).min(context),
            false => context,
        };
        let plain = Stretch {
            original: plain,
            factor: 1.0,
        };
        let Some(factor) = factor else {
            return Some(plain);
        };
        let stretch = Stretch {
            original: self.original.unwrap_or(context),
            factor,
        };
        Some(match stretch.reach() > plain.original {
            true => stretch,
            false => plain,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaling(kind: &str, factor: f64, original: u64, context: u64) -> RopeScaling {
        RopeScaling {
            kind: (!kind.is_empty()).then(|| kind.to_owned()),
            factor: (factor > 0.0).then_some(factor),
            original: (original > 0).then_some(original),
            context: Some(context),
        }
    }

    #[test]
    fn files_state_the_scaled_context_or_the_original_one() {
        let reach = |s: RopeScaling| s.of_context().map(Stretch::reach);
        assert_eq!(reach(scaling("yarn", 4.0, 32768, 40960)), Some(131_072));
        assert_eq!(reach(scaling("yarn", 32.0, 4096, 131_072)), None);
        assert_eq!(reach(scaling("yarn", 40.0, 4096, 200_000)), None);
        assert_eq!(reach(scaling("yarn", 4.0, 0, 32768)), Some(131_072));
        assert_eq!(reach(scaling("linear", 8.0, 0, 131_072)), None);
        assert_eq!(reach(scaling("", 0.0, 0, 40960)), None);
    }

    #[test]
    fn options_stand_before_the_file() {
        let file = scaling("", 0.0, 0, 40960);
        let options = scaling("yarn", 4.0, 32768, 40960);
        let of = |s: &RopeScaling, file: &RopeScaling| {
            let stretch = s.of_options(file).expect("a context");
            (stretch.original, stretch.factor)
        };
        assert_eq!(of(&options, &file), (32768, 4.0));
        assert_eq!(of(&scaling("", 4.0, 0, 40960), &file), (40960, 4.0));
        assert_eq!(of(&scaling("yarn", 0.0, 32768, 40960), &file), (40960, 1.0));
        let scaled = scaling("yarn", 4.0, 32768, 131_072);
        assert_eq!(
            of(&scaling("none", 4.0, 32768, 131_072), &scaled),
            (32768, 1.0)
        );
    }
}
