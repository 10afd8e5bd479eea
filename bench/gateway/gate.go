package main

import (
	"context"
	"net"
)

func gate(ctx context.Context, l net.Listener, upstream, dir string, log bool) error {
	return proxy(ctx, l, upstream)
}
