"""Hints from CUDA and C++ sources: tokens that call libraries, the host, clocks or threads.

Macros are not expanded; what a solution really runs is measured later.
"""

import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from concur.validators.cuda_text import Token, pasted, tokens
from concur.validators.library_names import (
    OPERATIONS,
    UNMISTAKABLE,
    VENDOR_CALL,
    VENDOR_HEADER,
    words,
)


class Hint(NamedTuple):
    """What a source's text suggests; it never decides by itself."""

    rule: str
    """Id of the rule."""
    message: str
    """A plain sentence."""
    line: int
    """Line in the text, from 1."""
    severity: Literal["warning", "info"] = "warning"
    """info where honest work often looks the same."""


_HOST_CALLS = words("""
    dlopen dlmopen dlsym dlvsym dladdr dl_iterate_phdr system popen fork vfork clone clone3
    posix_spawn posix_spawnp execl execle execlp execv execve execvp execvpe ptrace mmap mmap64
    mprotect mremap process_vm_readv process_vm_writev syscall fopen fopen64 freopen open open64
    openat creat socket connect bind getenv secure_getenv setenv putenv setjmp longjmp sigaction
    signal memfd_create send sendto sendmsg recvmsg write writev shutdown prctl dup2
    dup3 kill raise alarm setitimer timer_create atexit on_exit exit _exit quick_exit
    cuModuleLoad cuModuleLoadData cuModuleLoadDataEx cuLibraryLoadData cuLibraryLoadFromFile
    cudaIpcOpenMemHandle cudaIpcGetMemHandle cuMemImportFromShareableHandle
    """)
_STREAMS = frozenset(["ifstream", "ofstream", "fstream", "filebuf"])
_THREADS = frozenset(["thread", "jthread", "async"])
_THREAD_CALLS = words("""
    pthread_create thrd_create cudaLaunchHostFunc cudaStreamAddCallback cuLaunchHostFunc
    cuStreamAddCallback
    """)
_NEW_STREAMS = words("""
    cudaStreamCreate cudaStreamCreateWithFlags cudaStreamCreateWithPriority cuStreamCreate
    cuStreamCreateWithPriority getStreamFromPool cudaStreamPerThread
    """)
_JOINS = words("""
    cudaStreamSynchronize cudaStreamWaitEvent cudaDeviceSynchronize cuStreamSynchronize
    cuStreamWaitEvent cuCtxSynchronize cudaEventSynchronize
    """)
_LASTING = words("""
    cudaLimitPersistingL2CacheSize CU_LIMIT_PERSISTING_L2_CACHE_SIZE cudaAccessPolicyWindow
    cudaStreamAttributeAccessPolicyWindow cudaLaunchAttributeAccessPolicyWindow
    CUaccessPolicyWindow accessPolicyWindow cudaAccessPropertyPersisting access_property
    """)
_CLOCKS = re.compile(
    r"cu(?:da)?Event(?:Record|ElapsedTime|Synchronize|Query|Create)\w*|clock_gettime|gettimeofday"
    r"|cu(?:da)?LaunchKernel\w*|cu(?:da)?(?:Device|Ctx|Stream)Synchronize|time|clock"
)
_GRAPHS = frozenset(["cudaGraphInstantiate", "cudaStreamBeginCapture", "cudaGraphLaunch"])
_KEEPERS = frozenset(["map", "unordered_map", "set", "unordered_set", "vector", "deque", "Tensor"])
_TORCH = frozenset(["at", "torch", "aten"])
_ASSEMBLY = frozenset(["asm", "__asm__", "__asm"])
# Before a name they leave it a use; another name there makes it a declaration.
_STATEMENTS = frozenset(["return", "else", "do", "throw", "case", "co_return", "co_await"])


def look_at_cuda(text: str) -> Iterator[Hint]:
    """Yield hints from a text in the language of nvcc, in order of kind, then of lines.

    The sources are untrusted: the time taken grows with their length, whatever they hold.
    """
    code = _Code(pasted(list(tokens(text))))
    for look in _LOOKS:
        yield from look(code)


