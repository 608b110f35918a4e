"""Files: atomic writing, temporary folders, checksums, NetCDF."""
