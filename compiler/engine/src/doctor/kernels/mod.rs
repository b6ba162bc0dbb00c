//! Checks of kernels on random cases, compared with the reference on the CPU.
//!
//! A [`Family`](families::Family) is a module of kernels with its ops. The kernels of a check are compiled together.
//! Small models check the kernels that fuse several ops.

mod case;
mod device;
mod families;
mod products;

pub(super) use families::FAMILIES;

use tpc_cuda::Driver;
use tpc_op_cases::{Random, generator};

use self::case::KernelCase;
use self::device::run_cases;
use self::families::Family;
use super::check::Bench;
use super::report::{CheckError, Finding};

type Result = std::result::Result<Finding, CheckError>;

/// Cases of each op.
const CASES: usize = 3;
/// Seeds tried for a case whose kernel belongs to the family.
const TRIES: u64 = 60;

fn plural(n: usize, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {one}s"),
    }
}

/// Returns the cases of an op with kernels of a family, from seed `first`.
fn cases(family: &Family, op: &'static str, first: u64, units: u32) -> Vec<KernelCase> {
    let Some(generate) = generator(op) else {
        return Vec::new();
    };
    let seeds = first..first.saturating_add(TRIES);
    let made = seeds.filter_map(|seed| {
        let random = Random::new(op, seed);
        let case = generate(op, &random);
        KernelCase::new(case, (op, seed), units, &random)
    });
    let of_family = made.filter(|c| family.has(&c.kernel.instance));
    of_family.take(CASES).collect()
}

/// Checks a family of kernels on a device.
pub(super) fn family<D: Driver>(family: &Family, bench: &mut Bench<D>, on: &[usize]) -> Result {
    let units = device::multiprocessors(bench, on)?;
    let ops = match bench.quick {
        true => family.quick,
        false => family.ops,
    };
    let all = ops.iter();
    let cases: Vec<KernelCase> = all
        .flat_map(|op| cases(family, op, bench.seed, units))
        .collect();
    run_cases(bench, on, &cases, &plural(ops.len(), "op"))
}

/// Checks products and lookups of weights of each quantised type on a device.
pub(super) fn products<D: Driver>(bench: &mut Bench<D>, on: &[usize]) -> Result {
    let units = device::multiprocessors(bench, on)?;
    let types = products::types(bench.quick);
    let all = types.iter();
    let cases: Vec<KernelCase> = all
        .flat_map(|t| products::cases(*t, bench.seed, units))
        .collect();
    run_cases(bench, on, &cases, &plural(types.len(), "type"))
}
