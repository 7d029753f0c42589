//! Completions and manual pages know every command.

use super::{fails, run};

/// The commands, from the help.
fn commands() -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let help = run(folder.path(), &["--help"]).stdout;
    let (_, listed) = help.split_once("Commands:\n").unwrap();
    let names =
        listed.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    let names: Vec<String> = names.filter(|name| *name != "help").map(str::to_owned).collect();
    assert!(names.len() > 10, "{names:?}");
    names
}

#[test]
fn shells_complete_every_command() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ended = run(folder.path(), &["completions", shell]);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        for name in commands() {
            assert!(ended.stdout.contains(&name), "{shell}: {name}");
        }
        assert!(ended.stdout.contains("max-error"), "{shell}");
    }
    assert!(fails(folder.path(), &["completions", "dash"]).contains("bash, elvish, fish"));
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), &["man", "-o", "pages/man1"]).code, 0);
    let page = |name: &str| std::fs::read_to_string(folder.path().join("pages/man1").join(name)).unwrap();
    assert!(page("csdfc.1").contains(".TH csdfc 1"));
    for name in commands() {
        let page = page(&format!("csdfc-{name}.1"));
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
    }
    assert!(page("csdfc-plan.1").contains("\\-\\-mem"));
    std::fs::write(folder.path().join("file"), "").unwrap();
    assert!(fails(folder.path(), &["man", "-o", "file"]).contains("cannot write file"));
}
