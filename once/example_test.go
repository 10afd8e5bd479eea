package once_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"holdfast/once"
)

// A desk that honours keys loses the answer to the first request. The ticket is opened once all the same, and whoever comes with
// the key later gets it from the record.
func ExampleDo() {
	opened := map[string]string{} // by key, at the desk
	requests := 0
	open := func(_ context.Context, key string) (string, error) {
		requests++
		if opened[key] == "" {
			opened[key] = fmt.Sprintf("TCK-%d", len(opened)+1)
		}
		if requests == 1 {
			return "", io.ErrUnexpectedEOF // the desk opened it, and nobody heard
		}
		return opened[key], nil
	}

	ledger := once.New(once.NewMemory(), once.Options{})
	key := once.Key("ticket", "acme", "order 4711")
	for range 2 {
		result, err := once.Do(context.Background(), ledger, key, once.Effect[string]{Run: open, Replays: true})
		fmt.Println(result.Value, result.Source, err)
	}
	fmt.Println(len(opened), "ticket after", requests, "requests")
	// Output:
	// TCK-1 ran <nil>
	// TCK-1 recorded <nil>
	// 1 ticket after 2 requests
}

// A mail server knows no keys. After a lost answer nobody can tell whether the mail went out: it is not sent again, and all callers
// are told, until somebody has looked.
func ExampleResolve() {
	sent := 0
	send := once.Effect[string]{Run: func(context.Context, string) (string, error) {
		sent++
		return "", io.ErrUnexpectedEOF
	}}

	ctx, key := context.Background(), once.Key("mail", "welcome", "customer 7")
	ledger := once.New(once.NewMemory(), once.Options{})
	for range 2 {
		_, err := once.Do(ctx, ledger, key, send)
		var unknown *once.UnknownError
		fmt.Println(errors.As(err, &unknown), sent)
	}
	for r := range ledger.Doubtful(ctx) {
		fmt.Println("in doubt:", r.Key == key, r.Why)
	}
	fmt.Println(once.Resolve(ctx, ledger, key, "it is in the outbox"))
	result, err := once.Do(ctx, ledger, key, send)
	fmt.Println(result.Value, err, sent)
	// Output:
	// true 1
	// true 1
	// in doubt: true it failed: connection-lost
	// <nil>
	// it is in the outbox <nil> 1
}

// Whoever does not know the parts cannot read them from the key.
func ExampleKey() {
	fmt.Println(once.Key("ticket", "acme", "4711"))
	fmt.Println(once.Key("ab", "c") == once.Key("a", "bc"))
	// Output:
	// hf1-jra6j2pf2q7tz3zdjz373pbpmzblybrovak27p6wqnk33us2eczq
	// false
}

// A guess can be tested against a key only with the secret.
func ExampleKeyed() {
	mail := "anna@example.com"
	fmt.Println(once.Keyed([]byte("16 random bytes!"), "welcome", mail) == once.Keyed([]byte("another secret.."), "welcome", mail))
	// Output: false
}

// An effect puts its key into the context; the transport puts it into the request.
func ExampleTransport() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%d characters", len(r.Header.Get("Idempotency-Key")))
	}))
	defer server.Close()
	client := &http.Client{Transport: &once.Transport{Base: &http.Transport{DisableKeepAlives: true}}}

	result, err := once.Do(context.Background(), once.New(once.NewMemory(), once.Options{}), once.Key("ticket", "4711"), once.Effect[string]{
		Replays: true,
		Run: func(ctx context.Context, _ string) (string, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
			if err != nil {
				return "", once.Nothing(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			return string(text), err
		},
	})
	fmt.Println(result.Value, err)
	// Output: 56 characters <nil>
}
