"""Point-to-point and collectives through mpi4py: pickled objects and, where numpy is there, buffers."""
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
right, left = (rank + 1) % size, (rank - 1) % size

thing = world.bcast({"numbers": [1, 2, 3], "of": 0} if rank == 0 else None, root=0)
assert thing == {"numbers": [1, 2, 3], "of": 0}, thing

for length in (0, 10, 1000, 200000):
    got = world.sendrecv(list(range(rank, rank + length)), dest=right, sendtag=7, source=left, recvtag=7)
    assert got == list(range(left, left + length)), (length, got[:5])

request = world.irecv(source=left, tag=9)
world.isend("from %d" % rank, dest=right, tag=9).wait()
assert request.wait() == "from %d" % left

assert world.allreduce(rank + 1) == size * (size + 1) // 2
assert world.gather(rank * rank, root=0) == ([r * r for r in range(size)] if rank == 0 else None)
assert world.scatter([10 * r for r in range(size)] if rank == 0 else None, root=0) == 10 * rank
assert world.alltoall([rank * 100 + r for r in range(size)]) == [r * 100 + rank for r in range(size)]

half = world.Split(color=rank % 2, key=-rank)
assert half.size == len(range(rank % 2, size, 2))
half.Free()

try:
    import numpy
    ours, theirs = numpy.full(50000, rank, dtype="d"), numpy.empty(50000)
    world.Sendrecv(ours, dest=right, recvbuf=theirs, source=left)
    assert (theirs == left).all()
    total = numpy.empty(50000)
    world.Allreduce(ours, total, op=MPI.SUM)
    assert (total == sum(range(size))).all()
    send, recv = world.Send_init(ours, dest=right, tag=3), world.Recv_init(theirs, source=left, tag=3)
    for turn in range(3):
        ours[:] = rank + 1000 * turn
        recv.Start()
        send.Start()
        MPI.Request.Waitall([send, recv])
        assert (theirs == left + 1000 * turn).all()
    send.Free()
    recv.Free()
except ImportError:
    print("numpy is not installed: buffers were not tried")

sys.stdout.write("ok %s\n" % MPI.Get_library_version().split(",")[0])  # one write: ranks share the output
