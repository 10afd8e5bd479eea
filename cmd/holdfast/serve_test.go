package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/config"
	"holdfast/standin"
)

// certificate writes a certificate for this machine into a folder, and its key.
func certificate(t *testing.T, folder string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// served is a holdfast serve inside this process.
type served struct {
	out, words watched
	url        string
	interrupt  func()
	ended      chan int
}

// startServe starts it and waits until it says where it listens.
func startServe(t *testing.T, args ...string) *served {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	s := &served{interrupt: interrupt, ended: make(chan int, 1)}
	listens := make(chan string, 1)
	s.out.seen = func(text string) {
		if found := regexp.MustCompile(`ANTHROPIC_BASE_URL=(\S+)`).FindStringSubmatch(text); found != nil {
			listens <- found[1]
		}
	}
	go func() {
		s.ended <- run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "off"}, args...), streams{strings.NewReader(""), &s.out, &s.words})
	}()
	select {
	case s.url = <-listens:
	case code := <-s.ended:
		t.Fatalf("exit code %d\n%s", code, s.words.String())
	}
	return s
}

// end interrupts it and wants a good end.
func (s *served) end(t *testing.T) {
	t.Helper()
	s.interrupt()
	if code := <-s.ended; code != 0 {
		t.Errorf("exit code %d\n%s", code, s.words.String())
	}
}

// says waits until it has said something so many times.
func (s *served) says(t *testing.T, want string, times int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); strings.Count(s.words.String(), want) < times; <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not say %q %d times but\n%s", want, times, s.words.String())
		}
	}
}

