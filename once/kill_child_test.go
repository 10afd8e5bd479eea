package once_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"holdfast/once"
)

// The process that is killed is this test binary, started again with lifeVariable set.
const lifeVariable = "HOLDFAST_ONCE_LIFE"

// life is what a process that will be killed is to do: jobs one after another, until it comes to the point where it dies.
type life struct {
	Store   string // SQLite or Postgres
	Address string // of the store
	Desk    string // URL of the far side
	Replays bool
	From    int           // the first job
	To      int           // one behind the last
	Point   string        // where it dies
	Armed   int           // the first job at which it does
	Ahead   time.Duration // of the real clock, so that the leases of those who died before are over
}

// Where a process dies. Those of the effect are played by the far side, all others by the store.
const (
	beforeStart   = "before the start is recorded"
	duringStart   = "while the start is recorded"
	beforeEffect  = "before the effect"
	arrived       = "during the effect, which never happens"
	late          = "during the effect, which happens afterwards"
	happened      = "during the effect, which has happened"
	beforeOutcome = "before the outcome is recorded"
	duringOutcome = "while the outcome is recorded"
	afterOutcome  = "after the outcome is recorded"
)

func openFor(ctx context.Context, store, address string) (once.Store, error) {
	if store == "SQLite" {
		return once.OpenSQLite(address)
	}
	return once.OpenPostgres(ctx, address, once.PostgresOptions{MaxConns: 1})
}

func jobKey(job int) string { return once.Key("job", strconv.Itoa(job)) }

// live runs in the process that is killed. It tells what it did on standard output, a line each.
func live(config string) error {
	var l life
	if err := json.Unmarshal([]byte(config), &l); err != nil {
		return err
	}
	ctx := context.Background()
	store, err := openFor(ctx, l.Store, l.Address)
	if err != nil {
		return err
	}
	dying := &dying{Store: store, point: l.Point}
	ledger := once.New(dying, once.Options{Now: func() time.Time { return time.Now().Add(l.Ahead) }})
	client := &http.Client{Transport: &once.Transport{Base: &http.Transport{}}}
	for job := l.From; job < l.To; job++ {
		dying.armed = job >= l.Armed
		r, err := once.Do(ctx, ledger, jobKey(job), once.Effect[string]{Replays: l.Replays, Run: func(ctx context.Context, _ string) (string, error) {
			return post(ctx, client, l.Desk, job)
		}})
		var doubt *once.UnknownError
		switch {
		case err == nil:
			fmt.Println("done", job, r.Value)
		case errors.As(err, &doubt):
			fmt.Println("unknown", job)
		default:
			fmt.Println("failed", job, err)
		}
	}
	return nil
}

func post(ctx context.Context, client *http.Client, desk string, job int) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, desk+"/"+strconv.Itoa(job), nil)
	if err != nil {
		return "", once.Nothing(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	id, err := io.ReadAll(resp.Body)
	return string(id), err
}

// dying is a store at whose points the process waits to be killed.
type dying struct {
	once.Store
	point string
	armed bool
}

// die tells that the point is reached. It waits for the end, unless that is to come in the middle of what follows.
func (d *dying) die(point string, wait bool) {
	if !d.armed || d.point != point {
		return
	}
	fmt.Println("kill")
	if wait {
		select {}
	}
}

func (d *dying) Swap(ctx context.Context, key, revision string, next *once.Record) (bool, error) {
	starts, ends := next != nil && next.State == once.Started, next != nil && next.State == once.Done
	switch {
	case starts:
		d.die(beforeStart, true)
		d.die(duringStart, false)
	case ends:
		d.die(beforeOutcome, true)
		d.die(duringOutcome, false)
	}
	ok, err := d.Store.Swap(ctx, key, revision, next)
	switch {
	case starts:
		d.die(beforeEffect, true)
	case ends:
		d.die(afterOutcome, true)
	}
	d.ended(starts, ends)
	return ok, err
}

// ended holds a process that got through the write in whose middle it was to die: it is killed here then.
func (d *dying) ended(starts, ends bool) {
	if d.armed && (starts && d.point == duringStart || ends && d.point == duringOutcome) {
		select {}
	}
}

// lifeOf is what TestMain asks first: a process that is there to be killed runs no tests.
func lifeOf() {
	if config := os.Getenv(lifeVariable); config != "" {
		go func() {
			io.Copy(io.Discard, os.Stdin)
			os.Exit(1) // who was to kill this process has died itself
		}()
		if err := live(config); err != nil {
			fmt.Println("failed", -1, err)
		}
		os.Exit(0)
	}
}
