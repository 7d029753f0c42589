//! Rule 4: where each row lies in the arena.

use crate::format::Element;
use crate::plan::{Content, StorageModel, Workspace};

use super::allocation::{Allocation, RowOrder, check_ring};
use super::index::{CnnIndex, Index};
use super::rates::Held;
use super::{Findings, MAX_ARENA, MAX_TABLE, Violation, edges, primitives, regions, streamed};

/// Who writes and reads the allocations of a CNN.
pub(crate) struct Accesses {
    /// Stores that a layer writes.
    pub written_to: Vec<Vec<usize>>,
    /// For each layer and tensor held, the allocation that it is read from; `None` for the caller's copy.
    pub read_from: Vec<Vec<Option<usize>>>,
    /// For each allocation, its readers, and its index among the tensors that they hold.
    pub held_by: Vec<Vec<(usize, usize)>>,
    /// The workspace of a layer, none or one.
    pub workspace: Vec<Option<usize>>,
    /// The blocks of a layer's weights.
    pub blocks: Vec<Vec<usize>>,
}

impl Accesses {
    pub fn new(cnn: &CnnIndex<'_>, held: &[Vec<Held>], allocations: &[Allocation]) -> Self {
        let mut written_to = vec![Vec::new(); cnn.layers.len()];
        let mut read_from: Vec<Vec<Option<usize>>> = held.iter().map(|held| vec![None; held.len()]).collect();
        let mut held_by = vec![Vec::new(); allocations.len()];
        let mut workspace = vec![None; cnn.layers.len()];
        let mut blocks = vec![Vec::new(); cnn.layers.len()];
        for (s, allocation) in allocations.iter().enumerate() {
            if allocation.is_workspace() {
                workspace[allocation.tensor] = Some(s);
                continue;
            }
            if allocation.begin().is_some() {
                blocks[allocation.tensor].push(s);
                continue;
            }
            written_to[allocation.tensor].push(s);
            for &reader in &allocation.readers {
                if let Some(i) = held[reader].iter().position(|held| held.tensor == allocation.tensor) {
                    read_from[reader][i] = Some(s);
                    held_by[s].push((reader, i));
                }
            }
        }
        Accesses { written_to, read_from, held_by, workspace, blocks }
    }

    /// The allocations whose bytes all belong to a layer from its first firing on: those that it writes, and its workspace.
    pub fn begun_by(&self, layer: usize) -> impl Iterator<Item = usize> + '_ {
        self.written_to[layer].iter().copied().chain(self.workspace[layer])
    }

    /// The allocations that a layer uses: those of `begun_by`, the blocks of its weights, and those that it reads.
    pub fn used_by(&self, layer: usize) -> impl Iterator<Item = usize> + '_ {
        let read = self.read_from[layer].iter().flatten().copied();
        self.begun_by(layer).chain(self.blocks[layer].iter().copied()).chain(read)
    }

    /// Whether a layer's output ring shares bytes with a ring that it reads. If so, it makes its rows one by one.
    pub fn follows(&self, layer: usize, allocations: &[Allocation]) -> bool {
        let mut read = self.read_from[layer].iter().flatten();
        read.any(|&s| self.written_to[layer].iter().any(|&own| allocations[own].overlaps(&allocations[s])))
    }
}

/// The storage of each CNN.
pub(super) fn check(index: &Index<'_>) -> Result<Vec<Vec<Allocation>>, Vec<Violation>> {
    let mut findings = Findings::default();
    findings.limit("the number of bytes of the arena", Some(index.plan.memory.arena), MAX_ARENA);
    let mut allocations = match index.plan.storage_model {
        StorageModel::Tensors => rings(index, &mut findings),
        StorageModel::Edges => edges::check(index, &mut findings),
    };
    regions::check(index.plan, &mut findings);
    workspaces(index, &mut allocations, &mut findings);
    streamed::blocks(index, &mut allocations, &mut findings);
    let rows = allocations.iter().flatten().try_fold(0u64, |sum, allocation| {
        sum.checked_add(allocation.ring_rows.checked_mul(allocation.bases.len() as u64)?)
    });
    findings.limit("the number of rows of all rings", rows, MAX_TABLE);
    findings.or(allocations)
}

