package once_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"holdfast/once"
)

// Whatever a store holds, it is read as a record that could have been written, or as corrupt; and what was read is written as it
// was.
func FuzzRecord(f *testing.F) {
	good := once.Record{
		State: once.Done, Revision: "r", Owner: "o", Request: "ab", First: time.UnixMilli(1), Starts: 2, Changed: time.UnixMilli(2),
		Expires: time.UnixMilli(3), Outcome: []byte(`{"a":"é\u0000<"}`),
	}
	data, err := good.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for _, seed := range []string{
		``, `null`, `[]`, `{"v":1}`, `{"v":2}`, `{"v":1,"state":"started","revision":"r","owner":"o","first":1,"lease":5,"changed":1}`,
		`{"v":1,"state":"unknown","revision":"r","owner":"o","first":-62135596800000,"changed":1,"why":"x"}`,
		`{"v":1,"state":"done","revision":"r","owner":"o","first":9223372036854775807,"changed":1,"outcome":null}`,
		`{"v":1,"state":"done","revision":"r","owner":"o","first":1,"changed":1,"unkept":"large"}`,
		`{"v":1,"state":"done","revision":"r","owner":"o","first":1,"changed":1,"outcome":{"a":1}}{`, `{"v":1,"state":"","revision":"r","owner":"o","first":1,"changed":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := once.Record{Key: "k"}
		if err := r.UnmarshalBinary(data); err != nil {
			if !errors.Is(err, once.ErrCorrupt) || r.Key != "k" || r.State != 0 || r.Revision != "" {
				t.Fatalf("%v left %+v", err, r)
			}
			if len(data) > 20 && bytes.Contains([]byte(err.Error()), data) {
				t.Fatalf("the error quotes the record: %v", err)
			}
			return
		}
		first, err := r.MarshalBinary()
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", r, err)
		}
		again := once.Record{Key: "k"}
		if err := again.UnmarshalBinary(first); err != nil {
			t.Fatalf("%s cannot be read: %v", first, err)
		}
		second, err := again.MarshalBinary()
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%s became %s, %v", first, second, err)
		}
	})
}
