//! Symbolic sizes: integer polynomials in the run-time [`Symbol`]s, so that one graph serves every batch size.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

/// A size that is known only when a batch runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Symbol {
    /// Number of tokens in the batch.
    NTokens,
    /// Number of KV-cache cells that the batch attends to.
    NKv,
    /// Number of cells that the batch attends to in sliding-window layers, whose cache is shorter.
    NKvSwa,
    /// Number of KV-cache cells.
    NCtx,
    /// Number of KV-cache cells in sliding-window layers.
    NCtxSwa,
    /// Number of sequences in the batch.
    NSeqs,
    /// Number of tokens per sequence, in graphs with recurrent states. Their token axis has `n_seqs · n_seq_tokens`
    /// indices, ordered by sequence.
    NSeqTokens,
    /// Number of sequences with recurrent-state cells.
    NSeqMax,
    /// Number of tokens whose logits are computed.
    NOutputs,
}

impl Symbol {
    /// Every symbol, in order.
    pub const ALL: [Symbol; 9] = [
        Symbol::NTokens,
        Symbol::NKv,
        Symbol::NKvSwa,
        Symbol::NCtx,
        Symbol::NCtxSwa,
        Symbol::NSeqs,
        Symbol::NSeqTokens,
        Symbol::NSeqMax,
        Symbol::NOutputs,
    ];

    /// Returns the name used in text.
    pub const fn name(self) -> &'static str {
        match self {
            Symbol::NTokens => "n_tokens",
            Symbol::NKv => "n_kv",
            Symbol::NKvSwa => "n_kv_swa",
            Symbol::NCtx => "n_ctx",
            Symbol::NCtxSwa => "n_ctx_swa",
            Symbol::NSeqs => "n_seqs",
            Symbol::NSeqTokens => "n_seq_tokens",
            Symbol::NSeqMax => "n_seq_max",
            Symbol::NOutputs => "n_outputs",
        }
    }

    /// True for numbers of KV-cache cells.
    pub const fn counts_cells(self) -> bool {
        matches!(
            self,
            Symbol::NKv | Symbol::NKvSwa | Symbol::NCtx | Symbol::NCtxSwa
        )
    }

    /// Returns the symbol of that name.
    pub fn from_name(name: &str) -> Option<Symbol> {
        Symbol::ALL.into_iter().find(|s| s.name() == name)
    }
}

const N: usize = Symbol::ALL.len();

/// Maximum number of monomials. Larger polynomials count as overflow, which bounds products in hostile text.
const MAX_MONOMIALS: usize = 64;

/// A value per symbol, for one batch.
///
/// Graphs with caches divided by cells count cells in [units](crate::Graph::cell_unit). Bindings of such graphs have the
/// same unit: [`Self::with`] takes cells and rounds up to whole units, and [`Self::get`] returns cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bindings {
    /// Values; numbers of cells are in units.
    values: [u64; N],
    unit: u64,
}

impl Default for Bindings {
    fn default() -> Self {
        Bindings {
            values: [1; N],
            unit: 1,
        }
    }
}

impl Bindings {
    /// Replaces the value of `symbol`.
    #[must_use]
    pub fn with(mut self, symbol: Symbol, value: u64) -> Self {
        self.values[symbol as usize] = match symbol.counts_cells() {
            true => value.div_ceil(self.unit),
            false => value,
        };
        self
    }

    /// Returns the value of `symbol`.
    pub fn get(&self, symbol: Symbol) -> u64 {
        match symbol.counts_cells() {
            true => self.count(symbol).saturating_mul(self.unit),
            false => self.count(symbol),
        }
    }

    /// Returns the same sizes with cells counted in units of `unit` cells, rounded up.
    #[must_use]
    pub fn in_units(self, unit: u64) -> Bindings {
        if self.unit == unit.max(1) {
            return self;
        }
        let mut out = Bindings {
            unit: unit.max(1),
            ..self
        };
        for symbol in Symbol::ALL {
            out = out.with(symbol, self.get(symbol));
        }
        out
    }

