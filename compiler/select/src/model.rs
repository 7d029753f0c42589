//! A problem as a sum of small tables over layouts.
//!
//! The cost of an edge depends only on two layouts: the layout that its producer writes and the layout that its
//! consumer reads (PBQP paper, section 3.2). So the variables are not primitives, but the layouts that each layer reads
//! and writes. A layer is a table over its two layouts. Each cell has the candidates of that pair of layouts, except
//! those that another candidate beats in time and memory. An edge is a table over the layout written and the layout
//! read. A layer that keeps its layout is a table over one variable.
//!
//! ```
//! use csdfc_select::model::{Model, Weights};
//! use csdfc_select::{Instance, Problem};
//!
//! let instance = Instance::parse(
//!     r#"{"layers": [{"name": "conv1", "kind": "conv", "options": [
//!             {"primitive": "sum2d", "in": "CHW", "out": "CHW", "time": 90, "memory": 10},
//!             {"primitive": "direct", "in": "CHW", "out": "CHW", "time": 95, "memory": 10},
//!             {"primitive": "im2row", "in": "CHW", "out": "HWC", "time": 40, "memory": 80}]}],
//!         "edges": []}"#,
//! )?;
//! let problem = Problem::new(&instance, false)?;
//! let model = Model::new(&problem, &problem.all());
//! // One table, over the layout read and the layout written. `sum2d` beats `direct` in the cell of both.
//! assert_eq!((model.tables.len(), model.tables[0].cells.len()), (1, 2));
//! assert_eq!(model.candidates(), [[0, 2]]);
//! # Ok::<(), csdfc_select::InstanceError>(())
//! ```

use crate::elimination::Tree;
use crate::instance::Layout;
use crate::problem::{Allowed, Problem, Selection};

/// Maximum number of cells of a sum in the elimination: the width limit. It holds 11 variables of 3 layouts.
pub(crate) const MAX_CELLS: usize = 1 << 18;

/// Maximum number of cells of all sums.
const MAX_CELLS_IN_ALL: usize = 1 << 24;

/// A time and a memory, and the candidate that has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// The time.
    pub time: u64,
    /// The memory.
    pub memory: u64,
    /// The place of the candidate; meaningless in the table of an edge.
    pub candidate: usize,
}

/// A table over some variables. The last variable varies fastest.
#[derive(Debug)]
pub struct Table {
    /// Its variables.
    pub scope: Vec<usize>,
    /// Undominated points by rising time, for each combination of values. No points: impossible.
    pub cells: Vec<Vec<Point>>,
}

/// Tables whose sum is the cost of a selection: those of the layers, then those of the edges.
#[derive(Debug)]
pub struct Model {
    /// The tables.
    pub tables: Vec<Table>,
    /// How the variables are eliminated.
    pub tree: Tree,
    layers: usize,
}

/// The weights of a sum of times and of a sum of memories. They are below 2^53, or 2^64 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weights {
    /// Of time.
    pub time: u128,
    /// Of memory.
    pub memory: u128,
}

impl Weights {
    /// Least time, and among equal times least memory.
    pub const TIME: Weights = Weights { time: 1 << 64, memory: 1 };
    /// Least memory, and among equal memories least time.
    pub const MEMORY: Weights = Weights { time: 1, memory: 1 << 64 };

    /// The weight of a point.
    pub fn weighted(&self, time: u64, memory: u64) -> u128 {
        self.time * u128::from(time) + self.memory * u128::from(memory)
    }
}

/// The variables of a layer.
struct Ports {
    read: usize,
    written: usize,
}

impl Model {
    /// The model of these candidates.
    pub fn new(problem: &Problem<'_>, allowed: &Allowed) -> Model {
        let edges: Vec<usize> = (0..problem.paths.len()).collect();
        Model::of_edges(problem, allowed, &edges, MAX_CELLS)
    }

