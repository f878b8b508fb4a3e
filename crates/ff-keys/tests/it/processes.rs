//! Several real processes create and rotate one file.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ff_core::types::{ExecutionId, WaitpointId};
use ff_keys::{Claims, Keys, Source, fresh_nonce};

const PROCESSES: usize = 4;
const ROTATIONS: usize = 5;
const CHILD_OF: &str = "FF_KEYS_TEST_DIRECTORY";

fn keys_file(directory: &Path) -> PathBuf {
    directory.join("data").join("keys")
}

/// The part of each process; does nothing unless the test below starts it.
#[test]
fn one_process_of_several() {
    let Some(directory) = std::env::var_os(CHILD_OF) else { return };
    let keys = Keys::open(Source::DataDir(keys_file(directory.as_ref()))).unwrap();
    for _ in 0..ROTATIONS {
        let claims = Claims {
            namespace: "default".to_owned(),
            execution_id: ExecutionId::mint(),
            waitpoint_id: WaitpointId::mint(),
            approver: None,
            expires_at: None,
            uses: None,
            nonce: fresh_nonce(),
        };
        println!("\ntoken {}", keys.mint(&claims).unwrap().as_str());
        keys.rotate(Duration::from_secs(3_600)).unwrap();
    }
}

#[test]
fn processes_that_make_and_rotate_one_file_accept_each_others_tokens() {
    let directory = tempfile::tempdir().unwrap();
    let children: Vec<_> = (0..PROCESSES)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "processes::one_process_of_several", "--nocapture"])
                .env(CHILD_OF, directory.path())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();

    let mut tokens = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        tokens.extend(text.lines().filter_map(|line| line.strip_prefix("token ")).map(str::to_owned));
    }
    assert_eq!(tokens.len(), PROCESSES * ROTATIONS);
    let keys = Keys::open(Source::DataDir(keys_file(directory.path()))).unwrap();
    for token in &tokens {
        assert!(keys.verify(token).is_ok());
    }
    assert_eq!(keys.key_ids().len(), 1 + PROCESSES * ROTATIONS);
}
