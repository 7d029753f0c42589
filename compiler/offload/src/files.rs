//! Strategies as files: JSON and RON with a field `groups`, or CSV with the patches of a step on each line.
//!
//! ```
//! use csdfc_offload::files::{Form, parse, print};
//! use csdfc_offload::problem::Options;
//! use csdfc_offload::{Accelerator, Convolution, Problem, Spec};
//!
//! // A 2×2 window over 3×3 pixels: four patches.
//! let layer = Convolution::new(Spec::new([3, 3], 1, [2, 2], 1))?;
//! let problem = Problem::new(layer, Accelerator::default(), &Options::default())?;
//! let groups = parse(r#"{"groups": [[0, 1], [3, 2]]}"#, Form::Json, &problem)?;
//! assert_eq!(print(&groups, Form::Csv)?, "0,1\n3,2\n");
//! assert!(parse("0,1\n3,4\n", Form::Csv, &problem).is_err());
//! # Ok::<(), csdfc_offload::OffloadError>(())
//! ```

use serde::{Deserialize, Serialize};

use super::error::OffloadError;
use super::problem::Problem;
use super::simulate::{Fault, Violation};
use super::strategy::Groups;

/// A form of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `{"groups": [[0, 1], [2]]}`. Other fields, such as those of `--format json`, are ignored.
    Json,
    /// `(groups: [[0, 1], [2]])`.
    Ron,
    /// `0,1` and `2` on lines of their own. Lines that begin with `#` are ignored.
    Csv,
}

/// The end of each form's file names.
pub const FORMS: [(&str, Form); 3] = [("json", Form::Json), ("ron", Form::Ron), ("csv", Form::Csv)];

#[derive(Debug, Serialize, Deserialize)]
struct File {
    groups: Groups,
}

/// Reads the groups of a strategy for this problem.
///
/// # Errors
/// When the text is not of the form, or names a patch that the layer lacks.
pub fn parse(text: &str, form: Form, problem: &Problem) -> Result<Groups, OffloadError> {
    let wrong = |problem: String| OffloadError::File { problem };
    let groups = match form {
        Form::Json => serde_json::from_str::<File>(text).map_err(|error| wrong(error.to_string()))?.groups,
        Form::Ron => ron::from_str::<File>(text).map_err(|error| wrong(error.to_string()))?.groups,
        Form::Csv => {
            let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
            let lines = lines.filter(|(_, line)| !line.starts_with('#'));
            let group = |(number, line): (usize, &str)| {
                let patches = line.split(',').map(|patch| patch.trim().parse());
                patches.collect::<Result<Vec<u32>, _>>().map_err(|error| {
                    wrong(format!("line {}: give numbers of patches between commas: {error}", number + 1))
                })
            };
            lines.map(group).collect::<Result<_, _>>()?
        }
    };
    let patches = problem.convolution.patches();
    for (step, group) in groups.iter().enumerate() {
        if let Some(patch) = group.iter().find(|patch| **patch as usize >= patches) {
            let fault = Fault::Unknown { kind: "patch", number: *patch };
            return Err(Violation { step: Some(step + 1), fault }.into());
        }
    }
    Ok(groups)
}

/// Groups as a file's text.
///
/// # Errors
/// Those of serde. There are none for groups.
pub fn print(groups: &Groups, form: Form) -> Result<String, OffloadError> {
    let failed = |problem: String| OffloadError::File { problem };
    let line = |group: &Vec<u32>| group.iter().map(u32::to_string).collect::<Vec<_>>().join(",") + "\n";
    match form {
        Form::Csv => Ok(groups.iter().map(line).collect()),
        Form::Json => serde_json::to_string(&File { groups: groups.clone() })
            .map(|text| text + "\n")
            .map_err(|error| failed(error.to_string())),
        Form::Ron => ron::to_string(&File { groups: groups.clone() })
            .map(|text| text + "\n")
            .map_err(|error| failed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Options;
    use crate::{Accelerator, Convolution, Spec};

    #[test]
    fn what_is_written_is_read() {
        let convolution = Convolution::new(Spec::new([3, 4], 1, [2, 2], 1)).unwrap();
        let options = Options { group: Some(2), ..Options::default() };
        let problem = Problem::new(convolution, Accelerator::default(), &options).unwrap();
        let groups: Groups = vec![vec![0, 3], vec![1], vec![5, 4], vec![2]];
        for (_, form) in FORMS {
            let text = print(&groups, form).unwrap();
            assert_eq!(parse(&text, form, &problem), Ok(groups.clone()), "{text}");
        }
        assert_eq!(parse("# mine\n0, 1\n\n2\n", Form::Csv, &problem), Ok(vec![vec![0, 1], vec![2]]));
        assert_eq!(parse("{\"groups\": [[0]], \"duration\": 7}", Form::Json, &problem), Ok(vec![vec![0]]));
        let refused = |text, form| parse(text, form, &problem).unwrap_err().to_string();
        assert!(refused("0,1\n2,x\n", Form::Csv).starts_with("line 2: "));
        assert_eq!(refused("0,1\n2,6\n", Form::Csv), "step 2: there is no patch 6");
        assert!(refused("{\"groups\": 3}", Form::Json).contains("line 1"));
        assert!(refused("[[0]]", Form::Ron).contains('1'));
    }
}
