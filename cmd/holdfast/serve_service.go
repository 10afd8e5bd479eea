package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"holdfast/config"
	"holdfast/gateway"
	"holdfast/saved"
	"holdfast/telemetry"
)

// service is the gateway as a process: its addresses, what it keeps, and the configuration in force.
type service struct {
	streams // err takes the words
	place
	stderr  io.Writer // takes the log
	options *serveOptions
	now     configured

	gateway     *gateway.Gateway
	metrics     *telemetry.Metrics
	store       *saved.Store      // nil: no answers are kept
	kept        config.Saved      // how store was opened
	elsewhere   http.RoundTripper // sends for the providers; outlives reloads
	certificate atomic.Pointer[tls.Certificate]

	api, admin net.Listener // admin is nil when it is off
	hangUps    chan os.Signal
}

// openService makes everything ready and serves nothing yet. What it opened is closed again on an error.
func openService(o *serveOptions, conf configured, s streams, p place) (sv *service, err error) {
	sv = &service{streams: s, place: p, options: o, now: conf, stderr: s.err}
	sv.err = wordsOf(conf.file, s.err)
	defer func() {
		if err != nil {
			sv.close()
		}
	}()
	sv.hangUps = make(chan os.Signal, 1)
	if conf.path != "" { // else there is nothing to read again, and the signal ends the process as it always does
		signal.Notify(sv.hangUps, syscall.SIGHUP)
	}
	for _, warning := range conf.file.Warnings() {
		say(sv.err, "warning: %s", warning)
	}
	if sv.api, err = sv.listenOn(conf.file.ListenAddress(), "--listen takes another address; 127.0.0.1:0 finds a free port"); err != nil {
		return sv, err
	}
	if at := conf.file.AdminAddress(); at != "" {
		if sv.admin, err = sv.listenOn(at, "--admin takes another address, or off"); err != nil {
			return sv, err
		}
	}
	if err := refuseItself(conf.file, sv.api.Addr()); err != nil {
		return sv, err
	}
	sv.metrics = telemetry.New()
	settings, secure, err := sv.settings(conf)
	if err != nil {
		return sv, err
	}
	if secure != nil {
		sv.certificate.Store(&secure.Certificates[0])
	}
	if sv.gateway, err = gateway.New(settings); err != nil {
		return sv, badUsage(hintOf(err), "%w", err)
	}
	sv.metrics.Watch(sv.gateway.Status)
	return sv, nil
}

// listenOn listens. A port in use is no fault of the command line.
func (sv *service) listenOn(address, hint string) (net.Listener, error) {
	l, err := sv.listen(address)
	if err != nil {
		return nil, failed(hint, "cannot listen on %s: %w", address, err)
	}
	return l, nil
}

// settings are those of a configuration, with what outlives it. The store of saved answers is opened when it is needed for
// the first time.
func (sv *service) settings(conf configured) (gateway.Settings, *tls.Config, error) {
	settings, err := conf.file.Gateway()
	if err != nil {
		return settings, nil, badUsage(hintOf(err), "%w", err)
	}
	if sv.elsewhere == nil {
		if sv.elsewhere = sv.base; sv.elsewhere == nil {
			sv.elsewhere = gateway.NewTransport()
		}
	}
	if err := conf.file.Elsewhere(&settings, sv.elsewhere); err != nil {
		return settings, nil, badUsage(hintOf(err), "%w", err)
	}
	secure, err := conf.file.TLSConfig()
	if err != nil {
		return settings, nil, badUsage("tls.cert and tls.key are files in PEM", "%w", err)
	}
	if conf.file.KeepsAnswers() && sv.store == nil {
		keep := conf.file.Saved
		sv.store, err = saved.Open(keep.Path, saved.Options{MaxAge: keep.MaxAge, MaxBytes: int64(keep.MaxBytes), Mark: keep.Mark})
		if err != nil {
			return settings, nil, failed(hintOf(err), "%w", err)
		}
		sv.kept = keep
	}
	settings.Base, settings.Observer = sv.base, sv.metrics
	if sv.store != nil {
		settings.Saved = sv.store // a nil store in an interface would be one
	}
	if !sv.options.demo { // which has lines of its own
		settings.Log = conf.file.Logger(sv.stderr)
	}
	return settings, secure, nil
}

// secure is the TLS of the gateway's address, with the certificate that is in force; nil without TLS.
func (sv *service) secure() *tls.Config {
	if sv.certificate.Load() == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return sv.certificate.Load(), nil },
	}
}

// run says what is served, and serves it.
func (sv *service) run(ctx context.Context) error {
	if err := sv.announce(); err != nil {
		sv.close()
		return err
	}
	return sv.serve(ctx)
}