class _Code:
    """Tokens with what several looks need to know about them."""

    def __init__(self, found: list[Token]) -> None:
        self.tokens = found
        self.texts = [token.text for token in found]
        self.names = {token.text for token in found if token.kind == "name"}
        self.closing = _brackets(found)
        self.defined = {self.texts[i] for i in range(len(found)) if self.is_defined(i)}
        self.torch = set(_TORCH)
        self.opened = False
        for i, word in enumerate(self.texts):
            if word == "namespace" and self.after(i, 2) == "=":
                target = self.texts[i + 3 : i + 6]
                if any(part in _TORCH for part in target):
                    self.torch.add(self.after(i))
            if word == "using" and self.after(i) == "namespace" and self.after(i, 2) in self.torch:
                self.opened = True

    def after(self, i: int, steps: int = 1) -> str:
        return self.texts[i + steps] if i + steps < len(self.texts) else ""

    def before(self, i: int) -> str:
        return self.texts[i - 1] if i else ""

    def is_member(self, i: int) -> bool:
        return self.before(i) in (".", "->")

    def is_called(self, i: int) -> bool:
        """Whether a free function is called at a name, or taken the address of."""
        if self.is_member(i) or self.tokens[i].kind != "name":
            return False
        if self.after(i) != "(" or self._is_declared(i):
            return self.before(i) == "&"
        return True

    def is_defined(self, i: int) -> bool:
        """Whether a function of this name gets a body here."""
        if self.tokens[i].kind != "name" or self.after(i) != "(" or not self._is_declared(i):
            return False
        end = self.closing.get(i + 1)
        return end is not None and self.after(end) in ("{", "noexcept", "try", "->", "const")

    def _is_declared(self, i: int) -> bool:
        """Whether a type stands before a name."""
        last = self.tokens[i - 1] if i else None
        if last is None or last.directive or last.text in _STATEMENTS:
            return False
        if last.kind == "name":
            return True
        if last.text not in ("*", ">"):
            return False
        start = i - 1
        while start > max(0, i - 30) and self._is_of_type(start):
            start -= 1
        return self.texts[start] in (";", "{", "}") or self.tokens[start].kind == "string"

    def _is_of_type(self, i: int) -> bool:
        return self.tokens[i].kind == "name" or self.texts[i] in ("*", ">", "<", "::")


def _brackets(found: list[Token]) -> dict[int, int]:
    """Return where each round bracket and brace is closed."""
    closing: dict[int, int] = {}
    opened: dict[str, list[int]] = {"(": [], "{": []}
    for i, token in enumerate(found):
        if token.text in opened:
            opened[token.text].append(i)
        elif token.text in (")", "}"):
            waiting = opened["(" if token.text == ")" else "{"]
            if waiting:
                closing[waiting.pop()] = i
    return closing


def _libraries(code: _Code) -> Iterator[Hint]:
    for i, token in enumerate(code.tokens):
        word = token.text
        if token.directive == "include" and VENDOR_HEADER.fullmatch(word):
            yield Hint("screen.library-call", f"includes {word}", token.line, "info")
        elif token.kind != "name":
            continue
        elif VENDOR_CALL.fullmatch(word) and word not in code.defined:
            if code.after(i) == "(" or code.before(i) == "&":
                yield Hint("screen.library-call", f"calls {word}", token.line)
        elif word in code.torch and code.after(i) == "::":
            end = i + 2
            while code.after(end) == "::" and end < i + 20:
                end += 2
            last = code.after(end, 0)
            path = "".join(code.texts[i : end + 1])
            if last in OPERATIONS or re.search(r"::(native|_ops|functional|nn|linalg)::", path):
                yield Hint("screen.library-call", f"uses {path}", token.line)
        elif (word in UNMISTAKABLE and code.is_member(i) and code.after(i) == "(") or (
            code.opened and word in OPERATIONS and code.is_called(i) and word not in code.defined
        ):
            yield Hint("screen.library-call", f"calls {word} of PyTorch", token.line)
        elif word in ("findSchemaOrThrow", "callBoxed", "redispatch"):
            yield Hint("screen.library-call", f"reaches PyTorch's dispatcher by {word}", token.line)


def _fallback(code: _Code) -> Iterator[Hint]:
    for i, token in enumerate(code.tokens):
        if token.text != "catch":
            continue
        body = code.closing.get(i + 1, i) + 1
        for j in range(body, min(body + 500, code.closing.get(body, body))):
            if code.texts[j] in OPERATIONS and code.before(j) in ("::", ".", "->"):
                message = f"an error is caught and answered with {code.texts[j]} of PyTorch"
                yield Hint("screen.fallback", message, token.line)
                break


