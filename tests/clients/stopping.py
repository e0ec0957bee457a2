"""Programs that need stop strings, on a slug that speaks only responses: stopping.py smolagents|griptape|lm-eval"""

import json
import os
import pathlib
import subprocess
import sys

BASE, KEY, SLUG, HOME = (os.environ[name] for name in ("BASE", "KEY", "SLUG", "HOME"))


def smolagents():
    from smolagents import CodeAgent, OpenAIModel
    model = OpenAIModel(model_id=SLUG, api_base=f"{BASE}/v1", api_key=KEY)
    agent = CodeAgent(tools=[], model=model, max_steps=3, stream_outputs=bool(os.environ.get("STREAM")))
    assert agent.run("What is six times seven?") == 42
    # What the model made up behind the stop string is nowhere in the agent's memory.
    outputs = [step.model_output for step in agent.memory.steps if getattr(step, "model_output", None)]
    assert len(outputs) == 2 and not any("41" in output for output in outputs), outputs


def griptape():
    from griptape.drivers.prompt.openai import OpenAiChatPromptDriver
    from griptape.structures import Agent
    from griptape.tokenizers import SimpleTokenizer
    from griptape.tools import CalculatorTool
    tokenizer = SimpleTokenizer(characters_per_token=4, max_input_tokens=100_000, max_output_tokens=4_000)
    driver = OpenAiChatPromptDriver(model=SLUG, base_url=f"{BASE}/v1", api_key=KEY, tokenizer=tokenizer, use_native_tools=False,
                                    stream=bool(os.environ.get("STREAM")))
    agent = Agent(prompt_driver=driver, tools=[CalculatorTool()])
    agent.run("What is six times seven?")
    assert agent.output.value == "42", agent.output.value
    results = [action.output.value for subtask in agent.task.subtasks for action in getattr(subtask, "actions", [])]
    assert [str(result) for result in results] == ["42"], results


def lm_eval():
    task = pathlib.Path(HOME) / "task"
    task.mkdir(exist_ok=True)
    rows = [{"question": "What is six times seven?", "answer": "42"}] * 3
    (task / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (task / "sums.yaml").write_text(f"""task: sums
dataset_path: json
dataset_kwargs: {{data_files: {{test: {task}/rows.jsonl}}}}
test_split: test
output_type: generate_until
doc_to_text: "Question: {{{{question}}}}\\nAnswer:"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["\\n\\n", "Question:"], max_gen_toks: 64, do_sample: false, temperature: 0}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
filter_list: [{{name: trimmed, filter: [{{function: remove_whitespace}}, {{function: take_first}}]}}]
""")
    arguments = f"model={SLUG},base_url={BASE}/v1/chat/completions,num_concurrent=1,max_retries=1,tokenizer_backend=None,tokenized_requests=False"
    program = pathlib.Path(sys.executable).parent / "lm_eval"
    environment = {**os.environ, "OPENAI_API_KEY": KEY, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    done = subprocess.run([program, "run", "--model", "local-chat-completions", "--model_args", arguments, "--tasks", "sums", "--include_path", str(task),
                           "--apply_chat_template", "--output_path", str(task / "out")], env=environment, text=True, capture_output=True)
    print(done.stdout, done.stderr)
    results = json.loads(next((task / "out").rglob("results*.json")).read_text())["results"]["sums"]
    assert results["exact_match,trimmed"] == 1.0, results


{"smolagents": smolagents, "griptape": griptape, "lm-eval": lm_eval}[sys.argv[1]]()
print("done")
