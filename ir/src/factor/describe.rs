use std::fmt;

use super::label::Label;
use super::space::{Space, Var};

impl Space {
    /// Describes a tree: the sizes of factors and segments, and the class of each split leaf.
    pub fn describe(&self, v: Var) -> String {
        struct VarDisplay<'a>(&'a Space, Var);
        impl fmt::Display for VarDisplay<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let VarDisplay(s, v) = *self;
                let factors = s.factors(&[v]);
                if factors.is_empty() {
                    return f.write_str("1");
                }
                for (i, &x) in factors.iter().enumerate() {
                    if i > 0 {
                        f.write_str("·")?;
                    }
                    if let Some(segments) = s.segments(x) {
                        f.write_str("(")?;
                        for (j, &g) in segments.iter().enumerate() {
                            if j > 0 {
                                f.write_str(" ⊕ ")?;
                            }
                            VarDisplay(s, g).fmt(f)?;
                        }
                        f.write_str(")")?;
                    } else {
                        match s.label(x) {
                            Some(Label::Split(c)) => write!(f, "{} split by {c}", s.size(x))?,
                            Some(Label::Minor(c)) => write!(f, "{} inside {}", s.size(x), c.class)?,
                            _ => write!(f, "{}", s.size(x))?,
                        }
                    }
                }
                Ok(())
            }
        }
        VarDisplay(self, v).to_string()
    }
}
