//! Cyclo-static dataflow graphs.
