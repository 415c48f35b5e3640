transport_sources = \
	transport/boot.c \
	transport/boot.h \
	transport/fault.c \
	transport/mem.h \
	transport/peers.c \
	transport/self/self.c \
	transport/settings.c \
	transport/shm/arena.c \
	transport/shm/chan.c \
	transport/shm/cma.c \
	transport/shm/copy.h \
	transport/shm/ring.c \
	transport/shm/shm.c \
	transport/shm/shm.h \
	transport/tasks.c \
	transport/transport.h

if HAVE_VERBS
transport_sources += \
	transport/verbs/chan.h \
	transport/verbs/chan_recv.c \
	transport/verbs/chan_send.c \
	transport/verbs/conn.c \
	transport/verbs/device.c \
	transport/verbs/ep.c \
	transport/verbs/lib.c \
	transport/verbs/lib.h \
	transport/verbs/mem.c \
	transport/verbs/put.c \
	transport/verbs/verbs.c \
	transport/verbs/verbs.h
endif
