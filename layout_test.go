package holdfast_test

// The structure of the tree as tests: who may import whom, how things are named, how long the longest may be.
// What the documents say about the code is tested in layout_docs_test.go.

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// floor says what the code of one package, its tests apart, may import besides the standard library.
type floor struct {
	below   []string // folders of this module; "." is the root
	outside []string // modules of others, by the start of the import path
}

var (
	internals = []string{"internal/sse", "internal/wire"}
	rooms     = slices.Concat(internals, []string{".", "transport", "saved", "once"})
	doors     = slices.Concat(rooms, []string{"internal/strict", "internal/endpoint", "provider", "turn", "batch", "standin", "drill", "bulk", "gateway"})

	yaml = []string{"go.yaml.in/yaml/", "github.com/goccy/go-yaml"}
	sdks = []string{"github.com/anthropics/anthropic-sdk-go", "github.com/openai/openai-go"}
)

// floors is the building, lowest floor first. Imports go down only. To move a boundary, change the table and say why in
// the commit. internal/testnet, internal/testpg and once/storetest are in no list: only tests import them.
var floors = map[string]floor{
	"internal/sse":        {},
	"internal/wire":       {},
	"internal/testnet":    {},
	"internal/testcloud":  {outside: []string{"github.com/aws/"}},    // imported from tests only, as testnet is
	"internal/endpoint":   {},                                        // what is known of APIs, as data
	"internal/sqlitefile": {outside: []string{"modernc.org/sqlite"}}, // files that processes share; knows nothing of calls
	"internal/strict":     {outside: yaml},                           // reads documents for whoever takes one; knows nothing of calls
	".":                   {below: []string{"internal/wire"}},
	"transport":           {below: slices.Concat(internals, []string{"."})},
	"saved":               {below: slices.Concat(internals, []string{"internal/sqlitefile", "."})},
	"once":                {below: slices.Concat(internals, []string{"internal/sqlitefile", "."}), outside: []string{"github.com/jackc/pgx/"}},
	"once/storetest":      {below: []string{"once"}},                    // for tests of stores
	"internal/testpg":     {outside: []string{"github.com/jackc/pgx/"}}, // imported from tests only
	"provider": {below: slices.Concat(internals, []string{".", "transport", "internal/endpoint"}), // Claude elsewhere, by the SDK's own clients
		outside: slices.Concat(sdks, []string{"github.com/aws/", "golang.org/x/oauth2", "google.golang.org/api/"})},
	"standin": {below: slices.Concat(internals, []string{"internal/strict", "standin/internal/request", "standin/internal/answer", "standin/internal/resource", "standin/internal/tape"}),
		outside: slices.Concat(yaml, []string{"github.com/invopop/jsonschema"})}, // a judge shares no policy with what it judges
	"standin/internal/request":  {below: internals},
	"standin/internal/answer":   {below: slices.Concat(internals, []string{"standin/internal/request"})},
	"standin/internal/resource": {below: slices.Concat(internals, []string{"standin/internal/request", "standin/internal/answer"})},
	"standin/internal/tape":     {below: internals},
	"turn":                      {below: rooms, outside: sdks},
	"batch":                     {below: slices.Concat(rooms, []string{"turn"}), outside: sdks}, // a message of a batch is judged as one of a turn
	"gateway":                   {below: slices.Concat(rooms, []string{"turn"}), outside: []string{"github.com/hashicorp/golang-lru/", "golang.org/x/sys/"}},
	"bulk":                      {below: slices.Concat(rooms, []string{"turn"}), outside: []string{"github.com/riverqueue/", "github.com/jackc/pgx/", "modernc.org/sqlite"}},
	"drill":                     {below: slices.Concat(rooms, []string{"internal/strict", "turn", "standin"}), outside: slices.Concat(yaml, []string{"gonum.org/v1/gonum", "github.com/guptarohit/asciigraph"})},
	"config":                    {below: doors, outside: slices.Concat(yaml, []string{"github.com/invopop/jsonschema"})},
	"telemetry":                 {below: doors, outside: []string{"github.com/prometheus/", "go.opentelemetry.io/"}},
	"cmd/holdfast":              {below: slices.Concat(doors, []string{"config", "telemetry"}), outside: []string{""}},
	"e2e":                       {below: slices.Concat(doors, []string{"config", "telemetry"}), outside: []string{""}},
	"e2e/failover":              {}, // tests alone
	"e2e/shipment":              {}, // a job, its tests and nothing else
}

// bare are the packages whose tests too use the standard library alone: go mod tidy counts them for whoever imports the
// root.
var bare = []string{".", "internal/wire"}

// bannedNames are drawers: a package or file with such a name collects what has no place.
var bannedNames = []string{"util", "utils", "common", "helper", "helpers", "misc", "types", "base", "core", "manager", "pkg"}

