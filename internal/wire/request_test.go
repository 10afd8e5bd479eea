package wire_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"testing"

	"holdfast/internal/wire"
)

func TestReadRequest(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(`{"model":"m","stream":true}`))
	_ = w.Close()
	for _, c := range []struct {
		name, body string
		want       wire.Request
	}{
		{"nothing", "", wire.Request{}},
		{"no object", "[1]", wire.Request{}},
		{"both", ` {"model" : "a\u0062", "stream": true}`, wire.Request{Model: "ab", Stream: true}},
		{"inside other members they do not count", `{"metadata":{"model":"x","stream":true},"model":"m"}`, wire.Request{Model: "m"}},
		{"the last one counts", `{"model":"a","stream":true,"model":"b","stream":false}`, wire.Request{Model: "b"}},
		{"torn", `{"model":"a","messages":[{"role":`, wire.Request{Model: "a"}},
		{"not a text", `{"model":7,"stream":"true"}`, wire.Request{}},
		{"packed", packed.String(), wire.Request{Model: "m", Stream: true, Packed: true}},
	} {
		if got := wire.ReadRequest([]byte(c.body)); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestSetModelChangesNothingElse(t *testing.T) {
	for body, want := range map[string]string{
		`{ "a":1.0, "model" :"x" , "b":[ 1 ] }`:       `{ "a":1.0, "model" :"new" , "b":[ 1 ] }`,
		`{"model":"x","m":{"model":"x"},"model":"y"}`: `{"model":"new","m":{"model":"x"},"model":"new"}`,
		`{"a":1}`: `{"a":1}`,
		``:        ``,
	} {
		if got := string(wire.SetModel([]byte(body), "new")); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}

func TestB104_SealedPartsGoWithoutEmptyShells(t *testing.T) {
	const (
		think = `{"type":"thinking","thinking":"x","signature":"s"}`
		text  = `{"type":"text","text":"t"}`
		user  = `{"role":"user","content":"q"}`
	)
	says := func(parts string) string { return `{"role":"assistant","content":[` + parts + `]}` }
	for name, c := range map[string]struct{ body, want string }{
		"none":                {`{"messages":[` + user + `]}`, `{"messages":[` + user + `]}`},
		"first":               {`{"messages":[` + user + `,` + says(think+` , `+text) + `]}`, `{"messages":[` + user + `,` + says(text) + `]}`},
		"last":                {`{"messages":[` + says(text+` , `+think) + `],"model":"m"}`, `{"messages":[` + says(text) + `],"model":"m"}`},
		"between":             {`{"messages":[` + says(text+`,`+think+`,`+text) + `]}`, `{"messages":[` + says(text+`,`+text) + `]}`},
		"several":             {`{"messages":[` + says(think+`,`+think+`,`+text+`,`+think+`,`+think) + `]}`, `{"messages":[` + says(text) + `]}`},
		"a turn of it alone":  {`{"messages":[` + user + `,` + says(think) + `,` + user + `]}`, `{"messages":[` + user + `,` + user + `]}`},
		"the first turn":      {`{"messages":[` + says(think) + `, ` + user + `]}`, `{"messages":[` + user + `]}`},
		"redacted":            {`{"messages":[` + says(`{"type":"redacted_thinking","data":"d"},`+text) + `]}`, `{"messages":[` + says(text) + `]}`},
		"reasoning of OpenAI": {`{"input":[{"type":"reasoning","encrypted_content":"e"},` + user + `]}`, `{"input":[` + user + `]}`},
		"a tool that thinks":  {`{"messages":[` + says(`{"type":"tool_use","input":{"type":"thinking"}}`) + `]}`, `{"messages":[` + says(`{"type":"tool_use","input":{"type":"thinking"}}`) + `]}`},
	} {
		if got := string(wire.WithoutSealed([]byte(c.body))); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestWithoutMembers(t *testing.T) {
	for body, want := range map[string]string{
		`{"a":1,"fallbacks":"default","b":2}`:            `{"a":1,"b":2}`,
		`{"fallbacks":[{"model":"m"}], "a":1}`:           `{"a":1}`,
		`{"a":1 , "fallbacks":"default" }`:               `{"a":1 }`,
		`{"fallbacks":1,"fallbacks":2}`:                  `{}`,
		`{"fallbacks":1,"a":1,"metadata":{},"b":2}`:      `{"a":1,"b":2}`,
		`{"a":{"fallbacks":1},"messages":["fallbacks"]}`: `{"a":{"fallbacks":1},"messages":["fallbacks"]}`,
		`["fallbacks"]`: `["fallbacks"]`,
		`{"metadata":1,"fallbacks":2,"a":1,"fallbacks":3}`: `{"a":1}`,
	} {
		if got := string(wire.WithoutMembers([]byte(body), "fallbacks", "metadata")); got != want {
			t.Errorf("%s became %s, want %s", body, got, want)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","messages":[{"role":"assistant","content":[{"type":"thinking"},{"type":"text"}]},{"role":"user","content":"q"}]}`))
	f.Add([]byte(`{"input":[{"type":"reasoning"}],"model":`))
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		wire.ReadRequest(body)
		named, stripped := wire.SetModel(body, "n"), wire.WithoutSealed(wire.WithoutMembers(body, "model", "input"))
		if !bytes.Equal(before, body) {
			t.Fatal("the body itself was changed")
		}
		if json.Valid(body) && (!json.Valid(named) || !json.Valid(stripped)) {
			t.Fatalf("%s became %s and %s", body, named, stripped)
		}
	})
}
