//! What users hand to csdfc.
//!
//! [`app`] reads application files and binds their names to networks. [`import`] makes a network from an ONNX or TFLite
//! file, [`builtin`] from the name of an architecture, and [`export`] writes one as an ONNX file. [`device`] reads what a
//! device can do. Nothing here knows how plans are made.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::app::resolve::{Application, RowsChoice};
//! use csdfc_input::builtin;
//! use csdfc_input::device::DeviceProfile;
//!
//! let network = builtin::network("lenet5")?;
//! let application = Application::of_network("lenet5", network, RowsChoice::Default);
//! let device = DeviceProfile::find(&application.device, Path::new(""))?;
//! // The network runs on a processor that the device has.
//! assert!(device.processor(&application.cnns[0].partitions[0].processor).is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod app;
pub mod builtin;
pub mod device;
pub mod export;
pub mod import;
pub mod units;
