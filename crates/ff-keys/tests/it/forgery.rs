//! A million texts that are almost tokens; none of them is accepted.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use ff_core::types::{ExecutionId, TimestampMs, WaitpointId};
use ff_keys::{Claims, KeyRing};
use ff_testkit::tier::{rounds, sample};
use hmac::{Hmac, Mac};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, RngCore, SeedableRng};
use sha2::Sha256;
use std::time::Duration;
use uuid::Uuid;

/// Number of forgeries tried; a million in the other tiers.
fn forgeries() -> usize {
    rounds(50_000, 1_000_000, 10_000_000)
}

/// The parts of a genuine token.
struct Genuine {
    text: String,
    key_id: String,
    claims: Vec<u8>,
    mac: Vec<u8>,
}

fn parts(text: &str) -> Genuine {
    let words: Vec<&str> = text.split('.').collect();
    let decode = |word| URL_SAFE_NO_PAD.decode(word).unwrap();
    Genuine { text: text.to_owned(), key_id: words[1].to_owned(), claims: decode(words[2]), mac: decode(words[3]) }
}

fn spell(key_id: &str, claims: &[u8], mac: &[u8]) -> String {
    format!("wp1.{key_id}.{}.{}", URL_SAFE_NO_PAD.encode(claims), URL_SAFE_NO_PAD.encode(mac))
}

fn any_claims(random: &mut StdRng) -> Claims {
    let label = |random: &mut StdRng| (0..random.random_range(0..12)).map(|_| random.random_range('a'..='z')).collect();
    let uuid = |random: &mut StdRng| Uuid::from_u128(random.random());
    Claims {
        namespace: label(random),
        execution_id: ExecutionId::from_uuid(uuid(random)),
        waitpoint_id: WaitpointId::from_uuid(uuid(random)),
        approver: random.random_bool(0.5).then(|| label(random)),
        expires_at: random.random_bool(0.5).then(|| TimestampMs::from_millis(random.random())),
        uses: random.random_bool(0.5).then(|| random.random()),
        nonce: random.random(),
    }
}

/// Flips one bit so that the result is still text.
fn flip(text: &str, random: &mut StdRng) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let at = random.random_range(0..bytes.len());
    bytes[at] ^= 1 << random.random_range(0..7);
    String::from_utf8(bytes).unwrap()
}

fn flip_bytes(bytes: &[u8], random: &mut StdRng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = random.random_range(0..bytes.len());
    bytes[at] ^= 1 << random.random_range(0..8);
    bytes
}

/// The same bytes with other bits in the last character, which a careless reader would ignore.
fn stray_bits(word: &str, random: &mut StdRng) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let unused = match word.len() % 4 {
        2 => 4,
        3 => 2,
        _ => 0,
    };
    let (rest, last) = word.split_at(word.len() - 1);
    let value = ALPHABET.iter().position(|&letter| letter == last.as_bytes()[0]).unwrap();
    let other = value ^ random.random_range(0..1usize << unused);
    format!("{rest}{}", char::from(ALPHABET[other]))
}

/// Signs as a forger would who has the claims but not the key.
fn sign(secret: &[u8], key_id: &str, claims: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
    for field in [b"wp1", key_id.as_bytes()] {
        mac.update(&(field.len() as u16).to_be_bytes());
        mac.update(field);
    }
    mac.update(claims);
    mac.finalize().into_bytes().to_vec()
}

