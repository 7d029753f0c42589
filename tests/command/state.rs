//! States: what calls make, and what no state can be.

use std::path::Path;

use super::{Ended, fails, folder, run};

fn planned(folder: &Path, line: &str) -> Ended {
    let args: Vec<&str> = ["plan"].into_iter().chain(line.split_whitespace()).collect();
    run(folder, &args)
}

#[test]
fn a_state_is_what_the_output_was() {
    let folder = folder();
    let path = folder.path();
    let plan = planned(path, "builtin:voice_activity --state next_state:state -o kept.json");
    assert_eq!(plan.code, 0, "{}", plan.stderr);
    let said = "voice_activity keeps 96 bytes from frame to frame: state is next_state of the frame before, 0 in the first";
    assert!(plan.stdout.contains(said), "{}", plan.stdout);
    // Frames one by one, the state handed back by hand.
    assert_eq!(planned(path, "builtin:voice_activity -o plan.json").code, 0);
    let feature = |at: usize| ((at * 7919 % 1013) as f32 / 507.0 - 1.0).to_le_bytes();
    let (mut all, mut by_hand, mut state) = (Vec::new(), Vec::new(), vec![0; 24 * 4]);
    for frame in 0..5 {
        let features: Vec<u8> = (frame * 42..(frame + 1) * 42).flat_map(feature).collect();
        std::fs::write(path.join("features.f32"), &features).unwrap();
        std::fs::write(path.join("state.f32"), &state).unwrap();
        all.extend(features);
        let line = "run plan.json --input features=features.f32 --input state=state.f32 --output voice=voice.f32 \
                    --output next_state=next.f32";
        let ran = run(path, &line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        by_hand.extend(std::fs::read(path.join("voice.f32")).unwrap());
        state = std::fs::read(path.join("next.f32")).unwrap();
    }
    std::fs::write(path.join("all.f32"), all).unwrap();
    let ran = run(path, &["run", "kept.json", "--input", "all.f32", "--output", "voice=kept.f32"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(std::fs::read(path.join("kept.f32")).unwrap(), by_hand);
    // An application file says the same.
    let app = r#"(cnns: [(model: "builtin:voice_activity", states: {"next_state": "state"})])"#;
    std::fs::write(path.join("app.ron"), app).unwrap();
    let plan = planned(path, "app.ron");
    assert!(plan.stdout.contains(said), "{}", plan.stdout);
}

#[test]
fn what_is_no_state_is_named_with_what_would_be() {
    let folder = folder();
    let app = r#"(cnns: [(model: "builtin:voice_activity", states: {"next_state": "state"}, stream: ())])"#;
    std::fs::write(folder.path().join("stream.ron"), app).unwrap();
    for (snapshot, line) in [
        ("state_no_pair", "--state next_state"),
        ("state_unknown_output", "--state next_stat:state"),
        ("state_unknown_input", "--state next_state:stat"),
        ("state_of_another_shape", "--state next_state:features"),
        ("state_of_no_shape", "--state voice:state"),
        ("state_twice", "--state next_state:state --state voice:state"),
        ("state_in_edges", "--state next_state:state --storage edges"),
        ("state_with_auto_precision", "--state next_state:state --precision auto --calibrate none"),
        ("state_and_value", "--value state=0"),
        ("state_no_number", "--value state=a"),
    ] {
        let args: Vec<&str> =
            ["plan", "builtin:voice_activity"].into_iter().chain(line.split_whitespace()).collect();
        insta::assert_snapshot!(snapshot, fails(folder.path(), &args));
    }
    insta::assert_snapshot!("state_in_a_stream", fails(folder.path(), &["plan", "stream.ron"]));
}
