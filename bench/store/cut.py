# Shuts a file system down without writing its pending data to the disk, as a power failure does.
#   python3 cut.py <mount point>
import fcntl
import os
import struct
import sys

FS_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2

fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.ioctl(fd, FS_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
