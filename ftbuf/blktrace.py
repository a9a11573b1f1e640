"""The records of the blk tracer (blktrace), which have no format file: the format that describes them.

A record is a ``struct blk_io_trace`` (include/uapi/linux/blktrace_api.h) whose first members the common fields of an
ftrace record take the place of; ``time`` is not written (K:blktrace.c __blk_add_trace).
"""

from __future__ import annotations

from collections.abc import Mapping

USER_STACK = ("ftrace", "user_stack")
BLKTRACE = ("ftrace", "blktrace")

_FIELDS = """\
	field:u64 sector;	offset:16;	size:8;	signed:0;
	field:u32 bytes;	offset:24;	size:4;	signed:0;
	field:u32 action;	offset:28;	size:4;	signed:0;
	field:u32 pid;	offset:32;	size:4;	signed:0;
	field:u32 device;	offset:36;	size:4;	signed:0;
	field:u32 cpu;	offset:40;	size:4;	signed:0;
	field:u16 error;	offset:44;	size:2;	signed:0;
	field:u16 pdu_len;	offset:46;	size:2;	signed:0;
	field:void pdu[];	offset:48;	size:0;	signed:0;
"""
# enum blktrace_act: the low half of action; the high half are the categories (enum blktrace_cat)
ACTIONS = dict(enumerate("QMFGSRDCPU", start=1)) | {11: "UT", 12: "I", 13: "X", 14: "B", 15: "A"}
_PRINT = (
    '"%u,%u %s %llu + %u [%u]", REC->device >> 20, REC->device & 0xfffff, {action},'
    " REC->sector, REC->bytes >> 9, REC->pid"
)


def blktrace_id(id_index: Mapping[int, tuple[str, str]]) -> int | None:
    """The id of such records: the one after that of user stacks (K:trace.h enum trace_type), where no format has it."""
    stack = next((i for i, pair in id_index.items() if pair == USER_STACK), None)
    return None if stack is None or stack + 1 in id_index or BLKTRACE in id_index.values() else stack + 1


def blktrace_format(event_id: int, user_stack: bytes) -> bytes:
    """The text of a format file; the common fields are those of user_stack's."""
    _, _, rest = user_stack.partition(b"format:\n")
    common = rest.partition(b"\n\n")[0]
    entries = ", ".join(f'{{{number}, "{letter}"}}' for number, letter in ACTIONS.items())
    text = _PRINT.format(action=f"__print_symbolic(REC->action & 0xffff, {entries})")
    head = b"name: blktrace\nID: %d\nformat:\n%s\n\n" % (event_id, common)
    return head + _FIELDS.encode() + f"\nprint fmt: {text}\n".encode()
