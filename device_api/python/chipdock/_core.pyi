# SPDX-License-Identifier: Apache-2.0
# The extension module: the runtime for Python. The docstrings here are the only ones there are: the
# build compiles them into the module (bindings/make_docs.py), and help() shows them.

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import EllipsisType
from typing import Any, SupportsIndex, TypeAlias, final

import numpy as np
import numpy.typing as npt

_Options: TypeAlias = Sequence[tuple[str, str]]
_Index: TypeAlias = SupportsIndex | slice | EllipsisType

ABI_VERSION: tuple[int, int]
STATUS_NAMES: tuple[str, ...]

@final
class Plugin:
    """A loaded plugin: its identity, and which slots of the ABI it has. It is never unloaded."""

    @property
    def id(self) -> str:
        """Identity, "vendor.plugin"."""
    @property
    def name(self) -> str:
        """Device name without the number: "acme" of "acme:0"."""
    @property
    def version(self) -> str:
        """The plugin's own version, as PEP 440 says."""
    @property
    def path(self) -> str:
        """The library it was loaded from."""
    @property
    def uuid(self) -> str:
        """The plugin's identity as 8-4-4-4-12 hexadecimal digits [PLG-4]."""
    @property
    def abi_version(self) -> tuple[int, int]:
        """Major and minor of the ABI that it was built with."""
    @property
    def notes(self) -> list[str]:
        """What the loader saw and did not mind, such as an unstable table of another version."""
    @property
    def slots(self) -> dict[str, bool]:
        """Whether a slot is there, by name: "memory.fill"."""
    def device_count(self) -> int:
        """Ask how many devices there are.

        Returns:
            Number of devices; 0 if the driver or the hardware is absent.

        Raises:
            ChipdockError: The plugin's own error.
            InternalError: An exception came out of it [BASE-9].
            ShutdownError: It was shut down.
        """
    def device_info(self, index: int) -> dict[str, Any]:
        """Describe a device without opening it.

        Args:
            index: Which device, from 0.

        Returns:
            product, architecture, driver, uuid, pci_address, numa_node (-1: unknown), units,
            memory_bandwidth (bytes per second), l2_bytes, heaps (name, bytes, alignment in bytes,
            host_visible, coherent, addressable), peaks (dtype, operations_per_second). Numbers are
            0 when unknown.

        Raises:
            InvalidArgumentError: There is no such device.
            ChipdockError: The plugin's own error.
        """
    def shutdown(self) -> None:
        """End this instance; later calls raise ShutdownError, a second shutdown does nothing."""

@final
class LoadReport:
    """What came of loading one plugin."""

    @property
    def path(self) -> str:
        """The library."""
    @property
    def state(self) -> str:
        """One of "ready", "unavailable", "broken" and "timeout"."""
    @property
    def code(self) -> int:
        """Status of the first failure, an index into STATUS_NAMES; 0 if ready."""
    @property
    def cause(self) -> str:
        """The first failure, word for word; "" if ready."""
    @property
    def notes(self) -> list[str]:
        """What the loader saw and did not mind."""
    @property
    def products(self) -> list[str]:
        """Marketing name of each device."""
    @property
    def plugin(self) -> Plugin | None:
        """The plugin, None if loading failed."""

def load_plugin(path: str, layers: str = "", options: _Options = ...) -> Plugin:
    """Load a plugin as an instance of its own.

    Args:
        path: The shared library.
        layers: Layer spec as in CHIPDOCK_LAYERS; "" takes the environment's, "none" has no layers.
        options: Plugin-wide options, as pairs of key and value.

    Returns:
        The plugin.

    Raises:
        ChipdockError: It cannot be loaded; the text names the broken rule.
    """

def load_and_probe(path: str, layers: str = "") -> LoadReport:
    """Load a plugin and ask for its devices, within a limit in time. Never raises.

    Args:
        path: The shared library.
        layers: Layer spec as in CHIPDOCK_LAYERS; "" takes the environment's, "none" has no layers.

    Returns:
        The state with its cause; "timeout" after CHIPDOCK_PROBE_TIMEOUT seconds, 20 by default.
    """

def shutdown_all() -> None:
    """Shut down every loaded plugin, newest first."""

