//! The exact front over chains of segments.

use super::segment::Segment;

/// Segments one after another, from the first layer to the last cut.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// Bytes of the segment that takes most.
    pub bytes: u64,
    /// Modelled nanoseconds of all.
    pub time_ns: f64,
    /// The segments, as indices.
    pub segments: Vec<usize>,
}

/// A way to a cut, and the one that it goes on from.
#[derive(Debug, Clone, Copy)]
struct Label {
    bytes: u64,
    time_ns: f64,
    segment: usize,
    before: usize,
}

/// The exact front of chains of segments that end at the cut `last` (its index plus one): no other chain is as good in
/// both bytes and time. The fastest comes first. A chain takes the bytes of its largest segment, and the sum of the
/// times. If one way to a cut is better than another, it is better for every continuation. So it is exact to keep only
/// the front at each cut. It takes O(s · f · log(s · f)) time, for s segments and fronts of at most f chains.
pub fn front(segments: &[Segment], last: usize) -> Vec<Chain> {
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); last + 1];
    for (index, segment) in segments.iter().enumerate() {
        if let Some(list) = into.get_mut(segment.to) {
            list.push(index);
        }
    }
    let start = Label { bytes: 0, time_ns: 0.0, segment: usize::MAX, before: 0 };
    let mut labels: Vec<Vec<Label>> = vec![vec![start]];
    for list in into.iter().skip(1) {
        let mut here: Vec<Label> = Vec::new();
        for &index in list {
            let segment = &segments[index];
            here.extend(labels[segment.from].iter().enumerate().map(|(before, label)| Label {
                bytes: label.bytes.max(segment.bytes),
                time_ns: label.time_ns + segment.time_ns,
                segment: index,
                before,
            }));
        }
        // The sort is stable: of equal chains, the one of the first segment stays.
        here.sort_by(|a, b| a.time_ns.total_cmp(&b.time_ns).then(a.bytes.cmp(&b.bytes)));
        // Sorted by time, so a chain stays only if it takes fewer bytes than every faster one.
        let mut least = u64::MAX;
        here.retain(|label| {
            let better = label.bytes < least;
            least = least.min(label.bytes);
            better
        });
        labels.push(here);
    }
    let chain = |end: &Label| {
        let mut taken = Vec::new();
        let mut label = *end;
        while let Some(segment) = segments.get(label.segment) {
            taken.push(label.segment);
            label = labels[segment.from][label.before];
        }
        taken.reverse();
        Chain { bytes: end.bytes, time_ns: end.time_ns, segments: taken }
    };
    labels.last().into_iter().flatten().map(chain).collect()
}
