//! The throughput once more, from all that waits for something: the greatest ratio of time to iterations around a
//! cycle of starts and ends. It holds for unbounded channels too, where an execution never comes back to a state.

use csdf::Graph;

use crate::oracle::Speed;

/// `to` of an iteration happens no earlier than `time` after `from` of the iteration `distance` before it.
struct Wait {
    from: usize,
    to: usize,
    time: i64,
    distance: i64,
}

/// Throughput of a graph that is free of deadlock; `firings` is its repetition vector.
pub fn throughput(graph: &Graph, firings: &[u64], capacities: &[Option<u64>]) -> Speed {
    let waits = waits(graph, firings, capacities);
    let events = 2 * firings.iter().sum::<u64>() as usize;
    // Greatest ratio seen so far.
    let (mut time, mut distance) = (0, 1);
    while let Some((more_time, more_distance)) = cycle_above(events, &waits, time, distance) {
        (time, distance) = (more_time, more_distance);
    }
    Speed::new(distance as u64, time as u64)
}

fn waits(graph: &Graph, firings: &[u64], capacities: &[Option<u64>]) -> Vec<Wait> {
    let mut first = vec![0];
    firings.iter().for_each(|count| first.push(first.last().unwrap() + 2 * count));
    // Start and end of firing n of an actor, n counted over all iterations: the event and its iteration.
    let event = |actor: usize, n: i64, end: bool| {
        let count = firings[actor] as i64;
        (first[actor] as usize + 2 * n.rem_euclid(count) as usize + usize::from(end), n.div_euclid(count))
    };
    let mut waits = Vec::new();
    let mut wait = |to: (usize, i64), from: (usize, i64), time: u64| {
        waits.push(Wait { from: from.0, to: to.0, time: time as i64, distance: to.1 - from.1 });
    };
    for (index, actor) in graph.actors().iter().enumerate() {
        let mut times = actor.execution_times.iter().cycle();
        for n in 0..firings[index] as i64 {
            let (start, end) = (event(index, n, false), event(index, n, true));
            wait(end, start, times.next().unwrap());
            wait(start, event(index, n - 1, false), 0);
            wait(end, event(index, n - 1, true), 0);
            wait(start, event(index, n - actor.concurrency.get() as i64, true), 0);
        }
    }
    for (channel, capacity) in graph.channels().iter().zip(capacities) {
        let producer = channel.producer.index();
        let production = Sums::new(channel.production.iter(), firings[producer]);
        for reader in &channel.readers {
            let actor = reader.actor.index();
            let acquire = Sums::new(reader.acquire.iter(), firings[actor]);
            let release = Sums::new(reader.release.iter(), firings[actor]);
            for n in 0..firings[actor] as i64 {
                let needed = acquire.of(n + 1) - channel.initial_tokens as i64;
                wait(event(actor, n, false), event(producer, production.reach(needed) - 1, true), 0);
            }
            let Some(capacity) = capacity else { continue };
            if channel.readers.iter().all(|reader| reader.actor == channel.producer) {
                continue;
            }
            for n in 0..firings[producer] as i64 {
                let freed = production.of(n + 1) + channel.initial_tokens as i64 - *capacity as i64;
                wait(event(producer, n, false), event(actor, release.reach(freed) - 1, true), 0);
            }
        }
    }
    waits
}

/// Tokens after n firings, for any whole n.
struct Sums {
    /// After 0, 1, … firings of one iteration.
    within: Vec<i64>,
}

impl Sums {
    fn new(rates: impl Iterator<Item = u64> + Clone, firings: u64) -> Sums {
        let mut within = vec![0];
        rates
            .cycle()
            .take(firings as usize)
            .for_each(|rate| within.push(within.last().unwrap() + rate as i64));
        Sums { within }
    }

    fn of(&self, n: i64) -> i64 {
        let count = self.within.len() as i64 - 1;
        n.div_euclid(count) * self.within[count as usize] + self.within[n.rem_euclid(count) as usize]
    }

    /// The fewest firings that bring this many tokens.
    fn reach(&self, tokens: i64) -> i64 {
        let (count, total) = (self.within.len() as i64 - 1, *self.within.last().unwrap());
        let mut n = (tokens.div_euclid(total) - 1) * count;
        while self.of(n) < tokens {
            n += 1;
        }
        n
    }
}

/// Time and iterations around a cycle whose ratio is above time/distance, if there is one.
fn cycle_above(events: usize, waits: &[Wait], time: i64, distance: i64) -> Option<(i64, i64)> {
    let mut length = vec![0i64; events];
    let mut last: Vec<Option<usize>> = vec![None; events];
    let mut changed = None;
    for _ in 0..=events {
        changed = None;
        for (index, wait) in waits.iter().enumerate() {
            let longer = length[wait.from] + wait.time * distance - wait.distance * time;
            if longer > length[wait.to] {
                length[wait.to] = longer;
                last[wait.to] = Some(index);
                changed = Some(wait.to);
            }
        }
        changed?;
    }
    // Far enough back, one is on the cycle.
    let mut event = changed?;
    for _ in 0..events {
        event = waits[last[event].unwrap()].from;
    }
    let (mut total, mut iterations, begin) = (0, 0, event);
    loop {
        let wait = &waits[last[event].unwrap()];
        total += wait.time;
        iterations += wait.distance;
        event = wait.from;
        if event == begin {
            return Some((total, iterations));
        }
    }
}