def set_log_level(level: int) -> None:
    """Set which messages of plugins reach standard error.

    Args:
        level: Least severity shown: 0 trace, 1 debug, 2 information, 3 warning, 4 error.
    """

def all_ops() -> list[tuple[str, str, int, int]]:
    """List the operators whose shapes the runtime knows.

    Returns:
        Domain, operator, oldest and newest since version; newest 0 means every later one too.
    """

def slot_names() -> tuple[str, ...]:
    """List the slots of the ABI, "memory.copy", in the order of the record layer's numbers.

    Returns:
        One name for each number from 0.
    """

@final
class Device:
    """An open device. Opened by `chipdock.device`, or by `Device.open` for a plugin at hand."""

    @staticmethod
    def open(plugin: Plugin, index: int, options: _Options = ...) -> Device:
        """Open a device of a plugin.

        Args:
            plugin: Where it is.
            index: Which device, from 0.
            options: Open options of the plugin, as pairs of key and value.

        Returns:
            The device; closed when nothing uses it any more.

        Raises:
            TimeoutError: Opening took longer than CHIPDOCK_PROBE_TIMEOUT seconds, 20 by default.
            ChipdockError: The plugin's own error.
        """
    @property
    def name(self) -> str:
        """Name such as "acme:0"."""
    @property
    def index(self) -> int:
        """Number within its plugin, from 0."""
    @property
    def plugin(self) -> Plugin:
        """The plugin that drives it."""
    @property
    def info(self) -> dict[str, Any]:
        """What the device is; see Plugin.device_info."""
    @property
    def host_visible(self) -> bool:
        """Whether numpy can look at its memory in place."""
    @property
    def prefers_inline(self) -> bool:
        """Whether work without a stream is its fastest way."""
    @property
    def reads_host(self) -> bool:
        """Whether its kernels read host memory, so that inputs need no copy."""
    def sync(self, timeout_ns: int = -1) -> None:
        """Wait until all work of all streams has ended.

        Args:
            timeout_ns: Nanoseconds to wait at most; -1 waits for ever.

        Raises:
            TimeoutError: Work was still running.
            ChipdockError: The first error of the work.
        """
    def memory_stats(self) -> dict[str, int]:
        """Count memory and work.

        Returns:
            used_bytes, pending_bytes (freed, in use by a stream), cached_bytes, reserved_bytes,
            peak_used_bytes, peak_reserved_bytes, allocation_count, plugin_allocation_count,
            retry_count, launch_count and copy_bytes.
        """
    def memory_info(self) -> tuple[int, int]:
        """Ask for free and total memory.

        Returns:
            Free bytes and total bytes of the first heap.

        Raises:
            ChipdockError: The plugin's own error.
        """
    def reset_peak(self) -> None:
        """Let the peaks of memory_stats start from what is used now."""
    def set_memory_limit(self, limit: int) -> None:
        """Bound what the allocator takes from the device.

        Args:
            limit: Most bytes; 0 takes the bound away.
        """
    def trim(self) -> int:
        """Give cached memory back to the device.

        Returns:
            Bytes given back.
        """
    def set_profiler(self, profiler: Profiler | None) -> None:
        """Send spans of all later operations somewhere.

        Args:
            profiler: Where to; None ends it.

        Raises:
            ChipdockError: The plugin's own error.
        """
    def link(self, peer: Device) -> dict[str, int | float]:
        """Describe the way to another device; measured by a copy if the plugin cannot tell.

        Args:
            peer: The other device.

        Returns:
            type (CHIPDOCK_LINK_*), bandwidth and reverse_bandwidth (bytes per second), latency_ns.

        Raises:
            ChipdockError: A copy between the two failed.
        """
    def kernels(self) -> list[tuple[str, str, int, int, str]]:
        """List the kernels that the device offers to this host.

        Returns:
            Domain, operator, oldest and newest since version (0: every later one), kernel name.

        Raises:
            ChipdockError: The plugin's own error.
        """
    def compile_caps(self) -> dict[str, Any]:
        """Tell what the device's compiler takes.

        Returns:
            dialects (name to newest version), warp_size, max_block_threads, max_block, max_grid,
            max_local_bytes and max_argument_bytes; 0 is unknown.

        Raises:
            UnsupportedError: The plugin compiles no source.
            UnavailableError: Its compiler is not on this machine.
        """
    def compile_source(
        self,
        dialect: str,
        prelude: str,
        text: str,
        version: tuple[int, int] | None = ...,
        options: _Options = ...,
    ) -> Module:
        """Compile source text for this device. What is compiled is prelude, line end, text [CMP-2].

        Args:
            dialect: A name from compile_caps, "opencl-c" and the like.
            prelude: Declarations that the text counts on; may be "".
            text: The functions.
            version: Of the dialect, (major, minor); None is the plugin's own.
            options: Pairs such as ("define:N", "4") and ("optimize", "3").

        Returns:
            The compiled module.

        Raises:
            UnsupportedError: The plugin compiles no source, or not this dialect.
            InvalidArgumentError: The text does not compile, with the compiler's output, or an
                option is unknown.
        """

