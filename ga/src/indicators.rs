//! Measures of the quality of a front.

use crate::dominance::order;

/// The volume that the points dominate, up to a reference point: the larger, the better. All objectives are minimised.
/// The volume is exact for any number of objectives. Points that are not below the reference in every objective are
/// left out.
///
/// It is computed by slicing, in O(n · log n) time for n points of two objectives, and O(n^(k-1) · log n) for k
/// objectives.
///
/// ```
/// let points = [vec![1.0, 2.0], vec![2.0, 1.0]];
/// // Two rectangles of 1 × 2 and 2 × 1 that share a square.
/// assert_eq!(csdfc_ga::hypervolume(&points, &[3.0, 3.0]), 3.0);
/// ```
pub fn hypervolume(points: &[Vec<f64>], reference: &[f64]) -> f64 {
    let below = |point: &&Vec<f64>| {
        point.len() == reference.len() && point.iter().zip(reference).all(|(value, most)| value < most)
    };
    let points: Vec<&[f64]> = points.iter().filter(below).map(Vec::as_slice).collect();
    volume(points, reference)
}

fn volume(mut points: Vec<&[f64]>, reference: &[f64]) -> f64 {
    let Some((&most, rest)) = reference.split_last() else { return 0.0 };
    let last = rest.len();
    points.sort_by(|a, b| order(a[last], b[last]));
    if rest.is_empty() {
        return points.first().map_or(0.0, |point| most - point[0]);
    }
    let mut sum = 0.0;
    if last == 1 {
        // In the plane, each point adds a rectangle to those of the lower points.
        let mut left = rest[0];
        for point in points {
            if point[0] < left {
                sum += (left - point[0]) * (most - point[1]);
                left = point[0];
            }
        }
        return sum;
    }
    for (at, point) in points.iter().enumerate() {
        let end = points.get(at + 1).map_or(most, |next| next[last]);
        if end > point[last] {
            sum += volume(points[..=at].to_vec(), rest) * (end - point[last]);
        }
    }
    sum
}

/// How evenly a front is spread (Schott 1995): the standard deviation of the points' distances to their nearest
/// neighbours. A distance is the sum of the differences in all objectives. The result is 0 if all distances are equal, or
/// if there are fewer than two points. It takes O(k · n²) time for n points of k objectives.
pub fn spacing(points: &[Vec<f64>]) -> f64 {
    if points.len() < 2 {
        return 0.0;
    }
    let apart = |a: &Vec<f64>, b: &Vec<f64>| a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>();
    let nearest = |(i, point): (usize, &Vec<f64>)| {
        let others = points.iter().enumerate().filter(|(j, _)| *j != i);
        others.map(|(_, other)| apart(point, other)).fold(f64::INFINITY, f64::min)
    };
    let distances: Vec<f64> = points.iter().enumerate().map(nearest).collect();
    let mean = distances.iter().sum::<f64>() / distances.len() as f64;
    let squares: f64 = distances.iter().map(|distance| (distance - mean).powi(2)).sum();
    (squares / (distances.len() - 1) as f64).sqrt()
}
