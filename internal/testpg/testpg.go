// Package testpg gives tests a Postgres: the one that HOLDFAST_POSTGRES names, or one of its own.
//
// Its own needs initdb and postgres on the machine, in the search path or where Debian puts them. It lives in a temporary folder,
// listens on a socket there and nowhere else, does not wait for the disk, and ends with the test's process, however that ends. Only
// tests import this package.
package testpg

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	environment  = "HOLDFAST_POSTGRES"         // a URL of a database in which schemas may be made
	required     = "HOLDFAST_REQUIRE_SERVICES" // set: a test without a Postgres fails
	startTimeout = 60 * time.Second            // of a machine that is busy
	startPause   = 20 * time.Millisecond
)

// errAbsent is a machine without a Postgres.
var errAbsent = errors.New("no Postgres here: set " + environment + " to the URL of one, or install postgresql")

// shared is the server of this process.
var shared struct {
	sync.Mutex
	address string
	err     error
	stop    func()
}

// URL returns the address of an empty schema of a Postgres, which is dropped when the test is over. The first call of a process
// starts the server, if none is named; TestMain must call [Stop]. Without a Postgres the test is skipped, or fails if
// HOLDFAST_REQUIRE_SERVICES is set.
func URL(t testing.TB) string {
	t.Helper()
	address, err := server()
	switch {
	case errors.Is(err, errAbsent) && os.Getenv(required) == "":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	schema := "test_" + strings.ToLower(rand.Text())
	run(t, address, "CREATE SCHEMA "+schema)
	t.Cleanup(func() { run(t, address, "DROP SCHEMA "+schema+" CASCADE") })
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal("testpg: " + environment + " is no URL")
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

func run(t testing.TB, address, sql string) {
	t.Helper()
	ctx := context.Background() // a test's own has ended when its schema is dropped
	conn, err := pgx.Connect(ctx, address)
	if err == nil {
		_, err = conn.Exec(ctx, sql)
		err = errors.Join(err, conn.Close(ctx))
	}
	if err != nil {
		t.Fatalf("testpg: %v", err)
	}
}

// Stop ends the server of this process, if there is one.
func Stop() {
	shared.Lock()
	defer shared.Unlock()
	if shared.stop != nil {
		shared.stop()
	}
	shared.address, shared.stop = "", nil
}

func server() (string, error) {
	if address := os.Getenv(environment); address != "" {
		return address, nil
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.address == "" && shared.err == nil {
		shared.address, shared.stop, shared.err = start()
	}
	return shared.address, shared.err
}

// find looks for a program of Postgres.
func find(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil || len(found) == 0 {
		return "", errAbsent
	}
	return slices.Max(found), nil
}

// start makes a server and waits until it answers.
func start() (address string, stop func(), err error) {
	initdb, err := find("initdb")
	if err != nil {
		return "", nil, err
	}
	postgres, err := find("postgres")
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "hfpg") // short: the path of a socket has some hundred bytes
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	identity, err := unprivileged(dir)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	data := filepath.Join(dir, "data")
	make := exec.CommandContext(ctx, initdb, "-D", data, "-U", "holdfast", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	make.Dir, make.SysProcAttr = dir, identity
	if out, err := make.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("testpg: initdb: %w\n%s", err, out)
	}
	// The shell ends the server when this process closes the pipe, or dies.
	const guard = `"$@" </dev/null >"$DIR/log" 2>&1 & server=$!; read -r _; kill -QUIT $server; wait $server; rm -rf "$DIR"`
	serve := exec.Command("/bin/sh", "-c", guard, "sh", postgres, "-D", data, "-k", dir,
		"-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=100", "-c", "log_min_messages=fatal")
	serve.Dir, serve.SysProcAttr, serve.Env = dir, identity, append(os.Environ(), "DIR="+dir)
	pipe, err := serve.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	if err := serve.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = pipe.Close()
		_ = serve.Wait() // the guard's exit says nothing
		_ = os.RemoveAll(dir)
	}
	address = (&url.URL{Scheme: "postgres", User: url.User("holdfast"), Path: "/postgres", RawQuery: url.Values{"host": {dir}}.Encode()}).String()
	if err := ready(ctx, address); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		stop()
		return "", nil, fmt.Errorf("testpg: the server does not start: %w\n%s", err, log)
	}
	return address, stop, nil
}

// ready waits until the server answers.
func ready(ctx context.Context, address string) error {
	pause := time.NewTicker(startPause)
	defer pause.Stop()
	for {
		conn, err := pgx.Connect(ctx, address)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return err
		}
	}
}
