use super::rule::{Linearity, Rule};
use crate::entity::Class;
use crate::sharding::Unreduced;

/// The state of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperandState {
    /// The operand's unreduced sum over devices.
    pub unreduced: Unreduced,
    /// True if an axis is split.
    pub split: bool,
}

/// The roles of the op's split factors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ActiveRoles {
    /// True if a contracted factor is split.
    pub reduce: bool,
    /// True if a normalised factor is split.
    pub norm: bool,
    /// True if a looked-up factor is split.
    pub gather: bool,
    /// The class that splits the experts.
    pub expert: Option<Class>,
}

/// Returns the state of the result.
///
/// # Errors
/// Returns the operands that must be reduced first.
pub fn unreduced_result(
    rule: &Rule,
    operands: &[OperandState],
    active: ActiveRoles,
) -> Result<Unreduced, Vec<usize>> {
    let waiting: Vec<usize> = (0..operands.len())
        .filter(|&i| operands[i].unreduced != Unreduced::None)
        .collect();
    let any_split = operands.iter().any(|o| o.split);
    if let Some(e) = active.expert {
        // Rows of other devices' experts are not computed, so they must be zero or come from a whole value.
        let data = &operands[..operands.len() - 1];
        let fits = |p: Unreduced| p == Unreduced::None || p == Unreduced::OwnerMasked(e);
        let bad: Vec<usize> = waiting
            .iter()
            .copied()
            .filter(|&i| i + 1 == operands.len() || !fits(data[i].unreduced))
            .collect();
        // Each device adds the rows of its own experts to an unreduced sum, or to a whole value that only one device
        // adds.
        if rule.linearity == Linearity::AdditiveFirst {
            match data[0].unreduced {
                Unreduced::Partial if bad == [0] => return Ok(Unreduced::Partial),
                Unreduced::None if bad.is_empty() => return Ok(Unreduced::Partial),
                _ => {}
            }
        }
        return if bad.is_empty() {
            Ok(Unreduced::OwnerMasked(e))
        } else {
            Err(bad)
        };
    }
    if active.reduce || active.gather {
        return if waiting.is_empty() {
            Ok(Unreduced::Partial)
        } else {
            Err(waiting)
        };
    }
    if waiting.is_empty() {
        return Ok(Unreduced::None);
    }
    let masked = operands[waiting[0]].unreduced;
    let all_masked = matches!(masked, Unreduced::OwnerMasked(_))
        && waiting.iter().all(|&i| operands[i].unreduced == masked);
    let kept = |stays: bool| {
        if stays && all_masked {
            masked
        } else {
            Unreduced::Partial
        }
    };
    let all = waiting.len() == operands.len();
    if rule.keeps_zero && all && all_masked {
        return Ok(masked);
    }
    match &rule.linearity {
        Linearity::Opaque => Err(waiting),
        Linearity::Joint if all => Ok(kept(false)),
        Linearity::Joint => Err(waiting),
        Linearity::Additive if any_split => Err(waiting),
        Linearity::Additive => Ok(kept(all)),
        Linearity::AdditiveFirst if waiting == [0] && !any_split => Ok(Unreduced::Partial),
        Linearity::AdditiveFirst => Err(waiting),
        Linearity::PerOperand(linear) => match waiting.as_slice() {
            [one] if linear.contains(one) && !any_split => Ok(kept(rule.keeps_zero)),
            _ => Err(waiting),
        },
    }
}
