//! Every command of the README and of the guide does what these pages say. A block `sh` holds commands, which end with
//! the exit code that the block states, or with 0. A block `text` after it holds lines of what they print. A block `csv
//! NAME` is a file.

use std::path::{Path, PathBuf};

use super::run;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().into()
}

/// The fenced blocks of a page: the text behind the fence, and the lines.
fn blocks(text: &str) -> Vec<(String, Vec<String>)> {
    let mut blocks: Vec<(String, Vec<String>)> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(info) if !is_open => blocks.push((info.into(), Vec::new())),
            None if is_open => blocks.last_mut().unwrap().1.push(line.into()),
            _ => {}
        }
        is_open ^= line.starts_with("```");
    }
    assert!(!is_open, "a block has no end");
    blocks
}

/// Runs the commands of a page, in a folder of its own. Returns their number.
fn follow(page: &Path) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    copy(&root().join("apps"), &folder.join("apps"));
    let name = page.file_name().unwrap().display().to_string();
    let (mut printed, mut commands) = (None, 0);
    for (info, lines) in blocks(&std::fs::read_to_string(page).unwrap()) {
        let (kind, exit) = info.split_once(" exit ").unwrap_or((&info, "0"));
        match kind {
            "sh" => {
                let mut all = String::new();
                for line in lines {
                    let arguments: Vec<&str> = line.split_whitespace().collect();
                    assert_eq!(arguments[0], "csdfc", "{name}: {line}");
                    let ended = run(folder, &arguments[1..]);
                    assert_eq!(ended.code.to_string(), exit, "{name}: {line}\n{}", ended.stderr);
                    all += &(ended.stdout + &ended.stderr);
                    commands += 1;
                }
                printed = Some(all);
            }
            "text" => {
                // A block before the first command shows a file.
                let Some(printed) = printed.take() else { continue };
                for line in lines {
                    assert!(
                        printed.lines().any(|found| found == line),
                        "{name}: `{line}` is not in\n{printed}"
                    );
                }
            }
            _ => {
                if let Some(file) = kind.strip_prefix("csv ") {
                    std::fs::write(folder.join(file), lines.join("\n") + "\n").unwrap();
                }
            }
        }
    }
    commands
}

/// Copies the application files of a folder.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        match path.is_dir() {
            true if path.join("Cargo.toml").exists() => {}
            true => copy(&path, &to),
            false => {
                std::fs::copy(path, to).unwrap();
            }
        }
    }
}

#[test]
fn commands_of_the_guide_do_what_it_says() {
    let source = root().join("docs/guide/src");
    let summary = std::fs::read_to_string(source.join("SUMMARY.md")).unwrap();
    let pages: Vec<PathBuf> =
        std::fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().path()).collect();
    let is_page =
        |page: &&PathBuf| page.extension().is_some_and(|kind| kind == "md") && !page.ends_with("SUMMARY.md");
    let pages: Vec<&PathBuf> = pages.iter().filter(is_page).collect();
    for page in &pages {
        assert!(
            summary.contains(&format!("({})", page.file_name().unwrap().display())),
            "{}",
            page.display()
        );
    }
    assert_eq!(summary.matches(".md)").count(), pages.len());
    let readme = root().join("README.md");
    let commands: usize = std::thread::scope(|scope| {
        let following: Vec<_> =
            pages.iter().copied().chain([&readme]).map(|page| scope.spawn(|| follow(page))).collect();
        following.into_iter().map(|page| page.join().unwrap()).sum()
    });
    assert!(commands > 20, "{commands}");
}
