"""Rules of what a solution has to be and do, up to right results."""

from concur.schemas.verdict import Fault, Status
from concur.validators.rule import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        *("abi.task", "schema", Status.SCHEMA_INVALID, Fault.CANDIDATE),
        "The solution belongs to the task.",
        "A verdict about another task's solution would say nothing.",
        "Judge it with the task whose id it names.",
    ),
    Rule(
        *("abi.device", "schema", Status.UNSUPPORTED, Fault.INFRASTRUCTURE),
        "The machine has the device that the solution needs.",
        "A CUDA kernel is never judged on something else than a GPU of its architecture.",
        "Judge it on a machine that has this device.",
    ),
    Rule(
        *("screen.launcher", "screens", Status.SCREENED_OUT, Fault.CANDIDATE),
        "The entry file holds the launcher, or `ModelNew`, that the contract names.",
        "Without it there is nothing to call; saying so early saves a compilation.",
        "Define it in the entry file, with the signature of the task.",
    ),
    Rule(
        *("screen.flag", "screens", Status.SCREENED_OUT, Fault.CANDIDATE),
        "Compiler flags are on the allow-list.",
        "Flags can load plugins, read files, link libraries or trade accuracy for everything at"
        " once.",
        "Remove the flag; state what the kernel needs in its source.",
    ),
    Rule(
        *("screen.library-call", "screens", None, Fault.NONE),
        "The source calls no library for work that the task asks for.",
        "Training data should show kernels. What counts is the measured share of the device time;"
        " this says which line it probably comes from.",
        "Write a kernel for it, or ignore this if the call does no work on the task's path.",
    ),
    Rule(
        *("screen.fallback", "screens", None, Fault.NONE),
        "Errors of the kernel are not caught to go on in another way.",
        "A path that takes over when the kernel fails makes a broken kernel look right.",
        "Let errors end the call.",
    ),
    Rule(
        *("screen.reference", "screens", None, Fault.NONE),
        "The source does not reach for the reference, nor for objects of its caller.",
        "Answers that are found need not be computed. Neither reference nor expected values are in"
        " the process; code that looks for them is worth a look itself.",
        "Use nothing but the arguments.",
    ),
    Rule(
        *("screen.timing", "screens", None, Fault.NONE),
        "The source changes no clock, no comparison and no cache policy that outlives a call.",
        "Such changes make a call look faster or better than it is.",
        "Remove it; the judge has clocks and comparisons of its own.",
    ),
    Rule(
        *("screen.async", "screens", None, Fault.NONE),
        "The source starts no threads and no streams that a call does not wait for.",
        "Work that ends after the call is not in its time, and its results come too late.",
        "Use the stream that is passed, or make it wait for the others.",
    ),
    Rule(
        *("screen.host", "screens", None, Fault.NONE),
        "The source opens no files, loads no code and starts no processes.",
        "A kernel needs none of it, and the judge's isolation refuses most of it.",
        "Remove it.",
    ),
    Rule(
        *("screen.cache", "screens", None, Fault.NONE),
        "The source keeps nothing between calls that a later call could answer from.",
        "Kept results are wrong as soon as contents change; kept buffers are often harmless.",
        "Nothing, if what is kept does not depend on the contents of inputs.",
    ),
    Rule(
        *("screen.opaque", "screens", None, Fault.NONE),
        "The source can be read without running it.",
        "What is put together at run time cannot be screened, only measured.",
        "Write names and kernel sources as constants.",
    ),
    Rule(
        *("compile.failed", "compile", Status.COMPILE_ERROR, Fault.CANDIDATE),
        "The compiler accepts the source.",
        "Nothing can be said about code that does not compile.",
        "Read the compiler's first error under evidence.",
    ),
    Rule(
        *("compile.timeout", "compile", Status.COMPILE_ERROR, Fault.CANDIDATE),
        "Compiling ends within its time limit.",
        "Templates can keep a compiler busy for ever.",
        "Instantiate fewer templates, unroll less.",
    ),
    Rule(
        *("compile.tool", "compile", Status.UNDECIDED, Fault.INFRASTRUCTURE),
        "The compiler is there and works.",
        "A missing compiler is no fault of the solution.",
        "Install the CUDA toolkit and a host compiler; `concur doctor` says what is missing.",
    ),
    Rule(
        *("isolation.missing", "load", Status.UNDECIDED, Fault.INFRASTRUCTURE),
        "The layers of isolation that the run asks for are active.",
        "A verdict on hostile code that ran with less between it and the judge is worth less.",
        "Judge on a kernel that offers them, or ask for fewer and say so.",
    ),
    Rule(
        *("load.failed", "load", Status.LOAD_ERROR, Fault.CANDIDATE),
        "The compiled solution can be loaded.",
        "Missing symbols and errors at import show here.",
        "Define every symbol that is used; do no work at import.",
    ),
    Rule(
        *("run.failed", "calls", Status.RUNTIME_ERROR, Fault.CANDIDATE),
        "A call ends without an error.",
        "An error that is ignored leaves results unwritten.",
        "Check launches; return cudaGetLastError() from the launcher.",
    ),
    Rule(
        *("run.died", "calls", Status.RUNTIME_ERROR, Fault.CANDIDATE),
        "The process outlives a call.",
        "Results of a process that ended are not looked at, whatever it said before.",
        "Look for invalid host memory; do not end the process.",
    ),
    Rule(
        *("run.timeout", "calls", Status.TIMEOUT, Fault.CANDIDATE),
        "A call ends within its time limit.",
        "A kernel that waits for ever would hold the device.",
        "Look for barriers that not every thread reaches, and loops without an end.",
    ),
    Rule(
        *("run.memory", "calls", Status.OUT_OF_MEMORY, Fault.INFRASTRUCTURE),
        "Enough device memory was free.",
        "Whose memory it was cannot be told, so that nobody is blamed.",
        "Judge again on an idle device, or allocate less.",
    ),
    Rule(
        *("run.host-memory", "calls", Status.RUNTIME_ERROR, Fault.CANDIDATE),
        "The process stays within its share of the host's memory.",
        "Without a limit one candidate takes the machine down for all.",
        "Allocate less on the host; kernels work on device memory.",
    ),
    Rule(
        *("run.threads", "calls", Status.RUNTIME_ERROR, Fault.CANDIDATE),
        "The process starts only a few threads.",
        "Threads can work on after a call has been timed, and too many of them stop the machine.",
        "Do the work on the device, in the stream that is passed.",
    ),
    Rule(
        *("run.forged", "calls", Status.CHEATING, Fault.CANDIDATE),
        "Nothing but the judge's own program answers the judge.",
        "Only code that means to deceive writes to the channel between the two.",
        "Leave descriptors alone that the solution did not open.",
    ),
    Rule(
        *("memory.out-of-bounds", "calls", Status.RUNTIME_ERROR, Fault.CANDIDATE),
        "Nothing outside a result's memory is written to.",
        "Such a write corrupts whatever a caller keeps there.",
        "Guard the last block; compute offsets in 64 bits.",
    ),
    Rule(
        *("input.mutated", "calls", Status.INPUT_MUTATED, Fault.CANDIDATE),
        "Inputs are not written to.",
        "A caller goes on using them.",
        "Write into results or scratch memory.",
    ),
    Rule(
        *("structure.results", "workloads", Status.WRONG_STRUCTURE, Fault.CANDIDATE),
        "Results come in the declared number and kind.",
        "Anything but plain tensors could compute, or change, after the call.",
        "Return plain tensors, as many as the task declares.",
    ),
    Rule(
        *("structure.parameters", "load", Status.WRONG_STRUCTURE, Fault.CANDIDATE),
        "Parameters have the names and shapes that the task declares.",
        "The judge sets the weights of reference and solution alike, by name.",
        "Name them as the task does.",
    ),
    Rule(
        *("structure.alias", "workloads", None, Fault.NONE),
        "A result does not share memory with an input or another result.",
        "It would change with whatever happens to the other. A view can be right, so that this"
        " warns.",
        "Return memory of its own for each result.",
    ),
    Rule(
        *("structure.flag", "workloads", None, Fault.NONE),
        "The solution leaves PyTorch's global settings as they are.",
        "They would change whatever runs in the same process afterwards; the judge puts them back.",
        "State precision and mode where they are used.",
    ),
    Rule(
        *("shape.result", "workloads", Status.WRONG_SHAPE, Fault.CANDIDATE),
        "A result has the declared shape.",
        "Comparing first would let a broadcast hide it.",
        "Compute the shape from the axes.",
    ),
    Rule(
        *("dtype.result", "workloads", Status.WRONG_DTYPE, Fault.CANDIDATE),
        "A result has the declared element type.",
        "Another type has another accuracy and another size.",
        "Convert in the kernel.",
    ),
    Rule(
        *("values.finite", "workloads", Status.NON_FINITE, Fault.CANDIDATE),
        "Results are finite where the oracle is.",
        "Results are filled with NaN before a call: elements that nobody wrote show here too.",
        "Write every element; subtract the maximum before exp.",
    ),
    Rule(
        *("values.tolerance", "workloads", Status.WRONG_VALUES, Fault.CANDIDATE),
        "Floating results are within the tolerance of the oracle.",
        "The oracle computes in float64; the tolerance follows from the element type, the number"
        " of terms, and the reference's own error.",
        "Look at the first wrong elements; accumulate in float32.",
    ),
    Rule(
        *("values.exact", "workloads", Status.WRONG_VALUES, Fault.CANDIDATE),
        "Integer and boolean results equal the oracle.",
        "There is no rounding that could excuse a difference.",
        "Look at the first wrong elements; check ties and the order of equal elements.",
    ),
    Rule(
        *("values.repeat", "repeat-call", Status.WRONG_VALUES, Fault.CANDIDATE),
        "The same call gives right results again after other calls.",
        "State that is kept between calls, or a result remembered by address, shows here.",
        "Initialise accumulators in every call; remember nothing.",
    ),
    Rule(
        *("values.scaled", "probes", Status.WRONG_VALUES, Fault.CANDIDATE),
        "Results are right for inputs of another magnitude.",
        "A method that only suits the usual spread of values is not the declared operation.",
        "Do not rely on the range of values.",
    ),
    Rule(
        *("values.exact-probe", "probes", Status.WRONG_VALUES, Fault.CANDIDATE),
        "Results are exact for inputs whose results every order of summation represents.",
        "No rounding hides a term left out or a type that is too narrow.",
        "Compute in the declared type; use every element.",
    ),
    Rule(
        *("values.influence", "probes", Status.WRONG_VALUES, Fault.CANDIDATE),
        "Every input and parameter changes the results where it changes the oracle's.",
        "A solution that ignores an argument can be near enough on average.",
        "Use every argument.",
    ),
    Rule(
        *("values.parameters", "probes", Status.WRONG_VALUES, Fault.CANDIDATE),
        "Weights that change in place change the results.",
        "Weights prepared once and kept would answer for weights that are gone.",
        "Prepare weights within the call.",
    ),
    Rule(
        *("probe.unfit", "probes", None, Fault.NONE),
        "A probe suits the task.",
        "Inputs on which the oracle itself is not finite, or not exact, tell nothing; they are left"
        " out.",
        "Nothing; a task can also declare which probes fit.",
    ),
    Rule(
        *("structure.held", "probes", None, Fault.NONE),
        "A result keeps its values while later calls run.",
        "One buffer that is returned again and again is overwritten under its owner. The values of"
        " each call were right, so that this warns.",
        "Return fresh memory in every call.",
    ),
)
"""In the order of the gates."""
