//! Sharding rules: equations between the factor trees of an op's axes, roles of factors, and linearity.

use crate::dims::Dim;

/// A tensor of an instruction, by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// An operand.
    Operand(usize),
    /// A result.
    Result(usize),
}

/// An expression for a factor tree. `Product([opd(1, 2), Fresh(0, 4)])` is axis 2 of operand 1 times a minor factor
/// of 4.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// The tree of an axis.
    Axis(Slot, usize),
    /// A factor of this size, private to the instruction, numbered within the rule.
    Fresh(usize, Dim),
    /// The product of factors, major first.
    Product(Vec<Expr>),
    /// The concatenation of segments, in order.
    Sum(Vec<Expr>),
    /// A segment: tree, start, length.
    Slice(Box<Expr>, Dim, Dim),
}

/// Returns the tree of an operand's axis.
pub const fn opd(operand: usize, axis: usize) -> Expr {
    Expr::Axis(Slot::Operand(operand), axis)
}

/// Returns the tree of an axis of the first result.
pub const fn res(axis: usize) -> Expr {
    Expr::Axis(Slot::Result(0), axis)
}

/// Returns the tree of a result's axis.
pub const fn res_of(result: usize, axis: usize) -> Expr {
    Expr::Axis(Slot::Result(result), axis)
}

/// The effect of splitting a factor. A factor without a role splits freely: each device runs the op on its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// The factor must be whole on every device.
    Whole,
    /// The factor is contracted: the result of a split is an unreduced sum.
    Reduce,
    /// The factor is normalised over: a split exchanges the statistic first.
    Norm,
    /// The factor is looked up by index: each device has the rows that it owns, and the result is an unreduced sum.
    Gather,
    /// The factor is the parts of a cache's cells: each device writes the cells of its parts.
    Owned,
    /// The factor is selected by expert index: each device computes its experts' rows, and zeros for others.
    Expert,
}

/// The effect of an op on unreduced operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Linearity {
    /// The op requires reduced operands.
    Opaque,
    /// Linear in all operands together (views, concatenation): all unreduced, or all reduced.
    Joint,
    /// The sum or difference of the operands: a whole operand counts on one device only.
    Additive,
    /// Linear in the first operand, plus the second (`add_id`), which counts on one device only.
    AdditiveFirst,
    /// Linear in each of these operands while the others are reduced and whole.
    PerOperand(Vec<usize>),
}

/// An op's sharding rule for the shapes of one instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Pairs of equal trees.
    pub equations: Vec<(Expr, Expr)>,
    /// Roles of factors.
    pub roles: Vec<(Role, Expr)>,
    /// The effect on an unreduced sum.
    pub linearity: Linearity,
    /// True if zero rows of the operands give zero rows of the result: owner-masked rows stay owner-masked.
    pub keeps_zero: bool,
}

impl Rule {
    /// Returns a rule that relates no axes and passes no unreduced sum.
    pub const fn opaque() -> Rule {
        Rule {
            equations: Vec::new(),
            roles: Vec::new(),
            linearity: Linearity::Opaque,
            keeps_zero: false,
        }
    }

    /// Returns a rule that gives the first result the axes of operand 0.
    pub fn pointwise() -> Rule {
        Rule::opaque().same(0, &[0, 1, 2, 3])
    }

    /// Equates these axes of `operand` and the first result.
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
