//! Tables of a flatbuffer, read field by field. Nothing is read before it is asked for, and nothing beyond the file.
//!
//! `planus` follows the offsets and checks each of them. Code that it generates from a schema would be longer than this
//! module, and `unsafe`.

use planus::table_reader::Table;
use planus::{SliceWithStartOffset, TableRead, errors::ErrorKind};

use crate::import::error::{Fault, fault};

/// Bytes of an offset in the file, and of the length before the elements of a vector or string.
const OFFSET: usize = 4;

/// A table, whose fields are known by their ids.
#[derive(Clone, Copy)]
pub(super) struct Record<'a>(Table<'a>);

/// Records of a vector.
#[derive(Clone, Copy)]
pub(super) struct Records<'a> {
    at: SliceWithStartOffset<'a>,
    count: usize,
}

/// Bytes of a vector, and where in the file they are.
#[derive(Clone, Copy)]
pub(super) struct Stored<'a> {
    pub bytes: &'a [u8],
    pub offset: usize,
}

impl<'a> Record<'a> {
    /// The root of a file.
    pub fn root(file: &'a [u8]) -> Result<Self, Fault> {
        let all = SliceWithStartOffset { buffer: file, offset_from_start: 0 };
        Record::from_buffer(all, 0).map_err(|error| Fault::new(error.to_string()))
    }

    /// A field, if it is there.
    pub fn field<T: TableRead<'a>>(&self, id: usize) -> Result<Option<T>, Fault> {
        let read = self.0.access(id, "table", "field");
        read.map_err(|error| Fault::new(format!("field {id}: {}", error.error_kind)))
    }

    pub fn int(&self, id: usize, default: i32) -> Result<i32, Fault> {
        Ok(self.field(id)?.unwrap_or(default))
    }

    /// An enumerator, of 8 bits.
    pub fn code(&self, id: usize) -> Result<i8, Fault> {
        Ok(self.field(id)?.unwrap_or(0))
    }

    pub fn flag(&self, id: usize) -> Result<bool, Fault> {
        Ok(self.field::<u8>(id)?.is_some_and(|flag| flag != 0))
    }

    /// A text; an empty one if it is not there.
    pub fn text(&self, id: usize) -> Result<String, Fault> {
        let stored = self.field::<Stored>(id)?;
        Ok(stored.map_or_else(String::new, |stored| String::from_utf8_lossy(stored.bytes).into_owned()))
    }

    pub fn float(&self, id: usize, default: f32) -> Result<f32, Fault> {
        match self.field(id)?.unwrap_or(default) {
            value if value.is_finite() => Ok(value),
            value => fault!("its option {id} is {value}"),
        }
    }

    /// A vector of at most `most` tables. If the field is absent, it is empty.
    pub fn records(&self, id: usize, most: usize) -> Result<Records<'a>, Fault> {
        let none = Records { at: SliceWithStartOffset { buffer: &[], offset_from_start: 0 }, count: 0 };
        let records = self.field(id)?.unwrap_or(none);
        match records.count {
            count if count > most => fault!("{count} tables; at most {most} are supported"),
            _ => Ok(records),
        }
    }

    /// A vector of at most `most` integers.
    pub fn ints(&self, id: usize, most: usize) -> Result<Vec<i32>, Fault> {
        match self.field::<planus::Vector<'a, i32>>(id)? {
            None => Ok(Vec::new()),
            Some(values) if values.len() > most => {
                fault!("{} integers; at most {most} are supported", values.len())
            }
            Some(values) => Ok(values.iter().collect()),
        }
    }
}

impl<'a> TableRead<'a> for Record<'a> {
    fn from_buffer(buffer: SliceWithStartOffset<'a>, offset: usize) -> Result<Self, ErrorKind> {
        Table::from_buffer(buffer, offset).map(Record)
    }
}

impl<'a> Records<'a> {
    pub fn iter(self) -> impl Iterator<Item = Result<Record<'a>, Fault>> {
        let record = move |index| Record::from_buffer(self.at, OFFSET * index);
        (0..self.count).map(move |index| record(index).map_err(|error| Fault::new(error.to_string())))
    }
}

impl<'a> TableRead<'a> for Records<'a> {
    fn from_buffer(buffer: SliceWithStartOffset<'a>, offset: usize) -> Result<Self, ErrorKind> {
        let (at, count) = vector(buffer, offset)?;
        // Each is an offset.
        match count.checked_mul(OFFSET) {
            Some(bytes) if bytes <= at.len() => Ok(Records { at, count }),
            _ => Err(ErrorKind::InvalidLength),
        }
    }
}

impl<'a> TableRead<'a> for Stored<'a> {
    fn from_buffer(buffer: SliceWithStartOffset<'a>, offset: usize) -> Result<Self, ErrorKind> {
        let (at, count) = vector(buffer, offset)?;
        let bytes = at.as_slice().get(..count).ok_or(ErrorKind::InvalidLength)?;
        Ok(Stored { bytes, offset: at.offset_from_start })
    }
}

/// Where the elements of a vector begin, and how many the file claims there are.
fn vector(
    buffer: SliceWithStartOffset<'_>,
    offset: usize,
) -> Result<(SliceWithStartOffset<'_>, usize), ErrorKind> {
    let to = u32::from_buffer(buffer, offset)? as usize;
    let at = offset.checked_add(to).ok_or(ErrorKind::InvalidOffset)?;
    let count = u32::from_buffer(buffer, at)? as usize;
    Ok((buffer.advance(at)?.advance(OFFSET)?, count))
}