// With a certificate the gateway speaks TLS, over HTTP/2 as well, and a reload takes the certificate that is there then.
func TestServeSpeaksTLS(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGHUP")
	}
	_, upstream := standin.Serve(t, standin.Plan{})
	folder := t.TempDir()
	certificate(t, folder, 1)
	file := filepath.Join(folder, "holdfast.yaml")
	text := "tls: {cert: " + filepath.Join(folder, "cert.pem") + ", key: " + filepath.Join(folder, "key.pem") + "}\ntargets: [{name: api, url: '" + upstream + "'}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, "--config", file)
	defer s.end(t)
	if !strings.HasPrefix(s.url, "https://127.0.0.1:") {
		t.Errorf("it listens on %s", s.url)
	}
	check := func(serial int64) {
		t.Helper()
		pool := x509.NewCertPool()
		chain, err := os.ReadFile(filepath.Join(folder, "cert.pem"))
		if err != nil || !pool.AppendCertsFromPEM(chain) {
			t.Fatal(err)
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
		defer client.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"X-Api-Key": {"any"}, "Anthropic-Version": {"2023-06-01"}}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		if got := resp.TLS.PeerCertificates[0].SerialNumber.Int64(); got != serial || resp.ProtoMajor != 2 || resp.StatusCode != 200 {
			t.Errorf("certificate %d, want %d; HTTP/%d, status %d", got, serial, resp.ProtoMajor, resp.StatusCode)
		}
	}
	hangUp := func() {
		t.Helper()
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Signal(syscall.SIGHUP)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	check(1)
	certificate(t, folder, 2)
	hangUp()
	s.says(t, "is in force", 1)
	check(2)
	if err := os.WriteFile(filepath.Join(folder, "cert.pem"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hangUp()
	s.says(t, "the configuration before stays in force", 1)
	if err := os.WriteFile(file, []byte("targets: [{name: api, url: '"+upstream+"'}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hangUp()
	s.says(t, "warning: a change of tls needs a restart", 1)
	certificate(t, folder, 3) // is not looked at any more
	if s.certificateSerial(t) != 2 {
		t.Error("the certificate changed although the configuration has none")
	}
}

// certificateSerial is that of the certificate that is shown now.
func (s *served) certificateSerial(t *testing.T) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), &tls.Config{InsecureSkipVerify: true}) // it is only looked at
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// Saved answers outlive the process, and a reload that asks for them the first time opens their file.
func TestServeKeepsAnswers(t *testing.T) {
	folder := t.TempDir()
	server, upstream := standin.Serve(t, standin.Plan{Steps: []standin.Step{{Kind: standin.OK}, {Kind: standin.HTTP, Status: 529, Times: -1}}})
	args := []string{"--upstream", upstream, "--set", "policy.attempts=1", "--set", "saved.path=" + filepath.Join(folder, "answers.db"),
		"--set", "routes.0.chain.0.target=upstream", "--set", "routes.0.chain.1=saved"}
	for i, want := range []string{"live", "saved"} {
		s := startServe(t, args...)
		seen := demoCaller{s.url, http.DefaultClient}.call(t.Context(), 1)
		if !seen.answered || seen.source != want {
			t.Errorf("call %d: %v, want %s", i+1, seen, want)
		}
		s.end(t)
	}
	if got := statuses(server.Journal()); got != "200 529" {
		t.Errorf("the stand-in answered %s", got)
	}
}

func TestUpstreamTarget(t *testing.T) {
	env := func(name string) string {
		return map[string]string{"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}[name]
	}
	for _, row := range []struct{ url, name, key string }{
		{"https://api.anthropic.com", "anthropic", "a"},
		{"https://api.anthropic.com/", "anthropic", "a"},
		{"https://api.openai.com", "openai", "o"},
		{"http://api.anthropic.com", "upstream", ""}, // in clear text, so without the key
		{"https://api.anthropic.com.evil.test", "upstream", ""},
		{"https://api.anthropic.com:8443", "upstream", ""},
		{"http://127.0.0.1:4010/base", "upstream", ""},
	} {
		got, err := upstreamTarget(row.url, env)
		key := ""
		if len(got.Keys) == 1 {
			key = got.Keys[0].Key.Reveal()
		}
		if err != nil || got.Name != row.name || got.URL != row.url || key != row.key {
			t.Errorf("%s: %s %s with %d keys, %v", row.url, got.Name, got.URL, len(got.Keys), err)
		}
	}
	for _, url := range []string{"", "api.anthropic.com", "ftp://a.test", "https://me:canary@a.test", "https://a.test?key=canary"} {
		_, err := upstreamTarget(url, env)
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func TestSameAddress(t *testing.T) {
	for _, row := range []struct {
		url, own string
		want     bool
	}{
		{"http://127.0.0.1:4100", "127.0.0.1:4100", true},
		{"http://localhost:4100/base", "127.0.0.1:4100", true},
		{"http://[::1]:4100", "[::1]:4100", true},
		{"http://127.0.0.1:4100", "0.0.0.0:4100", true},
		{"http://localhost:4100", "[::]:4100", true},
		{"http://10.0.0.1:4100", "10.0.0.1:4100", true},
		{"http://127.0.0.1:4101", "127.0.0.1:4100", false},
		{"http://127.0.0.2:4100", "127.0.0.1:4100", false},
		{"http://localhost:4100", "10.0.0.1:4100", false},
		{"http://10.0.0.2:4100", "0.0.0.0:4100", false},
		{"https://api.anthropic.com", "127.0.0.1:443", false},
	} {
		u, err := url.Parse(row.url)
		if err != nil {
			t.Fatal(err)
		}
		own, err := net.ResolveTCPAddr("tcp", row.own)
		if err != nil {
			t.Fatal(err)
		}
		if got := sameAddress(u, own); got != row.want {
			t.Errorf("%s leads to %s: %v, want %v", row.url, row.own, got, row.want)
		}
	}
}

// When stdout is closed nobody learns the lines to paste: nothing is served then, and nothing stays open.
func TestServeNeedsSomebodyToPaste(t *testing.T) {
	var words strings.Builder
	code := run(t.Context(), []string{"serve", "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:0", "--admin", "off"},
		streams{strings.NewReader(""), closedPipe{}, &words})
	if code != 1 || !strings.Contains(words.String(), "error: cannot write the output") {
		t.Errorf("exit code %d\n%s", code, words.String())
	}
}

// Where the log is JSON, everything on stderr is.
func TestServeSpeaksAsItsLog(t *testing.T) {
	_, upstream := standin.Serve(t, standin.Plan{})
	s := startServe(t, "--upstream", upstream, "--set", "log.format=json", "--set", "saved.path=unused.db")
	if seen := (demoCaller{s.url, http.DefaultClient}).call(t.Context(), 1); !seen.answered {
		t.Error(seen)
	}
	s.end(t)
	levels := map[string]int{}
	for line := range strings.Lines(s.words.String()) {
		var record struct{ Level, Msg string }
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Msg == "" {
			t.Errorf("%v: %s", err, line)
		}
		levels[record.Level]++
	}
	if levels["WARN"] != 1 || levels["INFO"] < 4 {
		t.Errorf("%v\n%s", levels, s.words.String())
	}
}

// Keys go where they belong and are seen nowhere: not at the start, not in the log of calls that succeed and fail, on no page of
// the admin listener. That holds for a client's key that nobody knows, too (B163).
func TestB164_KeysAreSeenNowhere(t *testing.T) {
	const upstreamKey, clientKey, wrongKey = "sk-ant-CANARY-upstream", "hf-CANARY-client", "hf-CANARY-wrong"
	server, upstream := standin.Serve(t, standin.Plan{Steps: []standin.Step{{Kind: standin.OK}, {Kind: standin.HTTP, Status: 401}, {Kind: standin.HTTP, Status: 529, Times: -1}}})
	t.Setenv("CANARY", upstreamKey)
	file := filepath.Join(t.TempDir(), "holdfast.yaml")
	text := "targets: [{name: api, url: '" + upstream + "', key: '${CANARY}'}]\npolicy: {attempts: 1}\nlog: {level: debug}\n" +
		"clients: [{name: web, key_sha256: " + hashOfKey(clientKey) + "}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, "--config", file, "--admin", "127.0.0.1:0")
	var told strings.Builder // everything that was said to anybody
	ask := func(method, url, key string) int {
		t.Helper()
		body := `{"model": "claude-sonnet-5-5", "max_tokens": 50, "messages": [{"role": "user", "content": "CANARY-prompt"}]}`
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Anthropic-Version": {"2023-06-01"}, "Cookie": {"session=CANARY-cookie"}}
		if key != "" {
			req.Header.Set("X-Api-Key", key)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_ = resp.Header.Write(&told)
		_, _ = io.Copy(&told, resp.Body)
		return resp.StatusCode
	}
	for _, row := range []struct {
		key  string
		want int
	}{{clientKey, 200}, {wrongKey, 401}, {clientKey, 401}, {clientKey, 529}} {
		if got := ask(http.MethodPost, s.url+"/v1/messages?key=CANARY-query", row.key); got != row.want {
			t.Errorf("status %d, want %d", got, row.want)
		}
	}
	admin := regexp.MustCompile(`shown under (http://\S+)/`).FindStringSubmatch(s.words.String())[1]
	for _, page := range []string{"/", "/metrics", "/readyz", "/api/status", "/api/calls"} {
		if got := ask(http.MethodGet, admin+page, ""); got != http.StatusOK {
			t.Errorf("%s: status %d", page, got)
		}
	}
	s.end(t)
	told.WriteString(s.out.String() + s.words.String())
	if all := told.String(); strings.Contains(all, "CANARY") || strings.Contains(all, hashOfKey(clientKey)) {
		at := max(strings.Index(all, "CANARY"), 0)
		t.Errorf("a key, a cookie or a prompt is seen: …%s…", all[max(at-200, 0):min(at+100, len(all))])
	}
	if !strings.Contains(s.words.String(), "client=web") || !strings.Contains(s.words.String(), "level=DEBUG") {
		t.Errorf("the log tells too little for this test:\n%s", s.words.String())
	}
	j := server.Journal()
	if len(j) != 3 || j[0].Key != hashOfKey(upstreamKey)[:12] {
		t.Errorf("%d requests arrived, the first with key %s", len(j), j[0].Key)
	}
}

// Every hint of a mistake is given.
func TestServeHints(t *testing.T) {
	for name, o := range map[string]serveOptions{
		"both sources":  {config: "x", upstream: "y"},
		"demo of a URL": {demo: true, upstream: "y"},
		"keep alone":    {keep: true},
	} {
		if err := o.contradiction(); err == nil || hintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	own := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4100}
	err := refuseItself(&config.File{Targets: []config.Target{{Name: "me", URL: "http://localhost:4100"}}}, own)
	var coded *exitError
	if !errors.As(err, &coded) || coded.code != exitUsage || coded.Hint() == "" {
		t.Error(err)
	}
}