def _host(code: _Code) -> Iterator[Hint]:
    for i, token in enumerate(code.tokens):
        word = token.text
        if token.directive in ("include", "embed") and re.match(r"[<\"](?:/|\.\./|proc/)", word):
            yield Hint("screen.host", f"reads {word[:60]} while compiling", token.line)
        if token.kind != "name" or word in code.defined:
            continue
        if (word in _HOST_CALLS and code.is_called(i)) or (
            word in _STREAMS and code.before(i) == "::"
        ):
            yield Hint("screen.host", f"uses {word}, which reaches outside the kernel", token.line)
        elif (
            word in ("constructor", "__constructor__")
            and "__attribute__" in code.texts[max(0, i - 4) : i]
        ):
            yield Hint("screen.host", "runs code when the library is loaded", token.line)


def _asynchronous(code: _Code) -> Iterator[Hint]:
    joined = bool(code.names & (_JOINS | _GRAPHS))
    for i, token in enumerate(code.tokens):
        word = token.text
        if token.kind != "name":
            continue
        if word in _THREADS and code.texts[max(0, i - 2) : i] == ["std", "::"]:
            yield Hint("screen.async", f"starts a thread by std::{word}", token.line)
        elif word in _THREAD_CALLS and code.is_called(i):
            yield Hint("screen.async", f"starts a thread by {word}", token.line)
        elif word in _NEW_STREAMS:
            ends = "and waits for something" if joined else "and waits for none"
            message = f"makes or takes another stream by {word}, {ends}"
            yield Hint("screen.async", message, token.line, "info" if joined else "warning")


def _timing(code: _Code) -> Iterator[Hint]:
    for i, token in enumerate(code.tokens):
        word = token.text
        if token.kind != "name":
            continue
        if word in _LASTING:
            yield Hint("screen.timing", f"{word} keeps lines in the L2 cache", token.line)
        elif word in code.defined and _CLOCKS.fullmatch(word) and code.is_defined(i):
            message = f"defines {word}, which takes the place of the library's own"
            yield Hint("screen.timing", message, token.line)
        elif word in _ASSEMBLY:
            yield from _assembly(code, i)


def _assembly(code: _Code, i: int) -> Iterator[Hint]:
    """Yield what the text of one inline assembly shows."""
    words = ""
    for token in code.tokens[i + 1 : i + 200]:
        if token.kind == "string":
            words += token.text.strip('"') + " "
        elif token.text in (":", ";", "::"):
            break
    line = code.tokens[i].line
    if re.search(r"evict_last|persist", words):
        yield Hint("screen.timing", "asks the L2 cache to keep lines (evict_last)", line)
    elif "createpolicy" in words:
        yield Hint("screen.timing", "makes a cache policy", line, "info")
    if re.search(r"%globaltimer|%clock", words):
        yield Hint("screen.timing", "reads a clock of the device", line, "info")
    if re.search(r"\b(?:syscall|sysenter|int\s+\$?0x80)\b", words):
        yield Hint("screen.host", "makes a system call in assembly", line)
    if ".incbin" in words:
        yield Hint("screen.host", "reads a file while assembling", line)


def _cache(code: _Code) -> Iterator[Hint]:
    for i, token in enumerate(code.tokens):
        if token.kind != "name":
            continue
        if token.text in _GRAPHS and code.is_called(i):
            yield Hint("screen.cache", f"{token.text} replays recorded work", token.line, "info")
        if token.text not in ("static", "thread_local") or code.before(i) == "thread_local":
            continue
        declared: list[str] = []
        for word in code.texts[i + 1 : i + 40]:
            if word in (";", "=", "{", "("):
                break
            declared.append(word)
        text = " ".join(declared)
        ended = code.after(i, len(declared) + 1)
        if ended != "(" and ("*" in declared or _KEEPERS & set(declared)):
            message = f"keeps `{text[:80]}` between calls"
            yield Hint("screen.cache", message, token.line, "info")


_LOOKS: tuple[Callable[[_Code], Iterator[Hint]], ...] = (
    _libraries,
    _fallback,
    _host,
    _asynchronous,
    _timing,
    _cache,
)
