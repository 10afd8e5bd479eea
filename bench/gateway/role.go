package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// proxy is the proxy of the standard library as people set it up: with a pool of connections that is large enough, and
// nothing else but full duplex. Without that the server closes a request's body when the reply begins, even while the
// transport still looks for the end of it; then the transport gives the connection up, and one reply in a hundred of an
// upstream as fast as ours is cut.
func proxy(ctx context.Context, l net.Listener, upstream string) error {
	target, err := url.Parse("http://" + upstream)
	if err != nil {
		return err
	}
	handler := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.SetXForwarded()
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 4096, DisableCompression: true, IdleConnTimeout: 90 * time.Second},
	}
	return serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		handler.ServeHTTP(w, r)
	}))
}

func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}
