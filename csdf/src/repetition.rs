//! Consistency and the repetition vector.

use std::collections::VecDeque;

use num_integer::gcd;
use num_rational::Ratio as Fraction;
use num_traits::CheckedMul;

use crate::{ActorId, Error, Graph};

/// Maximum number of firings of an actor in an iteration.
const MAX_FIRINGS_OF_ACTOR: u64 = 1 << 63;

/// How often each actor fires in one iteration. An iteration is the shortest sequence of firings after which every
/// channel holds as many tokens as before (Bilsen et al. 1996, theorem 1). Parts of the graph that share no channel
/// each have their own shortest sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepetitionVector {
    /// Whole cycles of phases, by actor.
    pub cycles: Vec<u64>,
    /// Firings, by actor: cycles × phases.
    pub firings: Vec<u64>,
}

/// Solves the balance equations. There is one for each channel and reader: the producer's cycles times the tokens that
/// it produces in a cycle equal the reader's cycles times the tokens that it acquires in a cycle. A breadth-first walk
/// takes O(actors + readers) steps, each of a few divisions, after the rates of each port are added up run by run.
///
/// ```
/// use csdf::{Actor, Channel, Error, Graph, Rates, Reader, repetition_vector};
///
/// let mut graph = Graph::new();
/// let [a, b] = [graph.add_actor(Actor::new("a", 1))?, graph.add_actor(Actor::new("b", 2))?];
/// let channel = |name, tokens| {
///     let reader = Reader::consuming(b, Rates::constant(2, tokens));
///     Channel::new(name, a, Rates::constant(1, 3), vec![reader])
/// };
/// // a makes 3 tokens per firing, b reads 1 in each of its 2 phases: 2 firings of a, 6 of b.
/// graph.add_channel(channel("ab", 1))?;
/// let vector = repetition_vector(&graph)?;
/// assert_eq!((vector.firings, vector.cycles), (vec![2, 6], vec![2, 3]));
///
/// // A second channel whose rates ask for another balance.
/// graph.add_channel(channel("again", 2))?;
/// assert!(matches!(repetition_vector(&graph), Err(Error::Inconsistent { .. })));
/// # Ok::<(), csdf::Error>(())
/// ```
///
/// # Errors
/// [`Error::Inconsistent`] names a cycle of actors whose rates contradict each other, and [`Error::NoFlow`] a channel of
/// which only one side has rates above 0; [`Error::Overflow`] if a number of the solution exceeds 2^63, or an
/// intermediate number exceeds 128 bits.
pub fn repetition_vector(graph: &Graph) -> Result<RepetitionVector, Error> {
    let edges = balance_equations(graph)?;
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); graph.actors().len()];
    for (index, edge) in edges.iter().enumerate() {
        neighbours[edge.producer].push(index);
        neighbours[edge.reader].push(index);
    }
    let mut solution = Solution {
        graph,
        edges,
        fractions: vec![None; neighbours.len()],
        parents: vec![None; neighbours.len()],
    };
    let mut cycles = vec![0; neighbours.len()];
    for root in 0..neighbours.len() {
        if solution.fractions[root].is_none() {
            let component = solution.spread(root, &neighbours)?;
            solution.scale(&component, &mut cycles)?;
        }
    }
    let firings = graph
        .actors()
        .iter()
        .zip(&cycles)
        .map(|(actor, &cycles)| {
            let firings = actor.phases.checked_mul(cycles).filter(|&firings| firings <= MAX_FIRINGS_OF_ACTOR);
            firings.ok_or_else(|| overflow(actor.name.clone()))
        })
        .collect::<Result<_, _>>()?;
    Ok(RepetitionVector { cycles, firings })
}

/// The balance equation of a channel and a reader.
struct Balance {
    producer: usize,
    reader: usize,
    /// Cycles of the reader for each cycle of the producer: tokens produced over tokens acquired.
    ratio: Fraction<u128>,
}

fn balance_equations(graph: &Graph) -> Result<Vec<Balance>, Error> {
    let mut edges = Vec::new();
    for channel in graph.channels() {
        let per_cycle = |actor: ActorId, rates: &crate::Rates| {
            // At most 2^26 phases of 64-bit rates.
            rates.total() * u128::from(graph.actors()[actor.index()].phases / rates.len())
        };
        let produced = per_cycle(channel.producer, &channel.production);
        for reader in &channel.readers {
            let acquired = per_cycle(reader.actor, &reader.acquire);
            if (produced == 0) != (acquired == 0) {
                let mut sides = [channel.producer, reader.actor].map(|actor| graph.name(actor));
                if acquired == 0 {
                    sides.reverse();
                }
                let [silent, other] = sides;
                return Err(Error::NoFlow { channel: channel.name.clone(), silent, other });
            }
            if produced > 0 {
                edges.push(Balance {
                    producer: channel.producer.index(),
                    reader: reader.actor.index(),
                    ratio: Fraction::new(produced, acquired),
                });
            }
        }
    }
    Ok(edges)
}

struct Solution<'g> {
    graph: &'g Graph,
    edges: Vec<Balance>,
    /// Cycles relative to those of the component's root, reduced.
    fractions: Vec<Option<Fraction<u128>>>,
    parents: Vec<Option<usize>>,
}

