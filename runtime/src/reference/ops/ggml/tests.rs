use tpc_ir::DType;
use tpc_ir::op::{MemoryView, Opaque};

use super::super::testing::{close, ints, noise, pad, real, results};
use super::FAMILIES;
use crate::error::ExecError;
use crate::tensor::{Shape, Tensor};

fn op(name: &str, params: &[i32]) -> Opaque {
    Opaque {
        params: params.to_vec(),
        ..Opaque::with_name(name)
    }
}

fn of(
    op: &Opaque,
    operands: &[&Tensor],
    dtype: DType,
    dims: &[usize],
) -> Result<Tensor, ExecError> {
    let dims = pad(dims);
    let mut all = results(op.clone(), operands, &[Shape { dtype, dims }])?;
    Ok(all.remove(0))
}

fn run(name: &str, params: &[i32], operands: &[&Tensor], dims: &[usize]) -> Tensor {
    of(&op(name, params), operands, DType::F32, dims).expect("fits")
}

fn is(name: &str, params: &[i32], operands: &[&Tensor], dims: &[usize], expected: &[f64]) {
    close(&run(name, params, operands, dims), expected);
}

fn bits(x: f32) -> i32 {
    x.to_bits().cast_signed()
}

#[test]
fn no_op_has_two_meanings_and_none_panics() {
    let mut names: Vec<&str> = FAMILIES
        .iter()
        .copied()
        .flatten()
        .map(|(n, _)| *n)
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    // Any client request yields a result or an error.
    for (i, name) in names.into_iter().enumerate() {
        for case in 0..200_u64 {
            let draw = |k: u64| (case * 31 + k * 17 + i as u64 * 7) % 11;
            let params: Vec<i32> = (0..12).map(|k| draw(k) as i32 - 2).collect();
            let operands: Vec<Tensor> = (0..draw(20) % 8)
                .map(|k| {
                    let dims: Vec<usize> = (0..4).map(|a| (draw(a + 3 * k) % 4) as usize).collect();
                    match draw(k + 30) {
                        0 => ints(&dims, &vec![draw(k) as i64; dims.iter().product()]),
                        _ => noise(&dims, case + k),
                    }
                })
                .collect();
            let operands: Vec<&Tensor> = operands.iter().collect();
            let dims: Vec<usize> = (0..4).map(|a| (draw(a + 40) % 5) as usize).collect();
            let _ = of(&op(name, &params), &operands, DType::F32, &dims);
        }
    }
}

#[test]
fn an_unknown_op_is_refused_by_name() {
    let e = of(&op("map_custom1", &[]), &[], DType::F32, &[1]).expect_err("unknown");
    assert!(e.to_string().contains("map_custom1"), "{e}");
}

#[test]
fn operands_have_the_positions_that_the_op_says() {
    // Softmax gradient with sources 0 and 1 identified only by their order in the list.
    let (grad, y) = (real(&[2], &[1.0, 0.0]), real(&[2], &[0.25, 0.75]));
    let expected = [0.1875, -0.1875];
    is("soft_max_back", &[bits(1.0)], &[&grad, &y], &[2], &expected);
    let mut at = op("soft_max_back", &[bits(1.0)]);
    at.sources = vec![1, 2];
    let e = of(&at, &[&grad, &y], DType::F32, &[2]).expect_err("no source 0");
    assert!(e.to_string().contains("source 0"), "{e}");
}

fn view(ne: [u64; 4], nb: [u64; 4], offset: u64) -> Opaque {
    Opaque {
        view: Some(MemoryView {
            memory: DType::F32,
            dtype: DType::F32,
            ne,
            nb,
            offset,
        }),
        ..Opaque::with_name("view")
    }
}

