package gateway

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
)

// net/http may close a body while it reads it, and read it when its call is over. Whatever comes first, nobody ever reads
// another call's bytes, and nothing is given back twice.
func TestBodiesAreNeverAnothersBytes(t *testing.T) {
	const size, calls, workers = 2 * leastRoom, 300, 8
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for i := range calls {
				mine := byte(worker*calls + i)
				b, err := readKnown(bytes.NewReader(bytes.Repeat([]byte{mine}, size)), size)
				if err != nil {
					t.Error(err)
					return
				}
				r := b.reader()
				var reading sync.WaitGroup
				reading.Go(func() {
					piece := make([]byte, 1000)
					for {
						n, err := r.Read(piece)
						if bytes.Count(piece[:n], []byte{mine}) != n {
							t.Error("it read another call's bytes")
						}
						if err != nil {
							if err != io.EOF && !errors.Is(err, http.ErrBodyReadAfterClose) {
								t.Error(err)
							}
							return
						}
					}
				})
				b.Close() // the call is over while its body is being sent
				if i%2 == 0 {
					_ = r.Close()
				}
				reading.Wait()
				_ = r.Close()
				b.Close()
				if b.data != nil || b.users != 0 {
					t.Errorf("%d users, and it was given back: %v", b.users, b.data == nil)
				}
				if n, err := b.reader().Read(make([]byte, 1)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
					t.Errorf("read once more when it is gone: %d bytes, %v", n, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestBodiesAreReadToTheirEnd(t *testing.T) {
	for _, size := range []int{1, leastRoom - 1, leastRoom, 3 * leastRoom, mostRoom + 1} {
		want := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
		b, err := readKnown(bytes.NewReader(want), size)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			r := b.reader()
			if got, err := io.ReadAll(r); !bytes.Equal(got, want) || err != nil {
				t.Errorf("%d bytes of %d, %v", len(got), size, err)
			}
			_ = r.Close()
			if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("behind its end, when it is closed: %d bytes, %v", n, err)
			}
			r = b.reader()
			var out bytes.Buffer
			if n, err := io.Copy(&out, r); n != int64(size) || err != nil || !bytes.Equal(out.Bytes(), want) {
				t.Errorf("%d bytes written of %d, %v", n, size, err)
			}
			_ = r.Close()
		}
		b.Close()
		if _, err := readKnown(bytes.NewReader(want[:size-1]), size); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a body that ends too early: %v", err)
		}
	}
}
