package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"holdfast"
	"holdfast/config"
	"holdfast/saved"
	"holdfast/standin"
)

// The README is held against the program: every command runs, every number comes out, and the example compiles and works.

func readReadme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// atStandin points the environment at a stand-in and moves to an empty folder.
func atStandin(t *testing.T) {
	t.Helper()
	url, stop, err := standin.New(standin.Failing(1, 529, "")).Start("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop() })
	t.Setenv("ANTHROPIC_BASE_URL", url)
	t.Setenv("ANTHROPIC_API_KEY", "any")
	plan := readmeBlock(t, "yaml", "seed:")
	t.Chdir(t.TempDir())
	if err := os.WriteFile("plan.yaml", plan, 0o600); err != nil {
		t.Fatal(err)
	}
}

// readmeBlock is the one block of the README in a language that begins so.
func readmeBlock(t *testing.T, language, start string) []byte {
	t.Helper()
	block := regexp.MustCompile("(?s)```"+language+"\n("+start+".*?)```").FindAllStringSubmatch(readReadme(t), -1)
	if len(block) != 1 {
		t.Fatalf("the README has %d blocks of %s that begin with %q, want 1", len(block), language, start)
	}
	return []byte(block[0][1])
}

// serves reports whether a command line serves until it is interrupted.
func serves(args []string) bool {
	return args[0] == "serve" || args[0] == "standin" && (len(args) == 1 || strings.HasPrefix(args[1], "--") || args[1] == "record")
}

// played runs a command line as the README quotes it. A server is interrupted as soon as it says where it listens.
func played(t *testing.T, line string) (out string, code int) {
	t.Helper()
	args := split(line)[1:]
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	switch {
	case serves(args):
		args = append(args, "--listen", "127.0.0.1:0")
		if args[0] == "serve" {
			args = append(args, "--admin", "127.0.0.1:0")
		}
	case strings.HasPrefix(line, "holdfast explain last"): // of a gateway, one of whose calls failed
		r := courseOf(t, holdfast.Policy{}, down)
		admin, _ := fakeAdmin(t, r.Report())
		args = append(args, "--admin", admin)
	case strings.HasPrefix(line, "holdfast standin report"): // of a stand-in that other lines have not been at
		_, url := standin.Serve(t, standin.Plan{})
		t.Setenv("ANTHROPIC_BASE_URL", url)
	}
	if line == "holdfast validate" {
		if err := os.WriteFile(configName, []byte("policy: {attempts: 6}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(configName)
	}
	if strings.HasPrefix(line, "holdfast saved ") {
		saveAnswer(t, "answers.db")
		defer os.Remove("answers.db")
	}
	var o, words watched
	o.seen = func(text string) {
		if serves(args) && strings.HasPrefix(text, "export ") {
			interrupt()
		}
	}
	code = run(ctx, args, streams{strings.NewReader(""), &o, &words})
	if code != 0 {
		t.Logf("stderr of %s:\n%s", line, words.String())
	}
	return o.String(), code
}

// saveAnswer makes a file with an answer in it.
func saveAnswer(t *testing.T, name string) {
	t.Helper()
	store, err := saved.Open(name, saved.Options{})
	if err != nil {
		t.Fatal(err)
	}
	q := &saved.Question{Method: http.MethodPost, Path: "/v1/messages", Body: []byte(`{}`)}
	a := &saved.Answer{Body: []byte(`{"type":"message","content":[{"type":"text","text":"Because."}],"stop_reason":"end_turn"}`)}
	if err := errors.Join(store.Put(t.Context(), q, a), store.Close()); err != nil {
		t.Fatal(err)
	}
}

// watched is a buffer that shows each write.
type watched struct {
	seen func(string)
	mu   sync.Mutex
	all  bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen != nil {
		w.seen(string(p))
	}
	return w.all.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

var words = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)

func split(line string) (args []string) {
	for _, word := range words.FindAllString(line, -1) {
		args = append(args, strings.Trim(word, `"'`))
	}
	return args
}

var quoted = regexp.MustCompile("(?m)(?:`|^)(holdfast [a-z][^`\n#]*)")

// A row of numbers: | what | number, number | `command` |
var numbers = regexp.MustCompile("(?m)^\\| .* \\| ([\\d.][^|]*) \\| `(holdfast [^`]+)` \\|$")

// Each command runs once, and is held against the numbers that stand beside it.
func TestReadmeCommandsRunAndNumbersComeOut(t *testing.T) {
	text := readReadme(t)
	promised := map[string][]string{}
	rows := numbers.FindAllStringSubmatch(text, -1)
	for _, row := range rows {
		promised[row[2]] = append(promised[row[2]], strings.Split(row[1], ", ")...)
	}
	done := map[string]bool{"holdfast ask": true} // named in a sentence, and no whole command
	atStandin(t)
	for _, found := range quoted.FindAllStringSubmatch(text, -1) {
		line := strings.TrimSpace(found[1])
		if done[line] {
			continue
		}
		done[line] = true
		t.Run(line, func(t *testing.T) {
			if strings.Contains(line, "serve --demo") {
				t.Skip("make demo runs it, and TestIncident in no time")
			}
			out, code := played(t, line)
			if code != 0 || out == "" {
				t.Errorf("exit code %d, stdout %q", code, out)
			}
			for _, number := range promised[line] {
				if !regexp.MustCompile(`(^|[^\d.])` + regexp.QuoteMeta(strings.TrimSpace(number)) + `($|[^\d.])`).MatchString(out) {
					t.Errorf("it prints no %q:\n%s", number, out)
				}
			}
		})
	}
	if len(done) < 12 || len(rows) < 4 {
		t.Errorf("%d commands and %d rows of numbers found; the patterns no longer fit how they are written", len(done), len(rows))
	}
}

// The configuration of the gateway is one that it takes, and says what the text says.
func TestReadmeConfigurationIsGood(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "any")
	t.Setenv("WEB_KEY_SHA256", strings.Repeat("0f", 32))
	file, err := config.Parse(readmeBlock(t, "yaml", "targets:"))
	if err != nil {
		t.Fatal(err)
	}
	settings, err := file.Gateway()
	if err != nil || len(settings.Targets) != 2 || len(settings.Routes) != 2 || len(settings.Clients) != 1 || len(file.Warnings()) > 0 {
		t.Errorf("%v, %d targets, %d routes, warnings %q", err, len(settings.Targets), len(settings.Routes), file.Warnings())
	}
}

// A second provider is configured as the text says, and nothing but credentials is missing.
func TestReadmeSecondProviderIsGood(t *testing.T) {
	bareOfClouds(t)
	t.Setenv("FOUNDRY_KEY", "any")
	file, err := config.Parse(readmeBlock(t, "yaml", "# each provider"))
	if err != nil {
		t.Fatal(err)
	}
	if err := accepted(file); err != nil {
		t.Error(err)
	}
	for _, w := range file.Warnings() {
		if !strings.Contains(w, "credentials here") {
			t.Error(w)
		}
	}
}

// The example is built in the module as if it were a package of it, and run against a stand-in.
func TestReadmeExampleWorks(t *testing.T) {
	source := readmeBlock(t, "go", "package main")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	atStandin(t)
	if err := os.WriteFile("main.go", source, 0o600); err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs("main.go")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "cmd", "example", "main.go"): here}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("overlay.json", overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "-overlay", filepath.Join(filepath.Dir(here), "overlay.json"), "./cmd/example")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"answered: 2 attempts in ", "529 overloaded_error req_standin_000001", "This is the stand-in speaking"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the example prints no %q:\n%s", want, out)
		}
	}
}