#[test]
fn views_may_overlap_and_are_written_through() {
    let x = real(&[5], &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let windows = view([3, 3, 1, 1], [4, 4, 12, 12], 0);
    let found = of(&windows, &[&x], DType::F32, &[3, 3]).expect("within");
    close(&found, &[1.0, 2.0, 3.0, 2.0, 3.0, 4.0, 3.0, 4.0, 5.0]);
    let beyond = view([3, 3, 1, 1], [4, 4, 12, 12], 4);
    assert!(of(&beyond, &[&x], DType::F32, &[3, 3]).is_err());
    let between = view([2, 1, 1, 1], [4, 8, 8, 8], 2);
    assert!(of(&between, &[&x], DType::F32, &[2]).is_err());
    let write = Opaque {
        name: "cpy".into(),
        ..view([2, 1, 1, 1], [8, 16, 16, 16], 4)
    };
    let new = real(&[2], &[7.0, 8.0]);
    let found = of(&write, &[&x, &new], DType::F32, &[5]).expect("within");
    close(&found, &[1.0, 7.0, 3.0, 8.0, 5.0]);
}

#[test]
fn conversions_truncate() {
    let x = real(&[3], &[1.75, -1.75, 2.0]);
    let found = of(&op("cpy", &[]), &[&x], DType::I32, &[3]).expect("fits");
    assert_eq!(found.ints().expect("integers"), [1, -1, 2]);
    let back = of(&op("cpy", &[]), &[&found], DType::F32, &[1, 3]).expect("fits");
    close(&back, &[1.0, -1.0, 2.0]);
}

#[test]
fn convolutions_are_products_of_their_columns() {
    let (kernel, x) = (noise(&[3, 2, 2, 4], 1), noise(&[7, 6, 2, 3], 2));
    let p = [2, 1, 1, 0, 1, 2];
    let direct = run("conv_2d", &p, &[&kernel, &x], &[4, 4, 4, 3]);
    let two_axes = [2, 1, 1, 0, 1, 2, 1];
    let columns = run("im2col", &two_axes, &[&kernel, &x], &[12, 4, 4, 3]);
    let (k, c) = (
        kernel.reals().expect("reals"),
        columns.reals().expect("reals"),
    );
    let mut expected = Vec::new();
    for n in 0..3 {
        for oc in 0..4 {
            for place in 0..16 {
                let column = &c[(n * 16 + place) * 12..][..12];
                expected.push((0..12).map(|i| k[oc * 12 + i] * column[i]).sum());
            }
        }
    }
    close(&direct, &expected);
    let deep = noise(&[3, 2, 1, 8], 1);
    let planes = noise(&[7, 6, 1, 6], 2);
    let p = [2, 1, 1, 1, 0, 0, 1, 2, 1, 2, 3, 4];
    let third = run("conv_3d", &p, &[&deep, &planes], &[4, 4, 1, 12]);
    close(&third, &direct.reals().expect("reals"));
    let p = [2, 1, 1, 1, 0, 0, 1, 2, 1, 2];
    let third = run("im2col_3d", &p, &[&deep, &planes], &[12, 4, 4, 3]);
    close(&third, &c);
}

#[test]
fn gradients_of_columns_are_their_transpose() {
    // ⟨im2col(x), g⟩ = ⟨x, im2col_back(g)⟩
    let (kernel, x, g) = (
        noise(&[3, 2, 2, 1], 1),
        noise(&[6, 5, 2, 2], 2),
        noise(&[12, 3, 4, 2], 3),
    );
    let p = [2, 1, 1, 0, 1, 1, 1];
    let columns = run("im2col", &p, &[&kernel, &x], &[12, 3, 4, 2]);
    let back = run("im2col_back", &p, &[&g, &kernel], &[6, 5, 2, 2]);
    let dot = |a: &Tensor, b: &Tensor| -> f64 {
        let (a, b) = (a.reals().expect("reals"), b.reals().expect("reals"));
        a.iter().zip(b.iter()).map(|(a, b)| a * b).sum()
    };
    assert!((dot(&columns, &g) - dot(&x, &back)).abs() < 1e-9);
}

#[test]
fn transposed_convolutions_by_hand() {
    let (kernel, x) = (
        real(&[3, 1, 1], &[1.0, 2.0, 4.0]),
        real(&[2, 1], &[1.0, 10.0]),
    );
    let expected = [1.0, 2.0, 14.0, 20.0, 40.0];
    is(
        "conv_transpose_1d",
        &[2, 0, 1],
        &[&kernel, &x],
        &[5],
        &expected,
    );
    let columns = real(&[3, 2], &[1.0, 2.0, 4.0, 10.0, 20.0, 40.0]);
    is("col2im_1d", &[2, 1, 0], &[&columns], &[5], &expected);
    let kernel = real(&[2, 1, 1, 1], &[1.0, 3.0]);
    let x = real(&[2, 2], &[1.0, 2.0, 5.0, 7.0]);
    let expected = [1.0, 5.0, 6.0, 5.0, 22.0, 21.0];
    is(
        "conv_transpose_2d",
        &[1],
        &[&kernel, &x],
        &[3, 2],
        &expected,
    );
    let depthwise = real(&[2, 1, 1, 1], &[1.0, 3.0]);
    is(
        "conv_2d_dw",
        &[1, 1, 0, 0, 1, 1],
        &[&depthwise, &x],
        &[1, 2],
        &[7.0, 26.0],
    );
}

#[test]
fn pools_and_edges_by_hand() {
    let x = real(&[5], &[1.0, 4.0, 2.0, 8.0, 6.0]);
    is("pool_1d", &[0, 2, 2, 0], &[&x], &[2], &[4.0, 8.0]);
    is(
        "pool_1d",
        &[1, 3, 2, 1],
        &[&x],
        &[3],
        &[2.5, 14.0 / 3.0, 7.0],
    );
    let (grad, plane) = (real(&[2], &[1.0, 2.0]), real(&[4], &[1.0, 5.0, 5.0, 2.0]));
    let p = |kind| [kind, 2, 1, 2, 1, 0, 0];
    is(
        "pool_2d_back",
        &p(0),
        &[&grad, &plane],
        &[4],
        &[0.0, 1.0, 2.0, 0.0],
    );
    is(
        "pool_2d_back",
        &p(1),
        &[&grad, &plane],
        &[4],
        &[0.5, 0.5, 1.0, 1.0],
    );
    let x = real(&[3], &[1.0, 2.0, 3.0]);
    let mirrored = [3.0, 2.0, 1.0, 2.0, 3.0, 2.0];
    is("pad_reflect_1d", &[2, 1], &[&x], &[6], &mirrored);
    let circle = [2, 2, 0, 0, 0, 0, 0, 0, 1];
    let round = [2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0];
    is("pad", &circle, &[&x], &[7], &round);
    is(
        "pad",
        &circle[..8],
        &[&x],
        &[7],
        &[0.0, 0.0, 1.0, 2.0, 3.0, 0.0, 0.0],
    );
}

#[test]
fn images_of_other_sizes() {
    let x = real(&[2], &[0.0, 4.0]);
    is("upscale", &[0], &[&x], &[4], &[0.0, 0.0, 4.0, 4.0]);
    is("upscale", &[1], &[&x], &[4], &[0.0, 1.0, 3.0, 4.0]);
    is("upscale", &[1 | 1 << 8], &[&x], &[3], &[0.0, 2.0, 4.0]);
    // Along axis 2, upscaling selects planes, even with aligned corners.
    let planes = real(&[1, 1, 2], &[1.0, 2.0]);
    is(
        "upscale",
        &[1 | 1 << 8],
        &[&planes],
        &[1, 1, 3],
        &[1.0, 1.0, 2.0],
    );
    let ones = real(&[3, 3], &[1.0; 9]);
    is("upscale", &[2], &[&ones], &[5, 4], &[1.0; 20]);
    let x = real(&[4], &[1.0, 3.0, 5.0, 7.0]);
    let small = run("upscale", &[1 | 1 << 9], &[&x], &[2]);
    let found = small.reals().expect("reals");
    assert!(
        (found[0] + found[1] - 8.0).abs() < 1e-6 && found[0] < 3.0,
        "{found:?}"
    );
}

#[test]
fn embeddings_of_time_steps() {
    let x = real(&[2], &[0.0, 2.0]);
    let slow = 2.0 * 100.0_f64.powf(-0.5);
    let expected = [
        1.0,
        1.0,
        0.0,
        0.0,
        0.0,
        2.0_f64.cos(),
        slow.cos(),
        2.0_f64.sin(),
        slow.sin(),
        0.0,
    ];
    is("timestep_embedding", &[5, 100], &[&x], &[5, 2], &expected);
}

#[test]
fn windows_are_put_back_where_they_were_cut() {
    let x = noise(&[2, 5, 3], 1);
    let parts = run("win_part", &[2, 1, 3], &[&x], &[2, 3, 3, 2]);
    let back = run("win_unpart", &[3], &[&parts], &[2, 5, 3]);
    close(&back, &x.reals().expect("reals"));
    let table = real(&[1, 5], &[0.0, 1.0, 2.0, 3.0, 4.0]);
    let expected = [2.0, 1.0, 0.0, 3.0, 2.0, 1.0, 4.0, 3.0, 2.0];
    is("get_rel_pos", &[], &[&table], &[1, 3, 3], &expected);
    let (w, h) = (
        real(&[2, 1, 1, 1], &[10.0, 20.0]),
        real(&[2, 1, 1, 1], &[1.0, 2.0]),
    );
    let scores = real(&[4, 1, 1], &[0.0; 4]);
    is(
        "add_rel_pos",
        &[],
        &[&scores, &w, &h],
        &[4],
        &[11.0, 12.0, 21.0, 22.0],
    );
}

#[test]
fn recurrences_of_one_number_by_hand() {
    let row = |x: f64, y: f64| real(&[1, 1, 2], &[x, y]);
    let (k, v, r) = (row(2.0, 1.0), row(3.0, 5.0), row(1.0, 10.0));
    let (decay, first, state) = (row(0.5, 0.5), real(&[1], &[4.0]), real(&[1, 1], &[1.0]));
    // Outputs 6·4 + 1 and 10·(5·4 + 6.5), state 0.5·6.5 + 5.
    let operands = [&k, &v, &r, &first, &decay, &state];
    is("rwkv_wkv6", &[], &operands, &[1, 3], &[25.0, 265.0, 8.25]);
    // State 0.5 + 6, then 3.25 + 5.
    let operands = [&k, &v, &r, &decay, &state];
    let expected = [13.0, 165.0, 8.25];
    is(
        "gated_linear_attn",
        &[bits(2.0)],
        &operands,
        &[1, 3],
        &expected,
    );
    let (a, b) = (row(1.0, 0.0), row(-1.0, 1.0));
    // State 0.5 + 6 − 1, then 2.75 + 5.
    let operands = [&r, &decay, &k, &v, &a, &b, &state];
    is("rwkv_wkv7", &[], &operands, &[1, 3], &[5.5, 77.5, 7.75]);
}

#[test]
fn states_after_each_token_come_latest_first() {
    let rows = |seed| noise(&[2, 1, 3, 1], seed);
    let (q, k, v) = (rows(1), rows(2), rows(3));
    let (g, beta) = (noise(&[1, 1, 3, 1], 4), noise(&[1, 1, 3, 1], 5));
    let state = noise(&[2, 2, 1, 1], 6);
    let all = run(
        "gated_delta_net",
        &[2],
        &[&q, &k, &v, &g, &beta, &state],
        &[2, 7],
    );
    let until = |n: usize| {
        let part = |t: &Tensor| t.slice(2, 0, n).expect("tokens");
        let operands = [
            &part(&q),
            &part(&k),
            &part(&v),
            &part(&g),
            &part(&beta),
            &state,
        ];
        run("gated_delta_net", &[1], &operands, &[2, n + 2])
    };
    let (all, three, two) = (all.reals().expect("reals").into_owned(), until(3), until(2));
    assert_eq!(all[..10], three.reals().expect("reals")[..]);
    assert_eq!(all[10..], two.reals().expect("reals")[4..]);

    let x = noise(&[1, 2, 2, 1], 7);
    let dt = noise(&[2, 2, 1, 1], 8);
    let (a, b, c) = (
        noise(&[1, 2], 9),
        noise(&[3, 1, 2, 1], 10),
        noise(&[3, 1, 2, 1], 11),
    );
    let (states, cells) = (noise(&[3, 1, 2, 2], 12), ints(&[1], &[1]));
    let operands = [&states, &x, &dt, &a, &b, &c, &cells];
    let one = run("ssm_scan", &[1], &operands, &[10]);
    let both = run("ssm_scan", &[2], &operands, &[16]);
    assert_eq!(
        both.reals().expect("reals")[..10],
        one.reals().expect("reals")[..]
    );
    let far = ints(&[1], &[2]);
    let operands = [&states, &x, &dt, &a, &b, &c, &far];
    assert!(of(&op("ssm_scan", &[1]), &operands, DType::F32, &[10]).is_err());
}

#[test]
fn rotations_turn_and_turn_back() {
    let x = noise(&[8, 2, 3], 1);
    let positions = ints(&[12], &[0, 1, 5, 2, 3, 1, 4, 0, 2, 1, 1, 1]);
    let factors = real(&[8], &[1.0, 2.0, 1.0, 3.0, 1.0, 1.0, 1.0, 1.0]);
    for mode in [0, 2, 8, 24, 40] {
        let n_dims = if mode == 24 { 4 } else { 8 };
        let mut p = vec![
            0,
            n_dims,
            mode,
            0,
            64,
            bits(100.0),
            bits(0.5),
            bits(1.0),
            bits(1.0),
        ];
        p.extend([bits(32.0), bits(1.0), 2, 1, 1, 0, 0]);
        let operands = [&x, &positions, &factors];
        let there = run("rope", &p, &operands, &[8, 2, 3]);
        let back = run("rope_back", &p, &[&there, &positions, &factors], &[8, 2, 3]);
        // YaRN's magnitude counts twice.
        let magnitude = 1.0 + 0.1 * 2.0_f64.ln();
        let expected = x.reals().expect("reals");
        let expected = expected.iter().map(|x| x * magnitude * magnitude);
        near(&back, &expected.collect::<Vec<_>>());
        assert_ne!(there, x);
    }
    // A quarter turn of the first pair of an image's second section, which restarts the frequencies.
    let row = real(&[4], &[1.0, 2.0, 3.0, 4.0]);
    let positions = ints(&[4], &[0, 1, 0, 0]);
    let base = bits(std::f32::consts::FRAC_PI_2);
    let mut p = vec![
        0,
        2,
        24,
        0,
        64,
        base,
        bits(std::f32::consts::FRAC_PI_2),
        0,
        bits(1.0),
    ];
    p.extend([0, 0, 1, 1, 0, 0, 0]);
    let found = run("rope", &p, &[&row, &positions], &[4]);
    near(&found, &[1.0, -4.0, 3.0, 2.0]);
}

#[test]
fn rows_parts_and_outer_products() {
    let table = real(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let at = ints(&[2], &[2, 0]);
    is(
        "get_rows",
        &[],
        &[&table, &at],
        &[2, 2],
        &[5.0, 6.0, 1.0, 2.0],
    );
    assert!(
        of(
            &op("get_rows", &[]),
            &[&table, &ints(&[1], &[3])],
            DType::F32,
            &[2]
        )
        .is_err()
    );
    let part = real(&[1, 2], &[10.0, 20.0]);
    let words = [8, 24, 24, 12];
    let expected = [1.0, 2.0, 3.0, 10.0, 5.0, 20.0];
    is("set", &words, &[&table, &part], &[2, 3], &expected);
    let expected = [1.0, 2.0, 3.0, 14.0, 5.0, 26.0];
    is("acc", &words, &[&table, &part], &[2, 3], &expected);
    let beyond = op("set", &[8, 24, 24, 24]);
    assert!(of(&beyond, &[&table, &part], DType::F32, &[2, 3]).is_err());
    let (a, b) = (
        real(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
        real(&[1, 2], &[10.0, 1.0]),
    );
    is("out_prod", &[], &[&a, &b], &[2, 1], &[13.0, 24.0]);
}

#[test]
fn triangular_systems_are_solved() {
    let a = real(&[2, 2], &[2.0, 0.0, 1.0, 4.0]);
    let b = real(&[2, 2], &[2.0, 4.0, 9.0, 6.0]);
    is("solve_tri", &[], &[&a, &b], &[2, 2], &[1.0, 2.0, 2.0, 1.0]);
}

fn differences(x: &[f64], f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let step = 1e-6;
    let at = |i: usize, by: f64| {
        let mut x = x.to_vec();
        x[i] += by;
        f(&x)
    };
    (0..x.len())
        .map(|i| (at(i, step) - at(i, -step)) / (2.0 * step))
        .collect()
}

fn near(found: &Tensor, expected: &[f64]) {
    for (a, b) in found.reals().expect("reals").iter().zip(expected) {
        assert!((a - b).abs() < 1e-6, "{found:?} {expected:?}");
    }
}

#[test]
fn gradients_are_those_of_differences() {
    let (grad, x) = (noise(&[4], 1), noise(&[4], 2));
    let (g, values) = (grad.reals().expect("reals"), x.reals().expect("reals"));
    let weighed = |y: Vec<f64>| -> f64 { y.iter().zip(g.iter()).map(|(y, g)| y * g).sum() };
    let silu = |x: &[f64]| weighed(x.iter().map(|x| x / (1.0 + (-x).exp())).collect());
    near(
        &run("silu_back", &[], &[&grad, &x], &[4]),
        &differences(&values, silu),
    );
    let norm = |x: &[f64]| {
        let mean = x.iter().map(|x| x * x).sum::<f64>() / 4.0 + 0.125;
        weighed(x.iter().map(|x| x / mean.sqrt()).collect())
    };
    let found = run("rms_norm_back", &[bits(0.125)], &[&grad, &x], &[4]);
    near(&found, &differences(&values, norm));
    let soft = |x: &[f64]| {
        let sum: f64 = x.iter().map(|x| x.exp()).sum();
        x.iter().map(|x| x.exp() / sum).collect::<Vec<_>>()
    };
    let y = real(&[4], &soft(&values));
    let found = run("soft_max_back", &[bits(1.0)], &[&grad, &y], &[4]);
    near(&found, &differences(&values, |x| weighed(soft(x))));
    let wanted = real(&[4], &[0.5, 0.25, 0.25, 0.0]);
    let loss = |x: &[f64]| {
        let found = run("cross_entropy_loss", &[], &[&real(&[4], x), &wanted], &[1]);
        found.reals().expect("reals")[0]
    };
    let seed = real(&[1], &[1.0]);
    let found = run("cross_entropy_loss_back", &[], &[&seed, &x, &wanted], &[4]);
    near(&found, &differences(&values, loss));
}

#[test]
fn counts_rows_and_steps() {
    let (a, b) = (ints(&[3], &[1, 2, 3]), ints(&[3], &[1, 5, 3]));
    let found = of(&op("count_equal", &[]), &[&a, &b], DType::I64, &[1]).expect("fits");
    assert_eq!(found.ints().expect("integers"), [2]);
    let (rows, at) = (real(&[1, 3], &[1.0, 2.0, 4.0]), ints(&[3], &[1, 0, 1]));
    is(
        "get_rows_back",
        &[],
        &[&rows, &at],
        &[1, 3],
        &[2.0, 5.0, 0.0],
    );
    let (x, grad, p) = (
        real(&[1], &[2.0]),
        real(&[1], &[3.0]),
        real(&[2], &[0.5, 0.25]),
    );
    is("opt_step_sgd", &[], &[&x, &grad, &p], &[1], &[0.25]);
}
