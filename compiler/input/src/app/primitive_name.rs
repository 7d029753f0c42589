//! What `primitives` may name: a primitive, or a family of them.

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

/// ```
/// use csdfc_input::app::primitive_name::PrimitiveName;
///
/// assert_eq!("winograd".parse::<PrimitiveName>()?.name(), "winograd");
/// assert_eq!("mec-b-hwc-hwc".parse::<PrimitiveName>()?.name(), "mec-b-hwc-hwc");
/// assert!("winograt".parse::<PrimitiveName>().unwrap_err().contains("did you mean `winograd`?"));
/// assert!("wino".parse::<PrimitiveName>().is_err());
/// # Ok::<(), String>(())
/// ```
impl FromStr for PrimitiveName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |primitive: Primitive| primitive.name().get(..text.len());
        let mut found = Primitive::all().filter_map(named).map(PrimitiveName);
        let found = found.find(|name| Primitive::all().any(|one| name.0 == text && name.names(one)));
        found.ok_or_else(|| {
            let families = families();
            let all = families.iter().copied().chain(Primitive::all().map(Primitive::name));
            let near = match suggest::nearest(text, all) {
                Some(near) => format!("did you mean `{near}`? "),
                None => String::new(),
            };
            let families = families.iter().copied().filter(|family| !family.contains('-'));
            let families = families.collect::<Vec<_>>().join(", ");
            format!("no primitive is named `{}`: {near}`auto`, `fixed`, or one of {families}", clip(text))
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
