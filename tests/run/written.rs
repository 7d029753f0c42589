//! Networks that csdfc writes as ONNX models and reads again compute the same.

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::export::export;
use csdfc_input::import::{ImportOptions, import_bytes};
use csdfc_network::pass::{Fusion, normalise};
use csdfc_plan::plan::StorageModel;
use csdfc_tests::generate;
use proptest::prelude::*;

use super::{compare, run};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Fused layers are unfolded and fused again, perhaps otherwise: the textbook says what the outputs are.
    #[test]
    fn written_networks_compute_the_same(bytes in prop::collection::vec(any::<u8>(), 20..300)) {
        for cnn in generate::application(&bytes, StorageModel::Tensors).cnns {
            // A model has one frame at a time.
            if cnn.network.layers.iter().any(|layer| layer.is_input() && layer.shape.dims[0] > 1) {
                continue;
            }
            let model = export(&cnn.network).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let read = match import_bytes(&model, None, &ImportOptions::default()) {
                Ok(read) => read,
                // A transposition that moves nothing is a view, and there may be nothing else.
                Err(error) if error.to_string().contains("with no layer between") => continue,
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            };
            let network = normalise(read.network, Fusion::Full);
            let alone = |network| Application::of_network("a", network, RowsChoice::None);
            let outputs = run(&alone(network)).map_err(|error| TestCaseError::fail(error.to_string()))?;
            compare(&alone(cnn.network), &outputs)?;
        }
    }
}
