use tpc_ir::Code;
use tpc_ir::Op;

use super::{Check, EntityKind, File, Lint};
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Key,
    code: Code::warning(
        "TPC0608",
        "a long context with the RoPE base of short contexts",
        "The context is 65536 or more, but the RoPE base is 10000 or less, without `rope.scaling` or a table of \
         factors. Often a conversion lost the base; the model then breaks down after some thousand tokens.",
    )
    .example("`rope.freq_base` left out for a model of base 1000000.")
    .cure("write the base of the model's configuration."),
    check: Check::File(check),
};

/// The usual base for short contexts, and the engines' default.
const USUAL: f32 = 10_000.0;

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let key = file.key("rope.freq_base");
    let base = file.float(&key);
    let Some(context) = file
        .count(&file.key("context_length"))
        .filter(|&n| n >= 65_536)
    else {
        return;
    };
    let rotates = file.model.is_some_and(|m| {
        let ropes = m.graph.insts().filter_map(|(_, i)| match &i.op {
            Op::Rope(rope) => Some((rope.freq_base, rope.freq_scale, i.operands.len())),
            _ => None,
        });
        let mut ropes = ropes.peekable();
        // The third operand is a table of frequency factors.
        ropes.peek().is_some() && ropes.all(|(b, s, n)| b <= USUAL && s >= 1.0 && n == 2)
    });
    if !rotates {
        return;
    }
    let found = base.map_or("absent, so 10000".to_owned(), |b| b.to_string());
    let message = message!(
        "{} is {} for a context of {}, without RoPE scaling",
        key,
        found,
        context
    );
    let help = "write the rope_theta of the model's configuration";
    out.push(LINT.finding(key, message).help(help));
}
