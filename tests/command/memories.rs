//! `csdfc plan --ram`: boards with several memories.

use csdfc_plan::plan::Plan;

use super::{fails, fits_a_screen, folder, run};

#[test]
fn a_plan_says_what_lies_in_each_memory() {
    let folder = folder();
    let ram = "6kB@near:0ns,64kB@far:3ns";
    let planned =
        run(folder.path(), &["plan", "builtin:lenet5", "--ram", ram, "--flash", "1MB", "-o", "plan.json"]);
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    insta::assert_snapshot!("in_memories", planned.stdout);
    let plan = Plan::from_json(&std::fs::read_to_string(folder.path().join("plan.json")).unwrap()).unwrap();
    assert_eq!(plan.memory.total, plan.memory.arena);
    assert!(plan.regions.iter().all(|region| 0 < region.bytes && region.bytes <= region.limit));
    assert_eq!(run(folder.path(), &["check", "plan.json"]).code, 0);
    // An application file says the same.
    let text = format!(
        "(name: \"lenet5\", cnns: [(model: \"builtin:lenet5\")], constraints: (ram: \"{ram}\", flash: 1000000))"
    );
    std::fs::write(folder.path().join("app.ron"), text).unwrap();
    assert_eq!(run(folder.path(), &["plan", "app.ron"]).stdout, planned.stdout);
    // An option takes the place of what the file says.
    let one = run(folder.path(), &["plan", "app.ron", "--mem", "1MB", "--format", "json"]);
    assert!(Plan::from_json(&one.stdout).unwrap().regions.is_empty());
}

/// The code counts as flash, as soon as it is known for which processor it is.
#[test]
fn code_and_stack_are_said_before_anything_is_compiled() {
    let folder = folder();
    let plan = |options: &[&str]| run(folder.path(), &[&["plan", "builtin:lenet5"], options].concat());
    let board = ["--device", "stm32f4", "--ram", "sram", "--flash"];
    let fits = plan(&[&board[..], &["512kB"]].concat());
    assert_eq!(fits.code, 0, "{}", fits.stderr);
    let lines = fits.stdout.split_once("on thumbv7em-none-eabihf").expect("the board").1;
    let bytes = |name: &str| -> u64 {
        let line = lines.lines().find(|line| line.trim_start().starts_with(name)).expect("a line");
        let digits = line.trim_start().trim_start_matches(name).trim_start().split("  ").next();
        digits.expect("a number").replace(' ', "").parse().expect("a number")
    };
    assert!(
        (20_000..100_000).contains(&bytes("code")) && (2_000..8_000).contains(&bytes("stack")),
        "{lines}"
    );
    assert_eq!(bytes("flash"), bytes("code") + bytes("parameters"));
    assert!(!lines.contains("not counted"), "{lines}");
    // There is room for the parameters alone.
    let parameters = bytes("parameters").to_string();
    let lacks = plan(&[&board[..], &[&parameters]].concat());
    assert_eq!(lacks.code, 2);
    assert!(lacks.stderr.contains("the parameters and the smaller code take"), "{}", lacks.stderr);
    // Whoever takes the plan on is told, too.
    assert_eq!(plan(&[&board[..], &[&parameters, "-o", "lacks.json"]].concat()).code, 2);
    let checked = run(folder.path(), &["check", "lacks.json"]);
    assert!(checked.code == 0 && checked.stdout.contains("the smaller code take"), "{}", checked.stdout);
    // The same figures, as text and as data.
    let checked = checked.stdout.split_once("on thumbv7em-none-eabihf").expect("the board").1;
    assert_eq!(checked, lines);
    let data = run(folder.path(), &["check", "lacks.json", "--format", "json"]).stdout;
    let data = &serde_json::from_str::<serde_json::Value>(&data).unwrap()["board"];
    assert_eq!(data["target"], "thumbv7em-none-eabihf");
    for name in ["code", "parameters", "stack"] {
        assert_eq!(data[name], bytes(name), "{name}");
    }
    assert!(
        data["small_code"].as_u64() < data["code"].as_u64() && data["not_counted"] == serde_json::json!([])
    );
    let emitted = run(folder.path(), &["emit", "lacks.json", "-o", "crate"]);
    assert!(emitted.code == 0 && emitted.stderr.contains("the smaller code take"), "{}", emitted.stderr);
    // Kernels of which csdfc does not know the code.
    let half = plan(&[&board[..], &["1MB", "--precision", "half"]].concat());
    assert!(
        half.stdout.contains("the code and the flash are larger than that, and the stack may be"),
        "{}",
        half.stdout
    );
    // Without its memories, all is counted as one RAM, and how to name them is said.
    let hint = "--ram dtcm,sram,sram_d2 names the memories of device stm32h7, and leaves parameters in flash";
    assert!(plan(&["--device", "stm32h7", "--mem", "1MB"]).stdout.contains(hint));
    assert!(!plan(&["--device", "stm32h7", "--ram", "sram"]).stdout.contains("names the memories"));
    // Nobody knows the processor.
    assert!(!plan(&["--ram", "1MB@sram"]).stdout.contains("thumbv7em"));
}

