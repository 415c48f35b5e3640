# The device side. Its header is not installed yet: no host call makes what it works on.
EXTRA_DIST += cuda/mpix_device.h
