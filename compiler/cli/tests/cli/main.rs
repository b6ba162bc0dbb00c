//! Tests of the program: exit statuses, streams, options, formats, diagnostics.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod addresses;
mod artefact;
mod baseline;
mod bench;
mod bisect;
mod bisect_rpc;
mod book;
mod captures;
#[cfg(target_os = "linux")]
mod cards;
mod cells;
mod cluster;
mod commands;
mod contract;
mod cures;
mod deployments;
mod devices;
mod diff;
mod doctor;
mod dot;
mod drafted;
mod drafts;
mod embeddings;
mod emit;
mod eval;
mod faults;
mod generated;
mod html;
mod hub;
mod hub_server;
mod inspection;
mod lint;
mod lint_lines;
mod lint_meta;
mod lint_mistakes;
#[cfg(target_os = "linux")]
mod memory;
mod mistakes;
mod numa;
mod options;
mod output;
mod perplexity;
mod pipeline;
mod promises;
mod python;
mod real_models;
mod release;
mod rpc;
mod run;
mod schemas;
mod serve;
mod sessions;
mod several;
mod step_model;
mod support;
mod tokenize;
mod usage;
mod validation;
mod why;
mod worded;
