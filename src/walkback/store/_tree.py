"""Trees of stacks (compiled); `tree.py` is its face.

A tree is columns with a row a node: its parent's row, or -1, and its frame. While a tree grows the rows are in the
order in which nodes were met, and a hash table finds the child of a node with a frame; on the disk they are in
preorder. In both a parent comes before its children.

The table is not `base.intern`: with the places and lengths of strings a node takes twice the memory, and a tree of five
million nodes 1.4 times the time.
"""

import cython

from walkback.base.views import takes_views

if cython.compiled:
    from cython.cimports.walkback.base.mixing import mixed
else:
    from walkback.base.mixing import mixed

FULL = 1
"""Why `add_stacks` or `add_nodes` stopped: there is no room for the next."""
_FULL = cython.declare(cython.int, FULL)

BAD_DEPTH = 2
"""Why `parents` stopped: a node that is deeper than a child of the one before it, or not as deep as the outermost."""
BAD_FRAME = 3
"""Why `parents` stopped: a frame that there is not."""
_BAD_DEPTH = cython.declare(cython.int, BAD_DEPTH)
_BAD_FRAME = cython.declare(cython.int, BAD_FRAME)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def _slot(
    parent: cython.longlong, frame: cython.longlong, mix: cython.ulonglong, mask: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Where to look first for a node; `mix` is secret, so that no input can make many meet."""
    key: cython.ulonglong = (cython.cast(cython.ulonglong, parent + 1) << 32) | cython.cast(cython.ulonglong, frame)
    return cython.cast(cython.Py_ssize_t, mixed(mixed(key, mix), mix) >> 32) & mask


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-2, check=True)
def _child(
    above: cython.int,
    its_frame: cython.int,
    parent: cython.int[::1],
    frame: cython.int[::1],
    slots: cython.int[::1],
    count: cython.Py_ssize_t,
    mix: cython.ulonglong,
) -> cython.int:
    """The child of a node with a frame; a new one, with the number `count`, if there is none."""
    mask: cython.Py_ssize_t = slots.shape[0] - 1
    slot: cython.Py_ssize_t = _slot(above, its_frame, mix, mask)
    found: cython.int = slots[slot]
    while found >= 0:
        if parent[found] == above and frame[found] == its_frame:
            return found
        slot = (slot + 1) & mask
        found = slots[slot]
    found = cython.cast(cython.int, count)
    parent[count] = above
    frame[count] = its_frame
    slots[slot] = found
    return found


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-1, check=False)
def _shared(
    frames: cython.const[cython.int][::1], end: cython.Py_ssize_t, before: cython.Py_ssize_t, most: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """How many outermost frames, `most` at the most, are the same in two stacks, which end at these places."""
    depth: cython.Py_ssize_t = 0
    while depth < most and frames[end - 1 - depth] == frames[before - 1 - depth]:
        depth += 1
    return depth


@takes_views
def add_stacks(
    first: cython.const[cython.longlong][::1],
    frames: cython.const[cython.int][::1],
    nodes: cython.int[::1],
    path: cython.int[::1],
    state: cython.longlong[::1],
    parent: cython.int[::1],
    frame: cython.int[::1],
    slots: cython.int[::1],
    mix: cython.ulonglong,
):
    """Put stacks in from the one that `state[0]` says on; `state[1]` counts the nodes.

    Stack i has the frames from `first[i]` up to `first[i + 1]`, innermost first, and gets the number of its innermost
    node, -1 if it has no frames. `path` has room for the deepest stack. Returns 0 when all are in.
    """
    i: cython.Py_ssize_t
    length: cython.Py_ssize_t
    before: cython.Py_ssize_t = 0
    known: cython.Py_ssize_t = 0
    depth: cython.Py_ssize_t
    node: cython.int
    count: cython.Py_ssize_t = state[1]
    stopped: cython.int = 0
    with cython.nogil:
        for i in range(state[0], nodes.shape[0]):
            length = first[i + 1] - first[i]
            if parent.shape[0] - count < length:
                state[0] = i
                stopped = _FULL
                break
            # Frames that it shares with the one before it have been found already.
            depth = _shared(frames, first[i + 1], before, length if length < known else known)
            node = path[depth - 1] if depth else -1
            while depth < length:
                node = _child(node, frames[first[i + 1] - 1 - depth], parent, frame, slots, count, mix)
                if node == count:
                    count += 1
                path[depth] = node
                depth += 1
            nodes[i] = node
            known = length
            before = first[i + 1]
        if not stopped:
            state[0] = nodes.shape[0]
        state[1] = count
    return stopped


@takes_views
def add_nodes(
    its_parent: cython.const[cython.int][::1],
    its_frame: cython.const[cython.int][::1],
    nodes: cython.int[::1],
    state: cython.longlong[::1],
    parent: cython.int[::1],
    frame: cython.int[::1],
    slots: cython.int[::1],
    mix: cython.ulonglong,
):
    """Put another tree in, from its node `state[0]` on; `nodes` gets the number that each of its nodes has here."""
    i: cython.Py_ssize_t
    above: cython.int
    found: cython.int
    count: cython.Py_ssize_t = state[1]
    stopped: cython.int = 0
    with cython.nogil:
        for i in range(state[0], nodes.shape[0]):
            if count == parent.shape[0]:
                state[0] = i
                stopped = _FULL
                break
            above = its_parent[i]
            if above >= 0:
                above = nodes[above]
            found = _child(above, its_frame[i], parent, frame, slots, count, mix)
            if found == count:
                count += 1
            nodes[i] = found
        if not stopped:
            state[0] = nodes.shape[0]
        state[1] = count
    return stopped


@takes_views
def fill(
    parent: cython.const[cython.int][::1],
    frame: cython.const[cython.int][::1],
    slots: cython.int[::1],
    count: cython.Py_ssize_t,
    mix: cython.ulonglong,
):
    """Put the nodes 0 to `count` into empty slots; there are more slots than nodes."""
    i: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    mask: cython.Py_ssize_t = slots.shape[0] - 1
    with cython.nogil:
        for i in range(count):
            slot = _slot(parent[i], frame[i], mix, mask)
            while slots[slot] >= 0:
                slot = (slot + 1) & mask
            slots[slot] = cython.cast(cython.int, i)


@takes_views
def mark(nodes: cython.const[cython.int][::1], parent: cython.const[cython.int][::1], marks: cython.uchar[::1]):
    """Mark nodes and all that are further out; -1 is no node."""
    i: cython.Py_ssize_t
    node: cython.int
    with cython.nogil:
        for i in range(nodes.shape[0]):
            node = nodes[i]
            while node >= 0 and marks[node] == 0:
                marks[node] = 1
                node = parent[node]


@takes_views
def preorder(
    parent: cython.const[cython.int][::1],
    order: cython.const[cython.longlong][::1],
    size: cython.int[::1],
    used: cython.int[::1],
    place: cython.int[::1],
    depth: cython.int[::1],
):
    """The place in preorder of each node, and its depth.

    `order` has all nodes by rising parent and, below one parent, in the order that they are to have. `size` and `used`
    are zeros, with room for how many nodes each has with all below it, and how many of these have their place.
    """
    i: cython.Py_ssize_t
    node: cython.Py_ssize_t
    above: cython.int
    free: cython.int = 0
    with cython.nogil:
        for i in range(parent.shape[0] - 1, -1, -1):
            size[i] += 1
            above = parent[i]
            if above >= 0:
                size[above] += size[i]
        for i in range(order.shape[0]):
            node = order[i]
            above = parent[node]
            if above < 0:
                place[node] = free
                free += size[node]
                depth[node] = 0
            else:
                # A parent has its place by now: its own parent has a lower number, and came before in the order.
                place[node] = place[above] + 1 + used[above]
                used[above] += size[node]
                depth[node] = depth[above] + 1


@takes_views
def parents(
    depth: cython.const[cython.int][::1],
    frame: cython.const[cython.int][::1],
    frames: cython.longlong,
    last: cython.int[::1],
    parent: cython.int[::1],
    state: cython.longlong[::1],
):
    """The parent of each node of a tree in preorder; `last` has room for the last node of each depth.

    Returns 0, or what is wrong with the node that `state[0]` says.
    """
    i: cython.Py_ssize_t
    here: cython.int
    before: cython.int = -1
    wrong: cython.int = 0
    with cython.nogil:
        for i in range(depth.shape[0]):
            here = depth[i]
            state[0] = i
            if here < 0 or here > before + 1:
                wrong = _BAD_DEPTH
                break
            if frame[i] < 0 or frame[i] >= frames:
                wrong = _BAD_FRAME
                break
            parent[i] = last[here - 1] if here > 0 else -1
            last[here] = cython.cast(cython.int, i)
            before = here
    return wrong


@takes_views
def depths(parent: cython.const[cython.int][::1], depth: cython.int[::1]):
    """How many nodes are further out than each."""
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(parent.shape[0]):
            depth[i] = depth[parent[i]] + 1 if parent[i] >= 0 else 0


@takes_views
def sums(parent: cython.const[cython.int][::1], totals: cython.longlong[::1]):
    """Add to each node what all nodes below it have."""
    i: cython.Py_ssize_t
    above: cython.int
    with cython.nogil:
        for i in range(parent.shape[0] - 1, -1, -1):
            above = parent[i]
            if above >= 0:
                totals[above] += totals[i]


@takes_views
def stacks(
    nodes: cython.const[cython.int][::1],
    parent: cython.const[cython.int][::1],
    frame: cython.const[cython.int][::1],
    first: cython.const[cython.longlong][::1],
    frames: cython.longlong[::1],
):
    """The frames of stacks, innermost first, from their innermost nodes; stack i has its from `first[i]` on."""
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t
    node: cython.int
    with cython.nogil:
        for i in range(nodes.shape[0]):
            at = first[i]
            node = nodes[i]
            while node >= 0:
                frames[at] = frame[node]
                at += 1
                node = parent[node]
