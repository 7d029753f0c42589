//! Actors that run ahead of demand, so that the tokens that they read are released earlier.
//!
//! An execution on demand lets an actor fire as late as it can. If an actor needs storage of its own from its first
//! firing on, such as weights that are read from a store, it is better that actors which have begun first finish what
//! they can, and so make room.

use crate::expand::State;
use crate::{ActorId, Error, Execution, Expanded};

impl Expanded<'_> {
    /// The firings of an execution in another order, within its capacities. Before an actor fires for the first time,
    /// the actors that have begun and that `runs_ahead` names fire as often as there are tokens and space for them. All
    /// other firings stay in their order.
    ///
    /// So when storage is needed from the first firing of an actor on, more tokens have been released elsewhere. At the
    /// end of every other firing, no channel holds more than it did, except the channels written by actors that run
    /// ahead.
    ///
    /// # Errors
    /// Those of [`Expanded::replay`]. There are none if `execution` is one of this graph.
    ///
    /// # Panics
    /// If `execution` is one of a graph of more actors or fewer channels.
    pub fn ahead(
        &self,
        execution: &Execution,
        runs_ahead: impl Fn(ActorId) -> bool,
    ) -> Result<Execution, Error> {
        let capacities: Vec<Option<u64>> = execution.capacities.iter().copied().map(Some).collect();
        let mut state = State::new(self);
        let mut firings = Vec::with_capacity(execution.firings.len());
        let mut due = vec![0u64; self.graph.actors().len()];
        // Those that may run ahead, in the order in which they began.
        let mut begun = Vec::new();
        for &id in &execution.firings {
            let actor = id.index();
            due[actor] += 1;
            if state.fired[actor] >= due[actor] {
                // It ran ahead.
                continue;
            }
            if state.fired[actor] == 0 {
                begun.retain(|&(of, _)| !state.finished(of));
                let can = |state: &State<'_, '_>, actor: usize| {
                    !state.finished(actor)
                        && state.missing_tokens(actor, self.input_range(actor).start).is_none()
                        && state.missing_space(actor, &capacities).is_none()
                };
                while let Some(&(of, id)) = begun.iter().find(|&&(of, _)| can(&state, of)) {
                    state.fire(of);
                    firings.push(id);
                }
                if runs_ahead(id) {
                    begun.push((actor, id));
                }
            }
            state.fire(actor);
            firings.push(id);
        }
        self.replay(firings)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::graph;
    use crate::{ActorId, Expanded, compress, notation, verify};

    fn check(text: &str, segments: &[&[u32]], stays: &[u32], expected: &str) {
        let graph = graph(text);
        let expanded = Expanded::new(&graph).unwrap();
        let segments: Vec<Vec<ActorId>> =
            segments.iter().map(|segment| segment.iter().map(|&actor| ActorId(actor)).collect()).collect();
        let on_demand = expanded.sequential(&segments).unwrap();
        let ahead = expanded.ahead(&on_demand, |actor| !stays.contains(&(actor.index() as u32))).unwrap();
        let steps = compress(&ahead.firings);
        assert_eq!(notation(&steps, &graph.actor_names()), expected, "{text}");
        assert_eq!(ahead.capacities, on_demand.capacities, "{text}");
        assert_eq!(verify(&graph, &on_demand.capacities, &steps), Ok(()), "{text}");
    }

    #[test]
    fn as_far_as_there_is_space() {
        // A 3×3 layer needs two rows at first, and three rows of space.
        let window = "a:8 b:8 c:8  a 1 > b 2,6*1,0/0,6*1,2  b 1 > c 1";
        check(window, &[&[0, 1, 2]], &[], "[a]×3,[b],[c],[b],[c],([a],[b],[c])×5,[b],[c]");
        check(window, &[&[0, 1, 2]], &[0], "[a]×2,[b],[c],([a],[b],[c])×6,[b],[c]");
    }

    #[test]
    fn never_past_the_tokens_that_are_there() {
        check(
            "a:4 b:4 c:4  a 1 > b 1  b 1 > c 1",
            &[&[0, 1, 2]],
            &[],
            "[a],[b],[a],[c],[b],[c],([a],[b],[c])×2",
        );
        // All tokens of another segment are there from the start.
        let chain = "a:4 b:4 c:2 d:2  a 1 > b 1  b 1 > c 2  c 1 > d 1";
        check(chain, &[&[0], &[1, 2, 3]], &[], "[a]×4,[b]×2,[c],[b]×2,[d],[c],[d]");
    }
}