/// Of a memory that holds the stack, only what the stack leaves is the arena's.
#[test]
fn the_stack_has_room_in_its_memory() {
    let folder = folder();
    let plan = |ram: &str| {
        let planned = run(
            folder.path(),
            &["plan", "builtin:lenet5", "--device", "stm32f4", "--ram", ram, "-o", "plan.json"],
        );
        let plan = std::fs::read_to_string(folder.path().join("plan.json")).unwrap();
        (planned, Plan::from_json(&plan).unwrap())
    };
    let (ample, wide) = plan("64kB@near=buffers+stack,64kB@far");
    assert_eq!(ample.code, 0, "{}", ample.stderr);
    insta::assert_snapshot!("stack_in_memory", ample.stdout);
    let (stack, buffers) = (wide.regions[0].stack, wide.regions[0].bytes);
    assert!(stack > 2_000 && wide.regions[1].bytes == 0, "{:?}", wide.regions);
    // The buffers alone would fit the first memory.
    let (narrow, plan_of_both) = plan(&format!("{}@near=buffers+stack,64kB@far", buffers + stack - 1));
    assert_eq!(narrow.code, 0, "{}", narrow.stderr);
    let [near, far] = &plan_of_both.regions[..] else { panic!("two regions") };
    assert!(
        near.stack == stack && near.bytes + near.stack <= near.limit && far.bytes > 0,
        "{near:?} {far:?}"
    );
    assert_eq!(run(folder.path(), &["check", "plan.json"]).code, 0);
    // The profile says that the stack lies there, and no weights.
    let (_, board) = plan("ccm,sram");
    assert!(board.regions.iter().any(|region| region.name == "ccm" && region.stack == stack));
}

#[test]
fn what_a_memory_lacks_is_said() {
    let folder = folder();
    for (name, options) in [
        ("lacking_memory", &["--ram", "2kB@near,3kB@far"][..]),
        ("lacking_memory_for_a_ring", &["--rows", "none", "--ram", "4kB@near,10kB@far"]),
        ("lacking_flash", &["--ram", "64kB@sram", "--flash", "100kB"]),
        ("lacking_time", &["--ram", "64kB@sram", "--fps", "1000000"]),
        ("lacking_stack", &["--device", "stm32f4", "--ram", "1kB@near=stack,64kB@sram"]),
    ] {
        let ended = run(folder.path(), &[&["plan", "builtin:lenet5"], options].concat());
        assert_eq!(ended.code, 2, "{name}: {}", ended.stderr);
        fits_a_screen(&ended.stderr);
        insta::assert_snapshot!(name, ended.stderr);
    }
}

#[test]
fn what_names_no_memories_is_refused() {
    let folder = folder();
    for (name, options) in [
        ("ram_twice", &["--ram", "1kB@a,2kB@a"][..]),
        ("ram_unknown", &["--device", "stm32h7", "--ram", "dctm,sram"]),
        ("ram_without_size", &["--ram", "dtcm"]),
        ("ram_times_of_some", &["--device", "stm32h7", "--ram", "dtcm,8MB@psram"]),
        ("ram_and_mem", &["--ram", "1kB@a", "--mem", "1MB"]),
        ("ram_and_edges", &["--ram", "1kB@a", "--storage", "edges"]),
        ("ram_of_what", &["--ram", "1kB@a=code"]),
        ("ram_without_buffers", &["--ram", "1kB@a=weights"]),
        ("ram_of_two_stacks", &["--ram", "1kB@a=buffers+stack,1kB@b=stack"]),
        ("ram_of_an_unknown_stack", &["--ram", "9kB@a=buffers+stack"]),
        ("ram_without_weights", &["--ram", "9kB@a=buffers", "--weights", "streamed"]),
        ("flash_of_nothing", &["--flash", "0"]),
    ] {
        let text = fails(folder.path(), &[&["plan", "builtin:lenet5"], options].concat());
        insta::assert_snapshot!(name, text);
    }
}
