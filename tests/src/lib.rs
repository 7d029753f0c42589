//! Whole-program tests of csdfc: see the files beside this one.
