//! NumPy's `.npy` files, in which users hand over tensors: little-endian float32, float16, uint8, int8 and int64 in C order.
//!
//! ```
//! use csdfc_command::npy;
//! use csdfc_runtime::run::{Data, Value};
//!
//! let value = Value { dims: vec![1, 2], data: Data::F32(vec![0.5, -1.0]) };
//! assert_eq!(npy::parse(&npy::bytes(&value))?, value);
//! assert_eq!(npy::parse(b"PK").unwrap_err().to_string(), "it is not a .npy file");
//! # Ok::<(), npy::NpyError>(())
//! ```

use std::path::Path;

use csdfc_kernels::half::F16;
use csdfc_network::suggest::clip;
use csdfc_planner::error::Error;
use csdfc_runtime::run::{Data, Value};

/// The beginning of every file.
const MAGIC: &[u8] = b"\x93NUMPY";

/// Maximum number of dimensions of a tensor.
const MAX_RANK: usize = 32;

/// Why bytes are not a tensor that csdfc takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The file does not begin as such files do.
    #[error("it is not a .npy file")]
    NotNpy,
    /// The header does not end.
    #[error("the file is cut short")]
    CutShort,
    /// The format has another version.
    #[error("its version is {0}, not 1 to 3")]
    Version(u8),
    /// The header is not UTF-8.
    #[error("its header is not text")]
    NotText,
    /// The header lacks a field.
    #[error("its header has no `{0}`")]
    Missing(&'static str),
    /// The last dimension is not the one whose elements lie side by side.
    #[error("its elements are in Fortran order")]
    FortranOrder,
    /// A dimension is not a number.
    #[error("its header has a dimension {0}")]
    Dimension(String),
    /// There are too many dimensions, or too many elements to count.
    #[error("its dimensions are too many or too large")]
    TooLarge,
    /// The data are longer or shorter than the header says.
    #[error("it holds {found} bytes where {dims:?} elements of {size} bytes are stated")]
    Length {
        /// Bytes of data.
        found: usize,
        /// The dimensions.
        dims: Vec<usize>,
        /// Bytes of an element.
        size: usize,
    },
    /// The elements are of another type.
    #[error("its elements are `{0}`, not <f4, <f2, |u1, |i1 or <i8")]
    Element(String),
}

/// Reads a tensor.
///
/// # Errors
/// When the file cannot be read, or is none that csdfc takes.
pub fn read(path: &Path) -> Result<Value, Error> {
    let bytes = std::fs::read(path).map_err(|error| Error::read(path, error))?;
    parse(&bytes).map_err(|why| Error::Input {
        message: format!("{}: {why}", path.display()),
        help: Some(
            "give a file that numpy.save wrote, of a float32, float16, uint8, int8 or int64 array in C order"
                .into(),
        ),
    })
}

/// Writes a tensor.
///
/// # Errors
/// When the file cannot be written.
pub fn write(path: &Path, value: &Value) -> Result<(), Error> {
    std::fs::write(path, bytes(value)).map_err(|error| Error::write(path, error))
}

