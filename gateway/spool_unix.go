//go:build unix

package gateway

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapped gives the content of a file as bytes that are no part of the heap. They stay when the file's name is gone, and
// nobody else can open it then to make it shorter.
func mapped(file *os.File, size int64) (data []byte, release func(), err error) {
	data, err = unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("mapping %d bytes: %w", size, err)
	}
	return data, func() { _ = unix.Munmap(data) }, nil
}
