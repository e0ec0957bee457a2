# The Anthropic library for Python, three majors: what `farebox setup` prints, pasted, and what the newest does in trouble.

older="0.125.0 1.17.0"
[ -z "${LATEST-}" ] || older=""
for version in $older "$version"; do
  place=$prefix/$client-$version
  pip_install
  scenario "as-printed-$version" 5 as_printed claude-sim
  expect "as-printed-$version" hello
done
at_trouble claude
OWN=claude SLUGS="claude on-chat on-responses" at_limits "$place/bin/python" "$root/tests/clients/programs.py" anthropic
