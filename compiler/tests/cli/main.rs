//! The program as its users meet it: exit statuses, streams, options, formats, and what wrong usage gets.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod captures;
mod contract;
<<<<<<< HEAD
mod drafts;
=======
mod dot;
>>>>>>> 33209fd (dump --format dot: graphs for Graphviz, with clusters per layer and place)
mod eval;
mod html;
mod inspection;
mod lint;
mod options;
mod output;
mod support;
mod usage;
mod why;
