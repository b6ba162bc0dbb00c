use tpc_ir::Code;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::op::OpKind;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::note(
        "TPC0650",
        "a rotation merges heads and tokens",
        "A square matrix multiplies heads in two dimensions, such as the rotation for a quantised KV cache. tpc keeps \
         the heads split; engines with one split axis per tensor lose the split, or abort.",
    )
    .example("`[128, heads, tokens]` reshaped to `[64, 2·heads·tokens]`, multiplied by `[64, 64]` and reshaped \
              back.")
    .cure("reshape to four dimensions with an axis for the heads, as the help shows."),
    check: Check::Graph(check),
};

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    for r in graph.records.iter().filter(|r| r.is(OpKind::MulMat)) {
        let operand = |i: usize| r.src.get(i).copied().flatten().map(|s| &graph.records[s]);
        let (Some(matrix), Some(flat)) = (operand(0), operand(1)) else {
            continue;
        };
        let [n, m, 1, 1] = matrix.ne() else { continue };
        let square = n == m && graph.records[matrix.root].is_leaf();
        if !square || !flat.is(OpKind::Reshape) || flat.ne()[2..] != [1, 1] {
            continue;
        }
        let Some(heads) = flat
            .src
            .first()
            .copied()
            .flatten()
            .map(|s| &graph.records[s])
        else {
            continue;
        };
        let [d, h, tokens, rest] = heads.ne();
        let merged = h > 1 && tokens * rest > 1 && d % n == 0 && flat.ne()[0] == n;
        if !merged {
            continue;
        }
        let before = graph.inst_of(heads).and_then(|i| {
            let ir = graph.ir();
            let v = *ir.inst(i).results.first()?;
            Some((v, ir.value(v).ty.dims.clone()))
        });
        let dims = match before {
            Some((v, [_, h, tokens, _])) => {
                let mut sizes = vec![n.to_string()];
                if d > n {
                    sizes.push((d / n).to_string());
                }
                sizes.extend([h.to_string(), tokens.to_string()]);
                format!("v = reshape {v} {{dims = [{}]}}", sizes.join(", "))
            }
            None => format!("[{n}, {}, {h}, {tokens}]", d / n),
        };
        let message = message!(
            "{} of [{}, {}, {}] multiplies rows of {} that merge heads and tokens",
            graph.name(r),
            d,
            h,
            tokens,
            n
        );
        let d = LINT
            .finding(graph.name(r), message)
            .help(message!("keep an axis for the heads:\n{}", dims));
        out.push(graph.at(r, "heads and tokens are merged before this", d));
    }
}
