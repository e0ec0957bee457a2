# The Anthropic library for Python, three majors: what `farebox setup` prints, pasted, and what the newest does in trouble.

for version in 0.125.0 1.17.0 "$version"; do
  place=$prefix/$client-$version
  pip_install
  scenario "as-printed-$version" 5 as_printed claude-sim
  expect "as-printed-$version" hello
done
at_trouble claude