@final
class LocalBytes:
    """An argument of a function: local memory of each block, a local pointer in the text."""

    def __init__(self, size: int) -> None:
        """Ask for memory.

        Args:
            size: Bytes of one block.
        """
    @property
    def size(self) -> int:
        """Bytes of one block."""

@final
class Module:
    """Compiled source. Made by Device.compile_source."""

    @property
    def device(self) -> Device:
        """The device that it was compiled for."""
    def function(self, name: str) -> Function:
        """Find a function.

        Args:
            name: As in the text, not mangled.

        Returns:
            The function; it keeps the module.

        Raises:
            InvalidArgumentError: There is none of that name.
        """

@final
class Function:
    """A function of a module, to be launched."""

    @property
    def name(self) -> str:
        """Name in the text."""
    def info(self) -> dict[str, int]:
        """Tell what became of it.

        Returns:
            registers, max_block_threads, block_multiple, local_bytes, spill_bytes, argument_count;
            0 is unknown.

        Raises:
            ChipdockError: The plugin's own error.
        """
    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        arguments: Sequence[object],
        stream: Stream | None = None,
        local_bytes: int = 0,
    ) -> None:
        """Run it on a grid of blocks.

        Args:
            grid: Blocks along 1 to 3 axes, each 1 or more.
            block: Threads of a block along 1 to 3 axes, each 1 or more.
            arguments: In the text's order. A contiguous Array of this device is a pointer to its
                first element, None a null pointer, LocalBytes a local pointer. An int is passed as
                int64 (as dims are [CMP-4]), a float as float32, a bool as one byte, a numpy scalar
                as the bytes it has.
            stream: Where to queue it; None runs it before returning.
            local_bytes: Local memory of a block that no argument names.

        Raises:
            InvalidArgumentError: Grid, block or arguments that the function cannot take.
            FailedPreconditionError: The stream has failed.
            ChipdockError: The plugin's own error.
        """

@final
class Event:
    """A point in a stream's work, to wait for or to measure between."""

    def __init__(self, device: Device, timing: bool = False) -> None:
        """Make an event that is not recorded yet.

        Args:
            device: Where.
            timing: Whether elapsed_since will be asked.

        Raises:
            ChipdockError: The plugin's own error.
        """
    @property
    def device(self) -> Device:
        """The device it belongs to."""
    def record(self, stream: Stream | None = None) -> None:
        """Put the event behind the stream's work so far; a new record replaces the last one.

        Args:
            stream: Which one; None: reached now.

        Raises:
            FailedPreconditionError: The stream has failed.
        """
    def query(self) -> bool:
        """Say whether the event was reached, without waiting.

        Returns:
            True if it was reached or never recorded.

        Raises:
            ChipdockError: The first error of its stream.
        """
    def sync(self, timeout_ns: int = -1) -> None:
        """Wait until the event is reached.

        Args:
            timeout_ns: Nanoseconds to wait at most; -1 waits for ever.

        Raises:
            TimeoutError: It was not reached in time.
            ChipdockError: The first error of its stream.
        """
    def elapsed_since(self, start: Event) -> int:
        """Measure the time between two events made with timing.

        Args:
            start: The earlier event.

        Returns:
            Nanoseconds from `start` to this event.

        Raises:
            NotReadyError: One of them is not reached.
            InvalidArgumentError: One of them was made without timing or never recorded.
        """