    /// The model as if there were only these edges. In its elimination, no sum has more than `most_cells` cells.
    pub fn of_edges(problem: &Problem<'_>, allowed: &Allowed, edges: &[usize], most_cells: usize) -> Model {
        let mut domains: Vec<Vec<Layout>> = Vec::new();
        let mut variable = |layouts: Vec<Layout>| {
            let mut layouts = layouts;
            layouts.sort_unstable();
            layouts.dedup();
            domains.push(layouts);
            domains.len() - 1
        };
        let mut ports = Vec::new();
        for (candidates, places) in problem.candidates.iter().zip(allowed) {
            let of = |layout: fn(&crate::problem::Candidate) -> Layout| {
                places.iter().map(|place| layout(&candidates[*place])).collect()
            };
            let read = variable(of(|candidate| candidate.input));
            let keeps = places.iter().all(|place| candidates[*place].input == candidates[*place].output);
            let written = if keeps { read } else { variable(of(|candidate| candidate.output)) };
            ports.push(Ports { read, written });
        }
        let mut tables = Vec::new();
        for ((ports, candidates), places) in ports.iter().zip(&problem.candidates).zip(allowed) {
            tables.push(layer_table(&domains, ports, candidates, places));
        }
        for &edge in edges {
            let (edge, paths) = (&problem.instance.edges[edge], &problem.paths[edge]);
            let (from, to) = (ports[edge.from].written, ports[edge.to].read);
            let cell = |from: &Layout, to: &Layout| {
                paths.time(*from, *to).map(|time| Point { time, memory: 0, candidate: 0 })
            };
            let cells = domains[from].iter().flat_map(|from| {
                domains[to].iter().map(move |to| cell(from, to).into_iter().collect::<Vec<_>>())
            });
            tables.push(Table { scope: vec![from, to], cells: cells.collect() });
        }
        let sizes: Vec<usize> = domains.iter().map(Vec::len).collect();
        let scopes: Vec<&[usize]> = tables.iter().map(|table| table.scope.as_slice()).collect();
        let mut tree = Tree::new(sizes.clone(), &scopes, most_cells);
        let mut most_cells = most_cells;
        while tree.cells() > MAX_CELLS_IN_ALL && most_cells > 1 {
            most_cells /= 16;
            tree = Tree::new(sizes.clone(), &scopes, most_cells);
        }
        Model { tables, tree, layers: ports.len() }
    }

    /// The lightest point of each cell; `u128::MAX` where there is none.
    pub fn weighed(&self, weights: Weights) -> Vec<Vec<u128>> {
        let cell = |cell: &Vec<Point>| {
            let weights = cell.iter().map(|point| weights.weighted(point.time, point.memory));
            weights.min().unwrap_or(u128::MAX)
        };
        self.tables.iter().map(|table| table.cells.iter().map(cell).collect()).collect()
    }

    /// The lightest selection with these values of the variables.
    pub fn selection(&self, values: &[usize], weights: Weights) -> Option<Selection> {
        let of_layer = |table: &Table| {
            let place = self.tree.place(&table.scope, values);
            let lightest =
                table.cells[place].iter().min_by_key(|point| weights.weighted(point.time, point.memory));
            lightest.map(|point| point.candidate)
        };
        self.tables[..self.layers].iter().map(of_layer).collect()
    }

    /// The undominated candidates of each layer.
    pub fn candidates(&self) -> Allowed {
        let of_layer = |table: &Table| table.cells.iter().flatten().map(|point| point.candidate).collect();
        self.tables[..self.layers].iter().map(of_layer).collect()
    }

    /// The layer of a table, unless it is of an edge.
    pub fn layer(&self, table: usize) -> Option<usize> {
        (table < self.layers).then_some(table)
    }
}

fn layer_table(
    domains: &[Vec<Layout>],
    ports: &Ports,
    candidates: &[crate::problem::Candidate],
    places: &[usize],
) -> Table {
    let value = |variable: usize, layout: Layout| domains[variable].partition_point(|other| *other < layout);
    let single = ports.read == ports.written;
    let width = if single { 1 } else { domains[ports.written].len() };
    let mut cells = vec![Vec::new(); domains[ports.read].len() * width];
    for &place in places {
        let candidate = &candidates[place];
        let column = if single { 0 } else { value(ports.written, candidate.output) };
        let cell: &mut Vec<Point> = &mut cells[value(ports.read, candidate.input) * width + column];
        cell.push(Point { time: candidate.time, memory: candidate.memory, candidate: place });
    }
    for cell in &mut cells {
        cell.sort_by_key(|point| (point.time, point.memory));
        let mut least = None;
        cell.retain(|point| {
            let better = least.is_none_or(|least| point.memory < least);
            if better {
                least = Some(point.memory);
            }
            better
        });
    }
    let scope = if single { vec![ports.read] } else { vec![ports.read, ports.written] };
    Table { scope, cells }
}
