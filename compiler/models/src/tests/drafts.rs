use tpc_ir::op::{InputKind, Op};
use tpc_ir::{Graph, Output, Value};

use super::*;
use crate::description::{DraftForm, DraftInput};
use crate::{ArchError, ExpectedTensor, expected_tensors};
use tpc_gguf::Metadata;

const DRAFTING: LowerOptions = LowerOptions {
    drafting: Drafting::Mtp,
    ..OPTIONS
};

fn described() -> impl Iterator<Item = (&'static str, &'static DraftForm)> {
    ARCHS
        .iter()
        .filter_map(|a| Some((a.name, a.drafts.as_ref()?)))
}

/// Returns a small model's metadata with draft blocks after its two layers.
fn with_drafts(arch: &str, drafts: u32) -> Vec<(String, MetaValue)> {
    let mut pairs = metadata(arch);
    set(&mut pairs, &format!("{arch}.block_count"), 2 + drafts);
    set(&mut pairs, &format!("{arch}.nextn_predict_layers"), drafts);
    pairs
}

fn tensors(
    pairs: &[(String, MetaValue)],
    keep: impl Fn(&ExpectedTensor) -> bool,
) -> Vec<(String, [u64; 4])> {
    let metadata = Metadata::from_pairs("test.gguf", pairs.to_vec()).unwrap();
    let list = expected_tensors(&metadata, &DRAFTING, keep).unwrap();
    list.into_iter().map(|t| (t.name, t.ne)).collect()
}

fn drafted(arch: &str, drafts: u32, keep: impl Fn(&ExpectedTensor) -> bool) -> LoweredModel {
    let pairs = with_drafts(arch, drafts);
    lower(&header(&pairs, &tensors(&pairs, keep)), &DRAFTING).unwrap()
}

fn named(graph: &Graph, name: &str) -> Value {
    let mut found = graph.values().filter(|(_, v)| v.name == name);
    let (value, _) = found.next().unwrap_or_else(|| panic!("no {name}"));
    value
}

fn operands(graph: &Graph, value: Value) -> &[Value] {
    &graph.inst(graph.value(value).def.0).operands
}

/// Returns the name of the weight that a value's instruction reads first.
fn weight(graph: &Graph, value: Value) -> &str {
    let reads = operands(graph, value).iter();
    let mut weights = reads.filter_map(|&v| match graph.def_op(v) {
        Op::Weight(w) => Some(w.tensor.as_str()),
        _ => None,
    });
    weights.next().unwrap()
}

#[test]
fn the_model_comes_first_and_is_unchanged() {
    for (arch, _) in described() {
        for keep in [false, true] {
            let pairs = with_drafts(arch, 2);
            let header = header(&pairs, &tensors(&pairs, |_| keep));
            let alone = lower(&header, &OPTIONS).unwrap();
            let both = lower(&header, &DRAFTING).unwrap();
            structure::check(&both.graph);
            let (short, long) = (alone.graph.insts(), both.graph.insts());
            assert!(short.len() < long.len());
            assert!(short.zip(long).all(|(a, b)| a == b), "{arch}");
            let values = alone.graph.values().zip(both.graph.values());
            assert!(values.into_iter().all(|(a, b)| a == b), "{arch}");
            assert_eq!(alone.graph.outputs[0], both.graph.outputs[0]);
            let names = |graph: &Graph| -> Vec<String> {
                let named = |o: &Output| match o {
                    Output::Named(name, _) => Some(name.clone()),
                    Output::State { .. } => None,
                };
                graph.outputs.iter().filter_map(named).collect()
            };
            let drafts = ["logits", "draft_logits", "draft_logits_2"];
            assert_eq!(names(&both.graph), drafts);
            // Each draft block has its own caches, even if layers share caches.
            let caches = |layer| {
                let state = |op: &Op| matches!(op, Op::State(_));
                let insts = both.graph.insts();
                let own = insts.filter(|(_, i)| i.layer == Some(layer) && state(&i.op));
                own.count()
            };
            assert!(caches(2) > 0 && caches(2) == caches(3), "{arch}");
            let attends = |(_, i): &(_, &tpc_ir::InstData)| {
                matches!(i.op, Op::FlashAttn(_)) && i.layer >= Some(2)
            };
            assert_eq!(both.graph.insts().filter(attends).count(), 2, "{arch}");
            let (alone, both) = (alone.summary, both.summary);
            assert_eq!((alone.n_layer, alone.n_draft), (2, 0));
            assert_eq!((both.n_layer, both.n_draft), (2, 2));
            assert_eq!((both.n_block(), both.ignored_drafts), (4, None));
            assert!(both.ignored.is_empty() && both.unused.is_empty(), "{arch}");
            let ignored = alone.ignored_drafts.unwrap();
            assert_eq!(ignored.blocks, 2);
            let bytes = |name: &String| header.tensor(name).unwrap().bytes;
            assert_eq!(ignored.bytes, alone.ignored.iter().map(bytes).sum::<u64>());
        }
    }
}

