package holdfast

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
)

// connectionLost knows the ways in which an established connection ends too early.
func connectionLost(err error) bool {
	for _, known := range []error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed,
		syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.ECONNREFUSED, syscall.ETIMEDOUT,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return mentionsLoss(err.Error())
}

// mentionsLoss is for the losses that net/http and its bundled HTTP/2 report as unexported types: their text is all
// there is.
func mentionsLoss(text string) bool {
	for _, known := range []string{
		"server closed idle connection",
		"http2: server sent GOAWAY",
		"http2: client connection lost",
		"http2: client connection force closed",
		"http2: Transport received Server's graceful shutdown GOAWAY",
		"http2: Transport: cannot retry err",
		"stream error: stream ID",
		"transport connection broken",
		"malformed HTTP",
		"TLS handshake timeout",
		"timeout awaiting response headers",
		"unexpected EOF",
		"connection reset by peer",
	} {
		if strings.Contains(text, known) {
			return true
		}
	}
	return false
}
