use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use crate::Name;

/// The kind of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntityKind {
    /// A tensor or state.
    Tensor,
    /// A metadata key.
    Key,
    /// An op of the graph, or the result of an op.
    Op,
    /// A command-line option.
    Option,
    /// A device, or the host.
    Device,
    /// The model file.
    File,
    /// The plan as a whole.
    Plan,
}

impl EntityKind {
    /// Returns the kind's word.
    pub const fn word(self) -> &'static str {
        match self {
            EntityKind::Tensor => "tensor",
            EntityKind::Key => "key",
            EntityKind::Op => "op",
            EntityKind::Option => "option",
            EntityKind::Device => "device",
            EntityKind::File => "file",
            EntityKind::Plan => "plan",
        }
    }
}

/// The subject of a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entity {
    /// The kind; a file by default.
    pub kind: EntityKind,
    /// The name; empty for an unnamed part of a plan.
    pub name: Name,
}

impl Entity {
    /// Returns the entity with layer 0, for comparing layers.
    #[must_use]
    pub fn without_layer(&self) -> Entity {
        Entity {
            kind: self.kind,
            name: self.name.without_layer(),
        }
    }
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl Serialize for Entity {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl JsonSchema for Entity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Entity".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

impl From<Name> for Entity {
    fn from(name: Name) -> Entity {
        Entity {
            kind: EntityKind::File,
            name,
        }
    }
}

impl From<&str> for Entity {
    fn from(name: &str) -> Entity {
        Name::plain(name).into()
    }
}

impl From<&String> for Entity {
    fn from(name: &String) -> Entity {
        Name::plain(name).into()
    }
}

impl From<String> for Entity {
    fn from(name: String) -> Entity {
        Name::plain(name).into()
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Name {
        Name::plain(name)
    }
}

impl From<&String> for Name {
    fn from(name: &String) -> Name {
        Name::plain(name)
    }
}

impl From<String> for Name {
    fn from(name: String) -> Name {
        Name::plain(name)
    }
}

impl From<&Name> for Name {
    fn from(name: &Name) -> Name {
        name.clone()
    }
}
