//! Rings between the stages of a pipeline, without threads: whoever would wait for ever sees that the other end is gone.

use super::ring::{Closed, Link, Reader, Writer};

/// Rows of a frame, and of the ring.
const ROWS: usize = 8;
const CAPACITY: usize = 3;

#[test]
fn a_row_is_read_once_it_is_written() {
    let link = Link::default();
    let reader = Reader::<1>::new(Some(&link), ROWS);
    let writer = Writer::new(Some(&link), ROWS, CAPACITY);
    writer.publish(2);
    drop(writer);
    assert_eq!([1, 2, 3].map(|need| reader.arrived(need)), [Ok(()), Ok(()), Err(Closed)]);
}

#[test]
fn rows_have_room_once_the_slowest_layer_has_released_others() {
    for (released, room) in [([2, 0, 1], 0), ([1, 2, 3], 1), ([3, 2, 2], 2)] {
        let link = Link::default();
        let writer = Writer::new(Some(&link), ROWS, CAPACITY);
        let mut reader = Reader::<3>::new(Some(&link), ROWS);
        (0..3).for_each(|layer| reader.release(layer, released[layer]));
        drop(reader);
        assert_eq!(writer.room(CAPACITY + room), Ok(()), "{released:?}");
        assert_eq!(writer.room(CAPACITY + room + 1), Err(Closed), "{released:?}");
    }
}

#[test]
fn counts_run_on_from_frame_to_frame() {
    let link = Link::default();
    let mut writer = Writer::new(Some(&link), ROWS, CAPACITY);
    let mut reader = Reader::<2>::new(Some(&link), ROWS);
    for end in 1..=ROWS {
        assert_eq!(writer.room(end), Ok(()));
        writer.publish(end);
        assert_eq!(reader.arrived(end), Ok(()));
        (0..2).for_each(|layer| reader.release(layer, end));
    }
    writer.end_frame();
    reader.end_frame();
    writer.publish(1);
    // In the new frame, one layer has released a row and the other none.
    reader.release(1, 1);
    assert_eq!([CAPACITY, 1].map(|end| writer.room(end)), [Ok(()); 2]);
    assert_eq!(reader.arrived(1), Ok(()));
    drop(reader);
    assert_eq!(writer.room(CAPACITY + 1), Err(Closed));
}

/// Without a link nobody else runs.
#[test]
fn nothing_is_waited_for_without_a_link() {
    let writer = Writer::new(None, ROWS, CAPACITY);
    let mut reader = Reader::<1>::new(None, ROWS);
    writer.publish(1);
    reader.release(0, 1);
    assert_eq!([writer.room(ROWS), reader.arrived(ROWS)], [Ok(()); 2]);
}
