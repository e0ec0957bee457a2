# No client: the same conversation asked in every family of a target that speaks one. At temperature 0 the real server must give the
# translated request the words, the end and the counts that it gives its own family's.

[ "$upstream" = real ] || { echo "families: needs UPSTREAM_URL" >&2; exit 1; }
compared() { BASE=$base KEY=$secret python3 "$root/tests/clients/families.py" "$1"; }

for family in ${UPSTREAM_FAMILIES-chat messages responses}; do
  scenario same-on-$family 5 compared "$family"
  cat "$work/same-on-$family.out"
done
