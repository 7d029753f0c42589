//! Finding repeated patterns in a sequence.

/// Longest pattern looked for: rate patterns are as long as a stride, rounds of a schedule likewise.
const MAX_PATTERN_LEN: usize = 64;

/// A stretch of a sequence: `period` elements from `start`, `times` times over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RepeatedPattern {
    pub(crate) start: usize,
    pub(crate) period: usize,
    pub(crate) times: usize,
}

/// Cuts a sequence into stretches. A stretch costs the length of its pattern, plus one for its repetition count. The
/// total cost is the least of all cuts whose repetitions are as long as they can be. It takes O(length) time.
pub(crate) fn stretches<T: PartialEq>(sequence: &[T]) -> Vec<RepeatedPattern> {
    let length = sequence.len();
    let longest = MAX_PATTERN_LEN.min(length / 2);
    // For each period, how many elements from here on equal the element one period later.
    let mut equal = vec![0; longest + 1];
    let mut cost = vec![0; length + 1];
    let mut choice = vec![(1, 1); length];
    for start in (0..length).rev() {
        let mut best = (1 + cost[start + 1], 1, 1);
        for period in 1..=longest.min(length - 1 - start) {
            if sequence[start] != sequence[start + period] {
                equal[period] = 0;
                continue;
            }
            equal[period] += 1;
            let times = equal[period] / period + 1;
            if times == 1 {
                continue;
            }
            let candidate = period + 1 + cost[start + times * period];
            if candidate < best.0 || (candidate == best.0 && best.2 == 1) {
                best = (candidate, period, times);
            }
        }
        cost[start] = best.0;
        choice[start] = (best.1, best.2);
    }
    let mut cut = Vec::new();
    let mut start = 0;
    while start < length {
        let (period, times) = choice[start];
        cut.push(RepeatedPattern { start, period, times });
        start += period * times;
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, usize)]) {
        let sequence: Vec<char> = text.chars().collect();
        let found: Vec<(String, usize)> = stretches(&sequence)
            .iter()
            .map(|s| (sequence[s.start..s.start + s.period].iter().collect(), s.times))
            .collect();
        let expected: Vec<(String, usize)> = expected.iter().map(|&(p, t)| (p.to_owned(), t)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn cuts() {
        check("", &[]);
        check("a", &[("a", 1)]);
        check("aa", &[("a", 2)]);
        check("caaabb", &[("c", 1), ("a", 3), ("b", 2)]);
        check("abababab", &[("ab", 4)]);
        check("aabababa", &[("a", 2), ("ba", 3)]);
        check("aababab", &[("a", 1), ("ab", 3)]);
        check("aabaabx", &[("aab", 2), ("x", 1)]);
        check("abcdef", &[("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1), ("f", 1)]);
    }
}
