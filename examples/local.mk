# Built, so that they stay right, and run by make check; not installed.
example_programs = \
	examples/halo \
	examples/smallest
noinst_PROGRAMS += $(example_programs)
examples_halo_LDADD = mpi/libmpi.la -lm
examples_smallest_LDADD = mpi/libmpi.la
TESTS += $(example_programs)
