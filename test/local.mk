# A test is a program or script: exit 0 passes, 77 skips, else fails. test/run starts programs as their source says.
AM_DEFAULT_SOURCE_EXT = .c
LDADD = mpi/libmpi.la

unit_tests = \
	test/unit/match \
	test/unit/op_predefined \
	test/unit/op_user \
	test/unit/p2p_engine \
	test/unit/p2p_gone \
	test/unit/part_map \
	test/unit/settings \
	test/unit/type_contents \
	test/unit/type_predef \
	test/unit/type_tree
mpi_tests = \
	test/conform/c01_parrived_false \
	test/conform/c02_parrived_arguments \
	test/conform/c03_local \
	test/conform/c04_unmatched \
	test/conform/c05_many \
	test/conform/c05_unequal_counts \
	test/conform/c06_datatypes \
	test/conform/c07_no_cross_match \
	test/conform/c08_errors \
	test/conform/c09_null_and_zero \
	test/conform/c10_threads \
	test/conform/c11_mixed \
	test/conform/c12_alone \
	test/conform/c13_late_receiver \
	test/conform/c14_many_cycles \
	test/conform/c15_out_of_order \
	test/conform/c16_huge \
	test/conform/c16_peers_faults \
	test/conform/c17_odd_arguments \
	test/mpi/coll_bcast \
	test/mpi/coll_errors \
	test/mpi/coll_gather \
	test/mpi/coll_reduce \
	test/mpi/coll_scan \
	test/mpi/coll_threads \
	test/mpi/comm_attr \
	test/mpi/comm_basic \
	test/mpi/comm_cart \
	test/mpi/env \
	test/mpi/errors \
	test/mpi/faults \
	test/mpi/group \
	test/mpi/info \
	test/mpi/p2p_order \
	test/mpi/p2p_sizes \
	test/mpi/part_random \
	test/mpi/paths \
	test/mpi/tool
# In the guest only (test/rxe/suite.sh runs them).
verbs_tests = \
	test/verbs/counters \
	test/verbs/messages \
	test/verbs/strided
test_headers = \
	test/bench/perf.h \
	test/conform/check.h \
	test/mpi/coll.h \
	test/mpi/modes.h

# Unit tests see the internals.
test_unit_match_LDADD = libdz.la -lm
test_unit_op_predefined_LDADD = libdz.la -lm
test_unit_op_user_LDADD = libdz.la -lm
test_unit_p2p_engine_LDADD = libdz.la -lm
test_unit_p2p_gone_LDADD = libdz.la -lm
test_unit_part_map_LDADD = libdz.la -lm
test_unit_settings_LDADD = libdz.la -lm
test_unit_type_contents_LDADD = libdz.la -lm
test_unit_type_predef_LDADD = libdz.la -lm
test_unit_type_tree_LDADD = libdz.la -lm

test_verbs_counters_LDADD = libdz.la -lm
test_verbs_messages_LDADD = libdz.la -lm
test_verbs_strided_LDADD = libdz.la -lm
if HAVE_VERBS
check_PROGRAMS += test/rxe/faults
test_rxe_faults_LDADD = libdz.la -lm
endif

check_PROGRAMS += $(unit_tests) $(mpi_tests) $(verbs_tests) test/launch/prog test/bench/pready

# What scripts do is said in their first lines.
script_tests = \
	test/abi.sh \
	test/apps/mpi4py.sh \
	test/apps/netpipe.sh \
	test/bench/pready-insns.sh \
	test/check-includes.sh \
	test/check-lists.sh \
	test/check-readme.sh \
	test/info.sh \
	test/model/flags.sh \
	test/launch/mpirun.sh \
	test/launch/kill-mpirun.sh \
	test/launch/kill-srun.sh \
	test/launch/single.sh \
	test/launch/srun.sh \
	test/rxe/suite.sh

TESTS += $(unit_tests) $(mpi_tests) $(script_tests)
TEST_EXTENSIONS = .sh
LOG_COMPILER = $(BASH) $(srcdir)/test/run
SH_LOG_COMPILER = $(BASH)
AM_TESTS_ENVIRONMENT = \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	MPIRUN='$(MPIRUN)'; export MPIRUN; \
	PEER_MPICC='$(PEER_MPICC)'; export PEER_MPICC; \
	OMPI_INCLUDE='$(OMPI_INCLUDE)'; export OMPI_INCLUDE; \
	CC='$(CC)'; export CC; \
	SANITIZERS='$(SANITIZERS)'; export SANITIZERS;

# measurements, by hand: they need a quiet machine
EXTRA_DIST += test/bench/compare.sh test/bench/rdma.sh test/bench/startup.sh
EXTRA_DIST += test/rxe/guest test/rxe/inside.sh test/rxe/jobs test/rxe/floor.sh test/rxe/fault-modes.sh
EXTRA_DIST += $(script_tests) $(test_headers) test/common.sh test/run test/slurm test/lsan.supp test/tsan.supp test/launch/common.sh \
	test/launch/kill.sh test/apps/common.sh test/apps/mpi4py_check.py test/model/flags.pml

# ---- denizen-perf: MPI calls only, so the same files compile against other MPI libraries
bin_PROGRAMS += denizen-perf
denizen_perf_SOURCES = \
	test/bench/floor.c \
	test/bench/main.c \
	test/bench/coll.c \
	test/bench/p2p.c \
	test/bench/part.c \
	test/bench/perf.h \
	test/bench/report.c
denizen_perf_CPPFLAGS = -I$(builddir)/mpi
man_MANS += man/denizen-perf.1
EXTRA_DIST += man/denizen-perf.1

# by hand, on a machine with a GPU: nvcc -arch=native -I. -O2 test/gpu/fences.cu
EXTRA_DIST += test/gpu/fences.cu
