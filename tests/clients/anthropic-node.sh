# The Anthropic library for Node, both majors: what `farebox setup` prints, pasted, and what the newest does in trouble.

older=0.137.0
[ -z "${LATEST-}" ] || older=""
for version in $older "$version"; do
  place=$prefix/$client-$version
  npm_install
  scenario "as-printed-$version" 5 as_printed claude-sim
  expect "as-printed-$version" hello
done
at_trouble claude
cp "$root/tests/clients/programs.mjs" "$place/"
OWN=claude SLUGS="claude on-chat on-responses" at_limits node "$place/programs.mjs" anthropic
