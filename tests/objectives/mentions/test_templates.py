"""Placeholders and expressions in words of a command line."""

import pytest

from objectives.mentions.templates import fill_in, mentions_in, names_in, template_errors


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain", "plain"),
        ("-n={n}", "-n=4"),
        ("{n}{n}", "44"),
        ("{{n}}", "{n}"),
        ("{{{n}}}", "{4}"),
        ("x={= 2 * n }y", "x=8y"),
        ("{= n}", "4"),
        ("{=n != 2 and 'a:b' == 'a:b'}", "1"),
        ("{?n}keyword", "keyword"),
        ("{?missing}keyword", None),
        ("{missing}", None),
        ("{= missing + 1} {n}", None),
    ],
)
def test_values_in_their_places(template, text):
    assert fill_in(template, {"n": 4, "= 2 * n": 8, "= n != 2 and 'a:b' == 'a:b'": True}) == text
    assert template_errors([("here", template)]) == []


def test_names_of_expressions():
    assert [mention.text for mention in mentions_in("{a} {{b}} {= c * min(a, d)}")] == ["a", "c * min(a, d)"]
    assert names_in("{a} {= c * min(a, d)} {?e}") == {"a", "c", "d", "e"}


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("int main() {", "the '{' at character 12 stands alone; write {{ or }} for a brace"),
        ("a }", "the '}' at character 3 stands alone"),
        ("{}", "'' is not the name of a parameter"),
        ("{n * 2}", "'n * 2' is not the name of a parameter (an expression is written {= ...})"),
        ("{n:03d}", "'n:03d' is not the name"),
        ("{? n}", "'? n' is not the name"),
    ],
)
def test_what_is_no_template(template, message):
    (problem,) = template_errors([("options.argv.1", template)])
    assert message in problem.message
    assert problem.path == "options.argv.1"
