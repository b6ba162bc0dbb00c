//! ggml's tensor split: predicted against observed verdicts, and repairs of refused graphs.

mod book;
mod forms;
mod models;
mod repairs;
mod verdicts;
