//! The on-chip memory and the DRAM, action by action.

use std::collections::BTreeMap;
use std::ops::Range;

use super::data::Data;
use super::trace::{Rules, StepTrace};
use super::violation::Fault;
use crate::convolution::Convolution;
use crate::steps::{Closing, Outputs, Step};

/// The two memories. Without data, pixels, filters and results are held without values.
#[derive(Debug)]
pub struct Memory<'a> {
    convolution: &'a Convolution,
    rules: &'a Rules,
    data: Option<&'a Data>,
    /// M_inp: the channels of every pixel held.
    pixels: BTreeMap<u32, Vec<i64>>,
    /// M_ker: the elements of every filter held.
    filters: BTreeMap<u32, Vec<i64>>,
    /// M_out: patch and filter of every result held, and its value.
    outputs: BTreeMap<(u32, u32), i64>,
    /// Loads of every pixel so far.
    loads: Vec<u64>,
    /// Results computed so far, by patch and filter: one bit each.
    computed: Vec<u64>,
    /// Results in the DRAM, as `[filter, patch]`. Empty without data.
    results: Vec<i64>,
}

impl<'a> Memory<'a> {
    /// Both as they are before the first step.
    pub fn new(convolution: &'a Convolution, rules: &'a Rules, data: Option<&'a Data>) -> Self {
        let results = convolution.patches() * convolution.spec().filters;
        Memory {
            convolution,
            rules,
            data,
            pixels: BTreeMap::new(),
            filters: BTreeMap::new(),
            outputs: BTreeMap::new(),
            loads: vec![0; convolution.pixels()],
            computed: vec![0; results.div_ceil(64)],
            results: vec![0; if data.is_some() { results } else { 0 }],
        }
    }

    /// The results in the DRAM.
    pub fn into_results(self) -> Vec<i64> {
        self.results
    }

    /// The actions a1 to a6.
    pub fn step(&mut self, step: &Step) -> Result<StepTrace, Fault> {
        self.free(&step.free_pixels, &step.free_filters)?;
        self.write(&step.write)?;
        self.load(step)?;
        self.check_use(&step.compute)?;
        let macs = self.compute(&step.compute)?;
        let spec = self.convolution.spec();
        let trace = StepTrace {
            step: step.clone(),
            macs,
            input_elements: self.pixels.len() as u64 * spec.channels as u64,
            filter_elements: self.filters.len() as u64 * self.convolution.filter_elements(),
            output_elements: self.outputs.len() as u64,
        };
        let elements = trace.input_elements + trace.filter_elements + trace.output_elements;
        match self.rules.mem {
            Some(most) if elements > most => Err(Fault::Memory { elements, most }),
            _ => Ok(trace),
        }
    }

    /// Checks the end of a computation: after the last step, nothing may be left or missing.
    pub fn close(&mut self, closing: &Closing) -> Result<(), Fault> {
        self.free(&closing.free_pixels, &closing.free_filters)?;
        self.write(&closing.write)?;
        let left = |kind, number: Option<&u32>| match number {
            Some(number) => Err(Fault::Left { kind, number: *number }),
            None => Ok(()),
        };
        left("pixel", self.pixels.keys().next())?;
        left("filter", self.filters.keys().next())?;
        left("a result of patch", self.outputs.keys().map(|(patch, _)| patch).next())?;
        let filters = self.convolution.spec().filters;
        let missing = (0..self.convolution.patches() * filters).find(|bit| !self.is_computed(*bit));
        match missing {
            None => Ok(()),
            // Patches and filters are numbered in 32 bits.
            Some(bit) => {
                Err(Fault::Missing { patch: (bit / filters) as u32, filter: (bit % filters) as u32 })
            }
        }
    }

    fn free(&mut self, pixels: &[u32], filters: &Range<u32>) -> Result<(), Fault> {
        for pixel in pixels {
            let held = self.pixels.remove(pixel);
            held.ok_or(Fault::FreesAbsent { kind: "pixel", number: *pixel })?;
        }
        for filter in filters.clone() {
            let held = self.filters.remove(&filter);
            held.ok_or(Fault::FreesAbsent { kind: "filter", number: filter })?;
        }
        Ok(())
    }

    fn write(&mut self, outputs: &Outputs) -> Result<(), Fault> {
        for patch in &outputs.patches {
            for filter in outputs.filters.clone() {
                let value = self.outputs.remove(&(*patch, filter));
                let value = value.ok_or(Fault::WritesAbsent { patch: *patch, filter })?;
                let place = filter as usize * self.convolution.patches() + *patch as usize;
                if let Some(result) = self.results.get_mut(place) {
                    *result = value;
                }
            }
        }
        Ok(())
    }

