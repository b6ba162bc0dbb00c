use super::error::{PartsDefect, VerifyError, VerifyErrorKind as Kind};
use crate::dims::{Dim, Symbol};
use crate::dtype::DType;
use crate::entity::{Inst, Value};
use crate::graph::{Graph, InstData, Output};
use crate::interval::Interval;
use crate::op::{InferredTypes, InputKind, Op, OpCategory};
use crate::place::Place;
use crate::text::Entity;
use crate::types::{RANK, TensorType};

pub(super) fn check(graph: &Graph, errors: &mut Vec<VerifyError>) {
    // The last well-typed instruction, because devices repeat the same op.
    let mut right: Option<&InstData> = None;
    for (inst, data) in graph.insts() {
        let known = right.is_some_and(|r| graph.is_alike(r, data));
        let before = errors.len();
        if !known {
            results(graph, inst, data, errors);
        }
        leaf(graph, data, errors);
        blocks(graph, inst, data, errors);
        if !known {
            for &value in &data.results {
                rows(&graph.value(value).ty, &data.op, value, errors);
            }
        }
        if !known && errors.len() == before {
            right = Some(data);
        }
    }
    for value in graph.outputs.iter().map(Output::value) {
        if graph.cuts_blocks(value) {
            let (op, operand) = ("output", 0);
            let dtype = graph.value(value).ty.dtype;
            let kind = Kind::PartOfBlock { op, operand, dtype };
            errors.push(VerifyError::new(kind, Entity::Value(value)));
        }
    }
}

fn results(graph: &Graph, inst: Inst, data: &InstData, errors: &mut Vec<VerifyError>) {
    let op = data.op.name();
    let operands: Vec<&TensorType> = data.operands.iter().map(|&v| &graph.value(v).ty).collect();
    let mut error = |kind, entity| errors.push(VerifyError::new(kind, entity));
    let found = data.results.len();
    match data.op.infer(&operands) {
        Err(source) => error(Kind::Operands { op, source }, Entity::Inst(inst)),
        Ok(InferredTypes::Declared) if found != 1 => {
            error(Kind::LeafResults { op, found }, Entity::Inst(inst));
        }
        Ok(InferredTypes::Declared) => {}
        Ok(InferredTypes::Types(types)) => {
            let expected = types.len();
            if found != expected {
                let kind = Kind::ResultCount {
                    op,
                    expected,
                    found,
                };
                error(kind, Entity::Inst(inst));
            }
            for (expected, &value) in types.into_iter().zip(&data.results) {
                let found = graph.value(value).ty.clone();
                if found != expected {
                    let kind = Kind::ResultType {
                        op,
                        expected,
                        found,
                    };
                    error(kind, Entity::Value(value));
                }
            }
        }
    }
}

fn rows(ty: &TensorType, op: &Op, value: Value, errors: &mut Vec<VerifyError>) {
    if ty.elements().is_none() {
        let kind = Kind::TooLarge { ty: ty.clone() };
        errors.push(VerifyError::new(kind, Entity::Value(value)));
    }
    let (dtype, block) = (ty.dtype, ty.dtype.block_len());
    if let Some(size) = ty.dims[0].as_const()
        && !size.is_multiple_of(op.row_granule(dtype))
    {
        let kind = Kind::PartialBlock { dtype, block, size };
        errors.push(VerifyError::new(kind, Entity::Value(value)));
    }
}

fn leaf(graph: &Graph, data: &InstData, errors: &mut Vec<VerifyError>) {
    let Some(&value) = data.results.first() else {
        return;
    };
    let found = graph.value(value);
    let entity = Entity::Value(value);
    if let Op::Weight(_) = &data.op
        && let Some((axis, size)) = first_varying_axis(&found.ty)
    {
        let size = size.clone();
        errors.push(VerifyError::new(Kind::WeightSize { axis, size }, entity));
    }
    let parts = match &data.op {
        Op::Weight(weight) => weight.parts.as_deref(),
        Op::State(state) => state.parts.as_deref(),
        Op::Input(input) => {
            let tokens = [Some(Symbol::NTokens.into()), seq_tokens()];
            let in_units = |mut ty: TensorType| {
                for dim in &mut ty.dims {
                    *dim = dim.in_units(graph.cell_unit.0)?;
                }
                Some(ty)
            };
            let [expected, other] = tokens.map(|n| input_type(&input.kind, &n?).and_then(in_units));
            if let Some(expected) = expected
                && expected != found.ty
                && other.is_none_or(|t| t != found.ty)
            {
                let found = found.ty.clone();
                let kind = Kind::InputType { expected, found };
                errors.push(VerifyError::new(kind, entity));
            }
            None
        }
        _ => None,
    };
    if let Some(parts) = parts
        && let Err(defect) = check_parts(parts, &data.op, &found.ty, found.place)
    {
        errors.push(VerifyError::new(Kind::Parts { defect }, entity));
    }
}