    /// Returns the number of cells per unit.
    pub const fn unit(&self) -> u64 {
        self.unit
    }

    /// Returns the value of `symbol` in a size: numbers of cells are in units.
    pub fn count(&self, symbol: Symbol) -> u64 {
        self.values[symbol as usize]
    }

    /// Returns [`Self::count`] of every symbol, in order.
    pub fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        self.values.iter().copied()
    }
}

/// `coeff · Π symbol^power`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Monomial {
    coeff: i64,
    powers: [u8; N],
}

impl Monomial {
    fn checked_mul(&self, by: &Monomial) -> Option<Monomial> {
        let mut powers = self.powers;
        for (p, q) in powers.iter_mut().zip(by.powers) {
            *p = p.checked_add(q)?;
        }
        let coeff = self.coeff.checked_mul(by.coeff)?;
        Some(Monomial { coeff, powers })
    }

    fn checked_div(&self, by: &Monomial) -> Option<Monomial> {
        if self.coeff % by.coeff != 0 {
            return None;
        }
        let mut powers = self.powers;
        for (p, q) in powers.iter_mut().zip(by.powers) {
            *p = p.checked_sub(q)?;
        }
        let coeff = self.coeff / by.coeff;
        Some(Monomial { coeff, powers })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Repr {
    Const(u64),
    /// The most frequent non-constant size: one symbol with a nonzero 32-bit coefficient. A wider coefficient would
    /// enlarge this type by half.
    Mono {
        coeff: i32,
        powers: [u8; N],
    },
    Poly(Box<Polynomial>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Polynomial(Box<[Monomial]>);

impl Repr {
    fn of_monomial(monomial: Monomial) -> Repr {
        match i32::try_from(monomial.coeff) {
            Ok(coeff) => Repr::Mono {
                coeff,
                powers: monomial.powers,
            },
            Err(_) => Repr::of_monomials(vec![monomial]),
        }
    }

    fn of_monomials(monomials: Vec<Monomial>) -> Repr {
        Repr::Poly(Box::new(Polynomial(monomials.into_boxed_slice())))
    }
}

/// A size: a constant, or a polynomial in the [`Symbol`]s.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Dim(Repr);

impl Dim {
    /// The size 1.
    pub const ONE: Dim = Dim(Repr::Const(1));
    /// The size 0.
    pub const ZERO: Dim = Dim(Repr::Const(0));

    /// Returns a constant size.
    pub const fn constant(n: u64) -> Dim {
        Dim(Repr::Const(n))
    }

    /// Returns a size equal to `symbol`.
    pub fn symbol(symbol: Symbol) -> Dim {
        let mut powers = [0; N];
        powers[symbol as usize] = 1;
        Dim(Repr::Mono { coeff: 1, powers })
    }

    /// Returns the value of a constant size.
    pub const fn as_const(&self) -> Option<u64> {
        match self.0 {
            Repr::Const(n) => Some(n),
            Repr::Mono { .. } | Repr::Poly(_) => None,
        }
    }

    /// True if the size depends on `symbol`.
    pub fn mentions(&self, symbol: Symbol) -> bool {
        match &self.0 {
            Repr::Const(_) => false,
            Repr::Mono { powers, .. } => powers[symbol as usize] > 0,
            Repr::Poly(poly) => poly.0.iter().any(|t| t.powers[symbol as usize] > 0),
        }
    }

    /// True if this is the constant 1.
    pub const fn is_one(&self) -> bool {
        matches!(self.0, Repr::Const(1))
    }

    /// True if this is the constant 0.
    pub const fn is_zero(&self) -> bool {
        matches!(self.0, Repr::Const(0))
    }

    fn monomials(&self) -> Option<Vec<Monomial>> {
        Some(match &self.0 {
            Repr::Const(0) => Vec::new(),
            Repr::Const(n) => vec![Monomial {
                coeff: i64::try_from(*n).ok()?,
                powers: [0; N],
            }],
            Repr::Mono { coeff, powers } => vec![Monomial {
                coeff: (*coeff).into(),
                powers: *powers,
            }],
            Repr::Poly(poly) => poly.0.to_vec(),
        })
    }

    fn symbolic(&self) -> impl Iterator<Item = Monomial> + '_ {
        let (one, several): (Option<Monomial>, &[Monomial]) = match &self.0 {
            Repr::Const(_) => (None, &[]),
            Repr::Mono { coeff, powers } => {
                let (coeff, powers) = ((*coeff).into(), *powers);
                (Some(Monomial { coeff, powers }), &[])
            }
            Repr::Poly(poly) => (None, &poly.0),
        };
        one.into_iter().chain(several.iter().copied())
    }

    /// Converts a monomial; `None` for a negative constant or the coefficient `i64::MIN`.
    fn from_monomial(t: Monomial) -> Option<Dim> {
        match t {
            Monomial { coeff: 0, .. } => Some(Dim::ZERO),
            Monomial { coeff, .. } if coeff == i64::MIN => None,
            Monomial { coeff, powers } if powers == [0; N] => {
                u64::try_from(coeff).ok().map(Dim::constant)
            }
            monomial => Some(Dim(Repr::of_monomial(monomial))),
        }
    }

    fn monomial(&self) -> Option<Monomial> {
        match &self.0 {
            Repr::Const(n) => i64::try_from(*n).ok().map(|coeff| Monomial {
                coeff,
                powers: [0; N],
            }),
            Repr::Mono { coeff, powers } => Some(Monomial {
                coeff: (*coeff).into(),
                powers: *powers,
            }),
            Repr::Poly(poly) => match *poly.0 {
                [monomial] => Some(monomial),
                _ => None,
            },
        }
    }

    /// Returns the canonical polynomial; `None` for a negative constant, too many monomials, or the coefficient
    /// `i64::MIN`.
    fn from_monomials(mut monomials: Vec<Monomial>) -> Option<Dim> {
        monomials.sort_by_key(|t| std::cmp::Reverse(t.powers));
        let mut out: Vec<Monomial> = Vec::with_capacity(monomials.len());
        for t in monomials {
            match out.last_mut() {
                Some(last) if last.powers == t.powers => {
                    last.coeff = last.coeff.checked_add(t.coeff)?;
                }
                _ => out.push(t),
            }
        }
        out.retain(|t| t.coeff != 0);
        if out.len() > MAX_MONOMIALS || out.iter().any(|t| t.coeff == i64::MIN) {
            return None;
        }
        match out.as_slice() {
            [] => Some(Dim::ZERO),
            [t] => Dim::from_monomial(*t),
            _ => Some(Dim(Repr::of_monomials(out))),
        }
    }

    /// Returns the sum; `None` on overflow.
    pub fn checked_add(&self, other: &Dim) -> Option<Dim> {
        if let (Some(a), Some(b)) = (self.as_const(), other.as_const()) {
            return a.checked_add(b).map(Dim::constant);
        }
        match (self.is_zero(), other.is_zero()) {
            (true, _) => return Some(other.clone()),
            (_, true) => return Some(self.clone()),
            _ => {}
        }
        let mut t = self.monomials()?;
        t.extend(other.monomials()?);
        Dim::from_monomials(t)
    }

    /// Returns the difference; `None` on overflow or for a negative constant.
    pub fn checked_sub(&self, other: &Dim) -> Option<Dim> {
        if let (Some(a), Some(b)) = (self.as_const(), other.as_const()) {
            return a.checked_sub(b).map(Dim::constant);
        }
        if other.is_zero() {
            return Some(self.clone());
        }
        let mut t = self.monomials()?;
        t.extend(other.monomials()?.into_iter().map(|t| Monomial {
            coeff: -t.coeff,
            ..t
        }));
        Dim::from_monomials(t)
    }

    /// Returns the product; `None` on overflow.
    pub fn checked_mul(&self, other: &Dim) -> Option<Dim> {
        if let (Some(a), Some(b)) = (self.as_const(), other.as_const()) {
            return a.checked_mul(b).map(Dim::constant);
        }
        match (self.is_one(), other.is_one()) {
            (true, _) => return Some(other.clone()),
            (_, true) => return Some(self.clone()),
            _ => {}
        }
        if let (Some(a), Some(b)) = (self.monomial(), other.monomial()) {
            return Dim::from_monomial(a.checked_mul(&b)?);
        }
        let (left, right) = (self.monomials()?, other.monomials()?);
        let mut t = Vec::with_capacity(left.len() * right.len());
        for a in &left {
            for b in &right {
                t.push(a.checked_mul(b)?);
            }
        }
        Dim::from_monomials(t)
    }

    /// Returns the quotient if the division is exact for all values of the symbols.
    pub fn checked_div(&self, divisor: &Dim) -> Option<Dim> {
        if let (Some(a), Some(b)) = (self.as_const(), divisor.as_const()) {
            return (b != 0 && a % b == 0).then(|| Dim::constant(a / b));
        }
        if self == divisor {
            return Some(Dim::ONE);
        }
        if divisor.is_zero() {
            return None;
        }
        if let (Some(a), Some(b)) = (self.monomial(), divisor.monomial()) {
            return match a.coeff {
                0 => Some(Dim::ZERO),
                _ => Dim::from_monomial(a.checked_div(&b)?),
            };
        }
        let d = divisor.monomials()?;
        let [d] = d.as_slice() else {
            let (a, b) = (self.monomials()?, d);
            if a.len() != b.len() {
                return None;
            }
            let first =
                Dim::from_monomials(vec![a[0]])?.checked_div(&Dim::from_monomials(vec![b[0]])?)?;
            return (divisor.checked_mul(&first)? == *self).then_some(first);
        };
        let mut out = Vec::new();
        for t in self.monomials()? {
            out.push(t.checked_div(d)?);
        }
        Dim::from_monomials(out)
    }

    /// Returns the size with numbers of cells counted in units of `unit` cells; `None` on overflow.
    pub fn in_units(&self, unit: u64) -> Option<Dim> {
        if self.as_const().is_some() {
            return Some(self.clone());
        }
        let unit = i64::try_from(unit).ok()?;
        let mut out = self.monomials()?;
        for t in &mut out {
            for s in Symbol::ALL.into_iter().filter(|s| s.counts_cells()) {
                for _ in 0..t.powers[s as usize] {
                    t.coeff = t.coeff.checked_mul(unit)?;
                }
            }
        }
        Dim::from_monomials(out)
    }

    /// Returns the largest constant that always divides this size; 0 for the size 0.
    pub fn content(&self) -> u64 {
        match &self.0 {
            Repr::Const(n) => *n,
            Repr::Mono { coeff, .. } => coeff.unsigned_abs().into(),
            Repr::Poly(poly) => {
                (poly.0.iter())
                    .map(|t| t.coeff.unsigned_abs())
                    .fold(0, |mut a, mut b| {
                        while b != 0 {
                            (a, b) = (b, a % b);
                        }
                        a
                    })
            }
        }
    }

    /// True if this size is provably at most `other` for every batch.
    ///
    /// The proof uses `n_outputs ≥ 0`, all other symbols ≥ 1, `n_kv ≤ n_ctx`, `n_kv_swa ≤ n_ctx_swa`,
    /// `n_seqs ≤ n_seq_max` and `n_outputs ≤ n_tokens`.
    pub fn at_most(&self, other: &Dim) -> bool {
        if let (Some(a), Some(b)) = (self.as_const(), other.as_const()) {
            return a <= b;
        }
        if self == other {
            return true;
        }
        // A substitution uses one of the two bounds on `n_tokens`.
        [false, true]
            .into_iter()
            .any(|outputs| difference(other, self, outputs).is_some_and(|d| d.all_positive()))
    }

    /// Returns the value for one batch; `None` if it is negative or overflows.
    pub fn eval(&self, bindings: &Bindings) -> Option<u64> {
        if let Some(n) = self.as_const() {
            return Some(n);
        }
        let mut sum: i128 = 0;
        for t in self.symbolic() {
            let mut p = i128::from(t.coeff);
            for (power, value) in t.powers.iter().zip(bindings.counts()) {
                for _ in 0..*power {
                    p = p.checked_mul(i128::from(value))?;
                }
            }
            sum = sum.checked_add(p)?;
        }
        u64::try_from(sum).ok()
    }

    /// Returns the largest value over batches whose symbols are at most `most`; `None` on overflow.
    ///
    /// `n_ctx`, `n_ctx_swa` and `n_seq_max` are fixed. The other bounds are `n_outputs ≥ 0`, all other symbols ≥ 1,
    /// and `n_seqs · n_seq_tokens ≤ n_tokens`.
    pub fn upper_bound(&self, most: &Bindings) -> Option<u64> {
        if let Some(n) = self.as_const() {
            return Some(n);
        }
        let mut sum: i128 = 0;
        for t in self.symbolic() {
            let extreme = if t.coeff > 0 {
                monomial_max(&t.powers, most)?
            } else {
                monomial_min(&t.powers, most)?
            };
            sum = sum.checked_add(extreme.checked_mul(i128::from(t.coeff))?)?;
        }
        u64::try_from(sum.max(0)).ok()
    }

    /// Returns the product; `None` on overflow.
    pub fn product<'a>(dims: impl IntoIterator<Item = &'a Dim>) -> Option<Dim> {
        dims.into_iter()
            .try_fold(Dim::ONE, |acc, d| acc.checked_mul(d))
    }

    /// Returns the sum; `None` on overflow.
    pub fn sum<'a>(dims: impl IntoIterator<Item = &'a Dim>) -> Option<Dim> {
        dims.into_iter()
            .try_fold(Dim::ZERO, |acc, d| acc.checked_add(d))
    }
}

fn monomial_max(powers: &[u8; N], most: &Bindings) -> Option<i128> {
    let of = |s: Symbol| (powers[s as usize], i128::from(most.count(s)));
    let mut product: i128 = 1;
    let mut times = |value: i128, power: u8| -> Option<()> {
        for _ in 0..power {
            product = product.checked_mul(value)?;
        }
        Some(())
    };
    let ((seqs, n_seqs), (each, n_each)) = (of(Symbol::NSeqs), of(Symbol::NSeqTokens));
    let pairs = seqs.min(each);
    let (_, n_tokens) = of(Symbol::NTokens);
    times((n_seqs * n_each).min(n_tokens), pairs)?;
    times(n_seqs, seqs - pairs)?;
    times(n_each, each - pairs)?;
    for s in Symbol::ALL {
        if !matches!(s, Symbol::NSeqs | Symbol::NSeqTokens) {
            let (power, value) = of(s);
            times(value, power)?;
        }
    }
    Some(product)
}

fn monomial_min(powers: &[u8; N], most: &Bindings) -> Option<i128> {
    let mut product: i128 = 1;
    for s in Symbol::ALL {
        let least = match s {
            Symbol::NCtx | Symbol::NCtxSwa | Symbol::NSeqMax => i128::from(most.count(s)),
            Symbol::NOutputs => 0,
            Symbol::NTokens | Symbol::NKv | Symbol::NKvSwa | Symbol::NSeqs | Symbol::NSeqTokens => {
                i128::from(most.count(s).min(1))
            }
        };
        for _ in 0..powers[s as usize] {
            product = product.checked_mul(least)?;
        }
    }
    Some(product)
}

/// A polynomial with coefficients of any sign, in the excesses of the symbols over their minimum values.
struct ShiftedPolynomial(BTreeMap<[u8; N], i128>);

impl ShiftedPolynomial {
    const MAX: usize = 1 << 10;

