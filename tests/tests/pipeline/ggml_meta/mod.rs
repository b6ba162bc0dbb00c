//! The rules of the engine that graphs are ported to: its verdicts against those that were observed, and the equivalents
//! that are found of what it refuses.

mod book;
mod forms;
mod models;
mod repairs;
mod verdicts;
