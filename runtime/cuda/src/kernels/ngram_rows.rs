use tpc_ir::op::NgramRows;

use super::kernel::{Request, Selection, grid_1d, index, instance, kernel};
use super::params::Params;
use super::source::{Arguments, Family};

pub(super) const FAMILY: Family = Family {
    name: "ngram_rows",
    text: include_str!("ngram_rows.cu"),
};

pub(super) fn ngram_rows(op: &NgramRows, request: &Request<'_>) -> Selection {
    let ([x], y) = (request.reals()?, request.result()?);
    index(y.dtype)?;
    let mut params = Params::new()
        .size(op.factors.len() as u64)?
        .size(op.tables.len() as u64)?
        .u64(op.end);
    for factor in &op.factors {
        params = params.u64(*factor);
    }
    for table in &op.tables {
        params = params.u64(table.start).u64(table.len);
    }
    let template = instance(FAMILY, "ngram_rows", &[x.dtype, y.dtype], Arguments::Params);
    kernel(
        template,
        params,
        grid_1d(y.max_dims[1] * y.max_dims[2], request),
    )
}