// sleepers are the test files that may call time.Sleep outside a synctest bubble, with the reason.
var sleepers = map[string]string{}

// The caps are a ceiling that keeps the tail short, not an aim: aim at 200 lines a file and 25 a function.
const (
	codeFileCap   = 700
	testFileCap   = 900
	codeBodyCap   = 120
	testBodyCap   = 160 // tables of cases
	parametersCap = 6
)

// skipDir are folders that hold no code of this module.
var skipDir = []string{".git", ".tools", "bin", "dist", "out", "node_modules", "testdata"}

// source is one parsed Go file.
type source struct {
	name string // from the root, with slashes
	dir  string
	test bool
	file *ast.File
}

var fset = token.NewFileSet()

// sources are all Go files of this module. Folders with a go.mod of their own are other modules.
var sources = sync.OnceValues(func() ([]source, error) {
	var all []source
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			if name != "." && (err == nil || slices.Contains(skipDir, entry.Name())) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		name = filepath.ToSlash(name)
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		all = append(all, source{name, path.Dir(name), strings.HasSuffix(name, "_test.go"), file})
		return err
	})
	return all, err
})

func tree(t *testing.T) []source {
	t.Helper()
	all, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func modulePath(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^module (\S+)`).FindSubmatch(text)
	if found == nil {
		t.Fatal("go.mod names no module")
	}
	return string(found[1])
}

// misplaced says what is wrong with one import, or "".
func misplaced(dir string, test bool, module, imported string) string {
	place := floors[dir]
	inside, ours := strings.CutPrefix(imported+"/", module+"/")
	inside = path.Clean(inside)
	first, _, _ := strings.Cut(imported, "/")
	allowed := func(prefix string) bool { return strings.HasPrefix(imported, prefix) }
	standard := !ours && !strings.Contains(first, ".")
	switch {
	case test && !ours && !standard && slices.Contains(bare, dir):
		return fmt.Sprintf("tests of %s must not import %s: it would come into the go.sum of everybody who imports the root", dir, imported)
	case test || standard:
		return ""
	case ours && slices.Contains(place.below, inside), !ours && slices.ContainsFunc(place.outside, allowed):
		return ""
	}
	return fmt.Sprintf("package %s must not import %s: imports go down only, see floors", dir, imported)
}

func TestFloors(t *testing.T) {
	module := modulePath(t)
	for _, s := range tree(t) {
		if _, known := floors[s.dir]; !known {
			t.Errorf("%s: package %s is on no floor: add it to the table on purpose", s.name, s.dir)
			continue
		}
		for _, spec := range s.file.Imports {
			if fault := misplaced(s.dir, s.test, module, strings.Trim(spec.Path.Value, `"`)); fault != "" {
				t.Errorf("%s: %s", fset.Position(spec.Pos()), fault)
			}
		}
	}
}

// The rule itself, seen to refuse: a table that allows everything would pass on any tree.
func TestFloorsRefuse(t *testing.T) {
	for _, row := range []struct {
		name, dir, imported string
		test, refused       bool
	}{
		{name: "standard library", dir: "internal/sse", imported: "net/http"},
		{name: "root may use wire", dir: ".", imported: "keep/internal/wire"},
		{name: "root may not use sse", dir: ".", imported: "keep/internal/sse", refused: true},
		{name: "root has no dependency", dir: ".", imported: "golang.org/x/time/rate", refused: true},
		{name: "wire may not use root", dir: "internal/wire", imported: "keep", refused: true},
		{name: "stand-in may not use root", dir: "standin", imported: "keep", refused: true},
		{name: "stand-in may use wire", dir: "standin", imported: "keep/internal/wire"},
		{name: "gateway may not use the stand-in", dir: "gateway", imported: "keep/standin", refused: true},
		{name: "library may not use the test network", dir: "cmd/holdfast", imported: "keep/internal/testnet", refused: true},
		{name: "tests may use the test network", dir: "transport", imported: "keep/internal/testnet", test: true},
		{name: "SDK in turn", dir: "turn", imported: "github.com/anthropics/anthropic-sdk-go/v2"},
		{name: "SDK in transport", dir: "transport", imported: "github.com/anthropics/anthropic-sdk-go/v2", refused: true},
		{name: "library in a test of the root", dir: ".", imported: "github.com/google/go-cmp/cmp", test: true, refused: true},
		{name: "test network in a test of the root", dir: ".", imported: "keep/internal/testnet", test: true},
		{name: "SDK in a test of transport", dir: "transport", imported: "github.com/openai/openai-go/v3", test: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if fault := misplaced(row.dir, row.test, "keep", row.imported); (fault != "") != row.refused {
				t.Errorf("misplaced(%s, %s) = %q, refused should be %v", row.dir, row.imported, fault, row.refused)
			}
		})
	}
}

