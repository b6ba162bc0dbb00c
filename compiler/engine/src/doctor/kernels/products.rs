//! Products and lookups of quantised weights, in planes or in the layout of the file.

use tpc_cuda::kernels::{Kernel, Request, Tensor as Sizes, select, select_terms};
use tpc_cuda::planes::Planes;
use tpc_ir::DType;
use tpc_ir::op::{GetRows, MulMat, MulMatId, Op};
use tpc_op_cases::{Arg, Case, Random, Stored};
use tpc_runtime::{Data, Options, Shape};

use super::case::{KernelCase, PlaneForms};

/// The largest error as a share of the largest result. The terms of activations have 15 bits.
const SHARE: f64 = 2e-4;

/// Returns the types of weights to check.
pub(super) fn types(quick: bool) -> Vec<DType> {
    match quick {
        true => vec![DType::Q4K],
        false => {
            let all = DType::ALL.iter().copied();
            all.filter(|t| t.is_quantised()).collect()
        }
    }
}

/// An op with its other operands and the sizes of its result.
struct Access {
    name: &'static str,
    op: Op,
    weight: [usize; 4],
    others: Vec<Arg>,
    result: [usize; 4],
}

fn reals(dims: [usize; 4], random: &Random) -> Arg {
    let n = dims.iter().product();
    let data = std::iter::repeat_with(|| random.real()).take(n).collect();
    Arg {
        dtype: DType::F32,
        dims,
        data: Data::F64(data),
    }
}

fn ids(dims: [usize; 4], below: usize, random: &Random) -> Arg {
    let n = dims.iter().product();
    let data = std::iter::repeat_with(|| random.below(below) as i64);
    Arg {
        dtype: DType::I32,
        dims,
        data: Data::Int(data.take(n).collect()),
    }
}

/// Returns a product for one token, for several tokens and with experts, and a lookup.
fn accesses(dtype: DType, random: &Random) -> Vec<Access> {
    let unit = (dtype.block_len() as usize).next_multiple_of(32);
    let k = unit * random.within(1, 3);
    let rows = || random.within(3, 40);
    let [m, n, each, looked] = std::array::from_fn(|_| rows());
    // Products of more than eight tokens read activations in another form, which small models check.
    let (tokens, experts) = (random.within(2, 8), random.within(2, 4));
    let window = None;
    vec![
        Access {
            name: "mul_mat",
            op: MulMat.into(),
            weight: [k, m, 1, 1],
            others: vec![reals([k, 1, 1, 1], random)],
            result: [m, 1, 1, 1],
        },
        Access {
            name: "mul_mat",
            op: MulMat.into(),
            weight: [k, n, 1, 1],
            others: vec![reals([k, tokens, 1, 1], random)],
            result: [n, tokens, 1, 1],
        },
        Access {
            name: "mul_mat_id",
            op: MulMatId { window }.into(),
            weight: [k, each, experts, 1],
            others: vec![
                reals([k, 1, 3, 1], random),
                ids([2, 3, 1, 1], experts, random),
            ],
            result: [each, 2, 3, 1],
        },
        Access {
            name: "get_rows",
            op: GetRows { window }.into(),
            weight: [k, looked, 1, 1],
            others: vec![ids([3, 1, 1, 1], looked, random)],
            result: [k, 3, 1, 1],
        },
    ]
}

/// Returns a weight of random blocks.
fn weight(dtype: DType, dims: [usize; 4], random: &Random) -> Stored {
    let mut stored = Stored::poison(Shape { dtype, dims }, random).dense();
    // Bytes below 0x70 do not encode infinite or NaN scales.
    let bytes = stored.bytes_mut().iter_mut();
    bytes.for_each(|b| *b = random.below(0x70) as u8);
    stored
}

/// Returns the cases of a type of weight.
pub(super) fn cases(dtype: DType, seed: u64, units: u32) -> Vec<KernelCase> {
    let random = Random::new(dtype.name(), seed);
    let all = accesses(dtype, &random).into_iter();
    all.filter_map(|a| case(dtype, a, (seed, units), &random))
        .collect()
}

/// Returns the case of an access; `None` if no kernel supports the type.
fn case(
    dtype: DType,
    access: Access,
    (seed, units): (u64, u32),
    random: &Random,
) -> Option<KernelCase> {
    let planes = Planes::new(dtype, access.weight[0]);
    let mut first = Sizes::new(dtype, access.weight);
    if planes.is_some() {
        first.format = Planes::FORMAT;
    }
    let others = access.others.iter().map(|a| Sizes::new(a.dtype, a.dims));
    let operands: Vec<Sizes> = [first].into_iter().chain(others).collect();
    let request = |operands, results| Request {
        operands,
        results,
        options: Options::default(),
        multiprocessors: units,
    };
    let result = [Sizes::new(DType::F32, access.result)];
    let kernel = select(&access.op, &request(&operands, &result)).ok()?;
    let is_product = !matches!(access.op, Op::GetRows(_));
    let terms: Option<Kernel> = match is_product && planes.is_some() {
        true => Some(select_terms(&request(&operands[1..2], &operands[1..2])).ok()?),
        false => None,
    };
    let weight = weight(dtype, access.weight, random);
    let memory = planes.map(|p| p.packed(weight.bytes(), 1, 0xa5));
    let stored = access.others.iter().map(|a| {
        let stored = Stored::of(a.dtype, a.dims, &a.data, random);
        stored.aligned()
    });
    let stored: Vec<Stored> = [weight].into_iter().chain(stored).collect();
    let mut operands = access.others;
    // The elements of the weight are the random blocks.
    let blocks = Arg {
        dtype,
        dims: access.weight,
        data: Data::F64(Vec::new()),
    };
    operands.insert(0, blocks);
    let case = Case::new(access.op, operands, (DType::F32, access.result));
    let case = KernelCase::with((case, kernel), stored, (access.name, seed), random);
    let share = if is_product { SHARE } else { 1e-6 };
    let mut case = case.within_share(share);
    case.planes = memory.map(|weight| PlaneForms {
        weight: weight.unwrap_or_default(),
        terms,
    });
    Some(case)
}
