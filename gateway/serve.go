package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// The limits of the connections of callers.
const (
	headerTime   = 10 * time.Second
	idleTime     = 2 * time.Minute
	headerBytes  = 64 << 10
	lastWordTime = 2 * time.Second // for the error events of what is cut short by a shutdown
	http2Streams = 1000            // at once on one connection: a gateway's callers share connections
)

// Serve answers on the listener until ctx ends, and then drains: new work is refused, calls under way have the grace time to
// end, and what is left then is told so, with an error event or a 503. It returns nil after a clean end, and always closes the
// listener. HTTP/1.1 and HTTP/2 are spoken, with TLS if a configuration is given and without otherwise.
func (g *Gateway) Serve(ctx context.Context, l net.Listener, secure *tls.Config, grace time.Duration) error {
	calls, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(secure == nil)
	server := &http.Server{
		Handler: g, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		Protocols: &protocols, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: http2Streams},
		BaseContext: func(net.Listener) context.Context { return calls },
		ErrorLog:    log.New(io.Discard, "", 0), // what it says are the mistakes of callers; the calls have their own log
		TLSConfig:   secure,
	}
	served := make(chan error, 1)
	go func() {
		if secure != nil {
			served <- server.ServeTLS(l, "", "")
			return
		}
		served <- server.Serve(l)
	}()
	select {
	case err := <-served:
		_ = server.Close()
		return fmt.Errorf("gateway: %w", err)
	case <-ctx.Done():
	}
	g.draining.Store(true)
	err := shut(server, grace)
	if errors.Is(err, context.DeadlineExceeded) {
		stop(errShutdown)
		err = shut(server, lastWordTime)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close()
		}
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		return fmt.Errorf("gateway: shutting down: %w", err)
	}
	return nil
}

func shut(server *http.Server, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return server.Shutdown(ctx)
}