impl Solution<'_> {
    /// Gives every actor tied to `root` its fraction, breadth first, and checks all ties.
    fn spread(&mut self, root: usize, neighbours: &[Vec<usize>]) -> Result<Vec<usize>, Error> {
        let one = Fraction::from_integer(1);
        self.fractions[root] = Some(one);
        let mut component = vec![root];
        let mut queue = VecDeque::from([(root, one)]);
        while let Some((actor, fraction)) = queue.pop_front() {
            for &index in &neighbours[actor] {
                let edge = &self.edges[index];
                let (other, factor) = if edge.producer == actor {
                    (edge.reader, edge.ratio)
                } else {
                    (edge.producer, edge.ratio.recip())
                };
                let product = fraction
                    .checked_mul(&factor)
                    .ok_or_else(|| overflow(self.graph.actors()[other].name.clone()))?;
                match self.fractions[other] {
                    Some(known) if known == product => {}
                    Some(_) => return Err(Error::Inconsistent { cycle: self.cycle_through(actor, other) }),
                    None => {
                        self.fractions[other] = Some(product);
                        self.parents[other] = Some(actor);
                        component.push(other);
                        queue.push_back((other, product));
                    }
                }
            }
        }
        Ok(component)
    }

    /// Turns the fractions of a component into the smallest whole numbers.
    fn scale(&self, component: &[usize], cycles: &mut [u64]) -> Result<(), Error> {
        let name = |actor: usize| self.graph.actors()[actor].name.clone();
        let fractions: Vec<(usize, Fraction<u128>)> =
            component.iter().filter_map(|&actor| Some((actor, self.fractions[actor]?))).collect();
        let mut common = 1u128;
        let mut divisor = 0;
        for &(actor, fraction) in &fractions {
            common = (common / gcd(common, *fraction.denom()))
                .checked_mul(*fraction.denom())
                .ok_or_else(|| overflow(name(actor)))?;
            divisor = gcd(divisor, *fraction.numer());
        }
        for &(actor, fraction) in &fractions {
            cycles[actor] = (fraction.numer() / divisor)
                .checked_mul(common / fraction.denom())
                .and_then(|count| u64::try_from(count).ok())
                .filter(|&count| count <= MAX_FIRINGS_OF_ACTOR)
                .ok_or_else(|| overflow(name(actor)))?;
        }
        Ok(())
    }

    /// The cycle that the tie between two actors of the search tree closes.
    fn cycle_through(&self, left: usize, right: usize) -> Vec<String> {
        let ancestors = |mut actor: usize| {
            let mut path = vec![actor];
            while let Some(parent) = self.parents[actor] {
                path.push(parent);
                actor = parent;
            }
            path
        };
        let (mut up, mut down) = (ancestors(left), ancestors(right));
        let mut meeting = None;
        while up.last() == down.last() && !up.is_empty() {
            meeting = up.pop();
            down.pop();
        }
        up.into_iter()
            .chain(meeting)
            .chain(down.into_iter().rev())
            .map(|actor| self.graph.actors()[actor].name.clone())
            .collect()
    }
}

fn overflow(of: String) -> Error {
    Error::Overflow { what: "repetition count", of }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;

    fn check(text: &str, expected: Result<&[u64], &str>) {
        let found = repetition_vector(&graph(text)).map(|vector| vector.firings);
        assert_eq!(found.map_err(|error| error.to_string()), expected.map(Vec::from).map_err(String::from));
    }

    #[test]
    fn consistent() {
        check("a:1 b:1  a 2 > b 3", Ok(&[3, 2]));
        check("a:3 b:2  a 6,1,1 > b 4,4", Ok(&[3, 2]));
        check("a:1 b:1 c:1  a 1 > b 1 | c 1", Ok(&[1, 1, 1]));
        check("a:1 b:1 c:1  a 4 > b 6 | c 10", Ok(&[15, 10, 6]));
        check("a:1 b:1 c:1 d:1  a 2 > b 1  c 1 > d 5", Ok(&[1, 2, 5, 1]));
        check("a:2 b:1  a 0 > b 0", Ok(&[2, 1]));
        check("a:2  a 1,0 > a 0,1 +1", Ok(&[2]));
        // Rates that divide the phases count once per repetition.
        check("a:4 b:1  a 1 > b 2", Ok(&[4, 2]));
    }

    #[test]
    fn inconsistent() {
        check(
            "x:1 a:1 b:1 c:1 d:1  x 1 > a 1  a 1 > b 1  b 1 > c 1  b 1 > d 1  a 1 > c 2",
            Err("inconsistent graph: the rates around `b` – `a` – `c` contradict each other"),
        );
        check(
            "a:1 b:1  a 0 > b 1",
            Err("inconsistent graph: on channel `a>b` all rates of `a` are 0, and those of `b` are not"),
        );
        check(
            "a:1 b:1  a 1 > b 0",
            Err("inconsistent graph: on channel `a>b` all rates of `b` are 0, and those of `a` are not"),
        );
        check("a:1  a 1 > a 2", Err("inconsistent graph: the rates around `a` contradict each other"));
    }

    #[test]
    fn overflowing() {
        let big = 1u64 << 40;
        let chain = format!("a:1 b:1 c:1  a {big} > b 1  b {big} > c 1");
        check(&chain, Err("the repetition count of `c` is too large a number"));
        let long = format!("a:1 b:1 c:1 d:1 e:1  a {big} > b 1  b {big} > c 1  c {big} > d 1  d {big} > e 1");
        check(&long, Err("the repetition count of `e` is too large a number"));
        let most = 1u64 << 63;
        check(&format!("a:1 b:1  a {most} > b 1"), Ok(&[1, most]));
        check(
            &format!("a:1 b:1  a {} > b 1", most + 1),
            Err("the repetition count of `b` is too large a number"),
        );
        let max = u64::MAX;
        check(&format!("a:1 b:2  a {max} > b 1,0"), Err("the repetition count of `b` is too large a number"));
    }
}
