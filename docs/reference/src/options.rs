//! The options of other programs, and how tpc reads them.

use crate::Part;
use crate::markdown::table;

pub(crate) const PART: Part = Part {
    name: "options",
    make: || table(["option", "effect in tpc"], tpc::foreign_options()),
};