/// A tensor as the bytes of a file.
pub fn bytes(value: &Value) -> Vec<u8> {
    let descr = match &value.data {
        Data::F32(_) => "<f4",
        Data::U8(_) => "|u1",
        Data::I8(_) => "|i1",
        Data::I64(_) => "<i8",
    };
    let dims: String = value.dims.iter().map(|dim| format!("{dim}, ")).collect();
    let shape = if value.dims.len() == 1 { dims.trim_end() } else { dims.trim_end_matches(", ") };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // The data begin at a multiple of 64 bytes; the header ends in a newline.
    while !(MAGIC.len() + 4 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    // The dimensions of a tensor are few.
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    match &value.data {
        Data::F32(values) => bytes.extend(values.iter().flat_map(|value| value.to_le_bytes())),
        Data::U8(values) => bytes.extend(values),
        Data::I8(values) => bytes.extend(values.iter().map(|value| value.cast_unsigned())),
        Data::I64(values) => bytes.extend(values.iter().flat_map(|value| value.to_le_bytes())),
    }
    bytes
}

/// Reads a tensor from the bytes of a file.
///
/// # Errors
/// What is wrong with them.
pub fn parse(bytes: &[u8]) -> Result<Value, NpyError> {
    let cut = || NpyError::CutShort;
    let rest = bytes.strip_prefix(MAGIC).ok_or(NpyError::NotNpy)?;
    let (version, rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
    let (length, rest) = match version[0] {
        1 => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(cut)?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
        2 | 3 => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(cut)?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
        other => return Err(NpyError::Version(other)),
    };
    let (header, data) = rest.split_at_checked(length).ok_or_else(cut)?;
    let header = std::str::from_utf8(header).map_err(|_| NpyError::NotText)?;
    let field = |name: &str| {
        let (_, rest) =
            header.split_once(&format!("'{name}'")).or_else(|| header.split_once(&format!("\"{name}\"")))?;
        Some(rest.trim_start().strip_prefix(':')?.trim_start())
    };
    if !field("fortran_order").ok_or(NpyError::Missing("fortran_order"))?.starts_with("False") {
        return Err(NpyError::FortranOrder);
    }
    let shape = field("shape")
        .and_then(|rest| rest.strip_prefix('(')?.split_once(')'))
        .ok_or(NpyError::Missing("shape"))?
        .0;
    let dims = shape.split(',').map(str::trim).filter(|dim| !dim.is_empty());
    let dims: Vec<usize> =
        dims.map(|dim| dim.parse().map_err(|_| NpyError::Dimension(clip(dim)))).collect::<Result<_, _>>()?;
    let elements = dims.iter().try_fold(1usize, |product, dim| product.checked_mul(*dim));
    let elements = elements.filter(|_| dims.len() <= MAX_RANK).ok_or(NpyError::TooLarge)?;
    let descr = field("descr").ok_or(NpyError::Missing("descr"))?;
    let descr = descr.trim_start_matches(['\'', '"']);
    let expect_size = |size: usize| match elements.checked_mul(size) {
        Some(bytes) if bytes == data.len() => Ok(()),
        _ => Err(NpyError::Length { found: data.len(), dims: dims.clone(), size }),
    };
    let data = if descr.starts_with("<f4") {
        expect_size(4)?;
        Data::F32(data.as_chunks().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect())
    } else if descr.starts_with("<f2") {
        // What the caller hands to a model of 16-bit floats.
        expect_size(2)?;
        let half = |chunk: &[u8; 2]| F16::from_bits(u16::from_le_bytes(*chunk)).to_f32();
        Data::F32(data.as_chunks().0.iter().map(half).collect())
    } else if descr.starts_with("|u1") || descr.starts_with("<u1") {
        expect_size(1)?;
        Data::U8(data.to_vec())
    } else if descr.starts_with("|i1") || descr.starts_with("<i1") {
        expect_size(1)?;
        Data::I8(data.iter().map(|byte| byte.cast_signed()).collect())
    } else if descr.starts_with("<i8") {
        expect_size(8)?;
        Data::I64(data.as_chunks().0.iter().map(|chunk| i64::from_le_bytes(*chunk)).collect())
    } else {
        let found: String =
            descr.chars().take_while(|c| c.is_ascii_alphanumeric() || "<>|=".contains(*c)).collect();
        return Err(NpyError::Element(clip(&found)));
    };
    Ok(Value { dims, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for value in [
            Value { dims: vec![1, 2, 3], data: Data::F32(vec![0.0, -1.5, f32::INFINITY, 1e-30, 2.0, 3.0]) },
            Value { dims: vec![4], data: Data::U8(vec![0, 1, 128, 255]) },
            Value { dims: vec![3], data: Data::I8(vec![-128, -1, 127]) },
            Value { dims: vec![], data: Data::I64(vec![-7]) },
            Value { dims: vec![0, 3], data: Data::F32(vec![]) },
        ] {
            let bytes = bytes(&value);
            assert_eq!(parse(&bytes), Ok(value));
            for end in 0..bytes.len() {
                assert!(parse(&bytes[..end]).is_err() || bytes.len() == end, "{end}");
            }
        }
    }

    /// As numpy 1.26 writes `numpy.float32([[1, 2]])`.
    #[test]
    fn numpy_files_are_read() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }";
        let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        file.extend(format!("{header:<117}\n").bytes());
        file.extend([0, 0, 128, 63, 0, 0, 0, 64]);
        let value = Value { dims: vec![1, 2], data: Data::F32(vec![1.0, 2.0]) };
        assert_eq!(parse(&file), Ok(value.clone()));
        assert_eq!(bytes(&value), file);
    }

    #[test]
    fn halves_are_widened() {
        let header = "{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }";
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.bytes());
        file.extend([0, 0x3e, 0, 0xc0]);
        assert_eq!(parse(&file), Ok(Value { dims: vec![2], data: Data::F32(vec![1.5, -2.0]) }));
    }

    #[test]
    fn other_files_are_refused() {
        let with = |header: &str| {
            let mut file = b"\x93NUMPY\x01\x00".to_vec();
            file.extend((header.len() as u16).to_le_bytes());
            file.extend(header.bytes());
            file.extend([0; 8]);
            parse(&file)
        };
        assert!(with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }").is_ok());
        for header in [
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }",
            "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }",
            "{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
            "{'descr': '<f4', 'fortran_order': False}",
            "{'fortran_order': False, 'shape': (2,), }",
            "",
        ] {
            assert!(with(header).is_err(), "{header}");
        }
        assert!(parse(b"PK\x03\x04").is_err());
    }
}
