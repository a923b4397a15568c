"""The evaluator of device selectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.kubernetes.cel import compile_selector
from phalanx.kubernetes.cel_values import CelError, CelSyntaxError
from phalanx.model.storage import Device

GIBI = 1 << 30
GPU = Device(
    "gpu-0",
    attributes=(
        ("model", "A100-SXM4"),
        ("gpu.example.com/cores", 108),
        ("healthy", True),
        ("driverVersion", "550.54.15"),
        ("topology.example.com/numa", 1),
    ),
    capacity=(("memory", 40 * GIBI),),
)


def evaluate(text: str) -> bool:
    return compile_selector(text).matches("gpu.example.com", GPU)


@pytest.mark.parametrize(
    "text",
    [
        "true",
        'device.driver == "gpu.example.com"',
        "device.driver == 'gpu.example.com'",
        'device.attributes["gpu.example.com"].healthy',
        'device.attributes["gpu.example.com"]["healthy"] == true',
        'device.attributes["gpu.example.com"].model != "H100"',
        'device.attributes["gpu.example.com"].model in ["H100", "A100-SXM4"]',
        'device.attributes["gpu.example.com"].cores >= 108',
        'device.attributes["gpu.example.com"].cores > -1',
        '10.5 < device.attributes["gpu.example.com"].cores',
        'device.attributes["topology.example.com"].numa == 1',
        'device.attributes["topology.example.com"].numa == 1.0',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0',
        'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("39999Mi"))',
        'device.capacity["gpu.example.com"].memory == quantity("40960Mi")',
        'device.attributes["gpu.example.com"].driverVersion.compareTo(semver("550.6.0")) > 0',
        'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("550.54.15-rc.1"))',
        'semver("1.0.0-rc.2").isLessThan(semver("1.0.0-rc.10"))',
        'device.attributes["gpu.example.com"].model.startsWith("A100")',
        'device.attributes["gpu.example.com"].model.lowerAscii().matches("^.*a100.*$")',
        'device.attributes["gpu.example.com"].driverVersion == semver("550.54.15+build")',
        'has(device.attributes["gpu.example.com"].model)',
        '!has(device.attributes["other.example.com"].model)',
        '"numa" in device.attributes["topology.example.com"]',
        '!("other.example.com" in device.attributes)',
        "!device.allowMultipleAllocations",
        "!!true && (false || true)",
        "false ? false : true",
        'cel.bind(gpu, device.attributes["gpu.example.com"], gpu.healthy && gpu.cores == 108)',
        '[1, 2] == [1, 2.0] && "a\\"b" == \'a"b\'',
    ],
)
def test_the_device_is_selected_by(text: str) -> None:
    assert evaluate(text) is True


@pytest.mark.parametrize(
    "text",
    [
        "false",
        'device.driver == "nic.example.com"',
        'device.attributes["gpu.example.com"].cores == "108"',
        'device.attributes["gpu.example.com"].healthy == 1',
        'device.attributes["gpu.example.com"].cores in []',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("41Gi")) >= 0',
        'device.attributes["gpu.example.com"].model.matches("^H")',
    ],
)
def test_the_device_is_not_selected_by(text: str) -> None:
    assert evaluate(text) is False


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('device.attributes["some-driver"].healthy', "no such key: healthy"),
        ('device.attributes["gpu.example.com"].absent == 1', "no such key: absent"),
        ('device.attributes["gpu.example.com"].model', "expected true or false, got 'A100-SXM4'"),
        ('device.attributes["gpu.example.com"].model > 3', "no such overload"),
        ('device.attributes["gpu.example.com"].healthy.startsWith("x")', "no such overload"),
        ('device.capacity["gpu.example.com"].memory.compareTo(40) >= 0', "no such overload"),
        ("device.colour", "undefined field 'colour'"),
        ('quantity("much") == quantity("1")', "quantity('much'): not a quantity"),
        ('"1.2".isLessThan(semver("1.2.3"))', "semver('1.2'): not a semantic version"),
        ("!-1", "expected true or false, got -1"),
        ('device.attributes["x"] in device.attributes["x"]', "no such overload"),
        ('device.attributes["x"][device.attributes["x"]]', "no such overload"),
        ("[true][1]", "index out of bounds: 1"),
    ],
)
def test_an_expression_without_an_answer_is_an_error(text: str, message: str) -> None:
    with pytest.raises(CelError) as caught:
        evaluate(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "device.driver ==",
        "(true",
        "true)",
        "true true",
        '"open',
        "1 < 2 < 3",
        "node.name",
        "eval('1')",
        "__import__('os')",
        "device.driver.format()",
        "device.driver + 'x'",
        "[1,2].exists(x, x > 1)",
        "device.attributes['d'].?name",
        "-true",
        "'\\x'",
        "cel.bind(1, true, true)",
        "1abc",
        "!-",
    ],
)
def test_what_is_not_supported_does_not_compile(text: str) -> None:
    with pytest.raises(CelSyntaxError):
        compile_selector(text)


MISSING = 'device.attributes["d"].x'


@pytest.mark.parametrize("text", [f"!(false && {MISSING})", f"!({MISSING} && false)", f"{MISSING} || true", f"true || {MISSING}"])
def test_an_error_vanishes_when_the_other_side_decides(text: str) -> None:
    assert evaluate(text) is True


@pytest.mark.parametrize("text", [f"true && {MISSING}", f"{MISSING} && true", f"{MISSING} || false", f"!{MISSING}"])
def test_an_error_stays_when_the_other_side_does_not_decide(text: str) -> None:
    with pytest.raises(CelError, match="no such key: x"):
        evaluate(text)


def test_a_long_chain_is_fine_and_deep_nesting_is_refused() -> None:
    assert evaluate(" && ".join(["true"] * 1000))
    assert evaluate("!" * 1000 + "true")
    with pytest.raises(CelSyntaxError, match="nested deeper"):
        compile_selector("(" * 100 + "true" + ")" * 100)
    with pytest.raises(CelSyntaxError, match="the limit is"):
        compile_selector("true" + " " * 20000)


@pytest.mark.parametrize("pattern", ["(A+)+", "H|A", "A.{3}", ".*.*.*.*0", "a?a?a?a?A", "(?i)^a100-"])
def test_a_pattern_may_have_groups_alternatives_and_as_many_repeats_as_it_likes(pattern: str) -> None:
    assert evaluate(f'device.attributes["gpu.example.com"].model.matches("{pattern}")')


@pytest.mark.parametrize("pattern", ["[", "[z-a]", "A(?=1)", "A{2000}", "(A)(?P=1)", "(A{1000}){1000}"])
def test_a_pattern_that_is_not_one_of_re2_is_refused(pattern: str) -> None:
    with pytest.raises(CelError, match=r"matches.*write it in RE2's syntax"):
        evaluate(f'device.attributes["gpu.example.com"].model.matches("{pattern}")')


WORDS = [
    "device",
    ".",
    "attributes",
    "[",
    "]",
    "(",
    ")",
    '"d"',
    "'",
    "1",
    "true",
    "&&",
    "||",
    "!",
    "==",
    "<",
    "in",
    ",",
    "?",
    ":",
    "-",
    "cel",
    "bind",
]


@given(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join) | st.text(max_size=30))
def test_any_text_gives_an_answer_or_a_named_error(text: str) -> None:
    try:
        answer = evaluate(text)
    except CelError as error:
        answer = bool(str(error))
    assert answer in (True, False)


def test_nested_lists_that_would_be_compared_for_ever_have_no_answer() -> None:
    chain, end = "", ""
    for name in "ab":
        chain += f"cel.bind({name}0, [1], "
        for level in range(1, 10):
            chain += f"cel.bind({name}{level}, [{', '.join([f'{name}{level - 1}'] * 20)}], "
        end += ")" * 10
    with pytest.raises(CelError, match="a list of 160000 values; the limit is 10000"):
        compile_selector(f"{chain}a9 == b9{end}").matches("gpu.example.com", Device("gpu-0"))