fn first_varying_axis(ty: &TensorType) -> Option<(usize, &Dim)> {
    let mut axes = ty.dims.iter().enumerate();
    axes.find(|(_, d)| d.as_const().is_none())
}

/// Returns the number of tokens in a batch of sequences of equal length.
fn seq_tokens() -> Option<Dim> {
    Dim::symbol(Symbol::NSeqs).checked_mul(&Symbol::NSeqTokens.into())
}

fn input_type(kind: &InputKind, tokens: &Dim) -> Option<TensorType> {
    let row = |dtype, n: &Dim| Some(TensorType::new(dtype, [n.clone()]));
    let mask = |n: Symbol| Some(TensorType::new(DType::F32, [n.into(), tokens.clone()]));
    match kind {
        InputKind::Tokens | InputKind::NextTokens(_) | InputKind::Positions => {
            row(DType::I32, tokens)
        }
        InputKind::PositionsMrope => row(DType::I32, &Dim::constant(4).checked_mul(tokens)?),
        InputKind::CacheRows | InputKind::CacheRowsSwa => row(DType::I64, tokens),
        InputKind::Mask => mask(Symbol::NKv),
        InputKind::MaskSwa => mask(Symbol::NKvSwa),
        InputKind::MaskBatch | InputKind::MaskBatchNear(_) => {
            let dims = [tokens.clone(), tokens.clone()];
            Some(TensorType::new(DType::F32, dims))
        }
        InputKind::OutputRows => row(DType::I32, &Symbol::NOutputs.into()),
        InputKind::StateCells => row(DType::I32, &Symbol::NSeqs.into()),
        InputKind::StateKept => {
            let dims = [Dim::ONE, Symbol::NSeqs.into()];
            Some(TensorType::new(DType::F32, dims))
        }
        InputKind::Temperature(_) => {
            let dims = [Dim::ONE, Dim::ONE, tokens.clone()];
            Some(TensorType::new(DType::F32, dims))
        }
        InputKind::Block(input) => input.ty(tokens),
        InputKind::Other(_) => None,
    }
}

fn check_parts(
    parts: &[Vec<Interval>],
    op: &Op,
    ty: &TensorType,
    place: Place,
) -> Result<(), PartsDefect> {
    if matches!(place, Place::Group(_)) {
        return Err(PartsDefect::OnGroup);
    }
    if parts.len() != RANK {
        return Err(PartsDefect::Axes(parts.len()));
    }
    for (axis, (runs, size)) in parts.iter().zip(&ty.dims).enumerate() {
        let block = if axis == 0 {
            op.row_granule(ty.dtype)
        } else {
            1
        };
        let (mut end, mut count) = (0, 0_u64);
        for r in runs {
            let next = r.start.checked_add(r.len);
            let next = next.filter(|_| r.len > 0 && r.start >= end);
            end = next.ok_or(PartsDefect::Order { axis })?;
            if !r.start.is_multiple_of(block) || !r.len.is_multiple_of(block) {
                let block = ty.dtype.block_len();
                return Err(PartsDefect::Block { block });
            }
            // Disjoint ranges below 2^64 have fewer than 2^64 indices.
            count += r.len;
        }
        let is_whole = runs.is_empty() && size.as_const().is_none();
        if *size != count && !is_whole {
            return Err(PartsDefect::Count { axis });
        }
    }
    Ok(())
}

