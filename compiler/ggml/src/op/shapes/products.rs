use tpc_ir::DType;

use super::{Node, Rule, Shape, has_type, is_multiple, require};

const INDEX: [DType; 1] = [DType::I32];

fn broadcasts(a: &Shape, b: &Shape) -> bool {
    is_multiple(b.ne[2], a.ne[2]) && is_multiple(b.ne[3], a.ne[3])
}

fn not_transposed(a: &Shape) -> Rule {
    require(a.nb[0] <= a.nb[1], "source 0 is transposed")
}

pub(super) fn mul_mat(node: &Node<'_>) -> Rule {
    let (a, b) = (node.source(0)?, node.source(1)?);
    require(
        a.ne[0] == b.ne[0] && broadcasts(a, b),
        &format!("sources of {:?} and {:?} cannot be multiplied", a.ne, b.ne),
    )?;
    not_transposed(a)?;
    node.makes_type(DType::F32, [a.ne[1], b.ne[1], b.ne[2], b.ne[3]])
}

pub(super) fn mul_mat_id(node: &Node<'_>) -> Rule {
    let (experts, b, ids) = (node.source(0)?, node.source(1)?, node.source(2)?);
    has_type("ids", ids, &INDEX)?;
    not_transposed(experts)?;
    require(
        experts.ne[3] == 1 && b.ne[3] == 1 && ids.is_matrix(),
        "a source has too many axes",
    )?;
    require(
        experts.ne[0] == b.ne[0],
        &format!(
            "sources of {:?} and {:?} cannot be multiplied",
            experts.ne, b.ne
        ),
    )?;
    require(
        ids.ne[1] == b.ne[2] && is_multiple(ids.ne[0], b.ne[1]),
        &format!("ids of {:?} do not fit source 1 of {:?}", ids.ne, b.ne),
    )?;
    node.makes_type(DType::F32, [experts.ne[1], ids.ne[0], b.ne[2], 1])
}

pub(super) fn out_prod(node: &Node<'_>) -> Rule {
    let (a, b) = (node.source(0)?, node.source(1)?);
    require(
        a.ne[1] == b.ne[1] && broadcasts(a, b),
        &format!("sources of {:?} and {:?} cannot be multiplied", a.ne, b.ne),
    )?;
    not_transposed(a)?;
    node.makes_type(DType::F32, [a.ne[0], b.ne[0], b.ne[2], b.ne[3]])
}

pub(super) fn solve_tri(node: &Node<'_>) -> Rule {
    let (a, b) = (node.source(0)?, node.source(1)?);
    has_type("source 0", a, &[DType::F32])?;
    has_type("source 1", b, &[DType::F32])?;
    require(
        a.ne[0] == a.ne[1] && a.ne[1..] == b.ne[1..],
        &format!("a system of {:?} does not fit {:?}", a.ne, b.ne),
    )?;
    node.makes_type(DType::F32, b.ne)
}