@final
class Graph:
    """Work that was captured from a stream, to be launched again. Made by Stream.end_capture."""

    def launch(self, stream: Stream | None = None) -> None:
        """Run the captured work.

        Args:
            stream: Where to queue it; None runs it and waits.

        Raises:
            ChipdockError: An error of the device.
        """
    @property
    def node_count(self) -> int:
        """How many pieces of work it holds."""

@final
class Stream:
    """A queue of work on a device. Work on one stream takes effect in order [STR-1]."""

    def __init__(self, device: Device, priority: int = 0) -> None:
        """Make a stream.

        Args:
            device: Where.
            priority: 0 is normal, negative more urgent, positive less; clamped to what there is.

        Raises:
            ChipdockError: The plugin's own error.
        """
    @staticmethod
    def from_native(device: Device, native: int) -> Stream:
        """Wrap a stream of the vendor's API, such as torch's.

        Args:
            device: The device it is on.
            native: Its handle as a number. The caller keeps it alive.

        Returns:
            A stream that queues there.

        Raises:
            UnsupportedError: The plugin has no such import.
        """
    @property
    def device(self) -> Device:
        """The device it is on."""
    @property
    def emulated(self) -> bool:
        """Whether the host keeps the queue, because the plugin has no streams."""
    def sync(self, timeout_ns: int = -1) -> None:
        """Wait until all queued work has ended.

        Args:
            timeout_ns: Nanoseconds to wait at most; -1 waits for ever.

        Raises:
            TimeoutError: Work was still running.
            ChipdockError: The first error of the work.
        """
    def query(self) -> bool:
        """Say whether all queued work has ended, without waiting.

        Returns:
            True if nothing is queued or running.

        Raises:
            ChipdockError: The first error of the work.
        """
    def wait(self, event: Event) -> None:
        """Let later work wait for an event; on the host if the two share no plugin.

        Args:
            event: What to wait for. One of a failed stream fails this stream too [STR-4].

        Raises:
            ChipdockError: An error of the device.
        """
    def host_function(self, function: Callable[[str], object]) -> None:
        """Queue a call of Python code.

        Args:
            function: Called once in stream order, from another thread, with the name of the
                stream's status: "OK" or its first cause. It must not wait for the stream [STR-7].

        Raises:
            FailedPreconditionError: The stream has failed.
        """
    def copy(self, source: Array, target: Array) -> None:
        """Queue a copy of bytes between two arrays.

        Args:
            source: Contiguous, of any shape.
            target: Contiguous, as many bytes as `source`.

        Raises:
            InvalidArgumentError: Sizes differ, or one is not contiguous.
            FailedPreconditionError: `target` is read-only, or the stream has failed.
        """
    def native(self) -> int:
        """Hand out the stream of the vendor's API.

        Returns:
            Its handle as a number.

        Raises:
            UnsupportedError: It is emulated, or the plugin does not tell.
        """
    def abort(self) -> None:
        """Drop what is queued; afterwards the stream has failed with ABORTED.

        Raises:
            UnsupportedError: The plugin cannot.
        """
    def begin_capture(self) -> None:
        """Record later work of this stream instead of running it.

        Raises:
            FailedPreconditionError: It is being captured already, or it has failed.
        """
    def end_capture(self) -> Graph:
        """End the capture.

        Returns:
            The recorded work. It keeps the memory alive that the work uses.

        Raises:
            ChipdockError: What spoilt the capture, which is over then too.
        """

@final
class Profiler:
    """Collects what ran when, from any thread."""

    def __init__(self) -> None:
        """Start with no records."""
    def write(self, path: str) -> None:
        """Write Chrome trace JSON.

        Args:
            path: The file.

        Raises:
            UnavailableError: It cannot be written.
        """
    def clear(self) -> None:
        """Forget all records."""
    def records(self) -> list[dict[str, Any]]:
        """List what ran.

        Returns:
            A dict per span: name, category, start_ns, duration_ns, thread, device and args.
        """