// serve serves until ctx ends and the calls under way have ended or their grace is over.
func (sv *service) serve(ctx context.Context) error {
	defer sv.close()
	var beside sync.WaitGroup
	defer beside.Wait()
	aside, stop := context.WithCancel(context.WithoutCancel(ctx)) // the admin listener and reloads outlast the drain
	defer stop()
	if sv.admin != nil {
		server := &http.Server{Handler: sv.gateway.Admin(sv.metrics.Handler()), ReadHeaderTimeout: headerTimeout, IdleTimeout: time.Minute}
		beside.Go(func() { _ = server.Serve(sv.admin) }) // ends with Close
		context.AfterFunc(aside, func() { _ = server.Close() })
	}
	serving, end := context.WithCancel(ctx)
	defer end()
	beside.Go(func() { sv.watch(aside, end) })
	beside.Go(func() {
		<-serving.Done()
		if n := sv.gateway.InFlight(); n > 0 {
			say(sv.err, "draining: %s under way may take %v more; another signal ends at once", plural(n, "call"), sv.now.file.Grace())
		}
	})
	if err := sv.gateway.Serve(serving, sv.api, sv.secure(), sv.now.file.Grace()); err != nil {
		return &exitError{code: exitFailed, err: fmt.Errorf("cannot serve: %w", err), ended: true}
	}
	if !sv.options.demo {
		say(sv.err, "the gateway has ended")
	}
	return nil
}

// close closes what is still open.
func (sv *service) close() {
	signal.Stop(sv.hangUps)
	for _, l := range []net.Listener{sv.api, sv.admin} {
		if l != nil {
			_ = l.Close() // the server has closed it, if it came so far
		}
	}
	if sv.store != nil {
		if err := sv.store.Close(); err != nil {
			say(sv.err, "warning: the saved answers: %v", err)
		}
	}
}

// watch reloads on every SIGHUP. When the terminal that the service was started from is gone, which sends the same signal, it
// ends the service.
func (sv *service) watch(ctx context.Context, end func()) {
	onTerminal := isTerminal(sv.stderr)
	for {
		select {
		case <-ctx.Done():
			return
		case <-sv.hangUps:
			if !sv.reload() && onTerminal {
				end()
				return
			}
		}
	}
}

// reload puts the configuration in force that is in the file now, or keeps the one before and says why. It reports false when
// nobody reads what it says.
func (sv *service) reload() bool {
	next, err := sv.options.read()
	if err == nil {
		err = sv.take(next)
	}
	if err != nil {
		sv.gateway.NoteReload(err)
		report(context.Background(), sv.err, err, true)
		_, err = fmt.Fprintln(sv.err, "the configuration before stays in force")
		return err == nil
	}
	for _, warning := range next.file.Warnings() {
		say(sv.err, "warning: %s", warning)
	}
	for _, key := range sv.needRestart(next.file) {
		say(sv.err, "warning: a change of %s needs a restart", key)
	}
	_, err = fmt.Fprintf(sv.err, "%s is in force: %s\n", next.from, contents(next.file))
	return err == nil
}

// take puts a configuration in force, or changes nothing.
func (sv *service) take(next configured) error {
	if err := refuseItself(next.file, sv.api.Addr()); err != nil {
		return err
	}
	settings, secure, err := sv.settings(next)
	if err != nil {
		return err
	}
	if err := sv.gateway.Reload(settings); err != nil {
		return err
	}
	if secure != nil && sv.certificate.Load() != nil {
		sv.certificate.Store(&secure.Certificates[0])
	}
	return nil
}

// needRestart lists the keys that differ and that no reload changes.
func (sv *service) needRestart(next *config.File) (keys []string) {
	now := sv.now.file
	for _, k := range []struct {
		key     string
		differs bool
	}{
		{"listen", now.ListenAddress() != next.ListenAddress()},
		{"admin", now.AdminAddress() != next.AdminAddress()},
		{"tls", (now.TLS == config.TLS{}) != (next.TLS == config.TLS{})},
		{"saved", sv.store != nil && next.KeepsAnswers() && sv.kept != next.Saved},
		{"drain", now.Grace() != next.Grace()},
	} {
		if k.differs {
			keys = append(keys, k.key)
		}
	}
	return keys
}

// refuseItself refuses a target that is the gateway's own address: every call would go round for ever.
func refuseItself(file *config.File, own net.Addr) error {
	for _, t := range file.Targets {
		if u, err := url.Parse(t.URL); err == nil && sameAddress(u, own) {
			return badUsage("a target is the API behind the gateway, not the gateway", "target %s is the gateway's own address", t.Name)
		}
	}
	return nil
}

// sameAddress reports whether a URL leads to a listener of this machine, as far as it can be told without asking for names.
func sameAddress(u *url.URL, own net.Addr) bool {
	_, port, err := net.SplitHostPort(own.String())
	if err != nil || u.Port() != port {
		return false
	}
	tcp, ok := own.(*net.TCPAddr)
	if u.Hostname() == "localhost" {
		return ok && (tcp.IP.IsLoopback() || tcp.IP.IsUnspecified())
	}
	ip := net.ParseIP(u.Hostname())
	return ok && ip != nil && (ip.Equal(tcp.IP) || tcp.IP.IsUnspecified() && ip.IsLoopback())
}
