//! A transformer with drafting blocks, computed directly from the file's tensors.

use tpc_core::golden::distance;
use tpc_runtime::WeightSource;

use super::{drafting, planned, run, tokens};
use crate::support::FileWeights;
use crate::synthetic::make;
use tpc_gguf::GgufFile;

const EPSILON: f64 = 1e-5;
const BASE: f64 = 10_000.0;
const HEADS: usize = 6;
const KV_HEADS: usize = 2;
const HEAD: usize = 8;

type Row = Vec<f64>;

struct Model<'a>(&'a GgufFile);

impl Model<'_> {
    fn rows(&self, name: &str) -> Option<Vec<Row>> {
        let info = self.0.header().tensor(name)?;
        let width = info.ne[0] as usize;
        let weights = FileWeights(self.0);
        let data = weights.weight(name).expect("it has data");
        let numbers = data.bytes.chunks(4);
        let numbers = numbers.map(|b| f64::from(f32::from_le_bytes(b.try_into().expect("four"))));
        let numbers: Row = numbers.collect();
        Some(numbers.chunks(width).map(<[f64]>::to_vec).collect())
    }

    fn row(&self, name: &str) -> Option<Row> {
        self.rows(name).map(|rows| rows.concat())
    }

    fn linear(&self, stem: &str, x: &[f64]) -> Row {
        let w = self.rows(&format!("{stem}.weight"));
        let w = w.unwrap_or_else(|| panic!("no {stem}"));
        let dot = |row: &Row| row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
        let mut y: Row = w.iter().map(dot).collect();
        if let Some(bias) = self.row(&format!("{stem}.bias")) {
            y.iter_mut().zip(bias).for_each(|(y, b)| *y += b);
        }
        y
    }

    /// Returns the RMS norm; returns `x` if the file has no norm.
    fn norm(&self, stem: &str, x: &[f64]) -> Row {
        let Some(weight) = self.row(&format!("{stem}.weight")) else {
            return x.to_vec();
        };
        let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        let root = (mean + EPSILON).sqrt();
        x.iter().zip(weight).map(|(x, w)| x / root * w).collect()
    }

    fn heads(&self, norm: &str, x: &[f64], position: usize) -> Vec<Row> {
        let one = |head: &[f64]| {
            let mut head = self.norm(norm, head);
            for i in 0..HEAD / 2 {
                let turn = position as f64 * BASE.powf(-2.0 * i as f64 / HEAD as f64);
                let (a, b) = (head[i], head[i + HEAD / 2]);
                head[i] = a * turn.cos() - b * turn.sin();
                head[i + HEAD / 2] = a * turn.sin() + b * turn.cos();
            }
            head
        };
        x.chunks(HEAD).map(one).collect()
    }

    fn block(&self, layer: usize, xs: &[Row]) -> Vec<Row> {
        let of = |stem: &str| format!("blk.{layer}.{stem}");
        let normed: Vec<Row> = xs.iter().map(|x| self.norm(&of("attn_norm"), x)).collect();
        let project =
            |stem: &str| -> Vec<Row> { normed.iter().map(|x| self.linear(&of(stem), x)).collect() };
        let turned = |stem: &str, norm: &str| -> Vec<Vec<Row>> {
            let rows = project(stem).into_iter().enumerate();
            rows.map(|(t, x)| self.heads(&of(norm), &x, t)).collect()
        };
        let q = turned("attn_q", "attn_q_norm");
        let k = turned("attn_k", "attn_k_norm");
        let v = project("attn_v");
        let one = |(t, x): (usize, &Row)| -> Row {
            let mut attended = Vec::new();
            for (h, q) in q[t].iter().enumerate() {
                let kv = h / (HEADS / KV_HEADS);
                let dot = |k: &Row| q.iter().zip(k).map(|(a, b)| a * b).sum::<f64>();
                let logits = (0..=t).map(|s| dot(&k[s][kv]) / (HEAD as f64).sqrt());
                let weights: Row = logits.map(f64::exp).collect();
                let sum: f64 = weights.iter().sum();
                attended.extend((0..HEAD).map(|i| {
                    let weighed = weights.iter().enumerate();
                    weighed
                        .map(|(s, w)| w / sum * v[s][kv * HEAD + i])
                        .sum::<f64>()
                }));
            }
            let y = add(x, &self.linear(&of("attn_output"), &attended));
            let z = self.norm(&of("post_attention_norm"), &y);
            let gate = self.linear(&of("ffn_gate"), &z);
            let up = self.linear(&of("ffn_up"), &z);
            let silu = |x: f64| x / (1.0 + (-x).exp());
            let inner: Row = gate.iter().zip(&up).map(|(g, u)| silu(*g) * u).collect();
            add(&y, &self.linear(&of("ffn_down"), &inner))
        };
        xs.iter().enumerate().map(one).collect()
    }

    /// Returns a block's own tensor if it has one, otherwise the model's.
    fn own(&self, layer: usize, own: &str, other: &str) -> String {
        let own = format!("blk.{layer}.{own}");
        match self.0.header().tensor(&format!("{own}.weight")) {
            Some(_) => own,
            None => other.to_owned(),
        }
    }

    /// Returns the logits of the model and of each draft.
    fn logits(&self, tokens: &[u32], layers: usize, drafts: usize) -> Vec<Row> {
        let fed = tokens.len() - drafts;
        let embedding = |stem: &str, t: u32| -> Row {
            let table = self.rows(&format!("{stem}.weight")).expect("there is one");
            table[t as usize].clone()
        };
        let each = |xs: &[Row], f: &dyn Fn(&Row) -> Row| -> Vec<Row> { xs.iter().map(f).collect() };
        let first = tokens[..fed].iter().map(|&t| embedding("token_embd", t));
        let mut xs: Vec<Row> = first.collect();
        for layer in 0..layers {
            xs = self.block(layer, &xs);
        }
        let mut hidden = each(&xs, &|x| self.norm("output_norm", x));
        let mut out = vec![each(&hidden, &|x| self.linear("output", x)).concat()];
        for ahead in 1..=drafts {
            let layer = layers + ahead - 1;
            let nextn = |stem: &str| format!("blk.{layer}.nextn.{stem}");
            let table = self.own(layer, "nextn.embed_tokens", "token_embd");
            let inputs = hidden.iter().zip(&tokens[ahead..]).map(|(h, &t)| {
                let mut both = self.norm(&nextn("enorm"), &embedding(&table, t));
                both.extend(self.norm(&nextn("hnorm"), h));
                self.linear(&nextn("eh_proj"), &both)
            });
            let ys = self.block(layer, &inputs.collect::<Vec<_>>());
            let norm = self.own(layer, "nextn.shared_head_norm", "output_norm");
            hidden = each(&ys, &|y| self.norm(&norm, y));
            let head = self.own(layer, "nextn.shared_head_head", "output");
            out.push(each(&hidden, &|x| self.linear(&head, x)).concat());
        }
        out
    }
}

fn add(a: &[f64], b: &[f64]) -> Row {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

#[test]
fn drafts_are_what_their_formulas_say() {
    for optionals in [0, 1] {
        let file = make(&format!(
            "glm4moe:layers=2,drafts=2,embd=40,heads={HEADS},kv_heads={KV_HEADS},head_dim={HEAD},ff=56,vocab=50,ctx=32,\
             type=f32,biases={optionals},glm4moe.leading_dense_block_count=9"
        ));
        let compiled = planned("by hand", &file, &drafting(2));
        let tokens = tokens(14, &compiled);
        let got = run(&compiled.programs, &file, &compiled, &tokens, &[32]);
        let want = Model(&file).logits(&tokens, 2, 2);
        assert_eq!(want.len(), got.len());
        for (ahead, (want, got)) in want.iter().zip(got).enumerate() {
            assert_eq!(want.len(), got.len());
            let d = distance(want.iter().copied(), got);
            assert!(d.nmse < 1e-12, "{ahead} ahead: NMSE {:e}", d.nmse);
        }
    }
}
