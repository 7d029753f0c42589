//! What the certificate says about the moment of the most bytes: which layers fire, and what is stored then.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::PeakWitness;

use super::bound::Moments;
use super::life::Life;
use super::occupied::Event;

/// The names of the rings that a partition has to itself, by allocation.
type Names = BTreeMap<usize, String>;

impl Moments<'_> {
    /// A moment of the most bytes, which are `bound`.
    pub fn witness(&self, bound: u64, schedules: &[Vec<u32>]) -> PeakWitness {
        let peak = self.peak();
        let layer = |&(p, firing): &(usize, usize)| {
            let cnn = &self.index.cnns[self.index.partitions[p].cnn];
            cnn.layer_name(schedules[p][firing] as usize)
        };
        let tensors: BTreeSet<String> = peak
            .occupied
            .iter()
            .map(|(cnn, allocation, _)| self.certified_name(&self.lives[*cnn][*allocation]))
            .collect();
        PeakWitness {
            firing: peak.firings.iter().map(layer).collect(),
            tensors: tensors.into_iter().collect(),
            bytes: bound,
        }
    }

    /// Whether there is a moment at which the layers that a witness names fire, one of each partition of an element of
    /// `parallel`, and at which exactly the tensors that it names are stored, in `bound` bytes.
    pub fn is_witness(&self, witness: &PeakWitness, bound: u64) -> bool {
        let names_each_once = |names: &[String]| names.iter().collect::<BTreeSet<_>>().len() == names.len();
        let of_its_size = |members: &&Vec<usize>| members.len() == witness.firing.len();
        let is_moment = |members: &Vec<usize>| self.is_moment_of(members, witness, bound);
        witness.bytes == bound
            && [&witness.firing, &witness.tensors].into_iter().all(|names| names_each_once(names))
            && self.elements.iter().filter(of_its_size).any(is_moment)
    }

    fn is_moment_of(&self, members: &[usize], witness: &PeakWitness, bound: u64) -> bool {
        let named: BTreeSet<&str> = witness.tensors.iter().map(String::as_str).collect();
        let (own, shared) = self.homes(members, &|life| named.contains(&*self.certified_name(life)));
        // If what is named occupies as many bytes as all that is stored, nothing else is stored then.
        if self.bytes(members, &own, &shared) != bound {
            return false;
        }
        let names: Vec<Names> = members.iter().zip(&own).map(|(&p, rings)| self.names(p, rings)).collect();
        let shared: Vec<String> = shared.iter().map(|life| self.certified_name(life)).collect();
        let stored: BTreeSet<&str> =
            names.iter().flat_map(BTreeMap::values).chain(&shared).map(String::as_str).collect();
        // In model `edges`, edges of one tensor may be shared, or belong to several partitions. Not each of them need be
        // occupied then.
        let is_of_one = |name: &String| {
            let of = names.iter().filter(|names| names.values().any(|other| other == name)).count();
            of == 1 && !shared.contains(name)
        };
        let peaks = |i: usize| {
            let alone: Names =
                names[i].iter().filter(|(_, name)| is_of_one(name)).map(|(s, n)| (*s, n.clone())).collect();
            self.peaks_at(members[i], &own[i], witness, &alone)
        };
        stored == named && (0..members.len()).all(peaks)
    }

    /// Whether these rings of a partition reach their peak while a layer fires that the witness names, and a ring of
    /// each name is occupied then.
    fn peaks_at(&self, p: usize, rings: &[bool], witness: &PeakWitness, names: &Names) -> bool {
        let (line, window) = (self.line(p), &self.windows[p]);
        let cnn = &self.index.cnns[self.index.partitions[p].cnn];
        let fires: Vec<bool> =
            (0..cnn.layers.len()).map(|layer| witness.firing.contains(&cnn.layer_name(layer))).collect();
        let most = line.peak(rings, window);
        let mut occupied: BTreeMap<&str, BTreeSet<usize>> =
            names.values().map(|name| (name.as_str(), BTreeSet::new())).collect();
        let mut idle = occupied.len();
        let mut is_found = false;
        line.walk(rings, window.end, &mut |event| match event {
            Event::Moment { firing, bytes } => {
                let is_then = window.start <= firing && fires[line.layer(firing)];
                is_found |= is_then && bytes == most && idle == 0;
            }
            Event::Occupies { allocation, rows } => {
                let Some(allocations) =
                    names.get(&allocation).and_then(|name| occupied.get_mut(name.as_str()))
                else {
                    return;
                };
                let was_idle = allocations.is_empty();
                match rows.is_empty() {
                    true => allocations.remove(&allocation),
                    false => allocations.insert(allocation),
                };
                idle = idle + usize::from(allocations.is_empty()) - usize::from(was_idle);
            }
            Event::Fired => {}
        });
        is_found
    }

    fn names(&self, p: usize, rings: &[bool]) -> Names {
        let lives = self.lives[self.index.partitions[p].cnn].iter();
        lives.filter(|life| rings[life.number]).map(|life| (life.number, self.certified_name(life))).collect()
    }

    /// What a certificate calls a ring: `cnn/tensor`, which it calls every edge of the tensor too, or its workspace or
    /// block.
    pub fn certified_name(&self, life: &Life<'_>) -> String {
        match life.allocation.is_ring() {
            true => self.index.cnns[life.cnn].tensor_name(life.allocation.tensor),
            false => life.allocation.name.clone(),
        }
    }
}
