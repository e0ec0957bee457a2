# async-openai: what `farebox setup` prints, built and run, what it does in trouble, and its streams and tools on slugs of every
# family.

[ -f "$place/.done" ] || {
  mkdir -p "$place/src" && echo 'fn main() {}' > "$place/src/main.rs"
  printf '[package]\nname = "hello"\nversion = "0.1.0"\nedition = "2024"\n[workspace]\n[dependencies]\nasync-openai = { version = "=%s", features = ["chat-completion"] }\ntokio = { version = "1", features = ["macros", "rt-multi-thread"] }\nfutures = "0.3"\nserde_json = "1"\n' \
    "$version" > "$place/Cargo.toml"
  (cd "$place" && env -u CARGO_TARGET_DIR cargo build --quiet) && touch "$place/.done"
}
scenario as-printed 5 as_printed gpt-sim
expect as-printed hello
at_trouble gpt
mkdir -p "$place/src/bin" && cp "$root/tests/clients/async_openai.rs" "$place/src/bin/limits.rs"
(cd "$place" && env -u CARGO_TARGET_DIR cargo build --quiet --bin limits)
at_limits "$place/target/debug/limits"
