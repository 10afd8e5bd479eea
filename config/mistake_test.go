package config_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/config"
)

const hashOfSecret = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"

// two are targets of two dialects, on the first line of a text.
const two = "targets: [{name: claude, url: \"https://a.example\", dialect: anthropic, keys: [k1, {name: spare, key: k2}]}, {name: gpt, url: \"https://o.example\", dialect: openai}]\n"

func TestMistakesOfTheGateway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"addresses", "listen: here\nadmin: 127.0.0.1:99999\n", []string{
			`line 1: listen: must be host:port such as 127.0.0.1:4100, not "here"`,
			`line 2: admin: must be host:port such as 127.0.0.1:4101, or the word off, not "127.0.0.1:99999"`}},
		{"one address for both", "listen: 127.0.0.1:4101\n", []string{`line 0: admin: is the address of listen too; it needs a port of its own, or the word off`}},
		{"open to everybody", "listen: :4100\n", []string{`line 1: listen: :4100 can be reached from other machines, so it needs clients with keys; holdfast key new makes one`}},
		{"half of TLS", "tls: {cert: a}\n", []string{`line 1: tls: needs both cert and key, the files of the certificate chain and of its key`}},
		{"URLs", "targets:\n- {name: a}\n- {name: b, url: api.anthropic.com}\n- {name: c, url: \"ftp://h\"}\n- {name: d, url: \"https://u:CANARY@h\"}\n- {name: e, url: \"https://h?key=CANARY\"}\n- {name: f, url: \"https://h/#x\"}\n- {name: g, url: \"http://:80\"}\n- {name: h, url: \"http://h:x\"}\n", []string{
			`line 2: targets.0.url: is missing; such as https://api.anthropic.com`,
			`line 3: targets.1.url: must begin with https:// or http://`,
			`line 4: targets.2.url: must begin with https:// or http://`,
			`line 5: targets.3.url: must not hold a user or password; the credentials are under key`,
			`line 6: targets.4.url: must not have a query: that of each request is passed on as it is, and a key is under key`,
			`line 7: targets.5.url: must not have a fragment`,
			`line 8: targets.6.url: must have a host, and a port from 0 to 65535 if it has one`,
			`line 9: targets.7.url: is not a URL`}},
		{"words of a target", "targets: [{name: a, url: \"http://h\", dialect: antropic, auth: beaer}, {name: b, url: \"http://h\", auth: CANARY-7}]\n", []string{
			`line 1: targets.0.dialect: must be anthropic or openai; did you mean "anthropic"?`,
			`line 1: targets.0.auth: must be x-api-key, bearer or api-key; did you mean "bearer"?`,
			`line 1: targets.1.auth: must be x-api-key, bearer or api-key: it says how the key is sent`}},
		{"names of targets", "targets:\n- {name: a, url: \"http://h\"}\n- {name: a, url: \"http://i\"}\n- {name: \"a b\", url: \"http://h\"}\n- {url: \"http://h\"}\n- {url: \"http://h\"}\n", []string{
			`line 3: targets.1.name: is "a", and so is that of targets.0`,
			`line 4: targets.2.name: must be at most 64 letters, digits and . _ : @ + -, and begin with a letter or digit`,
			`line 6: targets.4.name: is "h", and so is that of targets.3`}},
		{"keys", "targets:\n- {name: a, url: \"http://h\", key: CANARY1, keys: [CANARY2]}\n- {name: b, url: \"http://h\", keys: [CANARY1, CANARY1, {name: x}, {name: \"1\", key: CANARY3}]}\n- {name: c, url: \"http://h\", keys: CANARY4}\n- {name: d, url: \"http://h\", key: \"\"}\n- {name: e, url: \"http://h\", key: [CANARY5]}\n- {name: f, url: \"http://h\", key: \"CANARY 6\"}\n", []string{
			`line 2: targets.0.keys: stands beside key; all of them belong under keys`,
			`line 3: targets.1.keys.1.key: is that of keys.0 too`,
			`line 3: targets.1.keys.2.key: is missing`,
			`line 3: targets.1.keys.3.name: is "1", and so is that of targets.1.keys.0`,
			`line 4: targets.2.keys: must be a list, not a single value`,
			`line 5: targets.3.key: is empty; without it the caller's own key passes through`,
			`line 6: targets.4.key: must be text, not a list`,
			`line 7: targets.5.key: holds a character that no key has, at place 7 of 8: a space, a control character or one beyond ASCII`}},
		{"a target's breaker", two + "breaker: {cooldown: 1s}\ntargets:\n", []string{`line 3: targets: stands here again after line 1`}},
		{"rules of a target's own breaker", "targets:\n- url: http://h\n  breaker:\n    ratio: 2\n", []string{`line 4: targets.0.breaker.ratio: is 2, more than all calls`}},
		{"a section's mistake is told once", "targets: [{url: \"http://h\", breaker: {failures: 2}}]\nbreaker: {ratio: 2}\n", []string{`line 2: breaker.ratio: is 2, more than all calls`}},
		{"chains", two + "routes:\n- {chain: [{target: cluade}, {model: m}, {target: xxxxxx}]}\n- {chain: []}\n- {chain: [saved]}\n- {name: x}\n- {chain: [saved, {target: claude}]}\n- {chain: [claude, {target: claude}, savd]}\n- {chain: [{target: claude}, {target: gpt}]}\n- {models: [a], chain: [{target: claude}, {target: claude}]}\n", []string{
			`line 3: routes.0.chain.0.target: there is no target "cluade"; did you mean "claude"?`,
			`line 3: routes.0.chain.1.target: is missing; known are claude, gpt`,
			`line 3: routes.0.chain.2.target: there is no target "xxxxxx"; known are claude, gpt`,
			`line 4: routes.1.chain: asks nobody; it needs a target such as {target: NAME}`,
			`line 4: routes.1: never matches: routes.0 before it takes all its models`,
			`line 5: routes.2.chain: asks nobody; it needs a target such as {target: NAME}`,
			`line 5: routes.2: never matches: routes.0 before it takes all its models`,
			`line 6: routes.3.chain: asks nobody; it needs a target such as {target: NAME}`,
			`line 6: routes.3: never matches: routes.0 before it takes all its models`,
			`line 7: routes.4.chain.0: saved must be the last of its chain: nothing after it would be asked`,
			`line 7: routes.4: never matches: routes.0 before it takes all its models`,
			`line 8: routes.5.chain.0: must be {target: claude} or the word saved`,
			`line 8: routes.5.chain.2: did you mean "saved"?`,
			`line 8: routes.5: never matches: routes.0 before it takes all its models`,
			`line 9: routes.6.chain.1: gpt speaks openai and claude before it anthropic: nothing is translated between dialects`,
			`line 9: routes.6: never matches: routes.0 before it takes all its models`,
			`line 10: routes.7.chain.1: asks the same as place 0 of its chain; policy.attempts says how often one is asked`,
			`line 10: routes.7: never matches: routes.0 before it takes all its models`}},
		{"entries", two + "routes:\n- chain:\n  - {target: claude, key: CANARY}\n  - {target: claude, path: v1}\n  - {target: claude, betas: [\"a,b\"], version: \"a b\", sealed: kepe}\n- chain:\n  - {target: gpt, betas: []}\n  - {target: gpt, key: x, model: m}\n", []string{
			`line 4: routes.0.chain.0.key: is not the name of a key of claude; known are 1, spare`,
			`line 5: routes.0.chain.1.path: must begin with / and have no query: it replaces the base path of the target's URL`,
			`line 6: routes.0.chain.2.sealed: must be keep or strip; did you mean "keep"?`,
			`line 6: routes.0.chain.2.betas.0: must be one name, without spaces or commas`,
			`line 6: routes.0.chain.2.version: must be a version such as 2023-06-01`,
			`line 8: routes.1.chain.0: betas and version are headers of the anthropic dialect, and gpt speaks openai`,
			`line 9: routes.1.chain.1.key: is not the name of a key of gpt; there are none`}},
		{"refusals", two + "routes:\n- {models: [a], chain: [{target: claude, model: m}], on_refusal: {model: m}}\n- {models: [b], chain: [{target: claude}], on_refusal: {model: b}}\n- {models: [c], chain: [{target: claude}], on_refusal: saved}\n- {models: [d], chain: [{target: claude}], on_refusal: {target: gpt, model: m}}\n- {models: [e], chain: [{target: claude}], on_refusal: {target: gtp, model: m}}\n- {models: [f], chain: [{target: claude}], on_refusal: {}}\n", []string{
			`line 3: routes.0.on_refusal.model: is that of the chain's first entry, which has refused; name another`,
			`line 4: routes.1.on_refusal.model: is that of the chain's first entry, which has refused; name another`,
			`line 5: routes.2.on_refusal: must be a target: a saved answer never stands in for a refusal`,
			`line 6: routes.3.on_refusal: gpt speaks openai and claude before it anthropic: nothing is translated between dialects`,
			`line 7: routes.4.on_refusal.target: there is no target "gtp"; did you mean "gpt"?`,
			`line 8: routes.5.on_refusal.model: is that of the chain's first entry, which has refused; name another`}},
		{"routes that never match", two + "routes:\n- {models: [\"claude-*\", m], chain: [{target: claude}]}\n- {models: [\"claude-opus-*\", claude-x, m], chain: [{target: claude}]}\n- {models: [\"claude-*\"], chain: [{target: gpt}]}\n- {models: [\"claude-opus-*\", n], chain: [{target: claude}]}\n- {name: a, chain: [{target: claude}]}\n- {name: a, models: [\"[\", \"\"], chain: [{target: gpt}]}\n", []string{
			`line 4: routes.1: never matches: routes.0 before it takes all its models`,
			`line 8: routes.5.name: is "a", and so is that of routes.4`,
			`line 8: routes.5.models.0: is no pattern; such as claude-opus-*`,
			`line 8: routes.5.models.1: is no pattern; such as claude-opus-*`}},
		{"clients", "clients:\n- {name: a, key_sha256: " + hashOfSecret + "}\n- {name: a, key_sha256: hf-CANARY}\n- {key_sha256: " + strings.ToUpper(hashOfSecret) + "}\n- {name: c}\n- {name: d, key_sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855, lane: buld}\n", []string{
			`line 3: clients.1.name: is "a", and so is that of clients.0`,
			`line 3: clients.1.key_sha256: must be the 64 hex digits of a key's SHA-256; holdfast key hash makes them of a key`,
			`line 4: clients.2.name: is missing; each client needs one`,
			`line 4: clients.2.key_sha256: is that of clients.0 too: one of them would never be recognised`,
			`line 5: clients.3.key_sha256: is missing; holdfast key new makes a key and its hash`,
			`line 6: clients.4.lane: must be interactive or bulk; did you mean "bulk"?`,
			`line 6: clients.4.key_sha256: is the hash of an empty text`}},
		{"sizes and words", "limits: {max_body: 1.5, body_memory: 1 bit}\nlog: {format: xml, level: inf}\nstream: {delivery: late}\npace: {follow_headers: yes}\n", []string{
			`line 1: limits.max_body: must be a size such as 512MiB, or a number of bytes`,
			`line 1: limits.body_memory: must be a size such as 512MiB, or a number of bytes`,
			`line 2: log.format: must be text or json, not "xml"`,
			`line 2: log.level: must be debug, info, warn or error; did you mean "info"?`,
			`line 3: stream.delivery: must be live or whole, not "late"`,
			`line 4: pace.follow_headers: must be true or false, not "yes"`}},
		{"what cannot be read is told once", "targets: [{nam: a, url: \"${HOLDFAST_NOT_SET}\"}]\nroutes: [{chain: [{target: a}, {taget: b}]}]\n", []string{
			`line 1: targets.0.nam: unknown key; did you mean "name"?`,
			`line 1: targets.0.url: environment variable ${HOLDFAST_NOT_SET} is not set`,
			`line 2: routes.0.chain.1.taget: unknown key; did you mean "target"?`}},
		{"a key in the place of a variable's name", "targets: [{url: \"http://h\", key: \"${sk-ant-CANARY}\"}]\n", []string{
			`line 1: targets.0.key: ${…} must hold the name of an environment variable, or file: and the path of a file`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse([]byte(c.text))
			if err == nil {
				t.Fatal("no error")
			}
			var want []string
			for _, w := range c.want {
				want = append(want, "config: "+strings.TrimPrefix(w, "line 0: "))
			}
			if d := cmp.Diff(want, strings.Split(err.Error(), "\n")); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if strings.Contains(err.Error(), "CANARY") {
				t.Errorf("a mistake shows a key:\n%v", err)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing to say", two + "routes: [{chain: [{target: claude}, saved]}]\nsaved: {mark: true}\n", nil},
		{"addresses", "listen: 0.0.0.0:4100\nadmin: \"[::]:4101\"\nclients: [{name: a, key_sha256: " + hashOfSecret + "}]\n", []string{
			`line 1: listen: 0.0.0.0:4100 has no tls: keys and prompts cross the network in the clear, unless something in front of it has`,
			`line 2: admin: [::]:4101 can be reached from other machines, and asks nobody who they are`}},
		{"a keyless target with clients", two + "clients: [{name: a, key_sha256: " + hashOfSecret + "}]\n", []string{
			`line 1: targets.1: gpt has no key: a client must send one for it in the usual header, and his own in holdfast-key`}},
		{"keys in the clear", "targets: [{name: a, url: \"http://api.example.com\", key: k}, {name: b, url: \"http://10.0.0.7\", key: k}, {name: c, url: \"http://proxy:80\", key: k}, {name: d, url: \"http://svc.cluster.local\", key: k}, {name: e, url: \"http://8.8.8.8\", key: k}]\n", []string{
			`line 1: targets.0.url: sends the key in the clear; https:// does not`,
			`line 1: targets.4.url: sends the key in the clear; https:// does not`}},
		{"auth without a key", "targets: [{url: \"http://h\", auth: bearer}]\n", []string{`line 1: targets.0.auth: says how a key is sent, and there is none`}},
		{"saved, and no chain says so", "saved: {path: x.db}\n", []string{`line 1: saved: no chain ends in the word saved, so no answer is kept and none is used`}},
		{"timers", "policy: {deadline: 1m, connect_timeout: 2m, idle_timeout: 1m}\n", []string{`line 1: policy.connect_timeout: is 2m0s, more than the deadline of 1m0s, which comes first`}},
		{"timers against the usual deadline", "policy:\n  first_content_timeout: 11m\n", []string{`line 2: policy.first_content_timeout: is 11m0s, more than the deadline of 10m0s, which comes first`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, err := config.Parse([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, f.Warnings()); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// B164: a configuration that is printed, logged, encoded or found wrong shows none of its keys.
func TestB164NothingShowsAKey(t *testing.T) {
	f := example(t)
	var out strings.Builder
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, format+"\n", f)
		fmt.Fprintf(&out, format+"\n", *f)
		fmt.Fprintf(&out, format+"\n", f.Targets)
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("configuration", "file", f, "targets", f.Targets, "key", f.Targets[1].Key)
	}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(text)
	fmt.Fprintln(&out, f.Warnings())
	for _, override := range []string{
		"targets.1.key:sk-CANARY-0123456789", "targets.1.key={sk-CANARY", "targets.1.key=[sk-CANARY]", "targets.0.keys=CANARY", "targets.0.keys.0=CANARY CANARY",
		"targets.9.key=sk-CANARY", "targets.x.key=CANARY", "targets=CANARY", "clients.0.key_sha256=CANARY", "routes.0.chain.1.key=CANARY",
		"listen=sk-ant-CANARY0123456789", "log.level=sk-ant-CANARY0123456789", "policy.attempts=sk-ant-CANARY0123456789", "routes.0.chain.1=sk-ant-CANARY0123456789",
	} {
		err := f.SetAll([]string{override})
		if err == nil {
			t.Errorf("--set %s is let through", override)
		}
		fmt.Fprintln(&out, err)
	}
	if i := strings.Index(out.String(), "CANARY-"); i >= 0 {
		t.Errorf("a key is shown: …%s…", out.String()[max(i-100, 0):i+20])
	}
	if i := strings.Index(out.String(), "CANARY0"); i >= 0 {
		t.Errorf("a key in a wrong place is shown: …%s…", out.String()[max(i-100, 0):i+20])
	}
	if n := strings.Count(out.String(), "CANARY"); n > 0 {
		t.Errorf("a key is shown %d times:\n%s", n, out.String())
	}
	if !strings.Contains(out.String(), "[hidden]") || f.Targets[1].Key.Reveal() != "sk-CANARY-OPENAI_API_KEY" {
		t.Error("the key is hidden from whoever needs it, or was not printed at all")
	}
}
