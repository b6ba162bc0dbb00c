use tpc_ir::{Class, Inst};
use tpc_passes::plan::{
    Cost, FactorExplanation, FactorFacts, ForbiddenSplit, Refusal, SplitOption, Verdict,
};

use super::report::{FactorReport, ThroughReport};
use crate::format::lens;
use crate::pipeline::CompiledModel;
use crate::report::describe;

pub(super) fn report(compiled: &CompiledModel, f: &FactorExplanation) -> FactorReport {
    let mut out = facts(compiled, &f.facts);
    match &f.verdict {
        Verdict::Split {
            class,
            layers,
            chosen,
            whole,
        } => {
            let option = &compiled.choice().options[class.index()];
            out.verdict = "split";
            out.class = Some(class.to_string());
            out.ranges = ranges(option);
            out.chosen = Some(chosen.into());
            out.alternative = whole.as_ref().map(Into::into);
            out.text = split(compiled, &f.facts, *class, option);
            if let Some(whole) = whole {
                out.text += &left_whole(layers, chosen, whole);
            }
        }
        Verdict::SplitElsewhere => {
            out.verdict = "elsewhere";
            out.text = "whole: the tensor is at one place".to_owned();
        }
        Verdict::OneDevice => {
            out.verdict = "one device";
            let granule = describe::granule(&f.facts.granules);
            out.text = format!("whole: there is one device; {granule}");
        }
        Verdict::Forbidden(why) => forbidden(compiled, &f.facts, why, &mut out),
        Verdict::Contradiction { option } => {
            out.verdict = "contradiction";
            out.ranges = ranges(option);
            out.text = format!(
                "whole: {} would fit by size, but no complete set of splits contains it",
                range_lengths(option)
            );
        }
        Verdict::Possible {
            option,
            instead_of,
            layers,
            chosen,
            alternative,
        } => {
            out.verdict = "possible";
            out.ranges = ranges(option);
            out.instead_of = instead_of.iter().map(ToString::to_string).collect();
            out.chosen = Some(chosen.into());
            out.alternative = Some(alternative.into());
            let excluded = excluded_classes(compiled, instead_of);
            out.text = possible(option, &excluded, layers, chosen, alternative);
        }
    }
    out
}

fn facts(compiled: &CompiledModel, facts: &FactorFacts) -> FactorReport {
    let through = facts.through.iter().map(|t| ThroughReport {
        tensor: describe::name(&compiled.planned.graph, t.value),
        axis: t.axis,
        position: t.position,
        factors: t.factors,
        segment: t.segment,
        text: describe::place(t),
    });
    let granules = &facts.granules;
    FactorReport {
        factor: format!("f{}", facts.leaf.index()),
        size: (&facts.size).into(),
        kind: facts.kind,
        granule: granules.hard,
        shares_blocks: granules.soft && granules.hard != Some(1),
        through: through.collect(),
        verdict: "",
        class: None,
        ranges: Vec::new(),
        reason: None,
        op: None,
        op_result: None,
        op_layer: None,
        instead_of: Vec::new(),
        chosen: None,
        alternative: None,
        text: String::new(),
    }
}

fn ranges(o: &SplitOption) -> Vec<[u64; 2]> {
    o.ranges.iter().map(|r| [r.start, r.len]).collect()
}

fn range_lengths(o: &SplitOption) -> String {
    lens(&o.ranges.iter().map(|r| r.len).collect::<Vec<_>>())
}

fn class_name(compiled: &CompiledModel, c: Class) -> String {
    format!("{c} `{}`", compiled.sharded.class(c).name)
}

/// Describes a split factor: class, ranges, part of a chain, and permitted ends of ranges.
fn split(
    compiled: &CompiledModel,
    facts: &FactorFacts,
    class: Class,
    option: &SplitOption,
) -> String {
    let at = option.leaves.iter().position(|l| *l == facts.leaf);
    let part = match at.filter(|_| option.leaves.len() > 1) {
        None => String::new(),
        Some(0) => " of the chain that it is the major part of".to_owned(),
        Some(_) => " of the chain that it is the minor part of".to_owned(),
    };
    format!(
        "split by {}, {}{part}; {}",
        class_name(compiled, class),
        range_lengths(option),
        ends(option)
    )
}

fn left_whole(layers: &[Option<u32>], chosen: &Cost, whole: &Cost) -> String {
    format!(
        "; to leave it whole {}, {}:\n      as planned  {}\n      whole       {}",
        compare_cost(chosen, whole),
        describe::layers(layers),
        describe::cost(chosen),
        describe::cost(whole)
    )
}

fn forbidden(
    compiled: &CompiledModel,
    facts: &FactorFacts,
    why: &ForbiddenSplit,
    out: &mut FactorReport,
) {
    let graph = &compiled.planned.graph;
    let reason = describe::forbidden(graph, facts, why);
    out.verdict = "forbidden";
    out.text = format!("whole: {reason}");
    out.reason = Some(reason);
    if let Some(inst) = forbidding_op(&why.reason) {
        let data = graph.inst(inst);
        out.op = Some(data.op.name());
        out.op_result = data.results.first().map(|&v| describe::name(graph, v));
        out.op_layer = data.layer;
    }
}

fn forbidding_op(reason: &Refusal) -> Option<Inst> {
    match reason {
        Refusal::Whole(i) | Refusal::Indexed(i) => Some(*i),
        _ => None,
    }
}

/// Lists the classes that an option excludes, at most three by name.
fn excluded_classes(compiled: &CompiledModel, classes: &[Class]) -> String {
    const SHOWN: usize = 3;
    let names = classes.iter().take(SHOWN).map(|&c| class_name(compiled, c));
    let names: Vec<String> = names.collect();
    match classes.len() {
        0 => String::new(),
        n if n > SHOWN => {
            let more = n - SHOWN;
            format!(" instead of {} and {more} more classes", names.join(", "))
        }
        _ => format!(" instead of {}", names.join(" and ")),
    }
}

/// Describes a whole factor that could be split: the split, the classes that it excludes, and both costs.
fn possible(
    option: &SplitOption,
    excluded: &str,
    layers: &[Option<u32>],
    chosen: &Cost,
    alternative: &Cost,
) -> String {
    format!(
        "whole: it could be split, {}{excluded}; {}; that {}, {}:\n      as planned  {}\n      split       {}",
        range_lengths(option),
        ends(option),
        compare_cost(chosen, alternative),
        describe::layers(layers),
        describe::cost(chosen),
        describe::cost(alternative)
    )
}

fn compare_cost(chosen: &Cost, alternative: &Cost) -> &'static str {
    let loss = alternative.price_us - chosen.price_us;
    if loss.abs() <= 1e-9 * chosen.price_us.abs() {
        "costs the same"
    } else if loss > 0.0 {
        "costs more"
    } else {
        "costs less, but the search missed it"
    }
}

fn ends(o: &SplitOption) -> String {
    if o.shares_blocks {
        return "ranges may end inside quantisation blocks, which both devices then hold"
            .to_owned();
    }
    match o.granule {
        1 => "ranges may end anywhere".to_owned(),
        n => format!("ranges end at multiples of {n}"),
    }
}
