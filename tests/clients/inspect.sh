# Inspect: what `farebox setup` prints, pasted, what it does in trouble, and its answers and tools on slugs of every family.

pip_install
cat > "$project/hello.py" <<'PY'
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes


@task
def hello():
    return Task(dataset=[Sample(input="Say hello", target="hello")], scorer=includes())
PY
inspect=(env INSPECT_DISPLAY=plain "$place/bin/inspect")
scenario as-printed 5 as_printed gpt-sim inspect "${inspect[@]}"
expect as-printed "accuracy  1.000"
at_trouble gpt inspect "${inspect[@]}"
MIDDLE_SAYS="every word" at_limits "$place/bin/python" "$root/tests/clients/programs.py" inspect
