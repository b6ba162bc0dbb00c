/// The variable with the devices of tests.
pub(crate) const VARIABLE: &str = "TPC_TEST_DRIVER";

/// Returns the numbers of the cards in a list such as `cuda:0,cuda:1`; an empty list means emulated devices.
///
/// # Errors
///
/// Returns a message about the first word that is not a card.
pub(crate) fn cards(list: &str) -> Result<Vec<u32>, String> {
    if matches!(list, "" | "emulated") {
        return Ok(Vec::new());
    }
    let card = |word: &str| {
        let number = word.trim().strip_prefix("cuda:").map(str::parse);
        match number {
            Some(Ok(number)) => Ok(number),
            _ => Err(format!(
                "{VARIABLE}: expected `emulated` or cards such as `cuda:0,cuda:1`, found `{word}`"
            )),
        }
    };
    list.split(',').map(card).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_cards() {
        assert_eq!(cards(""), Ok(vec![]));
        assert_eq!(cards("emulated"), Ok(vec![]));
        assert_eq!(cards("cuda:0"), Ok(vec![0]));
        assert_eq!(cards("cuda:2, cuda:0,cuda:2"), Ok(vec![2, 0, 2]));
        for wrong in ["cuda", "0", "cuda:x", "cuda:0,,cuda:1"] {
            assert!(cards(wrong).is_err(), "{wrong}");
        }
    }
}
