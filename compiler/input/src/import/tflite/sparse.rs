//! Sparse constants: a file stores only the elements that are not 0, and their places.
//!
//! A tensor's dimensions, and the blocks into which some of them are cut, are levels of a tree. The children of a node
//! are all indices of a level, or the indices that the level lists. The leaves are the stored elements, in order.

use super::flat::{Record, Stored};
use crate::import::constant::MAX_RANK;
use crate::import::error::{Fault, fault};

/// A level of the tree.
struct Level {
    size: usize,
    /// The distance in the dense tensor between elements of neighbouring indices.
    step: usize,
    /// For each node of the level above, where its indices begin in a list, and the list. `None` if all indices are
    /// children.
    listed: Option<[Vec<usize>; 2]>,
}

/// The places of the stored elements in a dense tensor of these dimensions.
pub(super) fn places(stated: &Record, dims: &[usize]) -> Result<Vec<usize>, Fault> {
    let elements: usize = dims.iter().product();
    // For each node, its number in the lists of the level below, and the place of its first element.
    let mut nodes = vec![[0, 0]];
    for level in levels(stated, dims)? {
        let mut next = Vec::new();
        for [node, place] in nodes {
            let (first, last) = match &level.listed {
                None => (0, level.size),
                Some([bounds, _]) => match bounds.get(node..=node + 1) {
                    Some(&[first, last]) => (first, last),
                    _ => return fault!("the lists of its elements are too short"),
                },
            };
            for at in first..last {
                let (child, index) = match &level.listed {
                    None => (node * level.size + at, Some(at)),
                    Some([_, indices]) => (at, indices.get(at).copied()),
                };
                let Some(index) = index.filter(|index| *index < level.size) else {
                    return fault!("it lists an element outside of its dimensions");
                };
                next.push([child, place + index * level.step]);
                // No two nodes have an element in common.
                if next.len() > elements {
                    return fault!("it lists more elements than its dimensions have");
                }
            }
        }
        nodes = next;
    }
    Ok(nodes.into_iter().map(|[_, place]| place).collect())
}

fn levels(stated: &Record, dims: &[usize]) -> Result<Vec<Level>, Fault> {
    let (order, cut) = (stated.ints(0, 2 * MAX_RANK)?, stated.ints(1, MAX_RANK)?);
    let records = stated.records(2, 2 * MAX_RANK)?.iter().collect::<Result<Vec<_>, _>>()?;
    let number = |value: &i32| usize::try_from(*value).unwrap_or(usize::MAX);
    let (order, cut) =
        (order.iter().map(number).collect::<Vec<_>>(), cut.iter().map(number).collect::<Vec<_>>());
    let mut sorted = order.clone();
    sorted.sort_unstable();
    let distinct = |axis: usize| cut.iter().filter(|other| **other == axis).count() == 1;
    let are_lawful = sorted.iter().copied().eq(0..dims.len() + cut.len())
        && records.len() == order.len()
        && cut.iter().all(|axis| *axis < dims.len() && distinct(*axis));
    if !are_lawful {
        return fault!("the order of its elements is not lawful");
    }
    // A level that lists its indices states no size. Its size is what the other level of its dimension leaves.
    let mut sizes = vec![None; order.len()];
    for (dimension, record) in order.iter().zip(&records) {
        sizes[*dimension] = (record.code(0)? == 0).then_some(number(&record.int(1, 0)?));
    }
    let block_at = |axis: usize| cut.iter().position(|of| *of == axis).map(|at| dims.len() + at);
    for (axis, &size) in dims.iter().enumerate() {
        let block = block_at(axis).map_or(Some(1), |at| sizes[at]);
        let left =
            |known: usize| size.checked_div(known).filter(|left| left.checked_mul(known) == Some(size));
        let whole = match (sizes[axis], block) {
            (Some(blocks), Some(block)) if blocks.checked_mul(block) == Some(size) => Some([blocks, block]),
            (None, Some(block)) => left(block).map(|blocks| [blocks, block]),
            (Some(blocks), None) => left(blocks).map(|block| [blocks, block]),
            _ => None,
        };
        let Some([blocks, block]) = whole else {
            return fault!("the sizes of its blocks are not those of its dimensions");
        };
        sizes[axis] = Some(blocks);
        block_at(axis).into_iter().for_each(|at| sizes[at] = Some(block));
    }
    let sizes: Vec<usize> = sizes.into_iter().flatten().collect();
    let block = |axis: usize| block_at(axis).map_or(1, |at| sizes[at]);
    let most = dims.iter().product::<usize>() + 1;
    let level = |(&dimension, record): (&usize, &Record)| {
        let is_block = dimension >= dims.len();
        let axis = if is_block { cut[dimension - dims.len()] } else { dimension };
        let stride: usize = dims[axis + 1..].iter().product();
        let step = if is_block { stride } else { stride * block(axis) };
        let listed = match record.code(0)? {
            0 => None,
            1 => Some([list(record, 2, most)?, list(record, 4, most)?]),
            other => return fault!("its format {other} is unknown"),
        };
        Ok(Level { size: sizes[dimension], step, listed })
    };
    order.iter().zip(&records).map(level).collect()
}

/// A list of indices of 32, 16 or 8 bits. Field `id` says how many bits, and the next field holds the indices.
fn list(record: &Record, id: usize, most: usize) -> Result<Vec<usize>, Fault> {
    let Some(table) = record.field::<Record>(id + 1)? else { return Ok(Vec::new()) };
    let values: Vec<usize> = match record.field::<u8>(id)?.unwrap_or(0) {
        1 => {
            let values = table.ints(0, most)?;
            values.iter().map(|value| usize::try_from(*value).unwrap_or(usize::MAX)).collect()
        }
        2 => {
            let values = table.field::<planus::Vector<u16>>(0)?;
            values.into_iter().flat_map(|values| values.iter()).map(usize::from).collect()
        }
        3 => {
            let values = table.field::<Stored>(0)?;
            values.map_or(&[][..], |values| values.bytes).iter().copied().map(usize::from).collect()
        }
        other => return fault!("its lists of type {other} are unknown"),
    };
    if values.len() > most {
        return fault!("a list of {} elements, where {most} are enough", values.len());
    }
    Ok(values)
}
