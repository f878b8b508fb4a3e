//! Installs the servers the tests need; `cargo run -p ff-testkit --bin install-servers`.

fn main() -> anyhow::Result<()> {
    ff_testkit::install().map(|_| ())
}
