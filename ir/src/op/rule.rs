//! The language in which an op states its sharding rule: equations between factor trees of its operands' and
//! results' axes, roles of factors, and how a pending sum passes through.

use crate::dims::Dim;

/// A tensor of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// The operand at this position.
    Operand(usize),
    /// The result at this position.
    Result(usize),
}

/// A factor tree built from axes.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// An axis of a tensor.
    Axis(Slot, usize),
    /// A factor of that size that occurs only in this instruction, numbered within the rule.
    Fresh(usize, Dim),
    /// Factors, major first.
    Product(Vec<Expr>),
    /// Segments, in order.
    Sum(Vec<Expr>),
    /// `len` indices of a tree from `start` on.
    Slice(Box<Expr>, Dim, Dim),
}

/// An operand's axis.
pub const fn opd(operand: usize, axis: usize) -> Expr {
    Expr::Axis(Slot::Operand(operand), axis)
}

/// An axis of the first result.
pub const fn res(axis: usize) -> Expr {
    Expr::Axis(Slot::Result(0), axis)
}

/// An axis of a result.
pub const fn res_of(result: usize, axis: usize) -> Expr {
    Expr::Axis(Slot::Result(result), axis)
}

/// What a split of a factor means to the op. Factors without a role pass: the op runs on each part by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// The factor must be whole on every device.
    Whole,
    /// Contracted: where it is split the result is a pending sum.
    Reduce,
    /// Normalised over: where it is split the statistic must be exchanged first.
    Norm,
    /// Looked up by index: where it is split each device finds only its own rows, and the result is a pending sum.
    Gather,
    /// Selected by expert index: where it is split each device computes the rows of its experts, others are zero.
    Expert,
}

/// How a pending sum among the operands passes through an op.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Linearity {
    /// It does not: the sum must be done first.
    Opaque,
    /// The op is linear in all operands taken together (views, concatenation): all pending, or none.
    Joint,
    /// The result is a sum or difference of the operands: whole operands count on one device only.
    Additive,
    /// Linear in the first operand and additive in the second (`add_id`), which counts on one device only.
    AdditiveFirst,
    /// Linear in each of these operands while all others are whole and unsplit.
    Each(Vec<usize>),
}

/// An op's sharding rule for the shapes of one instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Pairs of trees that are the same.
    pub equations: Vec<(Expr, Expr)>,
    /// Roles of factors.
    pub roles: Vec<(Role, Expr)>,
    /// How a pending sum passes.
    pub linearity: Linearity,
    /// Whether zero rows of the operands give zero rows of the result, so that disjoint rows stay disjoint.
    pub keeps_zero: bool,
}

impl Rule {
    /// A rule without equations: nothing is related, nothing pending passes.
    pub const fn opaque() -> Rule {
        Rule {
            equations: Vec::new(),
            roles: Vec::new(),
            linearity: Linearity::Opaque,
            keeps_zero: false,
        }
    }

    /// A rule by which the first result has the axes of operand 0.
    pub fn pointwise() -> Rule {
        Rule::opaque().same(0, &[0, 1, 2, 3])
    }

    /// Adds: these axes of `operand` are those of the first result.
    #[must_use]
    pub fn same(mut self, operand: usize, axes: &[usize]) -> Rule {
        self.equations
            .extend(axes.iter().map(|&a| (opd(operand, a), res(a))));
        self
    }

    /// Adds one equation.
    #[must_use]
    pub fn eq(mut self, a: Expr, b: Expr) -> Rule {
        self.equations.push((a, b));
        self
    }

    /// Adds one role.
    #[must_use]
    pub fn role(mut self, role: Role, expr: Expr) -> Rule {
        self.roles.push((role, expr));
        self
    }

    /// Sets the linearity.
    #[must_use]
    pub fn linear(mut self, linearity: Linearity) -> Rule {
        self.linearity = linearity;
        self
    }

    /// Declares that zero rows stay zero.
    #[must_use]
    pub fn zero(mut self) -> Rule {
        self.keeps_zero = true;
        self
    }
}
