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

	"holdfast"
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
	Lookups bool          // the far side can be asked
	From    int           // the first job
	To      int           // one behind the last
	Point   string        // where it dies
	Armed   int           // the first job at which it does
	Ahead   time.Duration // of the real clock, so that the leases of those who died before are over
}

// Where a process dies. Those of the effect and of the lookup are played by the far side, all others by the store.
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
	beforeDoubt   = "before the doubt is recorded" // the effect has happened, and its answer is an error
	duringDoubt   = "while the doubt is recorded"
	afterDoubt    = "after the doubt is recorded"
	beforeFree    = "before the key is freed" // the far side has rejected the effect, or says that it did not happen
	duringFree    = "while the key is freed"
	afterFree     = "after the key is freed"
	inLookup      = "during the lookup"
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
		r, err := once.Do(ctx, ledger, jobKey(job), l.effect(client, job))
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

// effect is that of a job. It is started once in a call of Do, so that an answer that is an error leaves its doubt.
func (l *life) effect(client *http.Client, job int) once.Effect[string] {
	url := l.Desk + "/" + strconv.Itoa(job)
	effect := once.Effect[string]{Replays: l.Replays, Policy: &holdfast.Policy{Attempts: -1}, Run: func(ctx context.Context, _ string) (string, error) {
		return send(ctx, client, http.MethodPost, url)
	}}
	if l.Lookups {
		effect.Lookup = func(ctx context.Context, _ string) (string, bool, error) {
			id, err := send(ctx, client, http.MethodGet, url)
			return id, id != "", err
		}
	}
	return effect
}

func send(ctx context.Context, client *http.Client, method, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return "", once.Nothing(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", status(resp.StatusCode)
	}
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
	before, during, after := beforeFree, duringFree, afterFree
	switch {
	case isState(next, once.Started):
		before, during, after = beforeStart, duringStart, beforeEffect
	case isState(next, once.Done):
		before, during, after = beforeOutcome, duringOutcome, afterOutcome
	case isState(next, once.Unknown):
		before, during, after = beforeDoubt, duringDoubt, afterDoubt
	}
	d.die(before, true)
	d.die(during, false)
	ok, err := d.Store.Swap(ctx, key, revision, next)
	d.die(after, true)
	if d.armed && d.point == during { // it got through the write in whose middle it was to die: it is killed here then
		select {}
	}
	return ok, err
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
