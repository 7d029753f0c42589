//! What `primitives` may name: a primitive, or a family of them.
//!
//! ```
//! use csdfc_input::app::primitive_name::PrimitiveName;
//! use csdfc_runtime::bind::Primitive;
//!
//! let family: PrimitiveName = "winograd".parse()?;
//! let names: Vec<&str> = Primitive::all().filter(|one| family.names(*one)).map(Primitive::name).collect();
//! assert!(names.contains(&"winograd-f4x4-3x3-hwc-hwc"));
//! assert!(!names.contains(&"indirect-gemm-hwc-hwc"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeSet;
use std::str::FromStr;

use csdfc_network::suggest::{self, clip};
use csdfc_runtime::bind::Primitive;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// The name of a primitive, or what the names of a family begin with: `winograd-f4x4-3x3-hwc-hwc`, `winograd-f4x4-3x3`,
/// `winograd`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrimitiveName(&'static str);

impl PrimitiveName {
    /// The name.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// Whether it names this primitive, or its family.
    pub fn names(self, primitive: Primitive) -> bool {
        let rest = primitive.name().strip_prefix(self.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }
}

/// A text that names no primitive and no family of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no primitive is named `{}`: {}`auto`, `fixed`, or one of {}",
    clip(name),
    near.map_or(String::new(), |near| format!("did you mean `{near}`? ")),
    families().into_iter().filter(|family| !family.contains('-')).collect::<Vec<_>>().join(", ")
)]
pub struct UnknownPrimitive {
    name: String,
    /// The name that is most like it.
    near: Option<&'static str>,
}

/// ```
/// use csdfc_input::app::primitive_name::{PrimitiveName, UnknownPrimitive};
///
/// assert_eq!("winograd".parse::<PrimitiveName>()?.name(), "winograd");
/// assert_eq!("mec-b-hwc-hwc".parse::<PrimitiveName>()?.name(), "mec-b-hwc-hwc");
/// let unknown = "winograt".parse::<PrimitiveName>().unwrap_err();
/// assert!(unknown.to_string().contains("did you mean `winograd`?"));
/// assert!("wino".parse::<PrimitiveName>().is_err());
/// # Ok::<(), UnknownPrimitive>(())
/// ```
impl FromStr for PrimitiveName {
    type Err = UnknownPrimitive;

    fn from_str(text: &str) -> Result<Self, UnknownPrimitive> {
        let named = |primitive: Primitive| primitive.name().get(..text.len());
        let mut found = Primitive::all().filter_map(named).map(PrimitiveName);
        let found = found.find(|name| Primitive::all().any(|one| name.0 == text && name.names(one)));
        found.ok_or_else(|| {
            let all = families().into_iter().chain(Primitive::all().map(Primitive::name));
            UnknownPrimitive { name: text.into(), near: suggest::nearest(text, all) }
        })
    }
}

impl<'de> Deserialize<'de> for PrimitiveName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// What names of primitives begin with, up to each of their hyphens.
fn families() -> BTreeSet<&'static str> {
    let of = |primitive: Primitive| {
        let name = primitive.name();
        name.match_indices('-').map(move |(end, _)| &name[..end])
    };
    Primitive::all().flat_map(of).collect()
}