func TestNoDrawers(t *testing.T) {
	for _, s := range tree(t) {
		stem := strings.TrimSuffix(path.Base(s.name), ".go")
		words := slices.Concat(strings.Split(s.dir, "/"), strings.Split(stem, "_"), strings.Split(s.file.Name.Name, "_"))
		for _, word := range words {
			if slices.Contains(bannedNames, word) || strings.HasSuffix(word, "util") || strings.HasSuffix(word, "utils") {
				t.Errorf("%s: %q names a drawer; name the concept instead", s.name, word)
			}
		}
	}
}

func TestPackageIsItsFolder(t *testing.T) {
	for _, s := range tree(t) {
		want := path.Base(s.dir)
		if s.dir == "." {
			want = "holdfast"
		}
		got := s.file.Name.Name
		if s.test {
			got = strings.TrimSuffix(got, "_test")
		}
		if got != want && got != "main" {
			t.Errorf("%s: package %s in folder %s", s.name, got, s.dir)
		}
	}
}

func TestTestsDoNotSleep(t *testing.T) {
	for _, s := range tree(t) {
		faked := slices.ContainsFunc(s.file.Imports, func(spec *ast.ImportSpec) bool { return spec.Path.Value == `"testing/synctest"` })
		if _, allowed := sleepers[s.name]; !s.test || faked || allowed {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Sleep" {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" {
					t.Errorf("%s: time.Sleep outside a synctest bubble; wait for an event, or add the file and the reason to sleepers", fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

func TestTailIsShort(t *testing.T) {
	for _, s := range tree(t) {
		fileCap, bodyCap := codeFileCap, codeBodyCap
		if s.test {
			fileCap, bodyCap = testFileCap, testBodyCap
		}
		if lines := fset.File(s.file.Pos()).LineCount(); lines > fileCap {
			t.Errorf("%s: %d lines, the cap is %d; one file is one family", s.name, lines, fileCap)
		}
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			at := fset.Position(f.Pos())
			if lines := fset.Position(f.Body.Rbrace).Line - fset.Position(f.Body.Lbrace).Line - 1; lines > bodyCap {
				t.Errorf("%s: %s has %d lines, the cap is %d", at, f.Name.Name, lines, bodyCap)
			}
			if n := f.Type.Params.NumFields(); n > parametersCap {
				t.Errorf("%s: %s has %d parameters, the cap is %d; take a struct", at, f.Name.Name, n, parametersCap)
			}
		}
	}
}

// stranger is a kind of word that no file of the project may hold.
type stranger struct {
	what string
	word *regexp.Regexp
}

// strangers are written in pieces so that this file does not hold them.
var strangers = []stranger{
	{"a path of somebody's machine", regexp.MustCompile(`(^|[\s"'=(:` + "`" + `])/(wo` + `rk|ho` + `me|ro` + `ot|Us` + `ers|tmp/br` + `ief)/`)},
	{"the host of a package registry", regexp.MustCompile(`pro` + `xy\.golang\.org|sum\.gol` + `ang\.org|regis` + `try\.npmjs\.org|regis` + `try\.yarnpkg\.com|py` + `pi\.org|deb\.deb` + `ian\.org|index\.crates` + `\.io`)},
	{"a promise instead of the thing", regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)},
}

func TestNoStrangers(t *testing.T) {
	for _, name := range projectFiles(t) {
		text, err := os.ReadFile(name)
		if err != nil || bytes.IndexByte(text, 0) >= 0 { // a folder, a deleted file, or not text
			continue
		}
		for _, stranger := range strangers {
			for i, line := range bytes.Split(text, []byte("\n")) {
				if found := stranger.word.Find(line); found != nil {
					t.Errorf("%s:%d: %q is %s", name, i+1, found, stranger.what)
				}
			}
		}
	}
}

func TestNoStrangersRefuses(t *testing.T) {
	for _, line := range []string{
		"see /wo" + "rk/notes", `"/ho` + `me/me/x"`, "GOPROXY=https://pro" + "xy.golang.org", "// TO" + "DO: later",
	} {
		if !slices.ContainsFunc(strangers, func(s stranger) bool { return s.word.MatchString(line) }) {
			t.Errorf("%q is let through", line)
		}
	}
}

// projectFiles are the files that git tracks; outside a clone, every file.
func projectFiles(t *testing.T) []string {
	t.Helper()
	if listed, err := exec.Command("git", "ls-files", "-z").Output(); err == nil && len(listed) > 0 {
		return strings.Split(strings.Trim(string(listed), "\x00"), "\x00")
	}
	var names []string
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() != "testdata" && slices.Contains(skipDir, entry.Name()) {
			return fs.SkipDir
		}
		names = append(names, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
