//! Budgets: limits on the computation and the memory of one command.
//!
//! A pass calls [`Budget::spend`] before each piece of work and stops if the budget is exhausted. Budgets count units
//! instead of time, so every machine accepts the same inputs. The [limits](Limits::COMMAND) are at least ten times
//! the needs of the largest known models, and keep a command below two seconds and 500 MB.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::entity::Inst;
use crate::graph::Graph;

/// A resource that a command spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// Leaves in the summands of factor trees, and e-graph nodes.
    Terms,
    /// Intervals of indices that devices hold, select, or fetch.
    Segments,
    /// Applications of rules and equations, weighted by the number of items they touch.
    Steps,
    /// Instructions whose cost the planner computes. At the limit, the planner uses the best plan so far.
    Trials,
    /// Bytes of tensors when a small model runs.
    Bytes,
}

impl Resource {
    /// All resources.
    pub const ALL: [Resource; 5] = [
        Resource::Terms,
        Resource::Segments,
        Resource::Steps,
        Resource::Trials,
        Resource::Bytes,
    ];

    /// Returns the plural name (`terms`).
    pub const fn name(self) -> &'static str {
        match self {
            Resource::Terms => "terms",
            Resource::Segments => "segments",
            Resource::Steps => "steps",
            Resource::Trials => "trials",
            Resource::Bytes => "bytes",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The limit of each resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits([u64; Resource::ALL.len()]);

impl Limits {
    /// The limits of one command.
    pub const COMMAND: Limits = Limits([1_000_000, 3_000_000, 9_000_000, 45_000_000, 320 << 20]);

    /// No limits, for tests without a budget.
    pub const NONE: Limits = Limits([u64::MAX; Resource::ALL.len()]);

    /// Returns the limit of a resource.
    pub const fn of(&self, resource: Resource) -> u64 {
        self.0[resource as usize]
    }

    /// Replaces the limit of one resource.
    #[must_use]
    pub const fn with(mut self, resource: Resource, limit: u64) -> Limits {
        self.0[resource as usize] = limit;
        self
    }
}

/// The instruction that exhausted a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpLocation {
    /// The name of the op.
    pub op: String,
    /// The name of the first result, if any.
    pub value: String,
    /// The layer; `None` outside layers.
    pub layer: Option<u32>,
}

impl OpLocation {
    /// Returns the location of an instruction of a graph.
    pub fn of(graph: &Graph, inst: Inst) -> OpLocation {
        let data = graph.inst(inst);
        let value = data.results.first().map(|&v| graph.value(v).name.clone());
        OpLocation {
            op: data.op.name().to_owned(),
            value: value.unwrap_or_default(),
            layer: data.layer,
        }
    }
}

/// The error for an exhausted resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetExceeded {
    /// The resource.
    pub resource: Resource,
    /// The limit of the resource.
    pub limit: u64,
    /// The stage that exceeded the limit, such as `the proof`.
    pub doing: &'static str,
    /// The instruction; `None` for the whole graph.
    pub at: Option<OpLocation>,
}

impl fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BudgetExceeded {
            resource,
            limit,
            doing,
            at,
        } = self;
        write!(f, "{doing} needs more than {limit} {resource}")?;
        let Some(OpLocation { op, value, layer }) = at else {
            return Ok(());
        };
        write!(f, ", at `{op}`")?;
        if !value.is_empty() {
            write!(f, " of `{value}`")?;
        }
        if let Some(l) = layer {
            write!(f, " in layer {l}")?;
        }
        Ok(())
    }
}

impl std::error::Error for BudgetExceeded {}

/// The limits and the amounts used by one command. Passes share it by reference.
///
/// Each thread gets a [part](Self::part). Parts are [added](Self::add) in a fixed order, so the remainder does not
/// depend on the threads' progress.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    used: [AtomicU64; Resource::ALL.len()],
    exceeded: Mutex<Option<BudgetExceeded>>,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::new(Limits::COMMAND)
    }
}

impl Budget {
    /// Returns a budget with these limits and zero use.
    pub fn new(limits: Limits) -> Budget {
        Budget {
            limits,
            used: Default::default(),
            exceeded: Mutex::new(None),
        }
    }

    /// Returns the limits.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the amount spent.
    pub fn used(&self, resource: Resource) -> u64 {
        self.used[resource as usize].load(Ordering::Relaxed)
    }

    /// Returns the amount left.
    pub fn remaining(&self, resource: Resource) -> u64 {
        self.limits.of(resource).saturating_sub(self.used(resource))
    }

    /// Returns a budget of the remaining amounts, for another thread.
    #[must_use]
    pub fn part(&self) -> Budget {
        Budget::new(Limits(Resource::ALL.map(|r| self.remaining(r))))
    }

    /// Adds the amounts used by a part.
    pub fn add(&self, part: &Budget) {
        for r in Resource::ALL {
            self.take(r, part.used(r));
        }
    }

    /// Uses `n` units; returns false, without recording it, if this exceeds the limit.
    pub fn take(&self, resource: Resource, n: u64) -> bool {
        let used = self.used(resource).saturating_add(n);
        self.used[resource as usize].store(used, Ordering::Relaxed);
        used <= self.limits.of(resource)
    }

    /// Spends `n` units; `doing` names the stage for the error.
    ///
    /// # Errors
    /// Returns an error if the limit is exceeded. The budget [keeps](Self::first_overrun) the first such error.
    pub fn spend(
        &self,
        resource: Resource,
        n: u64,
        doing: &'static str,
        at: impl FnOnce() -> Option<OpLocation>,
    ) -> Result<(), BudgetExceeded> {
        if self.take(resource, n) {
            return Ok(());
        }
        let found = BudgetExceeded {
            resource,
            limit: self.limits.of(resource),
            doing,
            at: at(),
        };
        Err(match self.exceeded.lock() {
            Ok(mut first) => first.get_or_insert(found).clone(),
            Err(_) => found,
        })
    }

    /// Returns the first refused request.
    pub fn first_overrun(&self) -> Option<BudgetExceeded> {
        self.exceeded.lock().map_or(None, |first| first.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_refusal_is_kept_and_says_where() {
        let budget = Budget::new(Limits::NONE.with(Resource::Terms, 10));
        let spot = |value: &str| {
            Some(OpLocation {
                op: "concat".to_owned(),
                value: value.to_owned(),
                layer: Some(3),
            })
        };
        assert_eq!(
            budget.spend(Resource::Terms, 10, "the proof", || spot("a")),
            Ok(())
        );
        assert_eq!(
            (budget.remaining(Resource::Terms), budget.first_overrun()),
            (0, None)
        );
        let first = budget
            .spend(Resource::Terms, 1, "the proof", || spot("b"))
            .expect_err("nothing is left");
        assert_eq!(
            first.to_string(),
            "the proof needs more than 10 terms, at `concat` of `b` in layer 3"
        );
        let again = budget.spend(Resource::Terms, 1, "planning", || None);
        assert_eq!(again, Err(first.clone()));
        assert_eq!(budget.first_overrun(), Some(first));
        let part = budget.part();
        assert!(part.take(Resource::Steps, 7) && !part.take(Resource::Terms, 1));
        budget.add(&part);
        assert_eq!(budget.used(Resource::Steps), 7);
        assert!(budget.take(Resource::Steps, u64::MAX));
        assert!(budget.take(Resource::Steps, u64::MAX));
    }
}
