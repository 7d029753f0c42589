//! Work dealt out among threads.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use csdfc_kernels::workers::*;

#[test]
fn every_piece_is_done_once() {
    for count in 1..5 {
        let mut workers = Workers::new(count);
        assert_eq!(workers.count(), count);
        for pieces in 0..200 {
            let done: Vec<AtomicUsize> = (0..pieces).map(|_| AtomicUsize::new(0)).collect();
            workers.deal(pieces, &|worker, piece| {
                assert!(worker < count);
                done[piece].fetch_add(1, Ordering::Relaxed);
            });
            assert!(done.iter().all(|done| done.load(Ordering::Relaxed) == 1), "{done:?}");
        }
    }
}

/// The caller alone does what nobody else comes for.
#[test]
fn nobody_waits_for_a_late_worker() {
    let mut workers = Workers::new(2);
    let is_held = AtomicBool::new(true);
    let by_caller = AtomicUsize::new(0);
    workers.deal(100, &|worker, _| {
        if worker == 1 {
            let done = by_caller.fetch_add(1, Ordering::SeqCst) + 1;
            is_held.store(done < 99, Ordering::SeqCst);
        } else {
            // Has one piece, and keeps it until all others are done.
            while is_held.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        }
    });
    assert!(by_caller.load(Ordering::SeqCst) >= 99);
}

#[test]
fn a_panic_reaches_the_caller() {
    let mut workers = Workers::new(3);
    for panics in 0..50 {
        let job = |_, piece: usize| assert!(piece != panics);
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| workers.deal(50, &job)));
        assert!(ran.is_err(), "piece {panics}");
    }
    let done = AtomicUsize::new(0);
    workers.deal(9, &|_, _| {
        done.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(done.load(Ordering::Relaxed), 9);
}
