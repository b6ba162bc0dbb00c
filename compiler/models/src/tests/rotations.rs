use tpc_ir::op::Op;

use super::*;

/// Returns the Walsh–Hadamard products in layer 1, with the order of the matrix.
fn rotations(dk: u32, dv: u32, cache_type_k: DType, cache_type_v: DType) -> Vec<String> {
    let mut pairs = metadata("llama");
    set(&mut pairs, "llama.attention.key_length", dk);
    set(&mut pairs, "llama.attention.value_length", dv);
    let tensors = expected::tensors(&pairs, |_| false);
    let options = LowerOptions {
        cache_type_k,
        cache_type_v,
        ..OPTIONS
    };
    let graph = lower(&header(&pairs, &tensors), &options).unwrap().graph;
    tpc_ir::verify::verify(&graph).unwrap();
    let matrices = graph
        .insts()
        .filter(|(_, i)| matches!(i.op, Op::Hadamard(_)));
    assert!(
        matrices.count() <= 2,
        "one matrix per order serves all layers"
    );
    let products = graph.insts().filter(|(_, i)| i.layer == Some(1));
    let products = products.filter_map(|(_, i)| {
        let Op::Hadamard(matrix) = graph.def_op(*i.operands.first()?) else {
            return None;
        };
        Some(format!("{} {}", graph.value(i.results[0]).name, matrix.n))
    });
    products.collect()
}

#[test]
fn keys_turn_with_queries_and_values_with_the_output() {
    let (plain, quantised) = (DType::F16, DType::Q4_0);
    let keys = ["Qcur_rot-1 128", "Kcur_rot-1 128"];
    let values = ["Vcur_rot-1 64", "kqv_rot-1 64"];
    assert!(rotations(128, 128, plain, DType::Bf16).is_empty());
    assert_eq!(rotations(128, 128, quantised, plain), keys);
    assert_eq!(rotations(128, 128, plain, quantised), values);
    let both = rotations(128, 128, quantised, DType::Iq4Nl);
    assert_eq!(both, [keys, values].concat());
}

#[test]
fn heads_of_keys_and_values_are_looked_at_apart() {
    let q = DType::Q8_0;
    assert_eq!(rotations(96, 64, q, q), ["Vcur_rot-1 64", "kqv_rot-1 64"]);
    assert_eq!(rotations(192, 96, q, q), ["Qcur_rot-1 64", "Kcur_rot-1 64"]);
    assert!(rotations(32, 160, q, q).is_empty());
}
