"""What a command is given: YAML and JSON in every form that kubectl prints, and mistakes as people make them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from phalanx.dialects.documents import parse_text
from phalanx.errors import SnapshotError
from phalanx.store.input_files import notes_on, read_objects, take_in
from phalanx.testing import build

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: n}\nspec: {containers: []}\n"

Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def to_file(name: str, text: str) -> str:
        Path(name).write_text(text)
        return name

    return to_file


def refusal(path: str) -> str:
    with pytest.raises(SnapshotError) as caught:
        take_in([path])
    return str(caught.value)


# --- forms ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z"),
        ("2026-01-01", "2026-01-01"),
        ("1e3", 1000.0),
        ("12:30", "12:30"),
        ("=", "="),
        ("1.5", 1.5),
        ("-7", -7),
        ("0x1F", 31),
        ("500m", "500m"),
        ("'8'", "8"),
        ("true", True),
        ("~", None),
    ],
)
def test_a_yaml_value_reads_as_the_api_server_reads_it(text: str, value: object) -> None:
    assert parse_text(f"value: {text}".encode(), "x") == [{"value": value}]


def test_merge_keys_may_be_overridden() -> None:
    assert parse_text(b"a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\n", "x") == [{"a": {"x": 1, "y": 2}, "b": {"x": 3, "y": 2}}]


def test_yaml_and_json_give_the_same_objects(write: Write) -> None:
    as_yaml = write("a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: x, creationTimestamp: 2026-01-01T12:00:00Z}\n")
    as_json = write(
        "a.json", '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "creationTimestamp": "2026-01-01T12:00:00Z"}}'
    )
    assert [found.value for found in read_objects(as_yaml)] == [found.value for found in read_objects(as_json)]


def test_documents_are_numbered_and_empty_ones_are_counted_but_left_out(write: Write) -> None:
    path = write("a.yaml", f"{NODE}---\n---\n# nothing\n---\n{POD}")
    assert [found.place for found in read_objects(path)] == ["a.yaml, document 1", "a.yaml, document 4"]


def test_a_list_of_kubectl_is_taken_apart(write: Write) -> None:
    path = write("a.json", '{"kind": "List", "apiVersion": "v1", "items": [{"kind": "Node"}, {"kind": "Pod"}]}')
    assert [(found.place, found.value) for found in read_objects(path)] == [
        ("a.json, document 1, items[0]", {"kind": "Node"}),
        ("a.json, document 1, items[1]", {"kind": "Pod"}),
    ]


def test_items_of_a_typed_list_get_its_kind_and_version(write: Write) -> None:
    path = write("a.yaml", "apiVersion: scheduling.volcano.sh/v1beta1\nkind: QueueList\nitems: [{metadata: {name: q}}]\n")
    assert [found.value for found in read_objects(path)] == [
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}}
    ]


def test_an_empty_list_is_an_empty_cluster_and_no_mistake(write: Write) -> None:
    assert take_in([write("a.yaml", "apiVersion: v1\nkind: List\nitems: null\n")]).skipped == {}


def test_json_files_may_be_joined(write: Write) -> None:
    assert len(list(read_objects(write("a.json", '{"kind": "Node"}\n{"kind": "Pod"}\n')))) == 2


def test_a_folder_is_read_without_the_folders_inside_it(write: Write, tmp_path: Path) -> None:
    (tmp_path / "all" / "more").mkdir(parents=True)
    for name in ("all/b.yaml", "all/a.json", "all/c.yml", "all/README.md", "all/more/d.yaml"):
        write(name, '{"kind": "Node"}')
    assert [found.place.partition(",")[0] for found in read_objects("all")] == ["all/a.json", "all/b.yaml", "all/c.yml"]


def test_what_an_example_expects_is_no_object_of_its_cluster(write: Write) -> None:
    assert take_in([write("a.yaml", "apiVersion: phalanx.dev/v1alpha1\nkind: Expectation\n")]).skipped == {}


# --- notes ---------------------------------------------------------------------------------------------------------------


def test_unknown_kinds_are_skipped_and_counted_in_one_line(write: Write) -> None:
    ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: d}\n"
    other = ingress.replace("name: d", "name: e")
    intake = take_in([write("a.yaml", f"{NODE}---\n{ingress}---\n{other}---\napiVersion: v1\nkind: ConfigMap\n")])
    assert list(notes_on(intake, intake.cluster.snapshot(0.0))) == [
        "skipped what a session does not read: 1 ConfigMap, 2 Ingress.networking.k8s.io"
    ]


@pytest.mark.parametrize(
    ("api_version", "kind", "hint"),
    [
        ("scheduling.volcano.sh/v1beta1", "Podgroup", "1 Podgroup.scheduling.volcano.sh (did you mean PodGroup?)"),
        ("v1", "Pods", "1 Pods (did you mean Pod?)"),
        ("batch", "CronWorkflow", "1 CronWorkflow (write its whole apiVersion: argoproj.io/v1alpha1)"),
    ],
)
def test_a_skipped_kind_that_may_be_a_slip_is_said_with_what_is_meant(write: Write, api_version: str, kind: str, hint: str) -> None:
    intake = take_in([write("a.yaml", f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: d}}\n")])
    assert list(notes_on(intake, intake.cluster.snapshot(0.0))) == [f"skipped what a session does not read: {hint}"]


def test_rules_that_a_new_object_breaks_are_said_and_not_those_of_one_that_a_server_has_stored(write: Write) -> None:
    queue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\nspec: {weight: -1}\n"
    (said,) = take_in([write("a.yaml", queue)]).invalid
    assert said.startswith(f"{write('a.yaml', queue)}, document 1: the API server would reject it: ")
    assert "spec.weight: Invalid value: -1" in said
    assert take_in([write("b.yaml", queue.replace("name: q", "name: q, uid: u"))]).invalid == []


def test_a_complete_input_needs_no_note() -> None:
    intake = take_in([])
    for document in build.gang("train", tasks=1):
        intake.cluster.put(document)
    assert list(notes_on(intake, intake.cluster.snapshot(0.0))) == []


# --- mistakes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "a.yaml: no objects in it"),
        ("# only a comment\n", "a.yaml: no objects in it"),
        ("a: [1\nb: 2\n", "a.yaml, line 2, column 2: did not find expected ',' or ']'"),
        ("- a\n- b\n",
         "a.yaml, document 1: a list at the top; write 'kind: List' with 'items', or separate the objects with '---'"),
        ("hello\n", "a.yaml, document 1: expected an object with apiVersion, kind and metadata, got text"),
        ("kind: Pod\n",
         "a.yaml, document 1: Pod without a name: apiVersion: missing; every object needs apiVersion, kind and metadata"),
        ("apiVersion: v1\nkind: Pod\n", "a.yaml, document 1: Pod without a name: metadata.name: missing"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n", "a.yaml, document 1: Pod x: spec: missing"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: 5\n",
         "a.yaml, document 1: Pod x: spec: expected `object`, got `int`"),
        (f"{NODE}---\n{NODE}kind: Pod\n", "a.yaml, line 8, column 1: key 'kind' is given twice; separate objects with '---'"),
        ("1: a\n1.0: b\n", "a.yaml, line 2, column 1: key '1' is given twice"),
        ("apiVersion: v1\nkind: PodList\nitems: 3\n", "a.yaml, document 1: items: expected a list, got a number"),
        ("x: 0x_\n", "a.yaml, line 1, column 4: '0x_' cannot be read as int: invalid literal for int() with base 16: ''"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_with_its_place(text: str, sentence: str, write: Write) -> None:
    assert refusal(write("a.yaml", text)) == sentence


def test_a_quantity_that_is_none_is_named_with_its_field(write: Write) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{resources: {requests: {cpu: abc}}}]}\n"
    place = "a.yaml, document 2: Pod x: spec.containers[0].resources.requests.cpu: quantity 'abc': not a number"
    assert refusal(write("a.yaml", f"{NODE}---\n{pod}")).startswith(place)


def test_a_negative_minimum_is_named_with_its_field(write: Write) -> None:
    group = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g, namespace: n}\nspec: {minMember: -1}\n"
    assert refusal(write("a.yaml", group)) == "a.yaml, document 1: PodGroup n/g: spec.minMember: -1 is negative; write 0 or more"


def test_many_mistakes_are_shown_together_the_first_few_of_them(write: Write) -> None:
    lines = refusal(write("a.yaml", "---\n".join(["apiVersion: v1\nkind: Pod\n"] * 7))).splitlines()
    assert lines[0] == "7 objects or files cannot be read:"
    assert lines[1] == "  a.yaml, document 1: Pod without a name: metadata.name: missing"
    assert lines[-1] == "  and 2 more"
    assert len(lines) == 7


def test_a_file_that_is_not_there_or_no_text_says_so(write: Write, tmp_path: Path) -> None:
    Path("a.yaml").write_bytes(b"\x80\x81")
    (tmp_path / "empty").mkdir()
    assert refusal("missing.yaml") == "missing.yaml: no such file or folder"
    assert refusal("a.yaml").startswith("a.yaml: not text in UTF-8: ")
    assert refusal("empty") == "empty: no .yaml, .yml, .json files in this folder; folders inside it are not read"


def test_text_that_is_nested_without_end_is_refused(write: Write) -> None:
    assert "nested too deeply" in refusal(write("a.yaml", "[" * 100_000))


# --- twice ---------------------------------------------------------------------------------------------------------------


def test_an_object_that_is_given_twice_is_told_with_both_places_and_the_last_one_counts(write: Write) -> None:
    first = write("a.yaml", f"{NODE}status: {{allocatable: {{cpu: 8}}}}\n---\n{POD}")
    second = write("b.yaml", f"{NODE}status: {{allocatable: {{cpu: 1}}}}\n")
    intake = take_in([first, second])
    (text,) = notes_on(intake, intake.cluster.snapshot(0))
    assert text == "Node a is given 2 times: a.yaml, document 1 and b.yaml, document 1; the last one counts"
    assert [document["kind"] for _, document in intake.documents] == ["Node", "Pod"]
    assert intake.documents[0][1]["status"] == intake.complete[0]["status"] == {"allocatable": {"cpu": 1}}
    assert intake.cluster.snapshot(0).nodes.nodes[0].allocatable["cpu"] == 1000


def test_a_folder_that_is_given_twice_fills_no_screen(write: Write) -> None:
    file = write("a.yaml", "---\n".join(NODE.replace("a}", f"n{number}}}") for number in range(8)))
    texts = list(take_in([file, file]).duplicates())
    assert len(texts) == 6
    assert texts[-1] == "3 more objects are given more than once; the last one counts"


def test_the_same_name_in_another_namespace_kind_or_group_is_another_object(write: Write) -> None:
    other = POD.replace("namespace: n", "namespace: m")
    kinds = (f"apiVersion: {group}\nkind: Queue\nmetadata: {{name: x}}\n" for group in
             ("scheduling.volcano.sh/v1beta1", "scheduling.run.ai/v2"))  # fmt: skip
    assert list(take_in([write("a.yaml", "---\n".join((POD, other, *kinds)))]).duplicates()) == []


# --- priority classes ----------------------------------------------------------------------------------------------------


def test_a_priority_class_of_groups_that_is_not_in_the_input_is_told(write: Write) -> None:
    group = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: %s}\nspec: {priorityClassName: %s}\n"
    vip = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: vip}\nvalue: 7\n"
    groups = [group % pair for pair in (("a", "lost"), ("b", "lost"), ("c", "vip"), ("d", "system-node-critical"))]
    intake = take_in([write("a.yaml", "---\n".join((*groups, vip)))])
    who = "PodGroup default/a and 1 other, which have the default priority"
    text = f"PriorityClass 'lost' is not in the input; it is named by {who}"
    assert list(intake.notes()) == [text]