fn forge(kind: usize, a: &Genuine, b: &Genuine, stranger: &Genuine, random: &mut StdRng) -> String {
    let words: Vec<&str> = a.text.split('.').collect();
    let mut noise = [0; 48];
    random.fill_bytes(&mut noise);
    match kind {
        0 => flip(&a.text, random),
        1 => flip(&flip(&a.text, random), random),
        2 => a.text[..random.random_range(0..a.text.len())].to_owned(),
        3 => a.text[random.random_range(1..a.text.len())..].to_owned(),
        4 => {
            let more = ["=", "==", ".", "A", "\0", " ", "\n", "%3D", ".AAAA", "é"].choose(random).unwrap();
            if random.random() { format!("{}{more}", a.text) } else { format!("{more}{}", a.text) }
        }
        5 => spell(&a.key_id, &a.claims, &b.mac),
        6 => spell(&b.key_id, &a.claims, &a.mac),
        7 => spell(&stranger.key_id, &a.claims, &a.mac),
        8 => spell(&a.key_id, &stranger.claims, &stranger.mac),
        9 => stranger.text.clone(),
        10 => spell(&a.key_id, &a.claims, &noise[..32]),
        11 => spell(&a.key_id, &a.claims, &noise[..random.random_range(0..48)]),
        12 => spell(&a.key_id, &a.claims, &a.mac[..random.random_range(0..32)]),
        13 => spell(&a.key_id, &flip_bytes(&a.claims, random), &a.mac),
        14 => spell(&a.key_id, &a.claims, &flip_bytes(&a.mac, random)),
        15 => spell(&a.key_id, &[&a.claims[..], &noise[..random.random_range(1..8)]].concat(), &a.mac),
        16 => spell(&a.key_id, &a.claims, &sign(&noise[..32], &a.key_id, &a.claims)),
        17 => spell(&a.key_id, &a.claims, &sign(&[], &a.key_id, &a.claims)),
        18 => format!("wp1.{}.{}.{}", a.key_id, stray_bits(words[2], random), stray_bits(words[3], random)),
        19 => format!("wp1.{}.{}.{}", a.key_id, URL_SAFE.encode(&a.claims), URL_SAFE.encode(&a.mac)),
        20 => format!("wp1.{}.{}.{}", a.key_id, STANDARD.encode(&a.claims), words[3]),
        21 => format!("wp1.{}.{}.{}", a.key_id.to_uppercase(), words[2], words[3]),
        22 => format!(
            "{}.{}.{}.{}",
            ["wp2", "WP1", "wp", "", "wp1 "].choose(random).unwrap(),
            words[1],
            words[2],
            words[3]
        ),
        23 => format!("wp1.{}.{}", words[2], words[3]),
        24 => format!("wp1.{}.{}.{}", words[1], words[3], words[2]),
        // Moves the border between key id and claims: only the lengths tell these apart.
        25 => spell(&a.key_id[..7], &[&a.key_id.as_bytes()[7..], &a.claims].concat(), &a.mac),
        _ => (0..random.random_range(0..200)).map(|_| random.random_range('-'..='z')).collect(),
    }
}
const KINDS: usize = 27;

#[test]
fn no_forged_token_is_accepted() {
    let seed = sample();
    let mut random = StdRng::seed_from_u64(seed);
    let mut ring = KeyRing::generate();
    let foreign = KeyRing::generate();
    let mut tokens = Vec::new();
    for _ in 0..4 {
        for _ in 0..64 {
            tokens.push(ring.mint(&any_claims(&mut random)).unwrap());
        }
        ring.rotate(Duration::from_secs(3_600));
    }
    let genuine: Vec<Genuine> = tokens.iter().map(|token| parts(token.as_str())).collect();
    let strangers: Vec<Genuine> =
        (0..64).map(|_| parts(foreign.mint(&any_claims(&mut random)).unwrap().as_str())).collect();
    let known: HashSet<&str> = genuine.iter().map(|token| token.text.as_str()).collect();
    for token in &genuine {
        assert!(ring.verify(&token.text).is_ok(), "what is forged below is genuine here");
    }

    let mut tried = [0usize; KINDS];
    while tried.iter().sum::<usize>() < forgeries() {
        let kind = random.random_range(0..KINDS);
        let (a, b) = (genuine.choose(&mut random).unwrap(), genuine.choose(&mut random).unwrap());
        let forged = forge(kind, a, b, strangers.choose(&mut random).unwrap(), &mut random);
        if known.contains(forged.as_str()) {
            continue;
        }
        tried[kind] += 1;
        assert!(ring.verify(&forged).is_err(), "seed {seed}: a forgery of kind {kind} passed");
    }
    assert!(tried.iter().all(|&count| count > 1_000), "every kind was tried: {tried:?}");
}