    fn load(&mut self, step: &Step) -> Result<(), Fault> {
        let spec = self.convolution.spec();
        let plane = self.convolution.pixels();
        for pixel in &step.load_pixels {
            let place = *pixel as usize;
            if place >= plane {
                return Err(Fault::Unknown { kind: "pixel", number: *pixel });
            }
            let channels = self.data.map_or_else(Vec::new, |data| {
                (0..spec.channels).map(|channel| data.input[channel * plane + place]).collect()
            });
            if self.pixels.insert(*pixel, channels).is_some() {
                return Err(Fault::LoadsHeld { kind: "pixel", number: *pixel });
            }
            self.loads[place] += 1;
            if let Some(most) = self.rules.reload.filter(|most| self.loads[place] > *most) {
                return Err(Fault::LoadsAgain { pixel: *pixel, loads: self.loads[place], most });
            }
        }
        let size = self.convolution.filter_elements() as usize;
        for filter in step.load_filters.clone() {
            if filter as usize >= spec.filters {
                return Err(Fault::Unknown { kind: "filter", number: filter });
            }
            let elements = self.data.map_or_else(Vec::new, |data| {
                data.filters[filter as usize * size..(filter as usize + 1) * size].to_vec()
            });
            if self.filters.insert(filter, elements).is_some() {
                return Err(Fault::LoadsHeld { kind: "filter", number: filter });
            }
        }
        Ok(())
    }

    /// Checks that everything that is computed can be computed, and that the computation uses everything in memory.
    fn check_use(&self, compute: &Outputs) -> Result<(), Fault> {
        let patches = self.convolution.patches();
        if compute.patches.is_empty() || compute.filters.is_empty() {
            return Err(Fault::Idle);
        }
        if compute.patches.len() > self.rules.group {
            return Err(Fault::Group { patches: compute.patches.len(), most: self.rules.group });
        }
        let mut used = Vec::new();
        for patch in &compute.patches {
            if *patch as usize >= patches {
                return Err(Fault::Unknown { kind: "patch", number: *patch });
            }
            for pixel in self.convolution.pixels_of(*patch) {
                if !self.pixels.contains_key(&pixel) {
                    return Err(Fault::Needs { patch: *patch, kind: "pixel", number: pixel });
                }
                used.push(pixel);
            }
            let absent = |filter: &u32| !self.filters.contains_key(filter);
            if let Some(number) = compute.filters.clone().find(absent) {
                return Err(Fault::Needs { patch: *patch, kind: "filter", number });
            }
        }
        used.sort_unstable();
        let idle = |pixel: &&u32| used.binary_search(pixel).is_err();
        if let Some(pixel) = self.pixels.keys().find(idle) {
            return Err(Fault::Unused { kind: "pixel", number: *pixel });
        }
        match self.filters.keys().find(|filter| !compute.filters.contains(filter)) {
            Some(filter) => Err(Fault::Unused { kind: "filter", number: *filter }),
            None => Ok(()),
        }
    }

    fn compute(&mut self, compute: &Outputs) -> Result<u64, Fault> {
        let one = self.convolution.macs_per_patch(compute.filters.len());
        let macs = one.saturating_mul(compute.patches.len() as u64);
        if let Some(most) = self.rules.pe.filter(|most| macs > *most) {
            return Err(Fault::Macs { macs, most });
        }
        let filters = self.convolution.spec().filters;
        for patch in &compute.patches {
            for filter in compute.filters.clone() {
                let bit = *patch as usize * filters + filter as usize;
                if self.is_computed(bit) {
                    return Err(Fault::ComputesAgain { patch: *patch, filter });
                }
                self.computed[bit / 64] |= 1 << (bit % 64);
                let value = if self.data.is_some() { self.result(*patch, filter) } else { 0 };
                self.outputs.insert((*patch, filter), value);
            }
        }
        Ok(macs)
    }

    /// A result, from nothing but what is in the on-chip memory.
    fn result(&self, patch: u32, filter: u32) -> i64 {
        let spec = self.convolution.spec();
        let per_group = spec.channels / spec.channel_groups;
        let first = filter as usize / (spec.filters / spec.channel_groups) * per_group;
        let taps = self.convolution.pixels_per_patch();
        let Some(weights) = self.filters.get(&filter) else { return 0 };
        let pixels = self.convolution.pixels_of(patch).enumerate();
        let products = pixels.filter_map(|(tap, pixel)| {
            let channels = self.pixels.get(&pixel)?.get(first..first + per_group)?;
            let weighed = channels.iter().zip(weights.iter().skip(tap).step_by(taps));
            Some(weighed.map(|(input, weight)| input * weight).sum::<i64>())
        });
        products.sum()
    }

    fn is_computed(&self, bit: usize) -> bool {
        self.computed[bit / 64] >> (bit % 64) & 1 == 1
    }
}
