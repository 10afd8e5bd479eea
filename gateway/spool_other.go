//go:build !unix

package gateway

import (
	"io"
	"os"
)

// mapped reads the file: where it cannot be mapped, a large body takes memory after all.
func mapped(file *os.File, size int64) (data []byte, release func(), err error) {
	data = make([]byte, size)
	if _, err = io.ReadFull(io.NewSectionReader(file, 0, size), data); err != nil {
		return nil, nil, err
	}
	return data, nil, nil
}
