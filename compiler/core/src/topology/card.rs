use super::error::{Place, TopologyError};
use crate::cards::{Card, CardMatch, find, short_name, table};

pub(super) fn card_named(name: &str, at: Place<'_>, own: &[Card]) -> Result<Card, TopologyError> {
    match find(name, own, table()) {
        CardMatch::Card(card) | CardMatch::Meant { card, .. } => Ok(card.clone()),
        CardMatch::Several(names) => Err(at
            .wrong(format!("`{name}` matches several cards"))
            .cure(format!("write one of {}", names.join(", ")))),
        CardMatch::Unknown(near) => {
            let name = tpc_diag::suggest::shorten(name);
            let cure = match near.as_slice() {
                [] => String::new(),
                near => format!("did you mean {}? ", near.join(" or ")),
            };
            Err(at.wrong(format!("unknown card `{name}`")).cure(format!(
                "{cure}`tpc devices` lists the known cards; describe another by memory, bandwidth and flops"
            )))
        }
    }
}

/// Returns the default device name of a card.
pub(super) fn name_of_card(card: &Card) -> String {
    short_name(&card.name)
}