#[test]
fn blocks_are_wired_in_a_chain() {
    for (arch, form) in described() {
        let graph = drafted(arch, 2, |_| true).graph;
        for (draft, layer, before) in [(1, 2, "l_out-1"), (2, 3, "l_out-2")] {
            let of = |name: &str| named(&graph, &format!("{name}-{layer}"));
            let both = operands(&graph, of("mtp_concat"));
            assert_eq!(both, [of("mtp_enorm"), of("mtp_hnorm")], "{arch}");
            let projection = format!("blk.{layer}.nextn.eh_proj.weight");
            assert_eq!(weight(&graph, of("mtp_eh_proj")), projection);
            let tokens = operands(&graph, of("mtp_tok_embd"))[1];
            let Op::Input(input) = graph.def_op(tokens) else {
                panic!("tokens are an input");
            };
            assert_eq!(input.kind, InputKind::NextTokens(draft));
            let normed = operands(&graph, of("mtp_hnorm"))[0];
            let mut hidden = operands(&graph, normed)[0];
            if form.input == DraftInput::Normalised {
                assert!(graph.value(hidden).name.starts_with("h_nextn-"), "{arch}");
                let norm = match draft {
                    1 => "output_norm.weight".to_owned(),
                    _ => format!("blk.2.{}.weight", form.norms[0]),
                };
                assert_eq!(weight(&graph, hidden), norm, "{arch}");
                hidden = operands(&graph, operands(&graph, hidden)[0])[0];
            }
            assert_eq!(graph.value(hidden).name, before, "{arch}");
            let logits = of("result_output");
            let head = format!("blk.{layer}.nextn.shared_head_head.weight");
            assert_eq!(weight(&graph, logits), head, "{arch}");
        }
    }
}

#[test]
fn a_block_uses_the_models_tensors_for_those_it_lacks() {
    for (arch, form) in described() {
        let graph = drafted(arch, 1, |t| t.name == "output.weight").graph;
        let embedding = operands(&graph, named(&graph, "mtp_tok_embd-2"))[0];
        assert_eq!(graph.value(embedding).name, "token_embd.weight");
        let logits = named(&graph, "result_output-2");
        assert_eq!(weight(&graph, logits), "output.weight");
        let norm = match form.input {
            DraftInput::Normalised => operands(&graph, operands(&graph, logits)[1])[0],
            DraftInput::Residual => operands(&graph, logits)[1],
        };
        assert_eq!(weight(&graph, norm), "output_norm.weight", "{arch}");
        for stem in form.norms {
            let graph = drafted(arch, 1, |t| t.name.contains(stem)).graph;
            let own = format!("blk.2.{stem}.weight");
            let used =
                |(_, i): (_, &tpc_ir::InstData)| matches!(&i.op, Op::Weight(w) if w.tensor == own);
            assert!(graph.insts().any(used), "{arch}: {own}");
        }
    }
}

#[test]
fn every_tensor_of_a_block_is_required_with_its_shape() {
    for (arch, _) in described() {
        let pairs = with_drafts(arch, 1);
        let all = tensors(&pairs, |_| false);
        let of_block = |t: &(String, [u64; 4])| t.0.starts_with("blk.2.");
        assert!(all.iter().filter(|t| of_block(t)).count() > 8);
        for i in (0..all.len()).filter(|&i| of_block(&all[i])) {
            let mut fewer = all.clone();
            let (name, _) = fewer.remove(i);
            let error = lower(&header(&pairs, &fewer), &DRAFTING);
            let code = error.map_or_else(|e| e.code().id, |_| "none");
            assert_eq!(code, "TPC0156", "{arch} without {name}");
            let mut wrong = all.clone();
            wrong[i].1[0] += 1;
            let error = lower(&header(&pairs, &wrong), &DRAFTING).unwrap_err();
            assert_eq!(error.code(), "TPC0157", "{arch}: {name}");
        }
    }
}

#[test]
fn drafting_without_draft_blocks_is_an_error() {
    let refused = |pairs: &[(String, MetaValue)], tensors: &[(String, [u64; 4])]| -> ArchError {
        lower(&header(pairs, tensors), &DRAFTING).unwrap_err()
    };
    let says = |e: &ArchError, what: &str| {
        assert_eq!(e.code(), "TPC0163");
        assert!(e.to_string().contains(what), "{e}");
        assert!(e.help().contains("--spec-type") && e.help().contains("glm4moe"));
    };
    let pairs = metadata("glm4moe");
    let own = expected::tensors(&pairs, |_| false);
    says(&refused(&pairs, &own), "glm4moe.nextn_predict_layers");
    // The file lacks tensors that its metadata count.
    let pairs = with_drafts("glm4moe", 1);
    says(&refused(&pairs, &own), "block 2");
    assert!(lower(&header(&pairs, &own), &OPTIONS).is_ok());
    let pairs = with_drafts("llama", 1);
    let error = refused(&pairs, &own);
    says(&error, "not described");
    assert!(
        !error.help().contains("nextn"),
        "no file of it helps: {}",
        error.help()
    );
}
