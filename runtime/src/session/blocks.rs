use std::collections::BTreeMap;

use tpc_ir::op::{BlockInput, BlockPart};

use super::batch::TokenPos;
use super::kv_cells::KvCells;
use crate::error::ExecError;
use crate::slot::Slot;

pub(super) fn write(
    input: BlockInput,
    cells: &KvCells,
    tokens: &[TokenPos],
    to: Slot<'_>,
) -> Result<(), ExecError> {
    let len = input.tokens.max(1);
    let n_kv = cells.n_kv();
    match input.part {
        BlockPart::Seen => to.rows([n_kv, tokens.len()], |i, row| {
            mask(cells, row, |k| seen(tokens[i], k, len));
        }),
        BlockPart::Tail => to.rows([n_kv, tokens.len()], |i, row| {
            mask(cells, row, |k| in_tail(tokens[i], k, len));
        }),
        BlockPart::Last => to.ints([n_kv, 1, 1, 1], last(cells, len).into_iter()),
        BlockPart::Start => {
            let starts = [1, 1, 1, 0].into_iter().flat_map(|times| {
                let starts = tokens.iter().map(move |t| t.pos / len * len);
                starts.map(move |start| times * i64::from(start))
            });
            to.ints([4 * tokens.len(), 1, 1, 1], starts)
        }
        BlockPart::Place => {
            let places = tokens.iter().map(|t| i64::from(t.pos % len));
            to.ints([tokens.len(), 1, 1, 1], places)
        }
        BlockPart::Follows => to.rows([1, tokens.len()], |i, row| {
            row.fill(if tokens[i].pos >= len { 1.0 } else { 0.0 });
        }),
    }
}

/// Writes 0 for cells with shown tokens, −∞ for other cells.
fn mask(cells: &KvCells, row: &mut [f32], shown: impl Fn(TokenPos) -> bool) {
    row[cells.held().len()..].fill(f32::NEG_INFINITY);
    for (to, cell) in row.iter_mut().zip(cells.held()) {
        *to = match cell {
            Some(k) if shown(*k) => 0.0,
            _ => f32::NEG_INFINITY,
        };
    }
}

/// True if `k` is the last token of a block that `q` sees completely.
fn seen(q: TokenPos, k: TokenPos, len: u32) -> bool {
    k.seq == q.seq && k.pos <= q.pos && k.pos % len == len - 1
}

/// True if `q` sees `k` but not all of `k`'s block.
fn in_tail(q: TokenPos, k: TokenPos, len: u32) -> bool {
    let behind_last = u64::from(q.pos) + 1;
    let first = behind_last - behind_last % u64::from(len);
    k.seq == q.seq && k.pos <= q.pos && u64::from(k.pos) >= first
}

/// Returns, per cell, the cell of its block's last token, or the cell itself.
fn last(cells: &KvCells, len: u32) -> Vec<i64> {
    let held = || (0_i64..).zip(cells.held());
    let block = |k: &TokenPos| (k.seq, k.pos / len);
    let ends = held().filter_map(|(row, cell)| {
        let k = cell.as_ref().filter(|k| k.pos % len == len - 1)?;
        Some((block(k), row))
    });
    let ends: BTreeMap<(u32, u32), i64> = ends.collect();
    let own = |(row, cell): (i64, &Option<TokenPos>)| {
        let end = cell.as_ref().and_then(|k| ends.get(&block(k)));
        end.copied().unwrap_or(row)
    };
    let unused = cells.held().len()..cells.n_kv();
    held()
        .map(own)
        .chain(unused.map(|row| row as i64))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::SlotMemory;

    fn input(part: BlockPart, cells: &KvCells, tokens: &[TokenPos]) -> Vec<f64> {
        let n = match part {
            BlockPart::Last => cells.n_kv(),
            BlockPart::Start => 4 * tokens.len(),
            BlockPart::Seen | BlockPart::Tail => cells.n_kv() * tokens.len(),
            BlockPart::Place | BlockPart::Follows => tokens.len(),
        };
        let mut out = None;
        let slot = Slot::new([n, 1, 1, 1], SlotMemory::Tensor(&mut out)).expect("a tensor");
        let input = BlockInput { part, tokens: 2 };
        write(input, cells, tokens, slot).expect("small");
        let tensor = out.expect("written");
        match tensor.ints() {
            Ok(ints) => ints.iter().map(|&i| i as f64).collect(),
            Err(_) => tensor.reals().expect("reals").to_vec(),
        }
    }

    #[test]
    fn blocks_are_of_one_sequence_and_seen_when_complete() {
        let mut cells = KvCells::new(16, None);
        let at = |seq, pos| TokenPos { pos, seq };
        // Two sequences in turns: cells 0, 2, 4 hold the first, 1 and 3 the second.
        let first = [at(0, 0), at(1, 0), at(0, 1), at(1, 1), at(0, 2)];
        cells.place(&first).expect("room");
        let hidden = f64::NEG_INFINITY;
        let rows = |part| {
            let all = input(part, &cells, &first);
            all.chunks(5).map(<[f64]>::to_vec).collect::<Vec<_>>()
        };
        let seen = rows(BlockPart::Seen);
        assert_eq!(seen[0], [hidden; 5]);
        assert_eq!(seen[2], [hidden, hidden, 0.0, hidden, hidden]);
        assert_eq!(seen[3], [hidden, hidden, hidden, 0.0, hidden]);
        let tail = rows(BlockPart::Tail);
        assert_eq!(tail[0], [0.0, hidden, hidden, hidden, hidden]);
        assert_eq!(tail[2], [hidden; 5]);
        assert_eq!(tail[4], [hidden, hidden, hidden, hidden, 0.0]);
        assert_eq!(
            input(BlockPart::Last, &cells, &first),
            [2.0, 3.0, 2.0, 3.0, 4.0]
        );
        let starts = input(BlockPart::Start, &cells, &first);
        let line = [0.0, 0.0, 0.0, 0.0, 2.0];
        assert_eq!(starts, [&line[..], &line, &line, &[0.0; 5]].concat());
        let per_token = |part| input(part, &cells, &first);
        assert_eq!(per_token(BlockPart::Place), [0.0, 0.0, 1.0, 1.0, 0.0]);
        assert_eq!(per_token(BlockPart::Follows), [0.0, 0.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn cells_beyond_the_last_used_one_are_hidden() {
        let mut cells = KvCells::in_units(8, None, (1, usize::MAX), 4);
        let tokens = [0, 1].map(|pos| TokenPos { pos, seq: 0 });
        cells.place(&tokens).expect("room");
        let hidden = f64::NEG_INFINITY;
        let seen = input(BlockPart::Seen, &cells, &tokens[1..]);
        assert_eq!(seen, [hidden, 0.0, hidden, hidden]);
        let tail = input(BlockPart::Tail, &cells, &tokens[..1]);
        assert_eq!(tail, [0.0, hidden, hidden, hidden]);
        let last = input(BlockPart::Last, &cells, &tokens);
        assert_eq!(last, [1.0, 1.0, 2.0, 3.0]);
    }
}
