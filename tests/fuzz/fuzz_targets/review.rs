//! Bytes to a review, to both answers, to the object with the patch applied, and to the answers on that.
//!
//! An odd first byte: the rest chooses a case of the property tests' generator, and the first byte which promise is
//! checked beside what every answer is. An even one: the rest is the body as it came over the wire, and the facts follow
//! from its bytes.
#![no_main]

#[path = "../../server/properties/apply.rs"]
mod apply;
#[path = "../../server/properties/ask.rs"]
mod ask;
#[path = "../../server/properties/check.rs"]
mod check;
#[path = "../../server/properties/generator/mod.rs"]
mod generator;

use std::sync::atomic::{AtomicU64, Ordering};

use generator::Case;
use generator::entropy::Entropy;
use generator::json;
use generator::policies;
use generator::world::World;
use libfuzzer_sys::fuzz_target;
use plimsoll::engine::document::{Value, quote};
use plimsoll::engine::request::Endpoint;
use plimsoll::review::Review;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often the shares are told, runs.
const EVERY: u64 = 1 << 17;

static RUNS: AtomicU64 = AtomicU64::new(0);
static REVIEWS: AtomicU64 = AtomicU64::new(0);
static PATCHED: AtomicU64 = AtomicU64::new(0);

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let patched = if first & 1 == 1 { generated(rest, first / 2) } else { body(rest, *first) };
    let runs = RUNS.fetch_add(1, Ordering::Relaxed) + 1;
    if let Some(patched) = patched {
        REVIEWS.fetch_add(1, Ordering::Relaxed);
        PATCHED.fetch_add(u64::from(patched), Ordering::Relaxed);
    }
    if runs % EVERY == 0 {
        let (reviews, patched) = (REVIEWS.load(Ordering::Relaxed), PATCHED.load(Ordering::Relaxed));
        eprintln!("{runs} runs, {reviews} of them reviews, {patched} patched ({}% of runs)", patched * 100 / runs);
    }
});

/// Whether the case is patched.
fn generated(bytes: &[u8], promise: u8) -> Option<bool> {
    let case = Case::generate(bytes);
    match check::check(&case, Some(promise)) {
        Ok(patched) => Some(patched),
        Err(error) => panic!("{error}\n\n{case:?}"),
    }
}

/// Whether the review is patched; `None` where the bytes are none.
fn body(body: &[u8], choice: u8) -> Option<bool> {
    let named = &policies::all()[usize::from(choice / 2) % policies::all().len()];
    let world = World::generate(&mut Entropy::new(body), &[]);
    let ask = |body: &[u8], endpoint| ask::verdict(body, &named.policy, &world, endpoint);
    let (mutate, validate) = (ask(body, Endpoint::Mutate)?, ask(body, Endpoint::Validate)?);
    for verdict in [&mutate, &validate] {
        if let Err(error) = ask::check_answer(body, verdict) {
            panic!("policy {}: {error}", named.name);
        }
    }
    assert!(mutate.allowed() && validate.patch.is_none(), "{mutate:?} {validate:?}");
    let Some(patch) = &mutate.patch else { return Some(false) };
    let object = object_of(body);
    let result = apply::patched(&object, patch).unwrap_or_else(|error| panic!("patch {patch} of {object}: {error}"));
    let second = with_object(body, &result);
    if let Some(patch) = ask(second.as_bytes(), Endpoint::Mutate).and_then(|verdict| verdict.patch) {
        panic!("policy {}: a second patch {patch} of\n{second}\nafter {:?}", named.name, mutate.patch);
    }
    Some(true)
}

/// `request.object` as the engine read it: of doubled members the last.
fn object_of(body: &[u8]) -> String {
    let request = Review::parse(body).ok().and_then(|review| review.into_request(None).ok());
    let object = request.as_ref().and_then(|request| request.object.as_ref());
    single(object.unwrap_or(&Value::Null)).to_string()
}

/// The value without doubled members, as the API server's own decoding leaves it.
fn single(value: &Value<'_>) -> json::Json {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(single).collect()),
        Value::Object(members) => {
            let mut kept = plimsoll::engine::document::Object::default();
            members.iter().for_each(|(name, value)| kept.insert(name.to_owned(), single(value)));
            Value::Object(kept)
        }
        other => other.to_static(),
    }
}

/// The same review with another object.
fn with_object(body: &[u8], object: &str) -> String {
    let text = String::from_utf8_lossy(body);
    let mut review = Value::parse(&text).map(|review| single(&review)).unwrap_or(Value::Null);
    let marker = "the object goes here";
    review.set(&["request", "object"], Value::from(marker));
    review.to_string().replacen(&quote(marker), object, 1)
}
