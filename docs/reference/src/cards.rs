//! The built-in table of cards.

use tpc_core::cards::table as known;
use tpc_core::report::render_cards;

use crate::Part;

const WIDTH: u16 = 100;

pub(crate) const PART: Part = Part {
    name: "cards",
    make: || format!("```text\n{}```\n", render_cards(&known().cards, WIDTH)),
};
