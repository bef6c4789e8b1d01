"""The tokenizer of CUDA text: what is code and what is not, and where it stands."""

import time

import pytest

from concur.validators.cuda_text import tokens


def words(text: str) -> list[str]:
    return [token.text for token in tokens(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a // b \\\n c\nd", ["a", "d"]),
        ("a /* b // */ c", ["a", "c"]),
        ("a /* never closed", ["a"]),
        ("cub\\\nlasCreate()", ["cublasCreate", "(", ")"]),
        ("a /\\\n/ b\nc", ["a", "c"]),
        ('s = "a // b \\" c"; // d', ["s", "=", '"a // b \\" c"', ";"]),
        ("c = '\"'; d = '\\'';", ["c", "=", "'\"'", ";", "d", "=", "'\\''", ";"]),
        ("n = 1'000'000u + 0x1p-3f;", ["n", "=", "1'000'000u", "+", "0x1p-3f", ";"]),
        ('s = R"x(a )" \\\n // b)x"; t', ["s", "=", 'R"x(a )" \\\n // b)x"', ";", "t"]),
        ("k<<<1, 2>>>(x);", ["k", "<<<", "1", ",", "2", ">>>", "(", "x", ")", ";"]),
        ("f() <% x<:0:>; %>", ["f", "(", ")", "{", "x", "[", "0", "]", ";", "}"]),
        ("#if 0\nisn't code\n#else\na\n#endif\nb", words("#else\na\n#endif\nb")),
        ("#if 0 /* x */ // y\n#if 1\na\n#endif\nb\n#endif\nc", ["#", "endif", "c"]),
        ("#if 01\na\n#endif", ["#", "if", "01", "a", "#", "endif"]),
        ("'open\nb", ["'open", "b"]),
        ("", []),
    ],
)
def test_code_is_told_from_comments_and_literals(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_tokens_say_where_they_stand() -> None:
    text = "#include <a.h>\n#define T(x) \\\n  x + 1\nint y\\\nz; /* \n */ w"
    found = list(tokens(text))
    assert [(t.text, t.line) for t in found if not t.directive] == [
        ("int", 4),
        ("yz", 4),
        (";", 5),
        ("w", 6),
    ]
    header = next(t for t in found if t.kind == "header")
    assert (header.text, header.directive) == ("<a.h>", "include")
    assert [t.line for t in found if t.text == "+"] == [3]
    name = next(t for t in found if t.text == "yz")
    assert text[name.start : name.end] == "y\\\nz"


def test_the_text_can_be_put_together_again_from_offsets() -> None:
    text = 'a\\\r\nb = R"(x\\\ny)" + c; // d\n%: define E \\\n 1\n'
    end, rebuilt = 0, ""
    for token in tokens(text):
        rebuilt += text[end : token.start] + text[token.start : token.end]
        assert end <= token.start < token.end
        end = token.end
    assert text.startswith(rebuilt)
    assert 'R"(x\\\ny)"' in [t.text for t in tokens(text)]


@pytest.mark.parametrize(
    "piece", ["/*", "'", '"\\', 'R"(', "\\\n", "#if 0\n", "1'", "<:", "*", "#/*"]
)
def test_hostile_text_takes_little_time(piece: str) -> None:
    start = time.process_time()
    list(tokens(piece * 20_000))
    assert time.process_time() - start < 5
