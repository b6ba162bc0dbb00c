use super::{Family, GgmlOp, OpKind, Precision, RopeMode};

/// The ops of ggml 0.28, then the kinds of UNARY and GLU, in the header's order.
const GGML: &str = "NONE DUP ADD ADD_ID ADD1 ACC SUB MUL DIV SQR SQRT LOG SIN COS SUM SUM_ROWS CUMSUM MEAN ARGMAX \
    COUNT_EQUAL REPEAT REPEAT_BACK CONCAT SILU_BACK NORM RMS_NORM RMS_NORM_BACK GROUP_NORM L2_NORM MUL_MAT MUL_MAT_ID \
    OUT_PROD SCALE SET CPY CONT RESHAPE VIEW PERMUTE TRANSPOSE GET_ROWS GET_ROWS_BACK SET_ROWS DIAG DIAG_MASK_INF \
    DIAG_MASK_ZERO SOFT_MAX SOFT_MAX_BACK ROPE ROPE_BACK CLAMP CONV_TRANSPOSE_1D IM2COL IM2COL_BACK IM2COL_3D COL2IM_1D \
    CONV_2D CONV_3D CONV_2D_DW CONV_TRANSPOSE_2D POOL_1D POOL_2D POOL_2D_BACK UPSCALE PAD PAD_REFLECT_1D ROLL ARANGE \
    TIMESTEP_EMBEDDING ARGSORT TOP_K LEAKY_RELU TRI FILL FLASH_ATTN_EXT FLASH_ATTN_BACK SSM_CONV SSM_SCAN WIN_PART \
    WIN_UNPART GET_REL_POS ADD_REL_POS RWKV_WKV6 GATED_LINEAR_ATTN RWKV_WKV7 SOLVE_TRI GATED_DELTA_NET LIGHTNING_INDEXER \
    DSV4_HC_COMB DSV4_HC_PRE DSV4_HC_POST TOP_K_MASK UNARY MAP_CUSTOM1 MAP_CUSTOM2 MAP_CUSTOM3 CUSTOM CROSS_ENTROPY_LOSS \
    CROSS_ENTROPY_LOSS_BACK OPT_STEP_ADAMW OPT_STEP_SGD GLU \
    ABS SGN NEG STEP TANH ELU RELU SIGMOID GELU GELU_QUICK SILU HARDSWISH HARDSIGMOID EXP EXPM1 SOFTPLUS GELU_ERF XIELU \
    FLOOR CEIL ROUND TRUNC \
    REGLU GEGLU SWIGLU SWIGLU_OAI GEGLU_ERF GEGLU_QUICK SWIGLU_CLAMP";

#[test]
fn the_table_has_every_op_of_ggml_once() {
    let listed: Vec<&str> = OpKind::ALL.iter().map(|op| op.name()).collect();
    assert_eq!(listed, GGML.split_whitespace().collect::<Vec<_>>());
    let unique: std::collections::BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(unique.len(), listed.len());
}

#[test]
fn families_have_the_sources_that_their_rules_read() {
    for &op in OpKind::ALL {
        let facts = op.facts();
        let sources = facts.least_sources;
        match facts.family {
            Family::Leaf => assert_eq!(sources, 0),
            Family::Binary => assert_eq!(sources, 2, "{op}"),
            Family::View | Family::Elementwise | Family::Gated | Family::Norm => {
                assert_eq!(sources, 1, "{op}");
            }
            Family::Copy | Family::Generic | Family::Other => {}
        }
    }
}

#[test]
fn every_name_is_parsed_to_its_op() {
    for &kind in OpKind::ALL {
        let words = match kind {
            OpKind::Pool2d => vec![0, 1, 1, 1, 1],
            OpKind::Permute => vec![0, 1, 2, 3],
            _ => Vec::new(),
        };
        let op = GgmlOp::parse(kind.name(), &words);
        assert!(!matches!(op, GgmlOp::Malformed(..)), "{op:?}");
        assert!(op.is(kind) && op.name() == kind.name() && op.family() == kind.family());
        assert_eq!(op.glu().is_some(), op.family() == Family::Gated);
        assert_eq!(op.norm().is_some(), op.family() == Family::Norm);
    }
    let unknown = GgmlOp::parse("WIND_BACK", &[1]);
    assert_eq!((unknown.kind(), unknown.name()), (None, "WIND_BACK"));
}

#[test]
fn words_become_fields() {
    let bits = |x: f32| x.to_bits().cast_signed();
    let words = [bits(0.125), bits(8.0), 0, 10];
    let GgmlOp::FlashAttnExt(p) = GgmlOp::parse("FLASH_ATTN_EXT", &words) else {
        panic!("it has parameters")
    };
    assert_eq!((p.scale, p.max_bias, p.softcap), (0.125, 8.0, 0.0));
    assert_eq!(p.precision, Precision::F32);
    let mut words = [0; 16];
    (words[1], words[2], words[5], words[11], words[15]) = (64, 40, bits(1e4), 16, 4);
    let GgmlOp::Rope(p) = GgmlOp::parse("ROPE", &words) else {
        panic!("it has parameters")
    };
    assert_eq!((p.n_dims, p.mode, p.offset), (64, RopeMode::Imrope, 4));
    assert_eq!((p.freq_base, p.sections), (1e4, [16, 0, 0, 0]));
}

#[test]
fn words_that_make_no_sense_are_told() {
    for (name, words, text) in [
        (
            "ROPE",
            &[0, 64, 7][..],
            "op_params[2] is 7, expected a mode of rotation: 0, 2, 8, 24 or 40",
        ),
        ("ROPE", &[0, -64], "op_params[1] is -64, expected 0 or more"),
        (
            "PERMUTE",
            &[0, 1, 2, 2],
            "op_params[3] is 2, expected an unused axis",
        ),
        (
            "PERMUTE",
            &[4],
            "op_params[0] is 4, expected an axis, 0 to 3",
        ),
        (
            "ARGSORT",
            &[2],
            "op_params[0] is 2, expected 0 (ascending) or 1 (descending)",
        ),
        (
            "POOL_2D",
            &[0, 2, 0],
            "op_params[2] is 0, expected a window or step of 1 or more",
        ),
        ("CONCAT", &[-1], "op_params[0] is -1, expected 0 or more"),
        (
            "ADD",
            &[0, 1],
            "op_params[1] is 1, expected 0: the op has no such parameter",
        ),
        (
            "SILU",
            &[10, 1],
            "op_params[1] is 1, expected 0: the op has no such parameter",
        ),
    ] {
        let op = GgmlOp::parse(name, words);
        let GgmlOp::Malformed(kind, error) = &op else {
            panic!("{op:?}")
        };
        assert_eq!((kind.name(), error.to_string().as_str()), (name, text));
    }
}