fn blocks(graph: &Graph, inst: Inst, data: &InstData, errors: &mut Vec<VerifyError>) {
    let op = data.op.name();
    let mut error = |kind| errors.push(VerifyError::new(kind, Entity::Inst(inst)));
    let sums = match data.op.category() {
        OpCategory::Collective(collective) => collective.sums(),
        _ => false,
    };
    for (operand, &value) in data.operands.iter().enumerate() {
        let dtype = graph.value(value).ty.dtype;
        if sums && (dtype.is_integer() || dtype.is_quantised()) {
            error(Kind::Summed { op, dtype });
        } else if dtype.is_quantised() {
            let multiplied = data.op.is_product() && operand == 0;
            match blocks_of(&data.op, operand, dtype) {
                _ if graph.cuts_blocks(value) && !multiplied => {
                    error(Kind::PartOfBlock { op, operand, dtype });
                }
                BlockAccess::Read => {}
                BlockAccess::Unread => error(Kind::Blocks { op, operand, dtype }),
                BlockAccess::Cut => error(Kind::CutBlocks { op, dtype }),
            }
        }
    }
}

/// True if an op can read an operand of this type. Quantised elements need an op that decodes or moves whole blocks.
pub fn reads(op: &Op, operand: usize, dtype: DType) -> bool {
    !dtype.is_quantised() || blocks_of(op, operand, dtype) == BlockAccess::Read
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockAccess {
    /// Decodes blocks, or moves them whole.
    Read,
    /// Cuts blocks. TPC0239 covers sizes that are not whole blocks.
    Cut,
    Unread,
}

impl BlockAccess {
    const fn read_if(reads: bool) -> BlockAccess {
        if reads {
            BlockAccess::Read
        } else {
            BlockAccess::Unread
        }
    }

    const fn cut_if(cuts: bool) -> BlockAccess {
        if cuts {
            BlockAccess::Cut
        } else {
            BlockAccess::Read
        }
    }
}

fn blocks_of(op: &Op, operand: usize, dtype: DType) -> BlockAccess {
    let inside = |d: &Dim| !d.as_const().unwrap_or(0).is_multiple_of(dtype.block_len());
    match op {
        Op::MulMat(_) | Op::MulMatId(_) | Op::GetRows(_) | Op::SetRows(_) => {
            BlockAccess::read_if(operand == 0)
        }
        Op::SetSlice(s) if operand == 0 => BlockAccess::cut_if(s.axis == 0),
        Op::FlashAttn(_) => BlockAccess::read_if(operand == 1 || operand == 2),
        Op::LightningIndexer(_) => BlockAccess::read_if(operand == 1),
        Op::Permute(p) => BlockAccess::cut_if(p.axes[0] != 0),
        Op::Slice(s) => BlockAccess::cut_if(s.axis == 0 && inside(&s.start)),
        Op::Reshape(_)
        | Op::Concat(_)
        | Op::Repeat(_)
        | Op::Copy(_)
        | Op::AllGather(_)
        | Op::AllToAll(_)
        | Op::Opaque(_) => BlockAccess::Read,
        Op::Weight(_)
        | Op::Input(_)
        | Op::State(_)
        | Op::Hadamard(_)
        | Op::Arange(_)
        | Op::LeakyRelu(_)
        | Op::Xielu(_)
        | Op::Fill(_)
        | Op::HcComb(_)
        | Op::NgramRows(_)
        | Op::MergeAttn(_)
        | Op::Mean(_)
        | Op::Cumsum(_)
        | Op::Tri(_)
        | Op::Diag(_)
        | Op::Pool2d(_)
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Scale(_)
        | Op::Clamp(_)
        | Op::Cast(_)
        | Op::Glu(_)
        | Op::Norm(_)
        | Op::NormStats(_)
        | Op::NormApply(_)
        | Op::AddId(_)
        | Op::Rope(_)
        | Op::SoftMax(_)
        | Op::SsmConv(_)
        | Op::SsmScan(_)
        | Op::GatedDeltaNet(_)
        | Op::Wkv(_)
        | Op::Sum(_)
        | Op::TopK(_)
        | Op::TopMask(_)
        | Op::TopKMask(_)
        | Op::ArgSort(_)
        | Op::Pad(_)
        | Op::AllReduce(_)
        | Op::SetSlice(_)
        | Op::ReduceScatter(_) => BlockAccess::Unread,
    }
}
