//! Numbers in the order of time, of which the greatest is wanted after each of many changes.

/// A number for each moment. It is the sum of the changes up to that moment.
///
/// The changes are the leaves of a binary tree. Each inner node has the sum of its leaves and the greatest sum of its
/// first leaves, so that a change takes logarithmic time.
pub(super) struct Moments {
    /// The root has index 1, the children of node i have 2 · i and 2 · i + 1, and the leaves are the second half.
    nodes: Vec<Node>,
    count: usize,
}

#[derive(Clone, Copy)]
struct Node {
    sum: i128,
    most: i128,
}

/// A node without moments. It is far below all sums of bytes, and no sum of two such numbers overflows.
const NONE: Node = Node { sum: 0, most: i128::MIN / 4 };

impl Moments {
    /// Zeros.
    pub fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two();
        let mut moments = Moments { nodes: vec![NONE; 2 * leaves], count };
        moments.nodes[leaves..leaves + count].fill(Node { sum: 0, most: 0 });
        (1..leaves).rev().for_each(|node| moments.join(node));
        moments
    }

    /// Adds to all numbers from this moment on.
    pub fn add_from(&mut self, moment: usize, number: i128) {
        if moment >= self.count || number == 0 {
            return;
        }
        let mut node = self.nodes.len() / 2 + moment;
        let sum = self.nodes[node].sum + number;
        self.nodes[node] = Node { sum, most: sum };
        while node > 1 {
            node /= 2;
            self.join(node);
        }
    }

    /// Adds to the number of one moment.
    pub fn add_at(&mut self, moment: usize, number: i128) {
        self.add_from(moment, number);
        self.add_from(moment + 1, -number);
    }

    /// The greatest number; less than any other number if there is none.
    pub fn max(&self) -> i128 {
        self.nodes[1].most
    }

    fn join(&mut self, node: usize) {
        let [first, second] = [self.nodes[2 * node], self.nodes[2 * node + 1]];
        // The numbers of the second half begin where the first half's changes end.
        let most = first.most.max(first.sum + second.most);
        self.nodes[node] = Node { sum: first.sum + second.sum, most };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_greatest_of_sums(
            count in 1usize..40,
            changes in prop::collection::vec((0usize..50, -9i128..10, any::<bool>()), 0..60),
        ) {
            let (mut moments, mut numbers) = (Moments::new(count), vec![0; count]);
            for (moment, number, is_one) in changes {
                let end = if is_one { moment + 1 } else { count };
                (moment..end.min(count)).for_each(|at| numbers[at] += number);
                if is_one { moments.add_at(moment, number) } else { moments.add_from(moment, number) }
                prop_assert_eq!(Some(moments.max()), numbers.iter().max().copied());
            }
        }
    }
}
