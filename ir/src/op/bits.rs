/// Zeros of different sign differ, and all NaNs are equal, as in text.
pub(super) fn bits(x: f32) -> u32 {
    if x.is_nan() { f32::NAN } else { x }.to_bits()
}

/// Implements `PartialEq`, `Eq` and `Hash`; compares the fields before the semicolon by bits.
macro_rules! eq_by_bits {
    ($op:ident { $($float:ident),+ $(; $($field:ident),+)? }) => {
        impl PartialEq for $op {
            fn eq(&self, other: &Self) -> bool {
                let $op { $($float,)+ $($($field,)+)? } = self;
                $($crate::op::bits::bits(*$float) == $crate::op::bits::bits(other.$float))&&+
                    $($(&& *$field == other.$field)+)?
            }
        }

        impl Eq for $op {}

        impl std::hash::Hash for $op {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                let $op { $($float,)+ $($($field,)+)? } = self;
                $($crate::op::bits::bits(*$float).hash(state);)+
                $($($field.hash(state);)+)?
            }
        }
    };
}

pub(super) use eq_by_bits;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::Op;
    use crate::op::{NormKind, Scale, Temperature, TemperatureCurve};

    fn scale(scale: f32, bias: f32) -> Op {
        Scale { scale, bias }.into()
    }

    #[test]
    fn numbers_are_told_apart_by_their_bits() {
        let all = [
            scale(f32::NAN, 0.0),
            scale(-f32::NAN, 0.0),
            scale(f32::INFINITY, 0.0),
            scale(1.0, 0.0),
            scale(1.0, -0.0),
            scale(1.0, 1.0),
        ];
        assert_eq!(HashSet::from(all.clone()).len(), 5);
        assert_eq!(all[0], all[1]);
        assert_ne!(all[3], all[4]);
    }

    #[test]
    fn every_field_counts() {
        let of = |scale, length, offset| Temperature {
            scale,
            length,
            offset,
            curve: TemperatureCurve::Logarithm,
        };
        let power = Temperature {
            curve: TemperatureCurve::Power,
            ..of(0.5, 2, 1.0)
        };
        let all = [
            power,
            of(0.5, 2, 1.0),
            of(0.25, 2, 1.0),
            of(0.5, 3, 1.0),
            of(0.5, 2, 0.0),
        ];
        assert_eq!(HashSet::from(all).len(), all.len());
        let norm = |kind| crate::op::Norm { kind, eps: 1e-6 };
        assert_ne!(norm(NormKind::Rms), norm(NormKind::L2));
    }
}
