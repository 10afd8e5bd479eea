package config

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"
)

// TLS of the gateway's address.
type TLS struct {
	// Cert and Key are the files of the certificate chain and of its private key, in PEM. Both or none. A relative path
	// begins at the configuration's own folder.
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// Stream says how streams are handed over, as in [gateway.Stream].
type Stream struct {
	// Delivery is live or whole. Default: live.
	Delivery Delivery `yaml:"delivery"`
	// Hold is how long a stream that has begun is held back for want of content. 0: the default, 15s. Negative: until
	// there is content.
	Hold time.Duration `yaml:"hold"`
	// Ping is after how much silence of the upstream a caller gets a ping. 0: the default, 15s. Negative: never.
	Ping time.Duration `yaml:"ping"`
}

// Saved is where good answers are kept for chains that end in saved.
type Saved struct {
	// Path of the file; a relative one begins at the configuration's own folder. Default: memory, which ends with the
	// process.
	Path string `yaml:"path"`
	// MaxAge of an answer that may be used. 0: the default, 720h.
	MaxAge time.Duration `yaml:"max_age"`
	// MaxBytes of all answers together. 0: the default, 256MiB.
	MaxBytes Size `yaml:"max_bytes"`
	// Mark puts a visible line at the beginning of a saved answer's text. Default: no.
	Mark bool `yaml:"mark"`
}

// Client is someone who may use the gateway, as in [gateway.Client].
type Client struct {
	// Name in logs and metrics.
	Name string `yaml:"name"`
	// KeySHA256 is the SHA-256 of the client's key, in hex.
	KeySHA256 string `yaml:"key_sha256"`
	// Lane is interactive or bulk. Default: interactive.
	Lane Lane `yaml:"lane"`
	// RequestsPerMinute that the client may make. Zero or negative: no limit.
	RequestsPerMinute int `yaml:"requests_per_minute"`
}

// Limits bound what one request may cost the gateway, as in [gateway.Settings].
type Limits struct {
	// MaxBody is the largest request body. 0: the default, 512MiB. Negative: no limit.
	MaxBody Size `yaml:"max_body"`
	// BodyMemory is how much of a body is kept in memory, and not in a temporary file. 0: the default, 1MiB. Negative:
	// all of it.
	BodyMemory Size `yaml:"body_memory"`
	// BodyTimeout is how long a caller may be silent while he sends his body. 0: the default, 30s. Negative: no limit.
	BodyTimeout time.Duration `yaml:"body_timeout"`
	// WriteTimeout is how long a caller may take nothing of what is written to him. 0: the default, 1m. Negative: no limit.
	WriteTimeout time.Duration `yaml:"write_timeout"`
}

// Drain is how the gateway ends.
type Drain struct {
	// Grace is how long calls under way may go on. 0: the default, 30s. Negative: not at all.
	Grace time.Duration `yaml:"grace"`
}

// Log is how the gateway tells of its calls.
type Log struct {
	// Format is text or json. Default: text.
	Format LogFormat `yaml:"format"`
	// Level is debug, info, warn or error. Default: info.
	Level LogLevel `yaml:"level"`
}

const (
	defaultListen   = "127.0.0.1:4100"
	defaultAdmin    = "127.0.0.1:4101"
	defaultGrace    = 30 * time.Second
	defaultDeadline = 10 * time.Minute

	adminOff = "off"
)

// ListenAddress returns the address of the gateway.
func (f *File) ListenAddress() string {
	if f.Listen == "" {
		return defaultListen
	}
	return f.Listen
}

// AdminAddress returns the address of health, metrics and status, empty when they are off.
func (f *File) AdminAddress() string {
	switch f.Admin {
	case "":
		return defaultAdmin
	case adminOff:
		return ""
	}
	return f.Admin
}

// Grace returns how long calls under way may go on when the gateway ends.
func (f *File) Grace() time.Duration {
	if f.Drain.Grace == 0 {
		return defaultGrace
	}
	return max(f.Drain.Grace, 0)
}

// KeepsAnswers reports whether a chain ends in saved answers, which then need a store.
func (f *File) KeepsAnswers() bool {
	return slices.ContainsFunc(f.Routes, func(r Route) bool {
		return slices.ContainsFunc(r.Chain, func(e Entry) bool { return e.Saved })
	})
}

// TLSConfig reads the certificate and its key from their files; nil when the section tls is absent.
func (f *File) TLSConfig() (*tls.Config, error) {
	if f.TLS == (TLS{}) {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(f.tlsFiles())
	if err != nil {
		return nil, fmt.Errorf("config: tls: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

func (f *File) tlsFiles() (cert, key string) {
	return f.file("tls.cert", f.TLS.Cert), f.file("tls.key", f.TLS.Key)
}

// SavedPath returns the path of the file of saved answers, empty for memory.
func (f *File) SavedPath() string { return f.file("saved.path", f.Saved.Path) }

// Logger returns a logger of the file's format and level.
func (f *File) Logger(to io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: f.Log.Level.level()}
	if f.Log.Format == formatJSON {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}
