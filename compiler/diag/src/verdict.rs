use std::fmt;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// The verdict of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(inline, rename_all = "lowercase", extend("x-closed" = true))]
pub enum Verdict {
    /// No errors.
    Ok,
    /// At least one error.
    Error,
}

impl Verdict {
    /// Returns the verdict of a report that has errors, or has none.
    pub const fn of_errors(errors: bool) -> Verdict {
        if errors { Verdict::Error } else { Verdict::Ok }
    }

    /// Returns the word in reports.
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Error => "error",
        }
    }
}

impl Serialize for Verdict {
    /// Writes a text, because RON would write a variant as a name.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
