//! Multi-objective genetic search.
//!
//! The seat of NSGA-II (Deb et al. 2002) and of the Pareto tools that the memory-throughput search of
//! Minakova and Stefanov (2022, Algorithm 2) stands on. It knows genomes and objectives, and nothing of
//! dataflow or CNNs. Empty until that search is built: the plans of today come from enumeration.
