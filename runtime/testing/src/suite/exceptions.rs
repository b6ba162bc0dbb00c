//! Ops that an executor may skip or accept.

/// A check of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Results match the reference.
    Agreement,
    /// The executor refuses results with sizes that do not match the op.
    Misfit,
}

/// An op that fails a check on an executor.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// The executor's name, or `every`.
    pub executor: &'static str,
    /// The check.
    pub check: Check,
    /// The op's name.
    pub op: &'static str,
    /// The reason for the exception.
    pub why: &'static str,
}

/// All executors; used for ops without cases.
pub(super) const EVERY: &str = "every";

const LEAF: &str = "a leaf is loaded, not computed";
const COLLECTIVE: &str = "a collective needs several places, and a case has one";
const ANY_ROWS: &str = "the kernel fills any number of rows";

/// All exceptions.
pub const EXCEPTIONS: &[Exception] = &[
    skip(EVERY, "weight", LEAF),
    skip(EVERY, "input", LEAF),
    skip(EVERY, "state", LEAF),
    skip(EVERY, "all_reduce", COLLECTIVE),
    skip(EVERY, "all_gather", COLLECTIVE),
    skip(EVERY, "reduce_scatter", COLLECTIVE),
    skip(EVERY, "all_to_all", COLLECTIVE),
    skip("cuda", "opaque", "ggml's ops run on the CPU"),
    accept("cpu", "arange", ANY_ROWS),
    accept("cpu", "repeat", ANY_ROWS),
];

const fn skip(executor: &'static str, op: &'static str, why: &'static str) -> Exception {
    Exception {
        executor,
        check: Check::Agreement,
        op,
        why,
    }
}

const fn accept(executor: &'static str, op: &'static str, why: &'static str) -> Exception {
    Exception {
        executor,
        check: Check::Misfit,
        op,
        why,
    }
}

pub(super) fn exception(executor: &str, check: Check, op: &str) -> Option<&'static Exception> {
    let concerns =
        |e: &&Exception| [executor, EVERY].contains(&e.executor) && e.check == check && e.op == op;
    EXCEPTIONS.iter().find(concerns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_name_ops_and_reasons() {
        for e in EXCEPTIONS {
            let ops = tpc_ir::op::Op::NAMES.iter().copied().flatten();
            assert!(ops.into_iter().any(|op| *op == e.op), "{e:?}");
            assert!(!e.why.is_empty(), "{e:?}");
        }
    }
}
