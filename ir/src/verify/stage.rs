//! Stages of compilation, and verified graphs of a stage.
//!
//! | stage | graph | its own invariant |
//! |---|---|---|
//! | [`Model`] | the whole model | every value is on the host |
//! | [`Placed`] | the model on devices and groups | no value has a sharding |
//! | [`Sharded`] | the same with shardings, copies and collectives | none |
//! | [`Programs`] | one program per device, sizes local | no value is on a group |

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use super::error::{VerifyError, VerifyErrorKind};
use crate::entity::Value;
use crate::graph::{Graph, ValueData};
use crate::place::Place;
use crate::sharding::Sharding;
use crate::text::Entity;

mod sealed {
    use crate::graph::ValueData;

    /// The invariant of a stage.
    pub trait Invariant {
        /// The name in messages.
        const NAME: &'static str;

        /// Returns the predicate by which a value breaks the invariant, if any.
        fn violation(value: &ValueData) -> Option<&'static str>;
    }
}

use sealed::Invariant;

/// A stage of compilation.
pub trait Stage: Invariant {}

/// A stage whose graphs can run.
pub trait Executable: Stage {}

macro_rules! stages {
    ($($(#[$doc:meta])* $stage:ident = $name:literal, |$value:ident| $broken:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $stage {}

        impl Invariant for $stage {
            const NAME: &'static str = $name;

            fn violation($value: &ValueData) -> Option<&'static str> {
                $broken
            }
        }

        impl Stage for $stage {}
    )*};
}

stages! {
    /// The whole model, on the host.
    Model = "model", |v| (v.place != Place::Host).then_some("is not on the host");
    /// The model on devices and groups, undivided.
    Placed = "placed", |v| (v.sharding != Sharding::mirrored()).then_some("has a sharding");
    /// The model divided among the devices of groups, with global sizes.
    Sharded = "sharded", |_v| None;
    /// The programs of the host and of every device, with local sizes.
    Programs = "programs", |v| matches!(v.place, Place::Group(_)).then_some("is on a group");
}

impl Executable for Model {}
impl Executable for Programs {}

/// A graph that keeps the invariants of stage `S`.
#[derive(Debug)]
pub struct Verified<S> {
    graph: Graph,
    stage: PhantomData<S>,
}

impl<S: Stage> Verified<S> {
    /// Verifies a graph.
    ///
    /// # Errors
    /// Returns the violations, and the graph itself.
    pub fn new(graph: Graph) -> Result<Verified<S>, Violations> {
        let mut errors = super::verify(&graph).err().unwrap_or_default();
        errors.extend(
            graph
                .values()
                .filter_map(|(v, data)| find_violation::<S>(v, data)),
        );
        if errors.is_empty() {
            let stage = PhantomData;
            return Ok(Verified { graph, stage });
        }
        Err(Violations {
            stage: S::NAME,
            graph: Box::new(graph),
            errors,
        })
    }

    /// Skips verification, for tests with invalid graphs only. A test of the source tree forbids other uses.
    #[doc(hidden)]
    pub const fn unchecked(graph: Graph) -> Verified<S> {
        let stage = PhantomData;
        Verified { graph, stage }
    }

    /// Returns the graph, for changes.
    pub fn into_graph(self) -> Graph {
        self.graph
    }
}

fn find_violation<S: Stage>(v: Value, data: &ValueData) -> Option<VerifyError> {
    let stage = S::NAME;
    let broken = S::violation(data)?;
    let kind = VerifyErrorKind::Stage { stage, broken };
    Some(VerifyError::new(kind, Entity::Value(v)))
}

impl<S> Deref for Verified<S> {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        &self.graph
    }
}

// A derived impl would require `S: Clone`.
impl<S> Clone for Verified<S> {
    fn clone(&self) -> Verified<S> {
        Verified {
            graph: self.graph.clone(),
            stage: PhantomData,
        }
    }
}

impl<S> PartialEq for Verified<S> {
    fn eq(&self, other: &Verified<S>) -> bool {
        self.graph == other.graph
    }
}

impl<S> fmt::Display for Verified<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.graph.fmt(f)
    }
}

/// A graph that does not verify.
#[derive(Clone, Debug)]
pub struct Violations {
    /// The stage to verify (`placed`).
    pub stage: &'static str,
    /// The graph.
    pub graph: Box<Graph>,
    /// The violations, at least one.
    pub errors: Vec<VerifyError>,
}

/// `placed graph: TPC0236: inst7: the first violation`
impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} graph", self.stage)?;
        match self.errors.first() {
            Some(first) => write!(f, ": {}: {first}", first.code()),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Violations {}
