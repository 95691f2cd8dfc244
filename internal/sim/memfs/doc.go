// Package memfs is a small file system in memory: what a simulated host has
// for a disk. It knows directories, files, owners (by user name) and modes as
// far as reading and writing depend on them, and can be made full or read-only
// below a path.
//
// It must not know what the files mean.
package memfs
