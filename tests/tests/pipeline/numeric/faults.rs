//! Wrong programs are detected; the error names the first wrong value.

use tpc_core::shrink::ShrunkModel;
use tpc_ir::budget::Limits;
use tpc_ir::{Budget, Graph, Op, Output, Resource, Verified};
use tpc_numeric::{Feed, compare, compare_within};
use tpc_tests::goldens;

use super::{planned, small, tensors};

fn made() -> ShrunkModel {
    let mut models = goldens().into_iter();
    let path = models
        .find(|p| p.to_string_lossy().contains("qwen2-dense"))
        .expect("in the repository");
    small("qwen2", &planned(&path, &tensors(2)))
}

fn said(programs: Graph) -> String {
    let programs = Verified::unchecked(programs);
    let shrunk = ShrunkModel { programs, ..made() };
    let d = compare(&shrunk, &Feed::Tokens(shrunk.window)).expect_err("it is wrong");
    assert_eq!(d.code, "TPC0394");
    d.to_string()
}

fn changed(line: &dyn Fn(&str) -> bool, change: &dyn Fn(&str) -> String) -> Graph {
    let text = made().programs.to_string();
    let found = text
        .lines()
        .find(|l| line(l))
        .expect("there is such a line");
    let faulty = text.replacen(found, &change(found), 1);
    let parsed = tpc_ir::text::parse(&faulty);
    parsed
        .unwrap_or_else(|e| panic!("{}\n{faulty}", e[0]))
        .graph
}

#[test]
fn correct_programs_agree() {
    let shrunk = made();
    compare(&shrunk, &Feed::Tokens(shrunk.window)).unwrap_or_else(|d| panic!("{d}"));
}

#[test]
fn a_lost_all_reduce_is_named() {
    let dropped = |line: &str| {
        let (results, operands) = line.split_once(" = all_reduce ").expect("checked");
        let each = results.split(", v").zip(operands.split(", "));
        let lines = each.map(|(r, o)| {
            let v = if r.starts_with('v') { "" } else { "v" };
            format!("{v}{r} = scale {o} {{scale = 1.0}}")
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let said = said(changed(&|l| l.contains("= all_reduce"), &dropped));
    assert!(
        said.contains("norm-0` of layer 0, by `rms_norm` on dev"),
        "{said}"
    );
}

/// The search for the wrong value keeps every value, so it needs a larger budget than a run.
#[test]
fn what_is_wrong_is_told_where_the_budget_does_not_suffice_to_find_it() {
    let scaled = |l: &str| l.replacen("= swiglu", "= geglu", 1);
    let programs = Verified::unchecked(changed(&|l| l.contains("= swiglu"), &scaled));
    let shrunk = ShrunkModel { programs, ..made() };
    let said = |limits: Limits| {
        let feed = Feed::Tokens(shrunk.window);
        let d = compare_within(&shrunk, &feed, &Budget::new(limits)).expect_err("it is wrong");
        (d.code, d.to_string())
    };
    let (_, all) = said(Limits::NONE);
    assert!(all.contains("by `geglu` on dev"), "{all}");
    for resource in [Resource::Bytes, Resource::Steps] {
        let with = |n: u64| said(Limits::NONE.with(resource, n));
        // The minimum budget to run the model and its programs is too little for the search.
        let (mut too_little, mut enough) = (0, 1 << 40);
        while enough - too_little > 1 {
            let middle = u64::midpoint(too_little, enough);
            match with(middle).0 == "TPC0394" {
                true => enough = middle,
                false => too_little = middle,
            }
        }
        let told = with(enough).1;
        assert!(told.contains("do not compute the model"), "{told}");
        let more = "the search for the first value that differs needs more than";
        assert!(told.contains(more), "{told}");
    }
}

#[test]
fn another_part_of_a_weight_is_named() {
    let shrunk = made();
    let mut programs = shrunk.programs.to_string();
    let parts = |rank: &str| {
        let of = |l: &&str| l.contains("ffn_down.weight") && l.contains(rank);
        let line = shrunk
            .programs
            .to_string()
            .lines()
            .find(of)
            .map(str::to_owned);
        let line = line.expect("both devices have a part");
        let parts = line[line.find("parts").expect("it is split")..].to_owned();
        (line, parts)
    };
    let ((line, own), (_, other)) = (parts("@dev0"), parts("@dev1"));
    programs = programs.replacen(&line, &line.replace(&own, &other), 1);
    let faulty = tpc_ir::text::parse(&programs).unwrap_or_else(|e| panic!("{}", e[0]));
    let said = said(faulty.graph);
    assert!(
        said.contains("`blk.0.ffn_down.weight` of layer 0, by `weight` on dev0"),
        "{said}"
    );
}

#[test]
fn another_function_is_named() {
    let scaled = |l: &str| l.replacen("= swiglu", "= geglu", 1);
    let said = said(changed(
        &|l| l.contains("= swiglu") && l.contains("@dev1"),
        &scaled,
    ));
    assert!(said.contains("by `geglu` on dev1"), "{said}");
}

#[test]
fn a_cache_that_is_not_renewed_shows_in_a_later_batch() {
    let mut programs = made().programs.into_graph();
    let state = programs
        .outputs
        .iter()
        .position(|o| matches!(o, Output::State { .. }));
    programs.outputs.remove(state.expect("there are caches"));
    let said = said(programs);
    assert!(said.contains("of batch 2"), "{said}");
    assert!(said.contains("by `state` on dev0"), "{said}");
}

#[test]
fn programs_that_do_not_run_are_wrong() {
    let mut programs = made().programs.into_graph();
    let rows = programs
        .insts()
        .find(|(_, d)| matches!(d.op, Op::GetRows(_)));
    let v = rows.expect("embeddings are looked up").1.results[0];
    programs.value_mut(v).ty.dims[0] = 7.into();
    assert!(said(programs).contains("do not compute the model"));
}
