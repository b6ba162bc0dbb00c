//! Random cases for every op.

mod attention;
mod data;
mod layout;
mod pointwise;
mod recurrent;
mod rows;

use tpc_ir::DType;
use tpc_ir::op::Op;
use tpc_runtime::{Data, Options, Shape};

use crate::random::Random;

pub use data::CACHES;
pub(crate) use rows::set_cell;

/// An operand of a case.
#[derive(Clone)]
pub struct Arg {
    /// The element type.
    pub dtype: DType,
    /// The size of each axis.
    pub dims: [usize; 4],
    /// The elements before rounding to the type.
    pub data: Data,
}

impl std::fmt::Debug for Arg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.dims)
    }
}

/// An op with operands and the required accuracy.
#[derive(Clone, Debug)]
pub struct Case {
    /// The op.
    pub op: Op,
    /// The operands.
    pub operands: Vec<Arg>,
    /// Types and sizes of the results.
    pub results: Vec<(DType, [usize; 4])>,
    /// Options of the executor.
    pub options: Options,
    /// The maximum error relative to the larger of the expected number and `magnitude`.
    pub tolerance: f64,
    /// The minimum base of the relative tolerance.
    pub magnitude: f64,
    /// Indices of an operand and of the result that may overwrite it.
    pub in_place: Option<(usize, usize)>,
}

impl Case {
    /// Makes a case with one exact result.
    pub fn new(op: impl Into<Op>, operands: Vec<Arg>, result: (DType, [usize; 4])) -> Case {
        Case {
            op: op.into(),
            operands,
            results: vec![result],
            options: Options::default(),
            tolerance: 0.0,
            magnitude: 1.0,
            in_place: None,
        }
    }

    /// Sets the magnitude, and the tolerance plus the result type's rounding error.
    pub fn within(mut self, tolerance: f64, magnitude: f64) -> Case {
        let rounding = |(dtype, _): &(DType, [usize; 4])| match dtype {
            DType::F16 => 6e-4,
            DType::Bf16 => 5e-3,
            _ => 0.0,
        };
        let most = self.results.iter().map(rounding).fold(0.0, f64::max);
        self.tolerance = tolerance + most;
        self.magnitude = magnitude;
        self
    }

    /// Returns the shapes of the results.
    pub fn shapes(&self) -> Vec<Shape> {
        let shape = |&(dtype, dims): &(DType, [usize; 4])| Shape { dtype, dims };
        self.results.iter().map(shape).collect()
    }

    /// Allows a result to overwrite an operand.
    pub fn in_place(mut self, operand: usize, result: usize) -> Case {
        self.in_place = Some((operand, result));
        self
    }
}

/// Makes a case of the op with this name.
pub type Generator = fn(&str, &Random) -> Case;

/// Returns the generator for op `name`, or `None` for leaves and collectives.
pub fn generator(name: &str) -> Option<Generator> {
    use tpc_ir::op::{BinaryKind, GluKind, UnaryKind};
    if UnaryKind::ALL.iter().any(|k| k.name() == name) {
        return Some(pointwise::unary);
    }
    if BinaryKind::ALL.iter().any(|k| k.name() == name) {
        return Some(pointwise::binary);
    }
    if GluKind::ALL.iter().any(|k| k.name() == name) {
        return Some(pointwise::glu);
    }
    Some(match name {
        "opaque" => |_, random| {
            let names = ["soft_max_back", "cpy", "get_rows", "view"];
            foreign(random.pick(&names), random)
        },
        "hadamard" => layout::hadamard,
        "arange" => layout::arange,
        "leaky_relu" | "xielu" | "fill" | "scale" | "clamp" => pointwise::curve,
        "rms_norm" | "norm" | "l2_norm" => pointwise::norm,
        "cast" => pointwise::cast,
        "norm_stats" => pointwise::norm_stats,
        "norm_apply" => pointwise::norm_apply,
        "mul_mat" => rows::mul_mat,
        "mul_mat_id" => rows::mul_mat_id,
        "add_id" => rows::add_id,
        "get_rows" => rows::get_rows,
        "set_rows" => rows::set_rows,
        "set_slice" => rows::set_slice,
        "rope" => attention::rope,
        "soft_max" => attention::soft_max,
        "flash_attn" => attention::flash_attn,
        "merge_attn" => attention::merge_attn,
        "lightning_indexer" => attention::lightning_indexer,
        "ssm_conv" => recurrent::ssm_conv,
        "ssm_scan" => recurrent::ssm_scan,
        "gated_delta_net" => recurrent::gated_delta_net,
        "wkv" => recurrent::wkv,
        "ngram_rows" => rows::ngram_rows,
        "hc_comb" => recurrent::hc_comb,
        "sum" => layout::sum,
        "mean" => layout::mean,
        "cumsum" => layout::cumsum,
        "top_k" => layout::top_k,
        "top_mask" => layout::top_mask,
        "top_k_mask" => layout::top_k_mask,
        "argsort" => layout::arg_sort,
        "reshape" => layout::reshape,
        "permute" => layout::permute,
        "slice" => layout::slice,
        "concat" => layout::concat,
        "repeat" => layout::repeat,
        "pad" => layout::pad,
        "tri" => layout::tri,
        "diag" => layout::diag,
        "pool_2d" => layout::pool_2d,
        "copy" => layout::copy,
        _ => return None,
    })
}

/// Makes a case of the ggml op `name`: `soft_max_back`, `get_rows` or `view`. Other names get one operand and the
/// result type i32.
pub fn foreign(name: &str, random: &Random) -> Case {
    use tpc_ir::op::{MemoryView, Opaque};
    let dims = [32, 6, 1, 1];
    let x = data::real(random, DType::F16, dims, 1.0);
    let mut op = Opaque::with_name(name);
    match name {
        "soft_max_back" => {
            op.params = vec![1.0_f32.to_bits().cast_signed()];
            let y = data::real(random, DType::F32, dims, 1.0);
            Case::new(op, vec![x, y], (DType::F32, dims)).within(1e-6, 1.0)
        }
        "get_rows" => {
            let at = data::ints(random, [3, 1, 1, 1], |r, _| r.below(6));
            Case::new(op, vec![x, at], (DType::Bf16, [32, 3, 1, 1])).within(0.0, 1.0)
        }
        "view" => {
            op.view = Some(MemoryView {
                memory: DType::F16,
                dtype: DType::F16,
                ne: [4, 9, 1, 1],
                nb: [2, 4, 36, 36],
                offset: 6,
            });
            Case::new(op, vec![x], (DType::F16, [4, 9, 1, 1]))
        }
        _ => Case::new(op, vec![x], (DType::I32, [6, 32, 1, 1])),
    }
}

/// Makes a case of an op with all indices equal to `value`.
pub fn out_of_range(name: &str, value: i64) -> Case {
    let generate = generator(name).unwrap_or_else(|| panic!("no cases of {name}"));
    for seed in 0.. {
        let mut case = generate(name, &Random::new(name, seed));
        let windowed = format!("{:?}", case.op).contains("Some(");
        let is_index = |a: &Arg| a.dtype.is_integer() && !a.data.is_empty();
        let indexed = case.operands.iter().any(is_index) && !case.operands[0].dtype.is_integer();
        if windowed || !indexed || case.results.iter().any(|r| r.1.contains(&0)) {
            continue;
        }
        for arg in case.operands.iter_mut().filter(|a| a.dtype.is_integer()) {
            let n = arg.data.len();
            arg.dtype = DType::I32;
            arg.data = Data::Int(vec![value; n]);
        }
        return case;
    }
    unreachable!("seeds do not end")
}