@final
class Array:
    """A tensor in a device's memory; slices are views. Made by `chipdock.array` and by models."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Steps per axis in elements, not bytes; negative ones are possible."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements; ml_dtypes' where numpy has none."""
    @property
    def ndim(self) -> int:
        """Number of axes."""
    @property
    def size(self) -> int:
        """Number of elements."""
    @property
    def nbytes(self) -> int:
        """Bytes of the elements; sub-byte types are packed."""
    @property
    def device(self) -> Device:
        """Where the memory is."""
    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
    @property
    def read_only(self) -> bool:
        """Whether the memory is shared by a producer that forbids writing."""
    def __len__(self) -> int:
        """Extent of the first axis.

        Raises:
            TypeError: The array has rank 0.
        """
    def __iter__(self) -> Iterator[Array]:
        """Go over the first axis; the items are views.

        Raises:
            TypeError: The array has rank 0.
        """
    def __getitem__(self, key: _Index | tuple[_Index, ...]) -> Array:
        """Take a view.

        Args:
            key: Integers, slices and at most one `...`, as in numpy's basic indexing.

        Returns:
            An Array that shares the memory.

        Raises:
            IndexError: An integer out of bounds, or a second `...`.
            TypeError: Any other kind of index, True and False among them.
            InvalidArgumentError: More items than axes.
            UnsupportedError: A view of a sub-byte dtype that starts inside of it.
        """
    def contiguous(self) -> Array:
        """Make it dense.

        Returns:
            An Array on the same device with the same elements: sharing the memory if it is dense
            already, else a row-major copy.

        Raises:
            OutOfMemoryError: The copy does not fit.
        """
    def numpy(self) -> npt.NDArray[Any]:
        """Give the elements to numpy.

        Returns:
            A numpy array of the same shape and dtype: a view, where the host can look at the
            memory, else a copy. Sub-byte types are unpacked to one element a byte.

        Raises:
            ChipdockError: An error of the device.
        """
    def copy_to_numpy(self) -> npt.NDArray[Any]:
        """Copy the elements.

        Returns:
            A numpy array of the same shape and dtype with memory of its own.

        Raises:
            ChipdockError: An error of the device.
        """
    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """Give the elements to numpy, on its request.

        Args:
            dtype: What to convert to; None: as it is.
            copy: True: always; False: never; None: only if needed.

        Returns:
            A numpy array of the same shape.

        Raises:
            ValueError: `copy` is False and the memory cannot be shared.

        Source:
            NumPy 2, the array interface protocol.
        """
    def __repr__(self) -> str:
        """Shape, dtype and device."""
    def to(self, device: Device) -> Array:
        """Copy it to a device.

        Args:
            device: Where to; its own device is possible too.

        Returns:
            A dense Array there, of the same shape and dtype.

        Raises:
            OutOfMemoryError: It does not fit.
        """
    def overlaps(self, other: Array) -> bool:
        """Say whether two arrays share memory.

        Args:
            other: The other array.

        Returns:
            True if any byte lies within both extents.
        """
    def copy_from(self, values: npt.ArrayLike) -> None:
        """Overwrite all elements.

        Args:
            values: Same shape and dtype; nothing is broadcast or cast.

        Raises:
            InvalidArgumentError: Another shape or dtype.
            FailedPreconditionError: The memory is read-only.
            UnsupportedError: The array is a strided view.
        """
    def _address(self) -> int: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Share the memory with another library.

        Args:
            stream: Not needed: work on host memory has ended by the time an Array is seen.
            max_version: Newest DLPack version that the consumer knows; from (1, 0) on the capsule
                is versioned and says whether the memory is read-only.
            dl_device: Device type and number wanted; None: where the memory is.
            copy: True shares a copy; otherwise nothing is copied.

        Returns:
            A capsule named "dltensor" or "dltensor_versioned".

        Raises:
            BufferError: The memory is not the host's, or an old capsule cannot express it.

        Source:
            DLPack 1.1, Python specification.
        """
    def __dlpack_device__(self) -> tuple[int, int]:
        """Say where the memory is.

        Returns:
            DLPack device type, 1 for memory that the host sees and 12 for all other, and number.

        Source:
            DLPack 1.1, Python specification.
        """

def array_from_numpy(source: npt.NDArray[Any], device: Device) -> Array:
    """Copy a numpy array to a device.

    Args:
        source: Any shape and strides, any dtype that a device can hold.
        device: Where to.

    Returns:
        A dense Array of the same shape and dtype.

    Raises:
        InvalidArgumentError: A dtype that no device can hold.
        OutOfMemoryError: It does not fit.
    """

def empty(shape: Sequence[int], dtype: np.dtype[Any], device: Device) -> Array:
    """Make an Array whose elements are undefined.

    Args:
        shape: Extents, each 0 or more.
        dtype: numpy or ml_dtypes type.
        device: Where.

    Returns:
        A dense Array.

    Raises:
        InvalidArgumentError: A negative extent, or a dtype that no device can hold.
        OutOfMemoryError: It does not fit.
    """

def from_dlpack(source: object, device: Device) -> Array:
    """Take a tensor of another library without a copy.

    Args:
        source: Anything with __dlpack__ in host memory.
        device: A device that reads host memory; the Array is said to be there.

    Returns:
        An Array of the same shape, strides and dtype that keeps `source` alive.

    Raises:
        BufferError: The memory is not the host's, or the dtype is not known.

    Source:
        DLPack 1.1, Python specification.
    """

@final
class GraphNode:
    """A node of a ModelGraph under construction."""

    def add_attribute(self, name: str, kind: str, value: object) -> None:
        """Add an attribute.

        Args:
            name: Its name in the operator's schema.
            kind: "int", "float", "string", "ints", "floats", "strings" or "tensor".
            value: A value of that kind; a numpy array for a tensor.

        Raises:
            InvalidArgumentError: Another kind.
        """
    def add_subgraph(
        self, attribute: str, graph: ModelGraph, captures: Sequence[tuple[int, int]]
    ) -> None:
        """Add the body of If, Loop or Scan.

        Args:
            attribute: Which body: "then_branch", "body", …
            graph: The body.
            captures: Pairs of a value's number outside and inside.
        """

@final
class ModelGraph:
    """A model as the executor wants it: values are numbers, and nodes are in order of execution."""

    def __init__(self) -> None:
        """Start with no values."""
    def add_value(self, name: str, dtype: npt.DTypeLike | None, dims: Sequence[int] | None) -> int:
        """Add a value.

        Args:
            name: For messages.
            dtype: Type of its elements, None if unknown; object for strings, sequences and
                optionals.
            dims: Extents, -1 for one that is unknown; None if the rank is unknown.

        Returns:
            Its number.
        """
    def set_value(self, value: int, dtype: npt.DTypeLike) -> None:
        """Settle a value's dtype.

        Args:
            value: Its number.
            dtype: Type of its elements.
        """
    def name_dims(self, value: int, names: Sequence[str]) -> None:
        """Name the dims of an input: one name has one extent in a run, whichever inputs have it.

        Args:
            value: Its number.
            names: One per dim, "" for one without a name.
        """
    def add_constant(self, value: int, array: npt.NDArray[Any]) -> None:
        """Give a value its elements; the array is kept, and copied only if it must be.

        Args:
            value: Its number.
            array: The elements.

        Raises:
            InvalidArgumentError: A dtype that no device can hold.
        """
    def add_node(
        self,
        name: str,
        domain: str,
        op: str,
        since_version: int,
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> GraphNode:
        """Add a node behind all others.

        Args:
            name: For messages.
            domain: Operator domain, "" for ONNX's own.
            op: Operator.
            since_version: Version of the operator's definition.
            inputs: Numbers of values, -1 for one that is not given.
            outputs: Numbers of values, -1 for one that is not wanted.

        Returns:
            The node, to give attributes to.
        """
    @property
    def node_count(self) -> int:
        """Nodes added so far, but for those that another stands for."""
    def stand_for(self, first: int) -> None:
        """Make the last node stand for those before it.

        They are taken again if no kernel of the device accepts it.

        Args:
            first: Index of the first of them.

        Raises:
            InvalidArgumentError: There is no such node.
        """
    def set_inputs(self, values: Sequence[int]) -> None:
        """Say which values a run is given.

        Args:
            values: Numbers in the order of Plan.run.
        """
    def set_outputs(self, values: Sequence[int]) -> None:
        """Say which values a run returns.

        Args:
            values: Numbers in the order of Plan.run.
        """

def known_operators(needs_kernel: bool) -> list[tuple[str, str, int, int]]:
    """List the operators that the executor knows.

    Args:
        needs_kernel: Those that some device must have a kernel for, else those that none must.

    Returns:
        Domain, operator, and the first and last version of its definition; 0: no last one.
    """

@final
class Plan:
    """A model compiled for a device: kernels chosen and weights packed. Runs from many threads."""

    @staticmethod
    def compile(
        graph: ModelGraph, device: Device, host: Device, options: Mapping[str, object]
    ) -> Plan:
        """Compile a graph.

        Args:
            graph: The model.
            device: Where to run it.
            host: Where shape work and fallbacks run; may be `device`.
            options: fallback ("error", "warn" or "allow"), threads (0: as opened), memory_limit
                (bytes, 0: none), deterministic, cached_signatures (shapes kept
                prepared), capture (auto, on or off), layouts (whether values may be in private
                layouts of the device).

        Returns:
            The plan.

        Raises:
            UnsupportedError: Nodes without a kernel, all named.
            OutOfMemoryError: The weights do not fit.
        """
    def run(
        self,
        inputs: Sequence[object],
        stream: Stream | None = None,
        profiler: Profiler | None = None,
        seed: int | None = None,
        bound: Sequence[Array | None] | None = None,
    ) -> list[Any]:
        """Run the model and wait for it.

        Args:
            inputs: An Array or numpy array for each input, of its dtype; an object array of str, a
                list, or None where the model has strings, a sequence or an optional.
            stream: Where to queue the work; None: inline.
            profiler: Where spans go.
            seed: For random operators; None: a fresh one.
            bound: For each output an Array to write to, or None.

        Returns:
            The outputs: Arrays, object arrays of str, lists or None.

        Raises:
            InvalidArgumentError: A dtype or shape does not fit.
            OutOfMemoryError: Memory ran out on the way; the plan can be run again.
            ChipdockError: An error of the device.
        """
    def report(self) -> list[dict[str, Any]]:
        """Say where each node runs.

        Returns:
            A dict per node: name, op, since_version, placement, device, kernel, reason and
            layout.
        """
    def segments(self) -> list[tuple[list[tuple[int, ...]], list[tuple[str, str]]]]:
        """Say what is captured.

        Returns:
            For each segment the shapes of all inputs that it serves, and its nodes as (operator,
            name); the most recently used shapes first.
        """
    def memory(self, input_shapes: Sequence[Sequence[int]]) -> dict[str, int]:
        """Say what a run takes.

        Args:
            input_shapes: Extents of each input.

        Returns:
            weight_bytes, activation_bytes, activation_lower_bound, layout_padding_bytes (of the
            last, what private layouts take beside the elements), workspace_bytes, arena_bytes,
            host_arena_bytes, steps and dynamic_steps.

        Raises:
            InvalidArgumentError: The shapes do not fit the model.
        """
    @property
    def device(self) -> Device:
        """Where the model runs."""
    @property
    def host(self) -> Device:
        """Where shape work and fallbacks run."""
    @property
    def weight_bytes(self) -> int:
        """Bytes of weights on the device, packed forms included."""

def run_op(
    op: str,
    *inputs: object,
    device: str | Device | None = None,
    domain: str = "",
    opset: int | None = None,
    outputs: int = 1,
    **attributes: object,
) -> Any:  # noqa: ANN401  callers know how many outputs they asked for
    """Compute one operator.

    Args:
        op: ONNX operator name, such as "Add".
        inputs: Arrays, numpy arrays or scalars, any shape and dtype that the operator takes; None
            for an optional input that is not given.
        device: Where to run; default: the device of the first Array, else cpu:0.
        domain: Operator domain; "" is ONNX's own.
        opset: Opset version whose definition is meant; default: the newest that the installed onnx
            knows.
        outputs: How many outputs are wanted.
        attributes: The operator's attributes; those not given have the schema's defaults.

    Returns:
        An Array on the device; a tuple of them if `outputs` is more than 1.

    Raises:
        InvalidArgumentError: Unknown operator, shapes or dtypes that do not fit.
        UnsupportedError: The device has no kernel for it.

    Source:
        ONNX operator specification.
    """

def remember_op(plan: Plan, call: list[object]) -> None:
    """Let the fast half of run_op use `plan` for calls like this: an operator name and Arrays."""

def clear_op_cache() -> None:
    """Forget the plans of the fast half of run_op."""
