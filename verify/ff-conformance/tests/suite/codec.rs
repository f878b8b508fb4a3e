//! Every generated type survives each host's `cmsgpack`.

use ff_script::sample::Rng;
use ff_script::{Host, Invocation, Library, Route};

const ECHO: &str = r#"#!lua name=echo
redis.register_function{ function_name = "echo", callback = function(keys, args) return cmsgpack.pack(cmsgpack.unpack(args[1])) end }
redis.register_function{ function_name = "ff_library", callback = function(keys, args)
  return cmsgpack.pack({ ok = { is = "library", number = 1, hash = "echo" } })
end, flags = { "no-writes" } }
"#;

async fn every_type_survives(host: &dyn Host) {
    assert!(ff_script::generated::SPECIMENS.len() > 100, "the specimens are gone");
    for specimen in ff_script::generated::SPECIMENS {
        for seed in 0..ff_testkit::tier::rounds(8, 40, 400) {
            let sent = (specimen.encode)(&mut Rng::new(seed));
            // An argument is a map, so the values of the specimen travel as a list in its only field.
            let (mut values, mut rest) = (0_u8, ff_script::wire::Reader::new(&sent));
            while !rest.is_empty() {
                rest.skip().expect("a specimen is msgpack");
                values += 1;
            }
            let mut args = vec![0x81, 0xa1, b'v', 0x90 | values];
            args.extend_from_slice(&sent);
            let invocation = Invocation {
                route: Route::Execution(1),
                function: "echo",
                read_only: false,
                args,
                now_ms: None,
                count_calls: false,
                terms: ff_script::Terms::default(),
            };
            let reply = host.call(invocation).await.expect("the echo answers");
            let value = rmpv::decode::read_value(&mut reply.as_slice()).expect("the echo is msgpack");
            let field = value
                .as_map()
                .and_then(|map| map.iter().find(|(key, _)| key.as_str() == Some("v")))
                .map(|(_, field)| field.clone());
            let mut echoed = Vec::new();
            for value in field.as_ref().and_then(rmpv::Value::as_array).expect("a list comes back") {
                rmpv::encode::write_value(&mut echoed, value).expect("writing to memory cannot fail");
            }
            let recoded =
                (specimen.recode)(&echoed).unwrap_or_else(|error| panic!("{} seed {seed}: {error}", specimen.name));
            assert_eq!(recoded, sent, "{} seed {seed}", specimen.name);
        }
    }
}

#[tokio::test]
async fn every_generated_type_survives_the_embedded_host() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let host = ff_backend_embedded::Embedded::open(ff_backend_embedded::Options::new(
        directory.path(),
        ff_testkit::in_lists(ECHO),
    ))
    .expect("the store opens");
    every_type_survives(&host).await;
}

#[tokio::test]
async fn every_generated_type_survives_valkey() {
    let server = ff_testkit::TestServer::start(ff_testkit::Options::default()).expect("a server starts");
    let library = Library { name: "echo", number: 1, hash: "echo".to_owned(), text: ff_testkit::in_lists(ECHO) };
    let host = ff_backend_valkey::ValkeyHost::connect(ff_backend_valkey::Options::new(server.url(), library))
        .await
        .expect("the host connects");
    every_type_survives(&host).await;
}