    fn all_positive(&self) -> bool {
        self.0.values().all(|&c| c >= 0)
    }

    fn times(&self, factor: &[([u8; N], i128)]) -> Option<ShiftedPolynomial> {
        let mut out = BTreeMap::new();
        for (powers, c) in &self.0 {
            for (by, d) in factor {
                let mut powers = *powers;
                for (p, q) in powers.iter_mut().zip(by) {
                    *p = p.checked_add(*q)?;
                }
                let entry: &mut i128 = out.entry(powers).or_default();
                *entry = entry.checked_add(c.checked_mul(*d)?)?;
            }
        }
        (out.len() <= Self::MAX).then_some(ShiftedPolynomial(out))
    }
}

fn shift_symbol(symbol: Symbol, outputs: bool) -> Vec<([u8; N], i128)> {
    let of = |s: Symbol| {
        let mut powers = [0; N];
        powers[s as usize] = 1;
        (powers, 1)
    };
    let one = ([0; N], 1);
    match symbol {
        Symbol::NCtx => vec![of(symbol), of(Symbol::NKv), one],
        Symbol::NCtxSwa => vec![of(symbol), of(Symbol::NKvSwa), one],
        Symbol::NSeqMax => vec![of(symbol), of(Symbol::NSeqs), one],
        Symbol::NTokens if outputs => vec![of(symbol), of(Symbol::NOutputs)],
        Symbol::NOutputs => vec![of(symbol)],
        Symbol::NTokens | Symbol::NKv | Symbol::NKvSwa | Symbol::NSeqs | Symbol::NSeqTokens => {
            vec![of(symbol), one]
        }
    }
}

/// Returns `a − b` in the excesses; `None` if too long or on overflow.
fn difference(a: &Dim, b: &Dim, outputs: bool) -> Option<ShiftedPolynomial> {
    let mut out: BTreeMap<[u8; N], i128> = BTreeMap::new();
    for (dim, sign) in [(a, 1), (b, -1)] {
        for t in dim.monomials()? {
            let mut of = ShiftedPolynomial(BTreeMap::from([([0; N], sign * i128::from(t.coeff))]));
            for (s, &power) in Symbol::ALL.into_iter().zip(&t.powers) {
                for _ in 0..power {
                    of = of.times(&shift_symbol(s, outputs))?;
                }
            }
            for (powers, c) in of.0 {
                let entry = out.entry(powers).or_default();
                *entry = entry.checked_add(c)?;
            }
        }
    }
    Some(ShiftedPolynomial(out))
}

impl From<u64> for Dim {
    fn from(n: u64) -> Dim {
        Dim::constant(n)
    }
}

impl From<Symbol> for Dim {
    fn from(s: Symbol) -> Dim {
        Dim::symbol(s)
    }
}

impl PartialEq<u64> for Dim {
    fn eq(&self, other: &u64) -> bool {
        self.as_const() == Some(*other)
    }
}

impl PartialOrd for Dim {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A total order for deterministic tables, unrelated to size.
impl Ord for Dim {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Const(a), Repr::Const(b)) => a.cmp(b),
            (Repr::Const(_), _) => Ordering::Less,
            (_, Repr::Const(_)) => Ordering::Greater,
            _ => {
                let key = |t: Monomial| (t.powers, t.coeff);
                self.symbolic().map(key).cmp(other.symbolic().map(key))
            }
        }
    }
}

