//! `Einsum`: sums of products over named dimensions.
//!
//! Operands are multiplied one after the other. Dimensions that both have and that are summed make a product of matrices; those
//! that both have and that stay count the matrices. If none is summed, the product is element by element.

use super::parts::{dims, part, reshaped, tensor, transposed};
use crate::import::builder::Builder;
use crate::import::constant::Constant;
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, Value};

/// A value whose dimensions have names.
struct Term {
    value: Value,
    labels: Vec<char>,
}

pub(super) fn einsum(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let mut values = Vec::new();
    for (i, value) in node.inputs.iter().enumerate() {
        let Some(value) = value else { return fault!("operand {i} is missing") };
        values.push(value.clone());
    }
    let ranks: Vec<usize> = values.iter().map(|value| dims(value).len()).collect();
    let (labels, output) = parsed(node.text("equation", "")?, &ranks)?;
    let mut result: Option<Term> = None;
    for (i, (value, own)) in values.into_iter().zip(&labels).enumerate() {
        let is_needed = |label: &char| {
            output.contains(label) || labels[i + 1..].iter().any(|later| later.contains(label))
        };
        let term = Term { value, labels: own.clone() };
        result = Some(match result {
            None => summed(builder, node, term, is_needed)?,
            Some(left) => {
                let right =
                    summed(builder, node, term, |label| is_needed(label) || left.labels.contains(label))?;
                product(builder, node, left, right, is_needed)?
            }
        });
    }
    let Some(result) = result else { return fault!("it has no operands") };
    let result = summed(builder, node, result, |label| output.contains(label))?;
    tensor(permuted(builder, node, result, &output)?.value)
}

/// The names of each operand's dimensions, and of the output's. Those that an ellipsis stands for are named from the last.
fn parsed(equation: &str, ranks: &[usize]) -> Result<(Vec<Vec<char>>, Vec<char>), Fault> {
    let wrong = || Fault::new(format!("its equation {equation:?} does not fit operands of ranks {ranks:?}"));
    let text: String = equation.chars().filter(|letter| !letter.is_whitespace()).collect();
    let (operands, output) = match text.split_once("->") {
        Some((operands, output)) => (operands, Some(output)),
        None => (text.as_str(), None),
    };
    let of_ellipsis = |count: usize| (0..count as u32).rev().filter_map(|i| char::from_u32(0xE000 + i));
    let named = |term: &str, hidden: usize| -> Result<Vec<char>, Fault> {
        let labels: Vec<char> = match term.split_once("...") {
            Some((before, after)) => before.chars().chain(of_ellipsis(hidden)).chain(after.chars()).collect(),
            None => term.chars().collect(),
        };
        let is_name = |label: &char| label.is_ascii_alphabetic() || *label >= '\u{E000}';
        let is_once = (0..labels.len()).all(|i| !labels[..i].contains(&labels[i]));
        match (labels.iter().all(is_name), is_once) {
            (true, true) => Ok(labels),
            (true, false) => fault!("its equation {equation:?} takes a diagonal, which is not supported"),
            _ => Err(wrong()),
        }
    };
    let terms: Vec<&str> = operands.split(',').collect();
    if terms.len() != ranks.len() {
        return Err(wrong());
    }
    let (mut labels, mut most) = (Vec::new(), 0);
    for (term, rank) in terms.iter().zip(ranks) {
        let hidden =
            if term.contains("...") { (rank + 3).checked_sub(term.len()).ok_or_else(wrong)? } else { 0 };
        most = most.max(hidden);
        let own = named(term, hidden)?;
        if own.len() != *rank {
            return Err(wrong());
        }
        labels.push(own);
    }
    let all: Vec<char> = labels.concat();
    let output = match output {
        Some(output) => named(output, most)?,
        // Those that occur once, in the order of the alphabet.
        None => {
            let mut once: Vec<char> = all.iter().copied().filter(char::is_ascii_alphabetic).collect();
            once.retain(|label| all.iter().filter(|other| *other == label).count() == 1);
            once.sort_unstable();
            of_ellipsis(most).chain(once).collect()
        }
    };
    if output.iter().any(|label| !all.contains(label)) {
        return Err(wrong());
    }
    Ok((labels, output))
}