/// Adds the workspaces, in either model: as large as the primitive needs for every worker, aligned, and within the arena.
fn workspaces(index: &Index<'_>, allocations: &mut [Vec<Allocation>], findings: &mut Findings) {
    for (cnn, allocations) in index.cnns.iter().zip(allocations) {
        for (l, entry) in cnn.layers.iter().enumerate() {
            let Workspace { offset, bytes } = entry.layer.workspace;
            let name = format!("workspace of {}/{}", cnn.cnn.name, entry.layer.name);
            let mut wrong = |why: String| findings.push(Violation::Ring { tensor: name.clone(), why });
            let needed = primitives::workspace(entry, &cnn.seen_all(l))
                .and_then(|bytes| bytes.checked_mul(index.plan.threads as u64));
            if needed != Some(bytes) {
                let needed = needed.map_or("more than 64 bits of".into(), |bytes| bytes.to_string());
                wrong(format!("it has {bytes} bytes, but `{}` needs {needed}", entry.layer.primitive));
            } else if bytes == 0 && offset != 0 {
                wrong(format!("it has no bytes, but the offset {offset}"));
            } else if offset % Element::F32.bytes() != 0 {
                wrong(format!("its offset {offset} is no multiple of {} bytes", Element::F32.bytes()));
            } else if let Err(why) = regions::hold(index.plan, Content::Buffers, offset, bytes) {
                wrong(why);
            } else if bytes > 0 {
                allocations.push(Allocation {
                    name,
                    tensor: l,
                    readers: Vec::new(),
                    bases: vec![offset],
                    ring_rows: 1,
                    row_bytes: bytes,
                    kind: match entry.layer.operator.has_state() && cnn.is_over_time(l) {
                        true => RowOrder::Recurrent,
                        false => RowOrder::Workspace,
                    },
                    exclusive: true,
                });
            }
        }
    }
}

fn rings(index: &Index<'_>, findings: &mut Findings) -> Vec<Vec<Allocation>> {
    if let Some(buffer) = index.plan.buffers.first() {
        let why = "model `tensors` has no buffers".into();
        findings.push(Violation::Buffer { buffer: buffer.name.clone(), why });
    }
    let mut all = Vec::new();
    for (c, cnn) in index.cnns.iter().enumerate() {
        let mut allocations = Vec::new();
        for (l, entry) in cnn.layers.iter().enumerate() {
            let (tensor, name) = (entry.tensor, cnn.tensor_name(l));
            let Some(ring) = tensor.ring else { continue };
            let mut wrong = |why: String| findings.push(Violation::Ring { tensor: name.clone(), why });
            if !check_ring(ring.ring_rows, tensor.row_bytes, ring.bytes, &mut wrong) {
                continue;
            }
            let element = tensor.format.element.bytes();
            if ring.offset % element != 0 {
                wrong(format!("its offset {} is no multiple of {element} bytes", ring.offset));
            }
            if let Err(why) = regions::hold(index.plan, Content::Buffers, ring.offset, ring.bytes) {
                wrong(why);
                continue;
            }
            let is_cut = index.is_cut(c, l);
            allocations.push(Allocation {
                name,
                tensor: l,
                readers: entry.readers.clone(),
                bases: vec![ring.offset],
                ring_rows: ring.ring_rows,
                row_bytes: tensor.row_bytes,
                kind: match (is_cut, tensor.history()) {
                    (true, _) => RowOrder::RunsOn,
                    _ if entry.is_state => RowOrder::State,
                    _ if entry.is_kept => RowOrder::Kept,
                    (false, 0) => RowOrder::Restarts,
                    (false, _) => RowOrder::Persists,
                },
                exclusive: is_cut
                    || tensor.history() > 0
                    || entry.is_state
                    || entry.is_kept
                    || ring.ring_rows < entry.rows(),
            });
        }
        all.push(allocations);
    }
    all
}
