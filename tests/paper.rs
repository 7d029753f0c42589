//! The main paper's example and its pair of layers: Minakova and Stefanov (2022), sections 2.3 to 2.5, Tables 1, 8
//! and 9, in elements as there.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use csdfc_input::app::spec::RowsSpec;
use csdfc_plan::plan::{Edge, Plan};
use csdfc_tests::{app, plan};

const ELEMENT_BYTES: u64 = 4;

/// The example with these layers of CNN1 processed by parts.
fn adaptive_classifier(by_parts: &[&str]) -> Plan {
    let mut opened = app("adaptive_classifier.ron");
    if !by_parts.is_empty() {
        opened.spec.rows = RowsSpec::Layers(by_parts.iter().map(|layer| ((*layer).to_string(), 1)).collect());
    }
    plan(&opened.resolve().unwrap())
}

/// An edge as the paper writes it: `e23^2(1)` is half 1 of the edge from layer 2 to layer 3 of CNN 2.
fn edge_name(edge: &Edge) -> String {
    let number = |name: &str| name.trim_start_matches(|c: char| !c.is_ascii_digit()).to_string();
    let half = edge.half.map_or(String::new(), |half| format!("({half})"));
    format!("e{}{}^{}{half}", number(&edge.tensor), number(&edge.consumer), number(&edge.cnn))
}

/// Buffers as rows of name, members and size in elements.
fn reused(plan: &Plan) -> Vec<(String, u64)> {
    let members = |holds: &[Edge]| holds.iter().map(edge_name).collect::<Vec<_>>().join(", ");
    plan.buffers.iter().map(|buffer| (members(&buffer.holds), buffer.bytes / ELEMENT_BYTES)).collect()
}

/// The naive allocation: every edge in a buffer of its own. Sizes are whole where no layer goes by parts.
fn naive(plan: &Plan) -> Vec<(String, u64)> {
    let mut edges: Vec<&Edge> = plan.buffers.iter().flat_map(|buffer| &buffer.holds).collect();
    edges.sort_by_key(|edge| (&edge.cnn, &edge.tensor, &edge.consumer, edge.half));
    edges.into_iter().map(|edge| (edge_name(edge), edge.bytes / ELEMENT_BYTES)).collect()
}

fn total(buffers: &[(String, u64)]) -> u64 {
    buffers.iter().map(|(_, elements)| elements).sum()
}

/// The buffers in a table like the paper's.
fn table(buffers: &[(String, u64)]) -> String {
    let width = buffers.iter().map(|(members, _)| members.len()).max().unwrap_or(0);
    let mut text = format!("{:6}  {:width$}  elements\n", "buffer", "edges");
    for (i, (members, elements)) in buffers.iter().enumerate() {
        text += &format!("{:6}  {members:width$}  {elements:8}\n", format!("B{}", i + 1));
    }
    text + &format!("{:6}  {:width$}  {:8}\n", "total", "", total(buffers))
}

fn rows<const N: usize>(rows: [(&str, u64); N]) -> Vec<(String, u64)> {
    rows.iter().map(|(members, elements)| ((*members).to_string(), *elements)).collect()
}

#[test]
fn table_1_the_naive_allocation() {
    let plan = adaptive_classifier(&[]);
    let buffers = naive(&plan);
    let expected = rows([
        ("e12^1", 3072),
        ("e23^1", 8192),
        ("e24^1", 8192),
        ("e34^1", 8192),
        ("e45^1", 16384),
        ("e12^2", 3072),
        ("e23^2(1)", 6272),
        ("e23^2(2)", 6272),
        ("e34^2", 10),
    ]);
    assert_eq!(buffers, expected);
    assert_eq!(total(&buffers), 59_658);
    assert_eq!(plan.memory.naive, 59_658 * ELEMENT_BYTES);
    insta::assert_snapshot!("table_1", table(&buffers));
}

#[test]
fn table_8_reuse_by_algorithm_1() {
    let plan = adaptive_classifier(&[]);
    let buffers = reused(&plan);
    let expected = rows([
        ("e12^1, e34^1, e12^2", 8192),
        ("e23^1, e45^1, e23^2(1)", 16384),
        ("e24^1, e23^2(2)", 8192),
        ("e34^2", 10),
    ]);
    assert_eq!(buffers, expected);
    assert_eq!(total(&buffers), 32_778);
    assert_eq!(plan.memory.buffers, 32_778 * ELEMENT_BYTES);
    insta::assert_snapshot!("table_8", table(&buffers));
}

/// The paper prints 256 elements for B4; 16 channels × 32 columns × 1 row are 512.
#[test]
fn table_9_with_processing_by_parts() {
    let plan = adaptive_classifier(&["cnn1/l3", "cnn1/l4", "cnn1/l5"]);
    let buffers = reused(&plan);
    let sizes: Vec<u64> = buffers.iter().map(|(_, elements)| *elements).collect();
    assert_eq!(sizes, [3072, 8192, 8192, 512]);
    assert_eq!(total(&buffers), 19_968);
    assert_eq!(plan.memory.buffers, 19_968 * ELEMENT_BYTES);
    let notations: Vec<&str> = plan.partitions.iter().map(|partition| partition.notation.as_str()).collect();
    assert_eq!(notations, ["[l1],[l2],([l3],[l4],[l5])×32", "[l1],[l2]", "[l3],[l4]"]);
    insta::assert_snapshot!("table_9", format!("{}\n{}\n", table(&buffers), notations.join("\n")));
}

#[test]
fn the_pair_needs_five_rows() {
    let plan = plan(&app("pair_5x5.ron").resolve().unwrap());
    let buffers = reused(&plan);
    assert_eq!(buffers, rows([("e12^", 480)]));
    assert_eq!(plan.buffers[0].holds[0].ring_rows, 5);
    assert_eq!(plan.partitions[0].notation, "[l1]×3,[l2],([l1],[l2])×29,[l2]×2");
    insta::assert_snapshot!("pair", format!("{}\n{}\n", table(&buffers), plan.partitions[0].notation));
}