/// The sums over the dimensions that are not kept.
fn summed(
    builder: &mut Builder,
    node: &Node,
    term: Term,
    is_kept: impl Fn(&char) -> bool,
) -> Result<Term, Fault> {
    let gone: Vec<i64> =
        (0..).zip(&term.labels).filter(|(_, label)| !is_kept(label)).map(|(i, _)| i).collect();
    if gone.is_empty() {
        return Ok(term);
    }
    let axes = Constant::ints([gone.len()], gone);
    let sum = part(builder, node, "ReduceSum", [term.value, axes.into()])?;
    let kept: Vec<(char, usize)> =
        term.labels.into_iter().zip(dims(&sum).to_vec()).filter(|(label, _)| is_kept(label)).collect();
    let (labels, sizes) = kept.into_iter().unzip();
    Ok(Term { value: reshaped(builder, node, &sum, sizes)?, labels })
}

/// The term with its dimensions in this order.
fn permuted(builder: &mut Builder, node: &Node, term: Term, order: &[char]) -> Result<Term, Fault> {
    let perm = order.iter().filter_map(|label| term.labels.iter().position(|own| own == label)).collect();
    Ok(Term { value: transposed(builder, node, &term.value, perm)?, labels: order.to_vec() })
}

/// The product of two terms, summed over the dimensions that both have and that are not kept.
fn product(
    builder: &mut Builder,
    node: &Node,
    left: Term,
    right: Term,
    is_kept: impl Fn(&char) -> bool,
) -> Result<Term, Fault> {
    let [left, right] = without_ones(builder, node, left, right)?;
    let of = |term: &Term, other: &Term, both: bool| -> Vec<char> {
        term.labels.iter().copied().filter(|label| other.labels.contains(label) == both).collect()
    };
    let (batch, inner): (Vec<char>, Vec<char>) = of(&left, &right, true).into_iter().partition(&is_kept);
    let [rows, columns] = [of(&left, &right, false), of(&right, &left, false)];
    let labels = [&batch[..], &rows, &columns].concat();
    let sizes = |term: &Term, labels: &[char]| -> Vec<usize> {
        let place = |label: &char| term.labels.iter().position(|own| own == label);
        labels.iter().map(|label| place(label).map_or(1, |axis| dims(&term.value)[axis])).collect()
    };
    let of_batch = sizes(&left, &batch);
    let (of_rows, of_columns) = (sizes(&left, &rows), sizes(&right, &columns));
    let made = if inner.is_empty() {
        let mut sides = Vec::new();
        for (term, own) in [(left, &rows), (right, &columns)] {
            let wanted = sizes(&term, &labels);
            let term = permuted(builder, node, term, &[&batch[..], own].concat())?;
            sides.push(reshaped(builder, node, &term.value, wanted)?);
        }
        let [left, right] = <[Value; 2]>::try_from(sides).map_err(|_| Fault::new("it has no two sides"))?;
        part(builder, node, "Mul", [left, right])?
    } else {
        let count = |sizes: &[usize]| sizes.iter().product::<usize>();
        let k = count(&sizes(&left, &inner));
        let matrices = if batch.is_empty() { None } else { Some(count(&of_batch)) };
        let matrix = |rows, columns| -> Vec<usize> { matrices.into_iter().chain([rows, columns]).collect() };
        let left = permuted(builder, node, left, &[&batch[..], &rows, &inner].concat())?;
        let left = reshaped(builder, node, &left.value, matrix(count(&of_rows), k))?;
        let right = permuted(builder, node, right, &[&batch[..], &inner, &columns].concat())?;
        let right = reshaped(builder, node, &right.value, matrix(k, count(&of_columns)))?;
        part(builder, node, "MatMul", [left, right])?
    };
    let wanted = [of_batch, of_rows, of_columns].concat();
    Ok(Term { value: reshaped(builder, node, &made, wanted)?, labels })
}

/// Both terms without the dimensions of 1 that repeat over the other's.
fn without_ones(builder: &mut Builder, node: &Node, left: Term, right: Term) -> Result<[Term; 2], Fault> {
    let size = |term: &Term, label: &char| {
        term.labels.iter().position(|own| own == label).map(|axis| dims(&term.value)[axis])
    };
    let mut made = Vec::new();
    for (term, other) in [(&left, &right), (&right, &left)] {
        let mut kept = Vec::new();
        for (label, own) in term.labels.iter().zip(dims(&term.value)) {
            match size(other, label) {
                Some(size) if size != *own && *own == 1 => {}
                Some(size) if size != *own && size != 1 => {
                    return fault!("its dimension {label:?} has {own} elements and {size}");
                }
                _ => kept.push((*label, *own)),
            }
        }
        let (labels, sizes) = kept.into_iter().unzip();
        made.push(Term { value: reshaped(builder, node, &term.value, sizes)?, labels });
    }
    <[Term; 2]>::try_from(made).map_err(|_| Fault::new("it has no two sides"))
}
