"""ftbuf: Linux ftrace recordings to arrays."""
