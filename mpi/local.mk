# libmpi.so.40, in a folder of its own, and what leads to it.
mpi_sources = \
	mpi/abi.c \
	mpi/attr.c \
	mpi/bsend.c \
	mpi/check.c \
	mpi/coll.c \
	mpi/coll.h \
	mpi/coll_allgather.c \
	mpi/coll_alltoall.c \
	mpi/coll_gather.c \
	mpi/coll_reduce.c \
	mpi/coll_resident.c \
	mpi/coll_scan.c \
	mpi/coll_sched.c \
	mpi/comm.c \
	mpi/comm.h \
	mpi/core.h \
	mpi/env.c \
	mpi/errors.c \
	mpi/errors.h \
	mpi/group.c \
	mpi/info.c \
	mpi/init.c \
	mpi/match.c \
	mpi/match.h \
	mpi/op.c \
	mpi/op.h \
	mpi/op_kernels.c \
	mpi/op_kernels_pair.c \
	mpi/p2p.c \
	mpi/p2p.h \
	mpi/p2p_recv.c \
	mpi/p2p_send.c \
	mpi/pack.c \
	mpi/part.h \
	mpi/part_bind.c \
	mpi/part_entry.c \
	mpi/part_map.h \
	mpi/part_recv.c \
	mpi/part_send.c \
	mpi/peer.c \
	mpi/probe.c \
	mpi/progress.c \
	mpi/progress_thread.c \
	mpi/recv.c \
	mpi/request.c \
	mpi/send.c \
	mpi/tool.c \
	mpi/topo.c \
	mpi/type.c \
	mpi/type.h \
	mpi/type_array.c \
	mpi/type_count.c \
	mpi/type_create.c \
	mpi/type_old.c \
	mpi/type_pack.c \
	mpi/type_predef.c \
	mpi/type_query.c

# Everything but the entry as a shared library: unit tests link this.
noinst_LTLIBRARIES += libdz.la
libdz_la_SOURCES = $(mpi_sources) $(transport_sources)
nodist_libdz_la_SOURCES = mpi/unsupported.c
libdz_la_CPPFLAGS = $(AM_CPPFLAGS) -DPACKAGE_VERSION='"$(PACKAGE_VERSION)"'
libdz_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
libdz_la_LIBADD = $(PMIX_LIBS)

mpilib_LTLIBRARIES = mpi/libmpi.la
mpi_libmpi_la_SOURCES =
mpi_libmpi_la_LIBADD = libdz.la
# 40 is Open MPI's number. No symbol versions and no -Bsymbolic: executables own the predefined objects.
mpi_libmpi_la_LDFLAGS = $(AM_LDFLAGS) -version-info 40:0:0 \
	-export-symbols-regex '^(MPI_|PMPI_|MPIX_|PMPIX_|OMPI_C_|ompi_mpi_|ompi_request_null|ompi_message_)'
EXTRA_mpi_libmpi_la_DEPENDENCIES = libdz.la

mpi/unsupported.c: $(srcdir)/mpi/unsupported.list $(srcdir)/mpi/unsupported.awk
	$(AM_V_GEN)$(MKDIR_P) mpi && $(AWK) -f $(srcdir)/mpi/unsupported.awk $(srcdir)/mpi/unsupported.list > $@.tmp && mv $@.tmp $@
BUILT_SOURCES += mpi/unsupported.c
CLEANFILES += mpi/unsupported.c
EXTRA_DIST += mpi/unsupported.list mpi/unsupported.awk

dzincludedir = $(includedir)/denizen
nodist_dzinclude_HEADERS = mpi/mpi.h
dzinclude_HEADERS = mpi/mpix.h
dzpkgconfigdir = $(libdir)/pkgconfig
nodist_dzpkgconfig_DATA = mpi/denizen.pc
nodist_bin_SCRIPTS = mpi/mpicc

bin_PROGRAMS += denizen-info
denizen_info_SOURCES = mpi/info_tool.c
denizen_info_CPPFLAGS = $(AM_CPPFLAGS) -DDZ_BUILD_CC='"$(CC)"' -DDZ_BUILD_CFLAGS='"$(CFLAGS)"' \
	-DDZ_BUILD_SANITIZERS='"$(SANITIZERS)"' -DDZ_BUILD_LIBRARY='"$(mpilibdir)/libmpi.so.40"'
denizen_info_LDADD = libdz.la
man_MANS += man/denizen-info.1
EXTRA_DIST += man/denizen-info.1
