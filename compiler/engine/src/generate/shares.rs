/// Divides `room` batch tokens among prompts with `pending` tokens: equally, but short prompts leave their rest to the
/// others. Replaces each entry by the prompt's share.
pub(super) fn share(pending: &mut [usize], room: usize) {
    let mut order: Vec<usize> = (0..pending.len()).collect();
    order.sort_by_key(|&i| pending[i]);
    let (mut room, mut left) = (room, pending.len());
    for i in order {
        // Rounding up favours the prompts that end first.
        pending[i] = pending[i].min(room.div_ceil(left.max(1)));
        room -= pending[i];
        left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::share;

    fn shares<const N: usize>(mut pending: [usize; N], room: usize) -> [usize; N] {
        share(&mut pending, room);
        pending
    }

    #[test]
    fn short_prompts_leave_their_rest() {
        assert_eq!(shares([1000, 10], 512), [502, 10]);
        assert_eq!(shares([1000, 900, 800], 512), [170, 171, 171]);
        assert_eq!(shares([5, 6], 512), [5, 6]);
        assert_eq!(shares([7, 7, 7], 2), [1, 1, 0]);
        assert_eq!(shares([7], 0), [0]);
        assert_eq!(shares([], 9), [0_usize; 0]);
    }
}