/// `32*n_tokens + 3`: products with `*`, highest powers first.
impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(n) = self.as_const() {
            return write!(f, "{n}");
        }
        for (i, t) in self.symbolic().enumerate() {
            match (i, t.coeff < 0) {
                (0, false) => {}
                (0, true) => f.write_str("-")?,
                (_, false) => f.write_str(" + ")?,
                (_, true) => f.write_str(" - ")?,
            }
            let mut star = "";
            if t.coeff.unsigned_abs() != 1 || t.powers == [0; N] {
                write!(f, "{}", t.coeff.unsigned_abs())?;
                star = "*";
            }
            for (s, &p) in Symbol::ALL.iter().zip(&t.powers) {
                for _ in 0..p {
                    write!(f, "{star}{}", s.name())?;
                    star = "*";
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t() -> Dim {
        Symbol::NTokens.into()
    }

    #[test]
    fn arithmetic_is_canonical() {
        let a = t()
            .checked_mul(&Dim::constant(32))
            .and_then(|d| d.checked_add(&Dim::constant(3)));
        let a = a.expect("small");
        assert_eq!(a.to_string(), "32*n_tokens + 3");
        let b = a.checked_sub(&Dim::constant(3)).expect("small");
        assert_eq!(
            b.checked_div(&Dim::constant(8)).map(|d| d.to_string()),
            Some("4*n_tokens".into())
        );
        assert_eq!(b.checked_div(&t()), Some(Dim::constant(32)));
        assert_eq!(a.checked_div(&Dim::constant(8)), None);
        assert_eq!(
            a.checked_mul(&Dim::constant(5))
                .and_then(|d| d.checked_div(&a)),
            Some(Dim::constant(5))
        );
        assert_eq!(
            a.eval(&Bindings::default().with(Symbol::NTokens, 7)),
            Some(227)
        );
        assert_eq!(Dim::constant(3).checked_sub(&Dim::constant(4)), None);
        assert_eq!(
            Dim::from(Symbol::NCtx)
                .checked_sub(&Symbol::NKv.into())
                .expect("ok")
                .to_string(),
            "-n_kv + n_ctx"
        );
    }

    #[test]
    fn the_order_of_symbols_is_known() {
        let d = |text: &[(i64, &[Symbol])]| {
            let monomials = text.iter().map(|(coeff, symbols)| {
                let mut powers = [0; N];
                symbols.iter().for_each(|&s| powers[s as usize] += 1);
                Monomial {
                    coeff: *coeff,
                    powers,
                }
            });
            Dim::from_monomials(monomials.collect()).expect("small")
        };
        let one = |s: Symbol| Dim::from(s);
        use Symbol::{NCtx, NKv, NOutputs, NSeqMax, NSeqTokens, NSeqs, NTokens};
        let right = [
            (Dim::ONE, one(NTokens)),
            (one(NKv), one(NCtx)),
            (one(NSeqs), one(NSeqMax)),
            (one(NOutputs), one(NTokens)),
            (one(NSeqTokens), d(&[(1, &[NSeqTokens, NSeqs])])),
            (one(NSeqTokens), d(&[(1, &[NSeqTokens]), (3, &[])])),
            (d(&[(2, &[NKv, NSeqs])]), d(&[(3, &[NCtx, NSeqMax])])),
            (Dim::ZERO, d(&[(1, &[NTokens]), (-1, &[])])),
        ];
        for (a, b) in &right {
            assert!(a.at_most(b), "{a} ≤ {b}");
        }
        let wrong = [
            (Dim::constant(2), one(NTokens)),
            (one(NCtx), one(NKv)),
            (Dim::ONE, one(NOutputs)),
            (one(NTokens), one(NKv)),
            (d(&[(1, &[NTokens]), (9, &[])]), one(NTokens)),
            (Dim::ZERO, d(&[(1, &[NOutputs]), (-12, &[])])),
            (d(&[(1, &[NKv, NKv])]), d(&[(9, &[NCtx])])),
        ];
        for (a, b) in &wrong {
            assert!(!a.at_most(b), "{a} ≤ {b}");
        }
        let mut tall = one(NTokens);
        for _ in 0..7 {
            tall = tall.checked_mul(&tall).expect("fits");
        }
        assert!(Dim::ONE.at_most(&tall) || !Dim::ONE.at_most(&tall));
    }
}
