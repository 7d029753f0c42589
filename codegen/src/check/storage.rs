//! Rule 4: where each row lies in the arena.

use crate::plan::StorageModel;

use super::index::{CnnIndex, Index};
use super::rates::Held;
use super::store::{Kind, Store, check_ring};
use super::{Findings, MAX_ARENA, MAX_TABLE, Violation, edges};

/// Who writes and reads the stores of a CNN.
pub(crate) struct Uses {
    /// Stores that a layer writes.
    pub written_to: Vec<Vec<usize>>,
    /// For each layer and tensor held, the store that it is read from; `None` for the caller's copy.
    pub read_from: Vec<Vec<Option<usize>>>,
    /// For each store, its readers, and which of the tensors that they hold it is.
    pub held_by: Vec<Vec<(usize, usize)>>,
}

impl Uses {
    pub fn new(cnn: &CnnIndex<'_>, held: &[Vec<Held>], stores: &[Store]) -> Self {
        let mut written_to = vec![Vec::new(); cnn.layers.len()];
        let mut read_from: Vec<Vec<Option<usize>>> = held.iter().map(|held| vec![None; held.len()]).collect();
        let mut held_by = vec![Vec::new(); stores.len()];
        for (s, store) in stores.iter().enumerate() {
            written_to[store.tensor].push(s);
            for &reader in &store.readers {
                if let Some(i) = held[reader].iter().position(|held| held.tensor == store.tensor) {
                    read_from[reader][i] = Some(s);
                    held_by[s].push((reader, i));
                }
            }
        }
        Uses { written_to, read_from, held_by }
    }

    /// Whether a layer writes where it reads, in part: it then makes its rows one by one.
    pub fn follows(&self, layer: usize, stores: &[Store]) -> bool {
        let mut read = self.read_from[layer].iter().flatten();
        read.any(|&s| self.written_to[layer].iter().any(|&own| stores[own].overlaps(&stores[s])))
    }
}

/// The storage of each CNN.
pub(super) fn check(index: &Index<'_>) -> Result<Vec<Vec<Store>>, Vec<Violation>> {
    let mut findings = Findings::default();
    findings.limit("the number of bytes of the arena", Some(index.plan.memory.buffers), MAX_ARENA);
    let stores = match index.plan.storage_model {
        StorageModel::Tensors => rings(index, &mut findings),
        StorageModel::Edges => edges::check(index, &mut findings),
    };
    let rows = stores
        .iter()
        .flatten()
        .try_fold(0u64, |sum, store| sum.checked_add(store.ring_rows.checked_mul(store.bases.len() as u64)?));
    findings.limit("the number of rows of all rings", rows, MAX_TABLE);
    findings.or(stores)
}

fn rings(index: &Index<'_>, findings: &mut Findings) -> Vec<Vec<Store>> {
    if let Some(buffer) = index.plan.buffers.first() {
        let why = "model `tensors` has no buffers".into();
        findings.push(Violation::Buffer { buffer: buffer.name.clone(), why });
    }
    let mut all = Vec::new();
    for (c, cnn) in index.cnns.iter().enumerate() {
        let mut stores = Vec::new();
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
            let end = ring.offset.checked_add(ring.bytes);
            if end.is_none_or(|end| end > index.plan.memory.buffers) {
                let arena = index.plan.memory.buffers;
                wrong(format!("{} bytes from {} are beyond the arena of {arena}", ring.bytes, ring.offset));
                continue;
            }
            let is_cut = index.is_cut(c, l);
            stores.push(Store {
                name,
                tensor: l,
                readers: entry.readers.clone(),
                bases: vec![ring.offset],
                ring_rows: ring.ring_rows,
                row_bytes: tensor.row_bytes,
                kind: if is_cut { Kind::RunsOn } else { Kind::Restarts },
                exclusive: is_cut || ring.ring_rows < entry.rows(),
            });
        }
        all.push(stores);
    }
    all
}
