"""Random small spaces: parameters of every kind, conditions and rules over them."""

from hypothesis import strategies as st

from spaces import Choice, Constraint, Flag, Float, Integer

FACTS = {"cores": 6, "scale": 0.5, "machine": "gadi", "big": 2**61}
WORDS = ("plain", "tf", "local")


@st.composite
def spaces_parts(draw):
    """Parameters, constraints and facts of a small space."""
    parameters = []
    for number in range(draw(st.integers(1, 4))):
        parameters.append(draw(_parameter(f"p{number}", parameters)))
    rules = draw(st.lists(conditions(parameters), max_size=3))
    constraints = [Constraint(f"c{k}", rule, f"reason {k}") for k, rule in enumerate(rules)]
    return tuple(parameters), tuple(constraints), FACTS


@st.composite
def _parameter(draw, name, earlier):
    common = {"optional": draw(st.integers(0, 2)) == 0}
    if earlier and draw(st.integers(0, 3)) == 0:
        common["when"] = draw(conditions(earlier))
    kind = draw(st.sampled_from(["integer", "integer", "integer", "float", "choice", "flag"]))
    if kind == "integer":
        values = draw(st.lists(st.integers(-3, 12), min_size=1, max_size=5, unique=True))
        return Integer(name, tuple(sorted(values)), **common)
    if kind == "float":
        if draw(st.booleans()):
            values = draw(st.lists(st.sampled_from((-1.5, 0.0, 0.25, 2.0, 8.0)), min_size=1, unique=True))
            return Float.of_values(name, sorted(values), **common)
        return Float(name, 0.5, 4.0, draw(st.booleans()), draw(st.integers(2, 4)), **common)
    if kind == "choice":
        return Choice(name, WORDS[: draw(st.integers(1, 3))], **common)
    return Flag(name, **common)


def conditions(parameters):
    return _condition(tuple(parameters), 2)


@st.composite
def _condition(draw, parameters, depth):
    options = ["compare", "compare", "chain", "in", "range", "between", "divides", "whole", "is_set", "fact"]
    choices = [p for p in parameters if isinstance(p, Choice)]
    flags = [p for p in parameters if isinstance(p, Flag)]
    options += ["word"] * (2 * bool(choices)) + ["flag"] * bool(flags)
    options += ["and", "or", "not", "if"] * (depth > 0)
    option = draw(st.sampled_from(options))
    number, whole = _number(parameters, depth), _whole(parameters, depth)
    compare = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    if option in {"and", "or"}:
        sides = [draw(_condition(parameters, depth - 1)) for _ in range(draw(st.integers(2, 3)))]
        return "(" + f" {option} ".join(sides) + ")"
    if option == "if":
        yes, test, no = (draw(_condition(parameters, depth - 1)) for _ in range(3))
        return f"({yes} if {test} else {no})"
    if option == "not":
        return f"(not {draw(_condition(parameters, depth - 1))})"
    if option == "word":
        return draw(_word_condition(draw(st.sampled_from(choices))))
    if option == "flag":
        return draw(st.sampled_from(flags)).name
    return {
        "compare": lambda: f"{draw(number)} {draw(compare)} {draw(number)}",
        "chain": lambda: f"{draw(number)} {draw(compare)} {draw(number)} {draw(compare)} {draw(number)}",
        "in": lambda: f"{draw(number)} in ({draw(whole)}, {draw(st.integers(-2, 9))}, 4)",
        "range": lambda: (
            f"{draw(whole)} in range({draw(st.integers(-3, 3))}, {draw(whole)}, {draw(st.integers(1, 3))})"
        ),
        "between": lambda: f"between({draw(number)}, {draw(number)}, {draw(number)})",
        "divides": lambda: f"divides({draw(whole)}, {draw(whole)})",
        "whole": lambda: f"{draw(st.sampled_from(['is_square', 'is_power_of_two']))}({draw(whole)})",
        "is_set": lambda: f"is_set({draw(st.sampled_from(parameters)).name})",
        "fact": lambda: draw(st.sampled_from(["machine == 'gadi'", "machine in ('x', 'y')", "cores > 5"])),
    }[option]()


@st.composite
def _word_condition(draw, choice):
    word = st.sampled_from(choice.values)
    if draw(st.booleans()):
        return f"{choice.name} {draw(st.sampled_from(['==', '!=']))} {draw(word)!r}"
    return f"{choice.name} {draw(st.sampled_from(['in', 'not in']))} ({draw(word)!r}, {draw(word)!r})"


@st.composite
def _whole(draw, parameters, depth):
    names = [p.name for p in parameters if isinstance(p, Integer | Flag)] + ["cores"]
    option = draw(st.sampled_from(["name", "name", "name", "number", *(["operation"] * (2 * (depth > 0)))]))
    if option == "name":
        return draw(st.sampled_from(names))
    if option == "number":
        return str(draw(st.integers(0, 9)))
    left, right = draw(_whole(parameters, depth - 1)), draw(_whole(parameters, depth - 1))
    test = draw(_condition(parameters, 0))
    return draw(
        st.sampled_from(
            [
                f"({left} + {right})",
                f"({left} - {right})",
                f"({left} * {right})",
                f"({left} * {right} * big)",
                f"({left} // {right})",
                f"({left} % {right})",
                f"({left} ** {draw(st.integers(0, 3))})",
                f"min({left}, {right})",
                f"max({left}, {right}, 2)",
                f"abs({left})",
                f"(-{left})",
                f"ceil({left} / {right})",
                f"floor({left} / {right})",
                f"({left} if {test} else {right})",
            ]
        )
    )


@st.composite
def _number(draw, parameters, depth):
    if depth == 0 or draw(st.integers(0, 2)):
        names = [p.name for p in parameters if not isinstance(p, Choice)]
        return (
            draw(st.sampled_from([*names, "scale", "1.5"])) if draw(st.booleans()) else draw(_whole(parameters, depth))
        )
    left, right = draw(_number(parameters, depth - 1)), draw(_number(parameters, depth - 1))
    forms = [
        "({} + {})",
        "({} - {})",
        "({} * {})",
        "({} / {})",
        "({} // {})",
        "({} % {})",
        "min({}, {})",
        "max({}, {})",
    ]
    forms += ["sqrt({})", "log2({})", "({} ** 2)", "({} ** -1)"]
    return draw(st.sampled_from(forms)).format(left, right)
