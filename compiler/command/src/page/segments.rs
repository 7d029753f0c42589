//! The segments of a plan: layers that take turns, row by row. A segment ends where every layer that has begun has ended.

use csdfc_plan::plan::Plan;
use csdfc_plan::timeline::Timeline;

/// For each CNN and layer, the segment of the layer, counted from 1 in the CNN; `None` for a layer that fires once and
/// alone.
pub fn segments(plan: &Plan, timeline: &Timeline) -> Vec<Vec<Option<usize>>> {
    let mut of = plan.cnns.iter().map(|cnn| vec![None; cnn.layers.len()]).collect::<Vec<_>>();
    let mut fired = plan.cnns.iter().map(|cnn| vec![0u64; cnn.layers.len()]).collect::<Vec<_>>();
    let mut count = vec![0; plan.cnns.len()];
    for p in 0..plan.partitions.len() {
        let (mut open, mut begun): (usize, Vec<usize>) = (0, Vec::new());
        for firing in timeline.firings.iter().filter(|firing| firing.partition == p && firing.frame == 0) {
            let (c, l) = (firing.cnn, firing.layer);
            if fired[c][l] == 0 {
                open += 1;
                begun.push(l);
            }
            fired[c][l] += 1;
            if fired[c][l] == plan.cnns[c].layers[l].firings {
                open -= 1;
            }
            if open == 0 {
                if begun.len() > 1 || plan.cnns[c].layers[begun[0]].firings > 1 {
                    count[c] += 1;
                    begun.iter().for_each(|l| of[c][*l] = Some(count[c]));
                }
                begun.clear();
            }
        }
    }
    of
}
