use std::borrow::Cow;

use tpc_ir::RANK;
use tpc_ir::op::Opaque;

use crate::error::ExecError;
use crate::tensor::{Data, Shape, Tensor, buffer};

pub(super) struct Call<'a> {
    op: &'a Opaque,
    operands: Vec<Option<&'a Tensor>>,
    pub(super) result: Shape,
}

pub(super) struct Array<'a> {
    pub(super) ne: [usize; RANK],
    pub(super) data: Cow<'a, [f64]>,
}

impl Array<'_> {
    /// Returns the element at these indices; zero outside.
    pub(super) fn at(&self, index: [i64; RANK]) -> f64 {
        let mut at = 0;
        for (i, n) in index.into_iter().zip(self.ne).rev() {
            match usize::try_from(i) {
                Ok(i) if i < n => at = at * n + i,
                _ => return 0.0,
            }
        }
        self.data[at]
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.data.chunks_exact(self.ne[0].max(1))
    }
}

impl<'a> Call<'a> {
    pub(super) fn new(op: &'a Opaque, operands: &[&'a Tensor], result: Shape) -> Call<'a> {
        let count = (0..operands.len()).map(|i| op.source(i).saturating_add(1));
        // A ggml op has at most ten sources.
        let mut all = vec![None; count.max().unwrap_or(0).min(16)];
        for (i, operand) in operands.iter().enumerate() {
            if let Some(place) = all.get_mut(op.source(i)) {
                *place = Some(*operand);
            }
        }
        Call {
            op,
            operands: all,
            result,
        }
    }

    pub(super) fn refused(&self, what: &str) -> ExecError {
        ExecError::Parameter {
            what: format!("ggml's op `{}`: {what}", self.op.name),
        }
    }

    pub(super) fn ensure(&self, holds: bool, what: &str) -> Result<(), ExecError> {
        match holds {
            true => Ok(()),
            false => Err(self.refused(what)),
        }
    }

    pub(super) fn operand(&self, position: usize) -> Option<&'a Tensor> {
        self.operands.get(position).copied().flatten()
    }

    fn required(&self, position: usize) -> Result<&'a Tensor, ExecError> {
        let operand = self.operand(position);
        operand.ok_or_else(|| self.refused(&format!("source {position} is missing")))
    }

    pub(super) fn array(&self, position: usize) -> Result<Array<'a>, ExecError> {
        let t = self.required(position)?;
        let data = match t.data() {
            Data::F64(v) => Cow::Borrowed(v.as_slice()),
            Data::F32(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Data::Int(v) => v.iter().map(|&x| x as f64).collect(),
        };
        Ok(Array { ne: t.dims(), data })
    }

    pub(super) fn integers(&self, position: usize) -> Result<&'a [i64], ExecError> {
        self.required(position)?.ints()
    }

    /// Returns a word of `op_params`.
    pub(super) fn word(&self, index: usize) -> i32 {
        self.op.params.get(index).copied().unwrap_or(0)
    }

    pub(super) fn float(&self, index: usize) -> f64 {
        f32::from_bits(self.word(index).cast_unsigned()).into()
    }

    pub(super) fn positive(&self, index: usize) -> Result<i64, ExecError> {
        let n = self.word(index);
        self.ensure(n > 0, "a parameter is not above zero")?;
        Ok(n.into())
    }

    /// Returns a result with element `f(i)` at each index `i`.
    pub(super) fn filled(
        &self,
        mut f: impl FnMut([i64; RANK]) -> f64,
    ) -> Result<Tensor, ExecError> {
        let dims = self.result.dims;
        let mut out = buffer(dims)?;
        let [n0, n1, n2, n3] = dims.map(|n| n as i64);
        for i3 in 0..n3 {
            for i2 in 0..n2 {
                for i1 in 0..n1 {
                    out.extend((0..n0).map(|i0| f([i0, i1, i2, i3])));
                }
            }
        }
        self.elements(out)
    }

    pub(super) fn elements(&self, data: Vec<f64>) -> Result<Tensor, ExecError> {
        let data = match self.result.dtype.is_integer() {
            true => Data::Int(data.into_iter().map(|x| x as i64).collect()),
            false => Data::F64(data),
        };
        Tensor::new(self.result.dims, data)
    }
}
