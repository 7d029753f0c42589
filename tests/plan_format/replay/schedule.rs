//! Section 8: schedules.

use std::collections::BTreeMap;

use serde_json::Value;

use super::model::Layer;
use super::{Refusal, list, number, same, text};

/// The firings of a partition's frame; that they are as many as they must.
pub fn schedule(stated: &Value, p: usize, layers: &[Layer]) -> Result<Vec<usize>, Refusal> {
    fn walk(
        steps: &[Value],
        layers: &BTreeMap<&str, usize>,
        firings: &mut Vec<usize>,
    ) -> Result<(), Refusal> {
        for step in steps {
            if firings.len() > 1 << 24 {
                return Err("a schedule without end".into());
            }
            if let Some(layer) = step["fire"].as_str() {
                firings.push(*layers.get(layer).ok_or_else(|| format!("it fires `{layer}`"))?);
            } else {
                let body = list(step, "body")?;
                let times = number(step, "repeat")?;
                if times == 0 || body.is_empty() {
                    return Err("a loop of nothing".into());
                }
                for _ in 0..times {
                    walk(body, layers, firings)?;
                }
            }
        }
        Ok(())
    }
    let own = layers.iter().enumerate().filter(|(_, layer)| layer.partition == p);
    let own: BTreeMap<&str, usize> = own.map(|(l, layer)| (layer.name.as_str(), l)).collect();
    let mut firings = Vec::new();
    walk(list(stated, "schedule")?, &own, &mut firings)?;
    for &l in own.values() {
        let times = firings.iter().filter(|&&other| other == l).count() as u64;
        same("times that a layer fires", times, layers[l].firings)?;
    }
    same("notation", text(stated, "notation")?, notation(list(stated, "schedule")?)?.as_str())?;
    Ok(firings)
}

/// A schedule on a line.
pub fn notation(steps: &[Value]) -> Result<String, Refusal> {
    let step = |step: &Value| -> Result<String, Refusal> {
        if let Some(layer) = step["fire"].as_str() {
            return Ok(format!("[{layer}]"));
        }
        let (times, body) = (number(step, "repeat")?, list(step, "body")?);
        let inner = notation(body)?;
        let is_single = body.len() == 1 && body[0].get("fire").is_some();
        Ok(if is_single { format!("{inner}×{times}") } else { format!("({inner})×{times}") })
    };
    Ok(steps.iter().map(step).collect::<Result<Vec<_>, _>>()?.join(","))
}
