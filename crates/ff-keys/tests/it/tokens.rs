//! Tokens contain what was signed, and nothing ever prints a key.

use std::fmt::Debug;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use ff_core::types::{ExecutionId, TimestampMs, WaitpointId, WaitpointToken};
use ff_keys::{Claims, KeyRing, Keys, Source, TOKEN_BYTES_MAX, digest, fresh_nonce};
use proptest::prelude::*;
use uuid::Uuid;

fn any_claims() -> impl Strategy<Value = Claims> {
    let text = || proptest::string::string_regex("\\PC{0,60}").expect("a pattern");
    (
        text(),
        any::<u128>(),
        any::<u128>(),
        proptest::option::of(text()),
        proptest::option::of(any::<i64>()),
        proptest::option::of(any::<u32>()),
        any::<[u8; 16]>(),
    )
        .prop_map(|(namespace, execution, waitpoint, approver, expires_at, uses, nonce)| Claims {
            namespace,
            execution_id: ExecutionId::from_uuid(Uuid::from_u128(execution)),
            waitpoint_id: WaitpointId::from_uuid(Uuid::from_u128(waitpoint)),
            approver,
            expires_at: expires_at.map(TimestampMs::from_millis),
            uses,
            nonce,
        })
}

fn claims() -> Claims {
    Claims {
        namespace: "x".repeat(256),
        execution_id: ExecutionId::mint(),
        waitpoint_id: WaitpointId::mint(),
        approver: Some("y".repeat(256)),
        expires_at: Some(TimestampMs::now()),
        uses: Some(u32::MAX),
        nonce: fresh_nonce(),
    }
}

proptest! {
    #[test]
    fn a_token_says_what_was_signed(claims in any_claims()) {
        let ring = KeyRing::generate();
        let token = ring.mint(&claims).unwrap();
        prop_assert_eq!(ring.verify(token.as_str()), Ok(claims.clone()));
        prop_assert_eq!(ring.mint(&claims).unwrap(), token, "one spelling only");
    }

    #[test]
    fn different_claims_are_different_tokens(one in any_claims(), other in any_claims()) {
        let ring = KeyRing::generate();
        prop_assert_eq!(one == other, ring.mint(&one).unwrap() == ring.mint(&other).unwrap());
    }

    #[test]
    fn any_text_is_refused(text in "\\PC*") {
        prop_assert!(KeyRing::generate().verify(&text).is_err());
    }
}

#[test]
fn a_token_of_the_longest_claims_fits() {
    let ring = KeyRing::generate();
    let token = ring.mint(&claims()).unwrap();
    assert!(token.as_str().len() < TOKEN_BYTES_MAX);
    assert!(ring.verify(token.as_str()).is_ok());
    assert!(token.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)));
}

#[test]
fn a_digest_is_the_sha_256_of_the_text() {
    assert_eq!(digest(&WaitpointToken::new("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/// A fixed ring and token: a change of the format would break every issued token.
#[test]
fn the_format_stays() {
    let secret = URL_SAFE_NO_PAD.encode([7; 32]);
    let ring = KeyRing::from_text(&format!("flowfabric keys 1\nsign testkey1 made_at=0 secret={secret}\n")).unwrap();
    let claims = Claims {
        namespace: "default".to_owned(),
        execution_id: ExecutionId::from_uuid(Uuid::from_u128(1)),
        waitpoint_id: WaitpointId::from_uuid(Uuid::from_u128(2)),
        approver: Some("ann".to_owned()),
        expires_at: Some(TimestampMs::from_millis(1_767_225_600_000)),
        uses: Some(1),
        nonce: [9; 16],
    };
    let token = ring.mint(&claims).unwrap();
    assert_eq!(
        token.as_str(),
        "wp1.testkey1.\
         AAdkZWZhdWx0ABAAAAAAAAAAAAAAAAAAAAABABAAAAAAAAAAAAAAAAAAAAACAAQBYW5uAAkBAAABm3baqAAABQEAAAABABAJCQkJCQkJCQkJCQkJCQkJ.\
         2DLBA03XoqcqQj86IKtrzMjobfzWMTK205DW7nkn1FE"
    );
    assert_eq!(ring.verify(token.as_str()), Ok(claims));
}

#[test]
fn neither_keys_nor_tokens_are_printed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys");
    let keys = Keys::create(&path).unwrap();
    keys.rotate(Duration::from_secs(60)).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let ring = KeyRing::from_text(&text).unwrap();
    let token = keys.mint(&claims()).unwrap();

    let mut canaries: Vec<String> = token.as_str().split('.').skip(2).map(str::to_owned).collect();
    for secret in text.lines().filter_map(|line| line.split("secret=").nth(1)) {
        let bytes = URL_SAFE_NO_PAD.decode(secret).unwrap();
        canaries.extend([
            secret.to_owned(),
            hex::encode(&bytes),
            STANDARD_NO_PAD.encode(&bytes),
            format!("{:?}", &bytes[..4]).trim_matches(['[', ']']).to_owned(),
        ]);
    }
    assert_eq!(canaries.len(), 2 + 2 * 4);

    let value = Source::Value(text.clone().into());
    let forged = format!("{}x", token.as_str());
    let broken = text.replace("secret=", "secret=x");
    let by_value = Keys::open(value.clone()).unwrap();
    let mut printed: Vec<String> = Vec::new();
    let mut print = |thing: &dyn Debug| printed.push(format!("{thing:?} {thing:#?}"));
    print(&ring);
    print(&ring.facts());
    print(&keys);
    print(&by_value);
    print(&value);
    print(&token);
    print(&keys.verify(&forged).unwrap_err());
    print(&keys.verify(token.as_str()).unwrap().namespace);
    print(&KeyRing::from_text(&broken).unwrap_err());
    for error in [
        Keys::open(Source::Value(broken.clone().into())).unwrap_err(),
        by_value.rotate(Duration::ZERO).unwrap_err(),
        keys.revoke(&"nokey".parse().unwrap()).unwrap_err(),
        keys.check_known(&["other"]).unwrap_err(),
        ring.mint(&Claims { namespace: "x".repeat(300), ..claims() }).unwrap_err(),
    ] {
        print(&error);
        print(&error.to_string());
    }
    printed.push(format!("{value} {token} {}", keys.verify(&forged).unwrap_err()));

    let printed = printed.join("\n");
    for canary in canaries {
        assert!(!printed.contains(&canary), "{canary} was printed in {printed}");
    }
}
